//! Deletes data whose retention has ended.

use super::super::pack::Args;
use super::super::script::PRUNE;
use super::super::{RedisStore, SCRIPT_CHANGES_MAX};
use rewheel_core::Limits;
use rewheel_core::store::{Prune, Pruned, StoreResult};

impl RedisStore {
    pub(in super::super) async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        let mut sum = Pruned::default();
        let mut left = prune.limit;
        loop {
            let most = left.min(SCRIPT_CHANGES_MAX);
            let part = self.prune_part(most, prune).await?;
            let Pruned { finished, results, keys, audit, holders, ledger } = part;
            sum.finished += finished;
            sum.results += results;
            sum.keys += keys;
            sum.audit += audit;
            sum.holders += holders;
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
            .millis(Limits::RESULTS_REMEMBERED)
            .millis(Limits::DEAD_HOLDERS_KEPT)
            .millis(Limits::FLEET_STARTS_KEPT);
        let [finished, results, keys, audit, holders, ledger] =
            self.run(&PRUNE, args).await?.parts()?;
        Ok(Pruned {
            finished: finished.count()?,
            results: results.count()?,
            keys: keys.count()?,
            audit: audit.count()?,
            holders: holders.count()?,
            ledger: ledger.count()?,
        })
    }
}
