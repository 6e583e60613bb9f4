//! Sessions of the dashboard: short-lived tokens that depend on the token of their owner.

use super::{SECRET_BYTES, TokenText, chance, hash, id_of};
use crate::problem::Problem;
use rewheel::minutes;
use rewheel_core::{NewToken, Tenant, Token, TokenHash, TokenId, TokenName, TokenRoles, When};
use std::time::Duration;

/// The prefix of the name of every session. Other tokens cannot have such names.
pub(super) const PREFIX: &str = "session.";

/// How long a session lasts.
pub(crate) const SESSION_TTL: Duration = minutes(12 * 60);

/// Maximum number of live sessions of one token: more than the browsers of a team that shares it. The oldest ends.
pub(crate) const LIVE_MAX: usize = 50;

/// Maximum number of sessions of one token that the store keeps, with those that ended within [`rewheel_core::Limits::SHORT_TOKENS_KEPT`]: no token
/// may use up the space for all tokens.
pub(crate) const KEPT_MAX: usize = 500;

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

/// Returns the sessions of a token that have to end before another one may begin.
pub(super) fn to_end(parent: Parent, tokens: &[Token]) -> Result<Vec<TokenId>, Problem> {
    let mut own: Vec<&Token> =
        tokens.iter().filter(|token| Parent::of(&token.name) == Some(parent)).collect();
    if own.len() >= KEPT_MAX {
        let detail = format!("{KEPT_MAX} sessions were started with this token within a day");
        let problem = Problem::new(crate::problem::Code::Throttled, detail);
        return Err(problem.hint("sign in with another token, or wait some hours"));
    }
    let is_live = |token: &&Token| {
        token.revoked.is_none() && token.expires_in.is_none_or(|left| !left.is_zero())
    };
    own.retain(is_live);
    own.sort_by_key(|token| (token.created, token.id));
    let too_many = (own.len() + 1).saturating_sub(LIVE_MAX);
    Ok(own.iter().take(too_many).map(|token| token.id).collect())
}

/// Returns the id in the text of a session.
pub(crate) fn session_id(text: &str) -> Option<TokenId> {
    id_of(text)
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, LIVE_MAX, Parent, hash, make, to_end};
    use rewheel_core::{Timestamp, Token, TokenId, TokenName, TokenRole, TokenRoles};

    fn sessions(parent: Parent, count: usize) -> Vec<Token> {
        let roles = TokenRoles::from_iter([TokenRole::Read]);
        let one = |at: usize| {
            let (new, _) = make(parent, (roles.clone(), None)).unwrap();
            new.stored(Timestamp::from_millis(at as i64))
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_oldest_session_of_a_token_makes_room() {
        let (own, other) = (Parent::Stored(TokenId::new(7)), Parent::Stored(TokenId::new(8)));
        let mut tokens = sessions(own, LIVE_MAX - 1);
        tokens.extend(sessions(other, LIVE_MAX));
        assert_eq!(to_end(own, &tokens).unwrap(), []);
        tokens.insert(0, sessions(own, 3).remove(2));
        let oldest = tokens.iter().find(|token| token.created.as_millis() == 0).unwrap().id;
        assert_eq!(to_end(own, &tokens).unwrap(), [oldest]);
        let ended = tokens.iter_mut().find(|token| token.id == oldest).unwrap();
        ended.revoked = Some(ended.created);
        assert_eq!(to_end(own, &tokens).unwrap(), [], "an ended session takes no place");
    }

    #[test]
    fn one_token_cannot_fill_the_store_with_sessions() {
        let (own, other) = (Parent::Stored(TokenId::new(7)), Parent::Stored(TokenId::new(8)));
        let mut tokens = sessions(own, KEPT_MAX);
        tokens.iter_mut().for_each(|token| token.revoked = Some(token.created));
        assert!(to_end(own, &tokens).unwrap_err().detail.contains("within a day"));
        assert_eq!(to_end(other, &tokens).unwrap(), []);
    }

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
