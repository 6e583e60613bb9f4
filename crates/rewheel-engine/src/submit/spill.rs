//! Continues failed calls as jobs.

use super::{Receipt, SubmitError};
use crate::engine::Engine;
use crate::runner::JobKind;
use rewheel::{FailedCall, Spill};

impl<T: JobKind + Sync> Spill<T> for Engine {
    type Receipt = Receipt;
    type Error = SubmitError;

    async fn spill(&self, job: T, failed: FailedCall) -> Result<Receipt, SubmitError> {
        self.submit(job).after_call(failed).await
    }
}

/// Spills a job, with the key that the call itself used.
impl<T: JobKind + Sync, K: AsRef<str> + Send> Spill<(T, K)> for Engine {
    type Receipt = Receipt;
    type Error = SubmitError;

    async fn spill(&self, (job, key): (T, K), failed: FailedCall) -> Result<Receipt, SubmitError> {
        self.submit(job).key(key.as_ref()).after_call(failed).await
    }
}
