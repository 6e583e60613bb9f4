//! Opens bins for finished jobs, and empties them when all their jobs have expired.

use super::super::PostgresStore;
use super::super::bins::Bin;
use super::super::error::VerbError;
use super::super::row::unsigned;
use super::super::session::Session;
use super::super::statements::{BINS_EXPIRED, BINS_STUCK, EMPTY_BIN, OPEN_BIN};
use rewheel_core::store::{Risk, StoreResult};

/// The age at which an expired bin that is not empty is reported. Every node tries to empty it each minute or more often.
const STUCK_AFTER_MS: i64 = 15 * 60_000;

impl PostgresStore {
    /// Opens the bins that finished jobs of this process need, unless that means waiting for a connection: the caller has done its work and
    /// answers first. If it fails, these jobs are deleted one by one.
    pub(super) async fn open_bins(&self) {
        if self.shared.work.status().available == 0 {
            return;
        }
        let mut wanted = self.shared.bins.take_wanted();
        while let Some(bin) = wanted.next() {
            match self.open_bin(bin).await {
                Ok(true) => tracing::debug!(?bin, "opened a bin for finished jobs"),
                Ok(false) => {
                    self.shared.bins.not_opened(bin);
                    tracing::debug!(?bin, "no bin is empty: finished jobs are deleted one by one");
                }
                Err(error) => {
                    self.shared.bins.not_opened(bin);
                    tracing::debug!(?bin, %error, "failed to open a bin (table for finished jobs): finished jobs are deleted one by one");
                }
            }
            wanted.done();
        }
    }

    async fn open_bin(&self, bin: Bin) -> StoreResult<bool> {
        let session = self.write().await?;
        let opened = open(&session, bin).await;
        session.end(opened).await
    }

    /// Empties the bins whose jobs have all expired, unless a transaction uses them now. Returns the number of deleted jobs.
    pub(super) async fn empty_bins(&self) -> StoreResult<u64> {
        let session = self.read().await?;
        let expired = expired(&session).await;
        let mut jobs = 0;
        for bin in session.end(expired).await? {
            jobs += self.empty_bin(bin).await?;
        }
        Ok(jobs)
    }

    async fn empty_bin(&self, bin: i16) -> StoreResult<u64> {
        let session = self.long_transaction().await?;
        let row = session.one(&EMPTY_BIN, &[&bin, &session.offset()]).await;
        let jobs = row.and_then(|row| Ok(row.try_get::<_, Option<i64>>(0)?));
        let jobs = session.end(jobs).await?;
        match jobs {
            Some(jobs) => tracing::debug!(bin, jobs, "emptied a bin of finished jobs"),
            None => tracing::debug!(bin, "a bin of finished jobs is in use: it is emptied later"),
        }
        Ok(jobs.map_or(0, unsigned))
    }
}

async fn open(session: &Session<'_>, bin: Bin) -> Result<bool, VerbError> {
    Ok(session.one(&OPEN_BIN, &[&bin.from_ms, &bin.width_ms]).await?.try_get(0)?)
}

async fn expired(session: &Session<'_>) -> Result<Vec<i16>, VerbError> {
    let rows = session.query(&BINS_EXPIRED, &[&session.offset()]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Returns which bin has been expired for long.
pub(super) async fn stuck(session: &Session<'_>) -> Result<Option<Risk>, VerbError> {
    let rows = session.query(&BINS_STUCK, &[&session.offset(), &STUCK_AFTER_MS]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (bin, ago_ms): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
    let (expired, used): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
    let reader = match row.try_get::<_, Option<&str>>(4)? {
        Some(reader) => format!("{reader} keeps it in use: end that transaction"),
        None => "no transaction uses it now: look for a failing prune in the log of the nodes"
            .to_owned(),
    };
    let message = format!(
        "the table finished_bin_{bin} should have been emptied {} min ago ({expired} of {used} tables in use have expired; there are 19): \
         {reader}; without an empty table, finished jobs are deleted one by one",
        ago_ms / 60_000
    );
    Ok(Some(Risk { name: "finished_bins", message }))
}
