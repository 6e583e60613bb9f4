//! Reserves part of a tenant's limit of live jobs.

use super::super::RedisStore;
use super::super::connection::Use;
use super::super::pack::{Args, number};
use super::super::script::RESERVE;
use rewheel_core::store::{Reserve, StoreResult};

impl RedisStore {
    pub(in super::super) async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        let args = Args::default()
            .bytes(&reserve.holder.to_bytes())
            .bytes(reserve.tenant.as_str().as_bytes())
            .number(number(reserve.jobs_max))
            .number(number(reserve.on_the_way))
            .number(number(reserve.needed))
            .number(number(reserve.holders))
            .number(number(ahead_max(reserve)));
        self.run_alive(Use::Work, &RESERVE, args, reserve.holder).await?.count()
    }
}

/// The most that a holder gets beyond its need, if nothing else limits it.
fn ahead_max(reserve: &Reserve) -> u64 {
    let (on_the_way, needed, holders) = (0, 1, 1);
    let alone = Reserve { jobs_max: u64::MAX, on_the_way, needed, holders, ..reserve.clone() };
    alone.granted(0, 0) - needed
}
