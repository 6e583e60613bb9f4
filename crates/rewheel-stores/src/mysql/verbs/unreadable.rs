//! Sets aside jobs whose rows cannot be read, so that they do not block others.

use super::super::error::VerbError;
use super::super::places;
use super::super::row::{get, id16};
use super::super::transaction::Transaction;
use rewheel_core::JobId;

/// Jobs that cannot be read, and why.
#[derive(Debug, Default)]
pub(super) struct Unreadable(Vec<(JobId, String)>);

impl Unreadable {
    /// Returns the value that was read. Records an unreadable row; passes on any other error.
    pub(super) fn check<T>(
        &mut self,
        job: JobId,
        read: Result<T, VerbError>,
    ) -> Result<Option<T>, VerbError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(trouble) => {
                self.0.push((job, trouble.of_row()?));
                Ok(None)
            }
        }
    }

    /// Pauses the jobs in the caller's transaction.
    pub(super) async fn set_aside(&self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        for (job, reason) in &self.0 {
            let id = id16(job.to_bytes());
            let found = tx.find(include_str!("../sql/find_claim.sql"), vec![id.clone()]).await?;
            let Some(row) = found else { continue };
            let (holder, place): (i64, i64) = (get(&row, 1)?, get(&row, 2)?);
            // A paused or blocked job may have the same place.
            let place = if tx.repeated { tx.place(places::due(place)) } else { place };
            tx.execute(include_str!("../sql/set_aside.sql"), vec![place.into(), id.clone()])
                .await?;
            tx.lease_ended(get(&row, 0)?, *job);
            let values = vec![holder.into(), id.clone()];
            tx.execute(include_str!("../sql/drop_wanted.sql"), values).await?;
            let values = vec![id, tx.now.as_millis().into(), reason.as_str().into()];
            tx.execute(include_str!("../sql/insert_unreadable.sql"), values).await?;
            tracing::error!(%job, reason, "job paused: its row is unreadable; run `rewheel doctor`");
        }
        Ok(())
    }
}

/// Skips an unreadable row of a list: the sweep or claim that reads it sets it aside.
pub(super) fn readable<T>(read: Result<T, VerbError>) -> Result<Option<T>, VerbError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(trouble) => {
            let reason = trouble.of_row()?;
            tracing::warn!(
                reason,
                "unreadable row skipped: the list is incomplete; run `rewheel doctor`"
            );
            Ok(None)
        }
    }
}
