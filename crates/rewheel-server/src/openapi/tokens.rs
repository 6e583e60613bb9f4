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
    let page = Object::new()
        .has("items", list(reference("Token")))
        .has("next", about(or_null(text()), "Always null: the list is complete."));
    vec![
        ("NewToken", example(new_token(), wish)),
        ("Token", token()),
        ("TokenPage", page.open("All tokens, by name.")),
    ]
}

fn role() -> Value {
    one_of(TokenRole::ALL.map(TokenRole::as_str))
}

fn new_token() -> Value {
    let mut roles = list(role());
    roles["minItems"] = 1.into();
    let roles = json!({"anyOf": [role(), roles]});
    let tenant = "Limits the token to this tenant; not with `admin` or `work`.";
    Object::new()
        .has("name", about(kind(), "Name in the audit log."))
        .has("roles", about(roles, "Roles of the token."))
        .may("tenant", about(or_null(name(128)), tenant))
        .may("expires", about(or_null(time_asked()), "Expiry time."))
        .may("expires_in", about(or_null(duration_asked()), "Time until expiry."))
        .closed("A token to create.")
}

fn token() -> Value {
    Object::new()
        .has("id", about(json!({"type": "string", "pattern": "^[0-9a-f]{16}$"}), "Safe to show."))
        .has("name", kind())
        .has("roles", list(role()))
        .has("tenant", or_null(name(128)))
        .has("state", one_of(["live", "expired", "revoked"]))
        .has("created", time())
        .has("expires", or_null(time()))
        .has("revoked", or_null(time()))
        .may("token", about(text(), "The token itself; only in the response that created it."))
        .open("A token, without its secret.")
}
