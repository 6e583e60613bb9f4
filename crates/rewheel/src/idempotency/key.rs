//! Idempotency keys.

use sha2::{Digest, Sha256};
use std::fmt;

/// An idempotency key together with its caller.
///
/// Only a hash of both is kept: it has a fixed length, and a leaked store reveals neither callers nor their keys.
///
/// ```
/// use rewheel::IdempotencyKey;
///
/// let key = IdempotencyKey::new("acme", "order-17")?;
/// assert_ne!(key, IdempotencyKey::new("rival", "order-17")?);
/// assert!(IdempotencyKey::new("acme", "").is_err());
/// # Ok::<(), rewheel::idempotency::KeyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey {
    bytes: [u8; 32],
    /// Part of a hash of the caller.
    caller: u64,
}

/// Error: the text cannot be a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key must have 1 to {max} bytes; the given key has {0}", max = IdempotencyKey::BYTES_MAX)]
pub struct KeyError(usize);

impl IdempotencyKey {
    /// Maximum length of a key. A UUID has 36 bytes.
    pub const BYTES_MAX: usize = 255;

    /// Creates the key of a caller. A caller cannot read the responses of other callers: `scope` is any value that
    /// separates callers, such as a tenant or an account.
    ///
    /// # Errors
    /// Fails if the key does not have 1 to 255 bytes.
    pub fn new(scope: &str, key: &str) -> Result<IdempotencyKey, KeyError> {
        if key.is_empty() || key.len() > IdempotencyKey::BYTES_MAX {
            return Err(KeyError(key.len()));
        }
        let [a, b, c, d, e, f, g, h, ..] = digest(&[scope.as_bytes()]);
        let caller = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Ok(IdempotencyKey { bytes: digest(&[scope.as_bytes(), key.as_bytes()]), caller })
    }

    /// Returns a number that separates callers.
    pub(super) const fn caller(&self) -> u64 {
        self.caller
    }

    /// Returns the bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({})", Hex(&self.bytes[..8]))
    }
}

/// Hash of a request in 32 bytes: the same key with another fingerprint is a mistake of the caller.
///
/// ```
/// use rewheel::idempotency::Fingerprint;
///
/// assert_eq!(Fingerprint::of(&[b"POST", b"/orders"]), Fingerprint::of(&[b"POST", b"/orders"]));
/// // The boundaries of the parts matter.
/// assert_ne!(Fingerprint::of(&[b"POST", b"/orders"]), Fingerprint::of(&[b"POST/", b"orders"]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Hashes the parts of a request.
    pub fn of(parts: &[&[u8]]) -> Fingerprint {
        Fingerprint(digest(parts))
    }

    /// Creates a fingerprint from stored bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// Returns the bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", Hex(&self.0[..8]))
    }
}

/// Hashes parts so that different lists of parts have different input.
fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::IdempotencyKey;

    #[test]
    fn a_scope_that_ends_where_a_key_begins_is_another_key() {
        let key = |scope, key| IdempotencyKey::new(scope, key).unwrap();
        assert_ne!(key("acme", "17"), key("acm", "e17"));
        assert_ne!(key("", "17"), key("1", "7"));
    }

    #[test]
    fn a_key_has_a_length() {
        assert!(IdempotencyKey::new("acme", &"k".repeat(255)).is_ok());
        let error = IdempotencyKey::new("acme", &"k".repeat(256)).unwrap_err().to_string();
        assert_eq!(error, "an idempotency key must have 1 to 255 bytes; the given key has 256");
    }
}
