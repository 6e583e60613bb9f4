//! Sets aside jobs whose rows cannot be read, so that they do not block others.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::uuid;
use super::super::session::Session;
use super::super::statements::{SET_ASIDE, UNREADABLE};
use crate::unreadable::unreadable_jobs;
use rewheel_core::JobId;
use rewheel_core::store::Risk;
use uuid::Uuid;

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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.0.iter().map(|(job, _)| *job)
    }

    /// Pauses the jobs in the caller's transaction.
    pub(super) async fn set_aside(&self, session: &Session<'_>) -> Result<(), VerbError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = self.0.iter().map(|(job, _)| uuid(*job)).collect();
        let reasons: Vec<&str> = self.0.iter().map(|(_, reason)| reason.as_str()).collect();
        session.execute(&SET_ASIDE, &[&session.offset(), &jobs, &reasons]).await?;
        for (job, reason) in &self.0 {
            tracing::error!(%job, reason, "job paused: its row is unreadable; run `rewheel doctor`");
        }
        Ok(())
    }
}

impl PostgresStore {
    /// Pauses jobs that were claimed and cannot be read. If that fails, they stay leased, are taken over when they are overdue, and this
    /// runs again.
    pub(super) async fn set_aside(&self, unreadable: &Unreadable) {
        if unreadable.is_empty() {
            return;
        }
        let set_aside = async {
            let session = self.transaction().await?;
            let done = unreadable.set_aside(&session).await;
            session.end(done).await
        };
        if let Err(error) = set_aside.await {
            tracing::error!(%error, "failed to pause jobs with unreadable rows: trying again when their leases expire; run `rewheel doctor`");
        }
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

pub(in super::super) async fn unreadable(session: &Session<'_>) -> Result<Option<Risk>, VerbError> {
    let row = session.one(&UNREADABLE, &[]).await?;
    let first: Option<(String, String)> = row.try_get::<_, Option<String>>(1)?.zip(row.try_get(2)?);
    Ok(first.zip(row.try_get(0)?).map(|((job, reason), count): (_, i64)| {
        unreadable_jobs(count.unsigned_abs(), &job, &reason)
    }))
}
