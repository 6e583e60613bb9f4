//! Creates and parses tokens, which authenticate callers.

mod session;
mod keeper;

pub(crate) use self::keeper::{Caller, Keeper, bad_token};
pub(crate) use self::session::{SESSION_TTL, is_session, session_id};

use crate::fields::Fields;
use crate::problem::{Code, FieldError, Problem};
use crate::rfc3339;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rewheel::duration;
use rewheel_core::{
    Limits, NewToken, Tenant, Token, TokenHash, TokenId, TokenName, TokenPut, TokenRole, When,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;

/// The prefix of every token, so that people and secret scanners recognize it.
const PREFIX: &str = "rw_";

/// Random bytes of a token. So many cannot be guessed, and one round of SHA-256 is enough: slow
/// hashes are for passwords that people choose.
const SECRET_BYTES: usize = 32;

/// Every field of a token request.
pub(crate) const FIELDS: [&str; 5] = ["name", "roles", "tenant", "expires", "expires_in"];

/// The name of the token in the config.
pub(crate) const CONFIG_NAME: &str = "config";

/// A token as its owner sees it: `rw_`, its id, `_`, its secret. It is shown once.
pub struct TokenText(String);

impl TokenText {
    /// Returns the text, including the secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(..)")
    }
}

/// Returns the digest of a token.
pub(crate) fn hash(text: &str) -> TokenHash {
    TokenHash(Sha256::digest(text.as_bytes()).into())
}

/// Returns the id in a token, if the text looks like one.
fn id_of(text: &str) -> Option<TokenId> {
    text.strip_prefix(PREFIX)?.split_once('_')?.0.parse().ok()
}

/// Parses an id, or takes the id from a token.
pub(crate) fn token_id(text: &str) -> Option<TokenId> {
    id_of(text).or_else(|| text.parse().ok())
}

/// Creates a token from a request: the body of `POST /v1/tokens`.
///
/// ```
/// let (token, text) = rewheel_server::tokens::make(r#"{"name":"ci","roles":["submit"]}"#)?;
/// assert!(text.reveal().starts_with(&format!("rw_{}_", token.id)));
/// # Ok::<(), rewheel_server::problem::Problem>(())
/// ```
///
/// # Errors
/// Names every invalid field.
pub fn make(text: &str) -> Result<(NewToken, TokenText), Problem> {
    let mut fields = Fields::read(text, "", &FIELDS)?;
    let name = fields.text("name", TokenName::parse);
    if name.is_none() && !fields.is_wrong("name") {
        fields.wrong("name", "is required: choose a name, which the audit log shows");
    }
    if name.as_ref().is_some_and(|name| name.as_str() == CONFIG_NAME) {
        fields.wrong(
            "name",
            "must not be `config`: this name is reserved for the admin token in the config of the server",
        );
    }
    if name.as_ref().is_some_and(|name| is_session(name.as_str())) {
        fields.wrong("name", "must not begin with `session.`: these names are reserved for sessions of the dashboard");
    }
    let roles: rewheel_core::TokenRoles =
        fields.texts("roles", str::parse::<TokenRole>).into_iter().collect();
    if roles.is_empty() && !fields.is_wrong("roles") {
        fields
            .wrong("roles", "is required: list one or more of submit, read, work, operate, admin");
    }
    let tenant = fields.text("tenant", Tenant::parse);
    let for_all = |role: &TokenRole| matches!(role, TokenRole::Admin | TokenRole::Work);
    if let Some(role) = roles.iter().find(for_all).filter(|_| tenant.is_some()) {
        let why = format!(
            "cannot be combined with the role `{role}`, which applies to all tenants: remove `tenant` or the role"
        );
        fields.wrong("tenant", why);
    }
    let (at, after) = (
        fields.text("expires", rfc3339::parse).map(When::At),
        fields.text("expires_in", expires_in).map(When::In),
    );
    if at.is_some() && after.is_some() {
        fields.wrong("expires_in", "cannot be combined with `expires`: remove one of the two");
    }
    let errors = fields.into_errors();
    let (Some(name), true) = (name, errors.is_empty()) else {
        return Err(Problem::of_fields(Code::InvalidField, errors));
    };
    let (id, text) = chance()?;
    let (hash, expires) = (hash(&text.0), at.or(after));
    Ok((NewToken { id, name, roles, tenant, hash, expires }, text))
}

fn expires_in(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(duration) if duration.is_zero() => Err("must be longer than 0s".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

fn chance() -> Result<(TokenId, TokenText), Problem> {
    let (mut id, mut secret) = ([0; 8], [0; SECRET_BYTES]);
    let random = SystemRandom::new();
    if random.fill(&mut id).and_then(|()| random.fill(&mut secret)).is_err() {
        return Err(Problem::new(Code::Internal, "the operating system's random source failed"));
    }
    let id = TokenId::new(u64::from_be_bytes(id));
    let text = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
    Ok((id, TokenText(text)))
}

/// Returns the stored token, or why it was not stored.
///
/// # Errors
/// Names the conflict.
pub fn stored(put: TokenPut, name: &TokenName) -> Result<Token, Problem> {
    match put {
        TokenPut::Stored(token) => Ok(token),
        TokenPut::NameTaken => {
            let why = format!("`{name}` is already used by another token");
            Err(Problem::of_fields(Code::InvalidField, vec![FieldError::new("/name", why)])
                .hint("choose another name, or revoke the other token first"))
        }
        TokenPut::Full => {
            let why = format!("the store has {} tokens, which is its limit", Limits::TOKENS_MAX);
            Err(Problem::new(Code::TooLarge, why)
                .hint("create tokens with `expires_in`: the server deletes expired tokens after some time"))
        }
    }
}

/// Finds a token by its id, its name, or its text.
pub fn find<'a>(tokens: &'a [Token], wanted: &str) -> Option<&'a Token> {
    // The text of the token itself is accepted, too.
    let id = token_id(wanted);
    let by_id = tokens.iter().find(|token| Some(token.id) == id);
    let named = |token: &&Token| token.name.as_str() == wanted;
    let living = tokens.iter().filter(named).find(|token| token.revoked.is_none());
    by_id.or(living).or_else(|| tokens.iter().rfind(named))
}

/// A token as JSON.
#[derive(Debug, Serialize)]
pub struct TokenDocument {
    id: String,
    name: String,
    roles: Vec<&'static str>,
    tenant: Option<String>,
    state: &'static str,
    created: String,
    expires: Option<String>,
    revoked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl TokenDocument {
    /// Builds the document of a token, without its secret.
    pub fn new(token: &Token) -> TokenDocument {
        TokenDocument {
            id: token.id.to_string(),
            name: token.name.to_string(),
            roles: token.roles.iter().map(TokenRole::as_str).collect(),
            tenant: token.tenant.as_ref().map(ToString::to_string),
            state: match (token.revoked, token.expires_in) {
                (Some(_), _) => "revoked",
                (None, Some(Duration::ZERO)) => "expired",
                (None, _) => "live",
            },
            created: rfc3339::text(token.created),
            expires: token.expires.map(rfc3339::text),
            revoked: token.revoked.map(rfc3339::text),
            token: None,
        }
    }

    /// Adds the secret, which is shown only once.
    #[must_use]
    pub fn reveal(mut self, text: &TokenText) -> TokenDocument {
        self.token = Some(text.reveal().to_owned());
        self
    }
}

#[cfg(test)]
mod tests;
