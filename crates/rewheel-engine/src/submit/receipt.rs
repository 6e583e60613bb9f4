//! The receipt of a submitted job.

use crate::engine::WeakEngine;
use crate::results::ResultError;
use rewheel_core::{JobId, JobResult};
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;

/// Receipt of a durable job.
#[derive(Clone)]
pub struct Receipt {
    /// Its id; the id of the existing job if it is a duplicate.
    pub id: JobId,
    /// Whether the key existed already: no job was created.
    pub duplicate: bool,
    /// Whether the submit replaced what the existing job will run, see [`Submit::on_duplicate`](crate::Submit::on_duplicate).
    pub replaced: bool,
    pub(super) engine: WeakEngine,
}

impl Receipt {
    /// Waits until the job has succeeded, at most this long, and returns the value that its handler returned. Its kind must keep
    /// results: [`KindSettings::result`](crate::KindSettings::result).
    ///
    /// ```
    /// use rewheel::seconds;
    /// use rewheel_engine::{Engine, JobContext, JobKind, KindSettings, Report};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct ChargeCard { order: u64, cents: u64 }
    /// impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Receipt { order: u64, number: String }
    ///
    /// async fn charge(_: JobContext, job: ChargeCard) -> Result<Receipt, Report> {
    ///     Ok(Receipt { order: job.order, number: format!("R-{}", job.order) })
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .kind("charge-card", KindSettings { result: true, ..KindSettings::default() })
    ///     .handler(charge)
    ///     .start()
    ///     .await?;
    /// let job = ChargeCard { order: 17, cents: 4200 };
    /// let receipt: Receipt = engine.submit(job).await?.result(seconds(30)).await?;
    /// assert_eq!(receipt.number, "R-17");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Says why there is no value, see [`ResultError`]: the time is over and the job still runs, the job failed, no result was
    /// stored, or it is not such a value.
    pub async fn result<T: DeserializeOwned>(&self, time_max: Duration) -> Result<T, ResultError> {
        let result = self.result_bytes(time_max).await?;
        let job = self.id;
        serde_json::from_slice(&result.body)
            .map_err(|error| ResultError::Unreadable { job, why: error.to_string() })
    }

    /// Waits like [`Receipt::result`], and returns the result as bytes.
    ///
    /// # Errors
    /// The same.
    pub async fn result_bytes(&self, time_max: Duration) -> Result<JobResult, ResultError> {
        let engine = self.engine.get().ok_or(ResultError::ShutDown { job: self.id })?;
        engine.result(self.id, time_max).await
    }
}

impl PartialEq for Receipt {
    fn eq(&self, other: &Receipt) -> bool {
        (self.id, self.duplicate, self.replaced) == (other.id, other.duplicate, other.replaced)
    }
}

impl Eq for Receipt {}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Receipt { id, duplicate, replaced, .. } = self;
        f.debug_struct("Receipt")
            .field("id", id)
            .field("duplicate", duplicate)
            .field("replaced", replaced)
            .finish_non_exhaustive()
    }
}
