//! Tests token requests and the form of tokens.

use super::{find, hash, id_of, make};
use crate::problem::Code;
use rewheel_core::Timestamp;

#[test]
fn a_token_shows_its_id_and_nothing_shows_its_secret() {
    let body = r#"{"name":"ci","roles":["read","submit"],"tenant":"shop","expires_in":"90d"}"#;
    let (token, text) = make(body).unwrap();
    let (other, another) = make(body).unwrap();
    assert!(token.id != other.id && text.reveal() != another.reveal());
    assert_eq!(id_of(text.reveal()), Some(token.id));
    // `rw_`, 16 characters, `_`, 32 bytes in base64.
    assert_eq!(text.reveal().len(), 3 + 16 + 1 + 43);
    assert_eq!(token.hash, hash(text.reveal()));
    assert_eq!(format!("{text:?} {:?}", token.hash), "TokenText(..) TokenHash(..)");
    assert_eq!(token.roles.to_string(), "submit,read");
}

#[track_caller]
fn check(body: &str, field: &str, why: &str) {
    let problem = make(body).unwrap_err();
    assert_eq!((problem.code, problem.errors[0].field.as_str()), (Code::InvalidField, field));
    assert!(problem.errors[0].message.starts_with(why), "{:?}", problem.errors);
}

#[test]
fn a_mistake_is_named() {
    check(r#"{"roles":["read"]}"#, "/name", "is required");
    check(r#"{"name":"A b","roles":["read"]}"#, "/name", "must have 1 to 64");
    check(r#"{"name":"config","roles":["read"]}"#, "/name", "must not be `config`");
    check(r#"{"name":"a"}"#, "/roles", "is required");
    check(r#"{"name":"a","roles":[]}"#, "/roles", "is required");
    check(r#"{"name":"a","roles":["root"]}"#, "/roles", "`root` is not a role");
    check(
        r#"{"name":"a","roles":["admin"],"tenant":"shop"}"#,
        "/tenant",
        "cannot be combined with the role",
    );
    check(
        r#"{"name":"a","roles":["work"],"tenant":"shop"}"#,
        "/tenant",
        "cannot be combined with the role",
    );
    check(r#"{"name":"a","roles":["read"],"expires_in":"soon"}"#, "/expires_in", "`soon`");
    check(r#"{"name":"a","roles":["read"],"expires_in":"0s"}"#, "/expires_in", "must be longer");
    check(r#"{"name":"a","roles":["read"],"role":"admin"}"#, "/role", "is unknown");
    let both =
        r#"{"name":"a","roles":["read"],"expires_in":"1d","expires":"2030-01-01T00:00:00Z"}"#;
    check(both, "/expires_in", "cannot be combined with `expires`");
}

#[test]
fn a_token_is_found_by_name_by_id_and_by_itself() {
    let body = r#"{"name":"ci","roles":["read"]}"#;
    let (old, text) = make(body).unwrap();
    let (new, _) = make(body).unwrap();
    let now = Timestamp::from_millis(0);
    let mut tokens = vec![old.stored(now), new.stored(now)];
    tokens[0].revoked = Some(now);
    let found = |wanted: &str| find(&tokens, wanted).map(|token| token.id);
    assert_eq!(found("ci"), Some(new.id));
    assert_eq!(found(&old.id.to_string()), Some(old.id));
    assert_eq!(found(text.reveal()), Some(old.id));
    assert_eq!(found("ops"), None);
}
