//! Sessions of the dashboard: short-lived tokens that depend on the token of their owner.

use super::{SECRET_BYTES, TokenText, chance, hash, id_of};
use crate::problem::Problem;
use rewheel::minutes;
use rewheel_core::{NewToken, Tenant, TokenHash, TokenId, TokenName, TokenRoles, When};
use std::time::Duration;

/// The prefix of the name of every session. Other tokens cannot have such names.
pub(super) const PREFIX: &str = "session.";

/// How long a session lasts.
pub(crate) const SESSION_TTL: Duration = minutes(12 * 60);

const _: () = assert!(SECRET_BYTES >= 32, "a session cannot be guessed");

/// The token that a session depends on. The name of the session contains it: the session ends when this token ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// The admin token of the config, by the first bytes of the digest of its digest.
    Config([u8; 4]),
    /// A token in the store.
    Stored(TokenId),
}

impl Parent {
    /// Returns the admin token of the config as a parent. Another token in the config is another parent.
    pub(super) fn config(config: &TokenHash) -> Parent {
        let hex: String = config.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = hash(&hex).0;
        Parent::Config([digest[0], digest[1], digest[2], digest[3]])
    }

    /// Reads the parent in the name of a session.
    pub(super) fn of(name: &TokenName) -> Option<Parent> {
        let (parent, _) = name.as_str().strip_prefix(PREFIX)?.split_once('.')?;
        match parent.strip_prefix("config-") {
            Some(hex) => {
                u32::from_str_radix(hex, 16).ok().map(u32::to_be_bytes).map(Parent::Config)
            }
            None => parent.parse().ok().map(Parent::Stored),
        }
    }

    fn text(self) -> String {
        match self {
            Parent::Config(digest) => format!("config-{:08x}", u32::from_be_bytes(digest)),
            Parent::Stored(id) => id.to_string(),
        }
    }
}

/// Returns whether a token is a session of the dashboard.
pub(crate) fn is_session(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Creates a session with the rights of its parent.
pub(super) fn make(
    parent: Parent,
    (roles, tenant): (TokenRoles, Option<Tenant>),
) -> Result<(NewToken, TokenText), Problem> {
    let (id, text) = chance()?;
    let name = format!("{PREFIX}{}.{id}", parent.text());
    let name = TokenName::parse(&name).map_err(|error| {
        Problem::new(crate::problem::Code::Internal, format!("the name of a session {error}"))
    })?;
    let hash = hash(text.reveal());
    Ok((NewToken { id, name, roles, tenant, hash, expires: Some(When::In(SESSION_TTL)) }, text))
}

/// Returns the id in the text of a session.
pub(crate) fn session_id(text: &str) -> Option<TokenId> {
    id_of(text)
}

#[cfg(test)]
mod tests {
    use super::{Parent, hash, make};
    use rewheel_core::{TokenId, TokenName, TokenRole, TokenRoles};

    #[test]
    fn the_name_of_a_session_names_its_parent() {
        let roles = TokenRoles::from_iter([TokenRole::Read]);
        for parent in [Parent::Stored(TokenId::new(7)), Parent::config(&hash("x"))] {
            let (session, _) = make(parent, (roles.clone(), None)).unwrap();
            assert_eq!(Parent::of(&session.name), Some(parent), "{}", session.name);
        }
        assert_ne!(Parent::config(&hash("x")), Parent::config(&hash("y")));
        for name in ["ops", "session.", "session.x", "session.zz.1", "session.config-.1"] {
            assert_eq!(TokenName::parse(name).ok().and_then(|name| Parent::of(&name)), None);
        }
    }
}
