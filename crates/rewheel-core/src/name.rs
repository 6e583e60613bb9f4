//! Validated names: kinds, tenants, keys and others.

use crate::limits::Limits;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Error: the text is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a valid kind or token name.
    #[error(
        "must have 1 to 64 characters (a-z, 0-9, `.`, `_`, `-`) and start with a letter or digit"
    )]
    Kind,
    /// Not a valid tenant.
    #[error("must be 1 to 128 bytes without control characters")]
    Tenant,
    /// Not a valid key, shard key or group key.
    #[error("must be 1 to 255 bytes without control characters")]
    Key,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident, $error:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses a name.
            ///
            /// # Errors
            /// Fails with the naming rules if the text breaks them.
            pub fn parse(text: &str) -> Result<$name, NameError> {
                if $check(text) { Ok($name(Arc::from(text))) } else { Err($error) }
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<$name, NameError> {
                $name::parse(text)
            }
        }
    };
}

name! {
    /// Name of a kind of job; selects its runner and its settings.
    ///
    /// ```
    /// use rewheel_core::KindName;
    ///
    /// assert_eq!(KindName::parse("charge-card")?.as_str(), "charge-card");
    /// assert!(KindName::parse("Charge card").is_err());
    /// # Ok::<_, rewheel_core::NameError>(())
    /// ```
    KindName, is_kind, NameError::Kind
}

name! {
    /// Name of a token, as shown in the audit log.
    TokenName, is_kind, NameError::Kind
}

name! {
    /// The tenant that a job belongs to. Jobs of one tenant do not delay those of another.
    Tenant, is_tenant, NameError::Tenant
}

name! {
    /// Deduplication key of a job, unique per tenant and kind: submitting the same key again has no effect.
    Key, is_key, NameError::Key
}

name! {
    /// Groups jobs that should share a shard.
    ShardKey, is_key, NameError::Key
}

name! {
    /// Names a group of jobs that run one at a time, unique per tenant and kind.
    GroupKey, is_key, NameError::Key
}

impl KindName {
    /// Returns whether the name is reserved for the engine's own jobs; users cannot submit or run these.
    ///
    /// ```
    /// use rewheel_core::KindName;
    ///
    /// assert!(KindName::parse("rewheel.operation")?.is_reserved());
    /// assert!(!KindName::parse("rewheel-report")?.is_reserved());
    /// # Ok::<_, rewheel_core::NameError>(())
    /// ```
    pub fn is_reserved(&self) -> bool {
        self.as_str().starts_with("rewheel.")
    }
}

fn is_kind(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= Limits::KIND_BYTES_MAX
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_tenant(text: &str) -> bool {
    is_text(text, Limits::TENANT_BYTES_MAX)
}

fn is_key(text: &str) -> bool {
    is_text(text, Limits::KEY_BYTES_MAX)
}

/// A NUL or a line break in a name is a mistake, and some databases reject NUL.
fn is_text(text: &str, bytes_max: usize) -> bool {
    !text.is_empty() && text.len() <= bytes_max && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::{Key, KindName, NameError, Tenant};

    #[test]
    fn a_kind_is_what_the_wire_says() {
        for good in ["a", "0", "charge-card", "a.b_c-1", &"x".repeat(64)] {
            assert!(KindName::parse(good).is_ok(), "{good:?} was refused");
        }
        for bad in ["", "A", "-a", ".a", "_a", "a b", "ä", "a/b", "a\0", &"x".repeat(65)] {
            assert_eq!(KindName::parse(bad), Err(NameError::Kind), "{bad:?} was accepted");
        }
    }

    #[test]
    fn keys_and_tenants_are_any_text_that_fits() {
        assert!(Key::parse("order-17 é 日本").is_ok());
        assert!(Key::parse(&"k".repeat(255)).is_ok());
        for bad in ["", "a\nb", "a\0b", &"k".repeat(256), &"é".repeat(128)] {
            assert_eq!(Key::parse(bad), Err(NameError::Key), "{bad:?} was accepted");
        }
        assert!(Tenant::parse(&"t".repeat(128)).is_ok());
        assert_eq!(Tenant::parse(&"t".repeat(129)), Err(NameError::Tenant));
    }
}
