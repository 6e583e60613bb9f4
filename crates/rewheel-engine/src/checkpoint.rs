//! Checkpoints: progress that an attempt saves for the next one.

use crate::runner::{JobContext, JobKind};
use rewheel::{Category, Class, Classify};
use rewheel_core::store::{Store, StoreError};
use rewheel_core::{HolderId, Lease};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Error: a checkpoint was not stored. Handlers can return it with `?`.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another holder has the job now, or the job has ended: further work of this attempt is
    /// wasted.
    #[error("this attempt no longer holds the job: stop the work, another attempt may be running")]
    Lost,
    /// The payload cannot be written.
    #[error("failed to write the checkpoint: {0}")]
    Unfit(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classify for CheckpointError {
    fn classify(&self) -> Class {
        match self {
            CheckpointError::Lost => Class::retry(Category::Cancelled),
            CheckpointError::Unfit(_) => Class::stop(Category::BadPayload),
            CheckpointError::Store(error) => error.classify(),
        }
    }
}

/// Stores the checkpoints of one attempt.
pub(crate) struct Checkpoints {
    store: Arc<dyn Store>,
    holder: HolderId,
    lease: Lease,
    bytes_max: usize,
    /// The latest checkpoint, for an attempt that this engine runs itself.
    latest: Mutex<Option<Vec<u8>>>,
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Checkpoints {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        holder: HolderId,
        lease: Lease,
        bytes_max: usize,
    ) -> Checkpoints {
        let store = Arc::clone(store);
        Checkpoints { store, holder, lease, bytes_max, latest: Mutex::default() }
    }

    /// Returns the latest checkpoint.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn save(&self, payload: Vec<u8>) -> Result<(), CheckpointError> {
        let (bytes, bytes_max) = (payload.len(), self.bytes_max);
        if bytes > bytes_max {
            let why = format!(
                "the new payload has {bytes} bytes; the limit is {bytes_max} (engine.payload_bytes_max)"
            );
            return Err(CheckpointError::Unfit(why));
        }
        if !self.store.checkpoint(self.holder, self.lease, &payload).await? {
            return Err(CheckpointError::Lost);
        }
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
        Ok(())
    }
}

impl JobContext {
    /// Replaces the job's payload durably. If this attempt is interrupted, or ends with a retry or
    /// a snooze, the next attempt gets the new payload, on any node. So a long job can continue where it stopped.
    ///
    /// # Errors
    /// Fails if this attempt no longer has the job, or if the store is unavailable.
    ///
    /// ```
    /// use rewheel_engine::Report;
    /// use rewheel_engine::{Engine, JobContext, JobKind};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Import { rows: u64, imported: u64 }
    /// impl JobKind for Import { const NAME: &'static str = "import"; }
    ///
    /// async fn import(ctx: JobContext, mut job: Import) -> Result<(), Report> {
    ///     while job.imported < job.rows {
    ///         job.imported += 100; // a batch of rows
    ///         ctx.checkpoint(&job).await?;
    ///     }
    ///     Ok(())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = rewheel_stores::connect("memory://").await?;
    /// # let engine = Engine::builder(store.clone()).handler(import).start().await?;
    /// # let job = engine.submit(Import { rows: 300, imported: 0 }).await?;
    /// # while store.get(job.id).await?.unwrap().state() != rewheel_engine::State::Succeeded {
    /// #     tokio::task::yield_now().await;
    /// # }
    /// # let payload = store.get(job.id).await?.unwrap().payload.unwrap();
    /// # assert_eq!(payload, br#"{"rows":300,"imported":300}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn checkpoint<T: JobKind>(&self, job: &T) -> Result<(), CheckpointError> {
        let payload = job.encode().map_err(CheckpointError::Unfit)?;
        self.checkpoint_raw(payload).await
    }

    /// Like [`JobContext::checkpoint`], for a payload of opaque bytes.
    ///
    /// # Errors
    /// The same as for `checkpoint`.
    pub async fn checkpoint_raw(&self, payload: Vec<u8>) -> Result<(), CheckpointError> {
        self.checkpoints().save(payload).await
    }
}
