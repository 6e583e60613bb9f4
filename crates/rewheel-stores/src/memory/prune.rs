//! Deletes data whose retention has ended.

use super::world::{Line, World};
use rewheel_core::store::{Prune, Pruned};
use rewheel_core::{JobId, Limits, Timestamp};

/// Beyond this number, lines of the ledger are added up, so that reading the books stays fast.
const LEDGER_LINES_MAX: usize = 100;

impl World {
    pub(super) fn prune(&mut self, prune: &Prune, now: Timestamp) -> Pruned {
        self.starts.retain(|_, last| last.plus(Limits::FLEET_STARTS_KEPT) > now);
        Pruned {
            finished: self.prune_finished(prune.limit, now),
            results: self.prune_results(prune.limit, now),
            keys: self.prune_keys(prune.limit, now),
            audit: self.prune_audit(prune, now),
            holders: self.prune_holders(prune.limit, now),
            ledger: self.fold_ledger(prune.limit),
        }
    }

    fn prune_finished(&mut self, limit: usize, now: Timestamp) -> u64 {
        let expired = |at: Option<Timestamp>| at.is_some_and(|expires| expires <= now);
        let old = self.jobs.values().filter(|row| expired(row.expires));
        let old: Vec<JobId> = old.map(|row| row.job.id).take(limit).collect();
        for job in &old {
            self.jobs.remove(job);
        }
        self.line.pruned += old.len() as u64;
        old.len() as u64
    }

    fn prune_keys(&mut self, limit: usize, now: Timestamp) -> u64 {
        let old = self.keys.extract_if(|_, key| key.has_expired(now));
        old.take(limit).count() as u64
    }

    fn prune_audit(&mut self, prune: &Prune, now: Timestamp) -> u64 {
        let old = self.audit.extract_if(.., |entry| entry.at.plus(prune.audit_older_than) <= now);
        old.take(prune.limit).count() as u64
    }

    fn prune_holders(&mut self, limit: usize, now: Timestamp) -> u64 {
        let is_old = |died: Timestamp| died.plus(Limits::DEAD_HOLDERS_KEPT) <= now;
        let old = self.holders.extract_if(.., |_, holder| holder.died.is_some_and(is_old));
        old.take(limit).count() as u64
    }

    /// Adds up the oldest lines into one.
    fn fold_ledger(&mut self, limit: usize) -> u64 {
        if self.ledger.len() <= LEDGER_LINES_MAX {
            return 0;
        }
        let folded = self.ledger.len().min(limit.saturating_add(1));
        let mut sum = Line::default();
        for line in self.ledger.drain(..folded) {
            sum.submitted += line.submitted;
            sum.pruned += line.pruned;
        }
        self.ledger.insert(0, sum);
        folded as u64 - 1
    }
}
