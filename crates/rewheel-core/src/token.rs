//! API tokens and their roles.

use crate::audit::AuditFields;
use crate::job::When;
use crate::limits::Limits;
use crate::name::{Tenant, TokenName};
use crate::timestamp::Timestamp;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What a token permits.
///
/// ```
/// use rewheel_core::TokenRole;
///
/// assert!(TokenRole::Operate.includes(TokenRole::Read));
/// assert!(!TokenRole::Operate.includes(TokenRole::Work));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenRole {
    /// Submits jobs; no other access.
    Submit,
    /// Reads everything.
    Read,
    /// Runs jobs: claims, heartbeats, settles.
    Work,
    /// Reads, and changes jobs and kinds as an operator: cancel, pause, redrive. Does not include [`TokenRole::Work`]: an
    /// operator's token must not be able to report results.
    Operate,
    /// Everything, including settings of kinds and tokens.
    Admin,
}

impl TokenRole {
    /// Every role.
    pub const ALL: [TokenRole; 5] =
        [TokenRole::Submit, TokenRole::Read, TokenRole::Work, TokenRole::Operate, TokenRole::Admin];

    /// Returns the name used in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            TokenRole::Submit => "submit",
            TokenRole::Read => "read",
            TokenRole::Work => "work",
            TokenRole::Operate => "operate",
            TokenRole::Admin => "admin",
        }
    }

    /// Returns whether this role includes the permissions of the other.
    pub fn includes(self, other: TokenRole) -> bool {
        match self {
            TokenRole::Submit | TokenRole::Read | TokenRole::Work => self == other,
            TokenRole::Operate => matches!(other, TokenRole::Operate | TokenRole::Read),
            TokenRole::Admin => true,
        }
    }
}

impl fmt::Display for TokenRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error: the text is not a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role: use submit, read, work, operate or admin")]
pub struct UnknownRole(String);

impl FromStr for TokenRole {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<TokenRole, UnknownRole> {
        let found = TokenRole::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// The roles of one token, each at most once.
///
/// ```
/// use rewheel_core::{TokenRole, TokenRoles};
///
/// let roles: TokenRoles = "read,submit".parse()?;
/// assert_eq!(roles.to_string(), "submit,read");
/// assert!(roles.allow(TokenRole::Read) && !roles.allow(TokenRole::Operate));
/// # Ok::<_, rewheel_core::UnknownRole>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRoles(Vec<TokenRole>);

impl TokenRoles {
    /// Returns whether one of the roles includes `role`.
    pub fn allow(&self, role: TokenRole) -> bool {
        self.0.iter().any(|own| own.includes(role))
    }

    /// Returns whether there are no roles.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the roles in order.
    pub fn iter(&self) -> impl Iterator<Item = TokenRole> {
        self.0.iter().copied()
    }
}

impl FromIterator<TokenRole> for TokenRoles {
    fn from_iter<T: IntoIterator<Item = TokenRole>>(roles: T) -> TokenRoles {
        let mut roles: Vec<TokenRole> = roles.into_iter().collect();
        roles.sort_unstable();
        roles.dedup();
        TokenRoles(roles)
    }
}

impl fmt::Display for TokenRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, role) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            f.write_str(role.as_str())?;
        }
        Ok(())
    }
}

impl FromStr for TokenRoles {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<TokenRoles, UnknownRole> {
        text.split(',').map(|role| role.trim().parse()).collect()
    }
}

/// Public identifier of a token, which does not reveal its secret.
///
/// ```
/// use rewheel_core::TokenId;
///
/// let id = TokenId::new(0xab);
/// assert_eq!(id.to_string(), "00000000000000ab");
/// assert_eq!("00000000000000ab".parse(), Ok(id));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(u64);

impl TokenId {
    /// Creates an id from a random number.
    pub const fn new(number: u64) -> TokenId {
        TokenId(number)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Error: the text is not a token id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a token id: it must have 16 characters (0-9, a-f)")]
pub struct TokenIdError;

impl FromStr for TokenId {
    type Err = TokenIdError;

    fn from_str(text: &str) -> Result<TokenId, TokenIdError> {
        let id = u64::from_str_radix(text, 16).map(TokenId).map_err(|_| TokenIdError)?;
        if id.to_string() == text { Ok(id) } else { Err(TokenIdError) }
    }
}

/// Digest of a token: the only part of the secret that a store holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

/// A token to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Public identifier.
    pub id: TokenId,
    /// Display name; unique among tokens that are not revoked.
    pub name: TokenName,
    /// Its roles.
    pub roles: TokenRoles,
    /// If set, the token is valid only for jobs of this tenant.
    pub tenant: Option<Tenant>,
    /// Digest of the secret.
    pub hash: TokenHash,
    /// Expiry time.
    pub expires: Option<When>,
}

impl NewToken {
    /// Returns the token as stored, if the store's clock shows `now`.
    pub fn stored(&self, now: Timestamp) -> Token {
        let expires = self.expires.map(|expires| expires.resolve(now));
        Token {
            id: self.id,
            name: self.name.clone(),
            roles: self.roles.clone(),
            tenant: self.tenant.clone(),
            hash: self.hash,
            created: now,
            expires,
            expires_in: expires.map(|expires| expires.since(now)),
            revoked: None,
        }
    }
}

/// A token as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Public identifier.
    pub id: TokenId,
    /// Display name.
    pub name: TokenName,
    /// Its roles.
    pub roles: TokenRoles,
    /// If set, the token is valid only for jobs of this tenant.
    pub tenant: Option<Tenant>,
    /// Digest of the secret.
    pub hash: TokenHash,
    /// When it was created.
    pub created: Timestamp,
    /// Expiry time.
    pub expires: Option<Timestamp>,
    /// Time until the token expires, at the time of the store's response; zero if it has expired.
    pub expires_in: Option<Duration>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

impl Token {
    /// Returns whether it ended so long ago that stores delete it. A token with a short life is deleted sooner.
    ///
    /// ```
    /// use rewheel_core::{Limits, NewToken, Timestamp, TokenHash, TokenId, TokenName, TokenRoles, When};
    ///
    /// let token = |life| {
    ///     let (name, expires) = (TokenName::parse("ci").unwrap(), Some(When::In(life)));
    ///     let (id, hash) = (TokenId::new(1), TokenHash([0; 32]));
    ///     let new = NewToken { id, name, roles: TokenRoles::default(), tenant: None, hash, expires };
    ///     new.stored(Timestamp::from_millis(0))
    /// };
    /// let (short, long) = (token(Limits::SHORT_TOKEN), token(Limits::SHORT_TOKEN * 2));
    /// let later = Timestamp::from_millis(0).plus(Limits::SHORT_TOKEN * 5);
    /// assert!(short.is_forgotten(later) && !long.is_forgotten(later));
    /// ```
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        let is_short =
            self.expires.is_some_and(|expires| expires.since(self.created) <= Limits::SHORT_TOKEN);
        let kept = if is_short { Limits::SHORT_TOKENS_KEPT } else { Limits::ENDED_TOKENS_KEPT };
        let ended = self.revoked.into_iter().chain(self.expires).min();
        ended.is_some_and(|ended| now.since(ended) > kept)
    }

    /// Returns the values for the audit log.
    pub fn facts(&self) -> AuditFields {
        AuditFields::default()
            .with("id", Some(self.id))
            .with("name", Some(&self.name))
            .with("roles", Some(&self.roles))
            .with("tenant", self.tenant.as_ref())
            .with("expires_ms", self.expires.map(Timestamp::as_millis))
    }
}

/// Result of storing a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenPut {
    /// Stored, now or by an earlier call whose response was lost.
    Stored(Token),
    /// Another token that is not revoked has the same name.
    NameTaken,
    /// The store has reached its limit of tokens.
    Full,
}

/// Result of revoking a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRevoked {
    /// Revoked, now or earlier.
    Revoked(Token),
    /// The token does not exist.
    NotFound,
}
