//! Schemas of the token documents.

use super::shape::{
    Object, about, duration_asked, example, kind, list, name, one_of, or_null, reference, text,
    time, time_asked,
};
use rewheel_core::TokenRole;
use serde_json::{Value, json};

/// Every schema by name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let wish =
        json!({"name": "checkout", "roles": ["submit"], "tenant": "shop", "expires_in": "90d"});
    let page = Object::new().has("items", list(reference("Token"))).has(
        "next",
        about(
            or_null(text()),
            "Value of the query parameter `cursor` for the next page. Null on the last page.",
        ),
    );
    vec![
        ("NewToken", example(new_token(), wish)),
        ("Token", token()),
        ("TokenPage", page.open("A page of tokens, sorted by name.")),
    ]
}

fn role() -> Value {
    one_of(TokenRole::ALL.map(TokenRole::as_str))
}

fn new_token() -> Value {
    let mut roles = list(role());
    roles["minItems"] = 1.into();
    let roles = json!({"anyOf": [role(), roles]});
    let tenant = "Limit the token to the jobs of this tenant. Cannot be combined with the roles `admin` and `work`.";
    Object::new()
        .has("name", about(kind(), "Name of the token. The audit log shows this name."))
        .has("roles", about(roles, "Roles of the token."))
        .may("tenant", about(or_null(name(128)), tenant))
        .may(
            "expires",
            about(
                or_null(time_asked()),
                "Time at which the token expires. Cannot be combined with `expires_in`.",
            ),
        )
        .may(
            "expires_in",
            about(
                or_null(duration_asked()),
                "Lifetime of the token. Cannot be combined with `expires`.",
            ),
        )
        .closed("A token to create.")
}

fn token() -> Value {
    Object::new()
        .has(
            "id",
            about(
                json!({"type": "string", "pattern": "^[0-9a-f]{16}$"}),
                "Id of the token. The id is not secret.",
            ),
        )
        .has("name", kind())
        .has("roles", list(role()))
        .has("tenant", or_null(name(128)))
        .has("state", one_of(["live", "expired", "revoked"]))
        .has("created", time())
        .has("expires", or_null(time()))
        .has("revoked", or_null(time()))
        .may(
            "token",
            about(text(), "The secret token. Present only in the response that created the token."),
        )
        .open("A token: its name, roles and state.")
}
