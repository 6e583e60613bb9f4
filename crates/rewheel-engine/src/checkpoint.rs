//! Lets an attempt leave to the next one how far it came.

use crate::runner::{JobContext, JobKind};
use rewheel::{Category, Class, Classify};
use rewheel_core::store::{Store, StoreError};
use rewheel_core::{HolderId, Lease};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A checkpoint was not taken. Handlers pass it on with `?`.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The job is another holder's by now, or has ended: whatever this attempt does is for nothing.
    #[error("this attempt no longer holds the job: stop")]
    Lost,
    /// It cannot be written.
    #[error("failed to write the checkpoint: {0}")]
    Unfit(String),
    /// The store says why.
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

/// Where the checkpoints of one attempt go.
#[derive(Clone)]
pub(crate) struct Checkpoints {
    store: Arc<dyn Store>,
    holder: HolderId,
    lease: Lease,
    bytes_max: usize,
    /// The latest, for an attempt that this engine makes itself.
    latest: Arc<Mutex<Option<Vec<u8>>>>,
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
        Checkpoints { store, holder, lease, bytes_max, latest: Arc::default() }
    }

    /// Takes what was saved last.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn save(&self, payload: Vec<u8>) -> Result<(), CheckpointError> {
        let (bytes, bytes_max) = (payload.len(), self.bytes_max);
        if bytes > bytes_max {
            let why = format!("it has {bytes} bytes; engine.payload_bytes_max is {bytes_max}");
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
    /// Replaces the job's payload, durably: should this attempt not end, or end with a retry or a
    /// snooze, the next one gets it, on whichever node that is. A long job that is interrupted goes
    /// on where it was.
    ///
    /// # Errors
    /// A job that is not this attempt's any more takes no checkpoint, and neither does a store that
    /// is away.
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

    /// As [`JobContext::checkpoint`], for a payload that only its handler understands.
    ///
    /// # Errors
    /// As there.
    pub async fn checkpoint_raw(&self, payload: Vec<u8>) -> Result<(), CheckpointError> {
        self.checkpoints().save(payload).await
    }
}
