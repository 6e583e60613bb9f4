//! The retention loop: deletes ended jobs, keys, audit entries and ledger rows that have expired.

use crate::shared::Shared;
use rewheel::{CancelToken, Moment};
use rewheel_core::Limits;
use rewheel_core::store::{Prune, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Deleting waits for this many rounds of the housekeeping: nothing depends on it.
const ROUNDS: u32 = 6;

/// How long a node may be busy deleting before it reports that it does not keep up.
const BEHIND_AFTER: Duration = Duration::from_secs(600);

/// The longest rest between two full batches.
const REST_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Retention {
    shared: Arc<Shared>,
    /// Since when every batch has been full.
    busy_since: Option<Moment>,
    /// Whether it was reported that this node does not keep up, or that deleting fails: only the first time is reported.
    is_behind: bool,
    is_failing: bool,
}

impl Retention {
    pub(crate) fn new(shared: Arc<Shared>) -> Retention {
        Retention { shared, busy_since: None, is_behind: false, is_failing: false }
    }

    pub(crate) async fn run(mut self, stop: CancelToken) {
        while !stop.is_cancelled() {
            let rest = self.tick().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    /// Deletes one batch. Returns how long to rest: after a full batch as long as it took, so that deleting takes at most half of
    /// the time and keeps up with any rate that is at most half of what the store can do.
    async fn tick(&mut self) -> Duration {
        let usual = self.shared.settings.housekeeping * ROUNDS;
        if self.shared.is_lease_expired() {
            return usual;
        }
        let started = self.shared.clock.now();
        let is_full = self.prune().await;
        let now = self.shared.clock.now();
        match is_full {
            Ok(true) => {
                self.note_busy(now);
                now.since(started).min(REST_MAX)
            }
            Ok(false) => {
                (self.busy_since, self.is_behind, self.is_failing) = (None, false, false);
                usual
            }
            Err(error) => {
                tracing::debug!(%error, "deleting expired rows failed: retrying");
                if !std::mem::replace(&mut self.is_failing, true) {
                    let text =
                        "deleting expired rows failed: the store grows until a retry succeeds";
                    self.shared.notify_error("retention", text, &error);
                }
                usual
            }
        }
    }

    /// Deletes one batch. Returns whether there may be more.
    async fn prune(&self) -> Result<bool, StoreError> {
        let audit_older_than = self.shared.settings.retention_audit;
        let prune = Prune { limit: Limits::BATCH_MAX, audit_older_than };
        Ok(self.shared.store.prune(&prune).await?.is_full(prune.limit))
    }

    fn note_busy(&mut self, now: Moment) {
        let since = *self.busy_since.get_or_insert(now);
        if now.since(since) >= BEHIND_AFTER && !std::mem::replace(&mut self.is_behind, true) {
            tracing::warn!(
                "rows expire faster than this node deletes them: the store grows; see docs/guide/runbooks/retention-behind.md"
            );
            let text = "rows expire faster than this node deletes them: the store grows; see docs/guide/runbooks/retention-behind.md";
            let why =
                "every batch of the last ten minutes was full; shorten the retention, or add nodes";
            self.shared.notify_error("retention_behind", text, &why);
        }
    }
}
