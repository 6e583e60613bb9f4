//! Sets aside jobs whose rows cannot be read, so that they do not block others.

use super::super::error::VerbError;
use super::super::transaction::Transaction;
use crate::unreadable::unreadable_jobs;
use rewheel_core::JobId;
use rewheel_core::store::Risk;

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
    pub(super) fn set_aside(&self, tx: &Transaction<'_, '_>) -> Result<(), VerbError> {
        for (job, reason) in &self.0 {
            let id = job.to_bytes();
            tx.execute(include_str!("../sql/set_aside.sql"), [id])?;
            let values = (id, tx.now.as_millis(), reason);
            tx.execute(include_str!("../sql/insert_unreadable.sql"), values)?;
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

pub(in super::super) fn unreadable(tx: &Transaction<'_, '_>) -> Result<Option<Risk>, VerbError> {
    let statement = tx.sql(include_str!("../sql/unreadable.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([])?;
    let (mut count, mut first) = (0, None);
    while let Some(row) = rows.next()? {
        count += 1;
        if first.is_none() {
            first = Some((JobId::from_bytes(row.get(0)?), row.get::<_, String>(1)?));
        }
    }
    Ok(first.map(|(job, reason)| unreadable_jobs(count, &job.to_string(), &reason)))
}
