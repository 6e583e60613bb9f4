//! Routes that create, list and revoke tokens.

use super::{Route, get, post};
use crate::openapi::Operation;
use crate::openapi::shape::flag;
use crate::rest::access::ADMIN;
use crate::rest::tokens;
use serde_json::json;

pub(super) fn routes() -> Vec<Route> {
    let id_or_name = json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"});
    vec![
        get(
            "/v1/tokens",
            ADMIN,
            tokens::list,
            Operation::new("listTokens", "List tokens.")
                .paged()
                .query(
                    "sessions",
                    "False leaves out the sessions of the dashboard (default: true).",
                    flag(),
                )
                .gives(200, "A page of tokens, sorted by name.", "TokenPage")
                .reads(),
        ),
        post(
            "/v1/tokens",
            ADMIN,
            tokens::create,
            Operation::new(
                "createToken",
                "Create a token. Only this response contains the secret token.",
            )
            .takes("NewToken")
            .gives(201, "The created token.", "Token")
            .writes(),
        ),
        post(
            "/v1/tokens/{id}/revoke",
            ADMIN,
            tokens::revoke,
            Operation::new(
                "revokeToken",
                "Revoke a token. Within a second, every server rejects the token.",
            )
            .at("id", "Id or name of the token.", id_or_name)
            .may_take("Nothing")
            .gives(200, "The token after the change.", "Token")
            .writes(),
        ),
    ]
}
