//! Schemas of the token documents.

use super::schemas::page;
use super::shape::{
    Object, duration_asked, example, kind, list, name, one_of, or_null, text, time, time_asked,
};
use rewheel_core::TokenRole;
use serde_json::{Value, json};

/// Every schema by name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let wish =
        json!({"name": "checkout", "roles": ["submit"], "tenant": "shop", "expires_in": "90d"});
    vec![
        ("NewToken", example(new_token(), wish)),
        ("Token", token()),
        ("TokenPage", page("Token").open("A page of tokens, sorted by name.")),
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
        .has("name", kind(), "Name of the token. The audit log shows this name.")
        .has("roles", roles, "Roles of the token.")
        .may("tenant", or_null(name(128)), tenant)
        .may(
            "expires",
            or_null(time_asked()),
            "Time at which the token expires. Cannot be combined with `expires_in`.",
        )
        .may(
            "expires_in",
            or_null(duration_asked()),
            "Lifetime of the token. Cannot be combined with `expires`.",
        )
        .closed("A token to create.")
}

fn token() -> Value {
    Object::new()
        .has(
            "id",
            json!({"type": "string", "pattern": "^[0-9a-f]{16}$"}),
            "Id of the token. The id is not secret.",
        )
        .has("name", kind(), "Name of the token. The audit log shows this name.")
        .has("roles", list(role()), "Roles of the token.")
        .has(
            "tenant",
            or_null(name(128)),
            "Tenant that the token is limited to. Null if it is not limited.",
        )
        .has("state", one_of(["live", "expired", "revoked"]), "Whether the token can be used.")
        .has("created", time(), "Time at which the token was created.")
        .has(
            "expires",
            or_null(time()),
            "Time at which the token expires. Null if it does not expire.",
        )
        .has(
            "revoked",
            or_null(time()),
            "Time at which the token was revoked. Null if it was not revoked.",
        )
        .may(
            "token",
            text(),
            "The secret token. Present only in the response that created the token.",
        )
        .open("A token: its name, roles and state.")
}
