//! API tokens and their roles.

use crate::audit::Facts;
use crate::job::When;
use crate::name::{Tenant, TokenName};
use crate::timestamp::Timestamp;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What whoever has a token may do.
///
/// ```
/// use rewheel_core::TokenRole;
///
/// assert!(TokenRole::Operate.includes(TokenRole::Read));
/// assert!(!TokenRole::Operate.includes(TokenRole::Work));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenRole {
    /// Hands jobs in, and sees nothing else.
    Submit,
    /// Looks.
    Read,
    /// Runs jobs: claims, heartbeats, settles.
    Work,
    /// Reads, and changes jobs and kinds as a person does: cancel, pause, redrive. Does not include [`TokenRole::Work`]: a
    /// person's token must not be able to report results.
    Operate,
    /// Everything: also says what kinds are, and who has tokens.
    Admin,
}

impl TokenRole {
    /// Every one of them.
    pub const ALL: [TokenRole; 5] =
        [TokenRole::Submit, TokenRole::Read, TokenRole::Work, TokenRole::Operate, TokenRole::Admin];

    /// Returns its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            TokenRole::Submit => "submit",
            TokenRole::Read => "read",
            TokenRole::Work => "work",
            TokenRole::Operate => "operate",
            TokenRole::Admin => "admin",
        }
    }

    /// Returns whether who has it may also do what the other is for.
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

/// The text is no role.
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

/// The roles of one token, each once.
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
    /// Returns whether one of them is for what `role` is for.
    pub fn allow(&self, role: TokenRole) -> bool {
        self.0.iter().any(|own| own.includes(role))
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns them in their order.
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

/// What a token is known by where its secret must not be seen.
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
    /// Takes a number that chance made.
    pub const fn new(number: u64) -> TokenId {
        TokenId(number)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The text is no id of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a token id: it must have 16 characters of 0-9 and a-f")]
pub struct TokenIdError;

impl FromStr for TokenId {
    type Err = TokenIdError;

    fn from_str(text: &str) -> Result<TokenId, TokenIdError> {
        let id = u64::from_str_radix(text, 16).map(TokenId).map_err(|_| TokenIdError)?;
        if id.to_string() == text { Ok(id) } else { Err(TokenIdError) }
    }
}

/// A digest of a token: all that a store knows of its secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

/// A token to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// What it is known by.
    pub id: TokenId,
    /// What people call it; no two that are not revoked have the same.
    pub name: TokenName,
    /// What it is for.
    pub roles: TokenRoles,
    /// The only tenant whose jobs it is for.
    pub tenant: Option<Tenant>,
    /// The digest of its secret.
    pub hash: TokenHash,
    /// When it is of no use any more.
    pub expires: Option<When>,
}

impl NewToken {
    /// Returns it as it is once stored, where the store's clock says `now`.
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

/// A token as a store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is known by.
    pub id: TokenId,
    /// What people call it.
    pub name: TokenName,
    /// What it is for.
    pub roles: TokenRoles,
    /// The only tenant whose jobs it is for.
    pub tenant: Option<Tenant>,
    /// The digest of its secret.
    pub hash: TokenHash,
    /// When it was made.
    pub created: Timestamp,
    /// When it is of no use any more.
    pub expires: Option<Timestamp>,
    /// How long that was away when the store answered; zero if it has passed.
    pub expires_in: Option<Duration>,
    /// When somebody took it back.
    pub revoked: Option<Timestamp>,
}

impl Token {
    /// Returns what the audit log says of it.
    pub fn facts(&self) -> Facts {
        Facts::default()
            .with("id", Some(self.id))
            .with("name", Some(&self.name))
            .with("roles", Some(&self.roles))
            .with("tenant", self.tenant.as_ref())
            .with("expires_ms", self.expires.map(Timestamp::as_millis))
    }
}

/// What became of a token that was to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenPut {
    /// It is stored: now, or by an earlier call whose answer was lost.
    Stored(Token),
    /// Another that is not revoked has its name.
    NameTaken,
    /// There are as many as a store keeps.
    Full,
}

/// What became of a token that was to be revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRevoked {
    /// It is revoked: now, or since before.
    Revoked(Token),
    /// There is no such token.
    NotFound,
}
