//! Deletes data whose retention has ended.

use super::super::pack::Args;
use super::super::script::{PRUNE, PRUNE_FLEET};
use super::super::{RedisStore, SCRIPT_CHANGES_MAX};
use rewheel_core::Limits;
use rewheel_core::store::{Prune, Pruned, StoreResult};

/// Holders, and starts of jobs under limits, that one script looks at. Redis returns a small hash at once, whatever its size.
const FLEET_READ: usize = 500;

impl RedisStore {
    pub(in super::super) async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        let mut sum = Pruned { holders: self.prune_fleet(prune.limit).await?, ..Pruned::default() };
        let mut left = prune.limit;
        loop {
            let most = left.min(SCRIPT_CHANGES_MAX);
            let part = self.prune_part(most, prune).await?;
            let Pruned { finished, results, keys, audit, holders: _, ledger } = part;
            sum.finished += finished;
            sum.results += results;
            sum.keys += keys;
            sum.audit += audit;
            sum.ledger += ledger;
            left -= most;
            if left == 0 || !part.is_full(most) {
                return Ok(sum);
            }
        }
    }

    async fn prune_part(&self, limit: usize, prune: &Prune) -> StoreResult<Pruned> {
        let args = Args::default()
            .count(limit)
            .millis(prune.audit_older_than)
            .millis(Limits::RESULTS_REMEMBERED);
        let [finished, results, keys, audit, ledger] = self.run(&PRUNE, args).await?.parts()?;
        Ok(Pruned {
            finished: finished.count()?,
            results: results.count()?,
            keys: keys.count()?,
            audit: audit.count()?,
            holders: 0,
            ledger: ledger.count()?,
        })
    }

    /// Looks at all holders and at all starts under limits, a part at a time. Returns how many holders were forgotten.
    async fn prune_fleet(&self, limit: usize) -> StoreResult<u64> {
        const END: &[u8] = b"0";
        let (mut holders, mut starts, mut gone) = (Vec::new(), Vec::new(), 0);
        while holders != END || starts != END {
            let room = limit.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX));
            let args = Args::default()
                .bytes(&holders)
                .count(room)
                .millis(Limits::DEAD_HOLDERS_KEPT)
                .bytes(&starts)
                .millis(Limits::FLEET_STARTS_KEPT)
                .count(FLEET_READ);
            let [holders_next, starts_next, forgotten] =
                self.run(&PRUNE_FLEET, args).await?.parts()?;
            (holders, starts) = (holders_next.must()?, starts_next.must()?);
            gone += forgotten.count()?;
        }
        Ok(gone)
    }
}
