//! Code shared by the stores of idempotency keys.

use rewheel::idempotency::IdempotencyStoreError;
use rewheel_core::store::StoreError;

/// Translates a store error into an error of an idempotency store.
pub(crate) fn judge(error: StoreError) -> IdempotencyStoreError {
    match error {
        StoreError::Unavailable(_) | StoreError::Ambiguous(_) => {
            IdempotencyStoreError::Unavailable(error.into())
        }
        StoreError::Full(_) => IdempotencyStoreError::Full,
        StoreError::Rejected(_)
        | StoreError::HolderDead(_)
        | StoreError::Broken { .. }
        | StoreError::Closed => IdempotencyStoreError::Broken(error.into()),
    }
}
