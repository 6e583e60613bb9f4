//! Checks the size of payloads, and hashes them for idempotency keys.

use rewheel_core::store::{StoreError, StoreResult};
use sha2::{Digest, Sha256};

/// Returns the hash of a payload that its key stores.
pub(crate) fn payload_hash(payload: &[u8]) -> [u8; 32] {
    Sha256::digest(payload).into()
}

/// Rejects a payload that is larger than the store allows.
pub(crate) fn refuse_large(payload: &[u8], bytes_max: usize) -> StoreResult<()> {
    if payload.len() <= bytes_max {
        return Ok(());
    }
    let bytes = payload.len();
    let text = format!("a payload of {bytes} bytes is too large: the limit is {bytes_max}");
    Err(StoreError::Rejected(text.into()))
}
