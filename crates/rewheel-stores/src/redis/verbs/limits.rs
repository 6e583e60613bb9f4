//! Claims within limits for the whole fleet.

use super::super::connection::Use;
use super::super::pack::{Args, millis};
use super::super::reply::Reply;
use super::super::script::{CLAIM_LIMITED, LIMIT_WAITS};
use super::super::{RedisStore, SCRIPT_JOBS_MAX};
use super::claim::visit_args;
use rewheel_core::Timestamp;
use rewheel_core::store::{
    FleetLimit, LimitOf, LimitUse, LimitWait, LimitedClaim, LimitedClaimed, StoreResult,
};

/// The counter of leased jobs under a limit, and the name of its last start.
fn names(of: &LimitOf) -> (Vec<u8>, Vec<u8>) {
    let name = of.name().as_bytes();
    let counter = match of {
        LimitOf::Kind(_) => [b"k", name, b"\0l"].concat(),
        LimitOf::Tenant(_) => [b"t", name, b"\0held"].concat(),
    };
    (counter, [of.scope().as_bytes(), b"\0", name].concat())
}

impl RedisStore {
    pub(in super::super) async fn claim_limited(
        &self,
        claim: &LimitedClaim<'_>,
    ) -> StoreResult<LimitedClaimed> {
        let visits = claim.visits.iter().map(|visit| {
            let covering =
                claim.limits.iter().enumerate().filter(|(_, limit)| limit.of.covers(&visit.lane));
            let covering = covering.fold(Args::default(), |args, (nth, _)| args.count(nth + 1));
            visit_args(visit).list(covering)
        });
        let limits = claim.limits.iter().map(|limit| {
            let (counter, start) = names(&limit.of);
            let args = Args::default().bytes(&counter).bytes(&start);
            let args = args.maybe_number(limit.concurrency_max.map(f64::from));
            args.number(limit.interval.map_or(0.0, millis))
        });
        let args = Args::default()
            .bytes(&claim.holder.to_bytes())
            .count(claim.limit.min(SCRIPT_JOBS_MAX))
            .list(Args::lists(visits))
            .list(Args::lists(limits));
        let answer = self.run_alive(Use::Work, &CLAIM_LIMITED, args, claim.holder).await?;
        let [now, taken, used] = answer.parts()?;
        let now = now.time()?;
        let (leased, _) = self.leased(now, taken).await?;
        let mut waits = Vec::with_capacity(claim.limits.len());
        for (limit, used) in claim.limits.iter().zip(used.list()?) {
            let [leased, last, has_more] = used.parts()?;
            let wait = limit.wait(read_use(leased, last)?, now);
            let has_more = has_more.count()? == 1;
            waits.push(wait.filter(|_| has_more));
        }
        Ok(LimitedClaimed { leased, waits })
    }

    pub(in super::super) async fn limit_waits(
        &self,
        limits: &[FleetLimit],
    ) -> StoreResult<Vec<Option<LimitWait>>> {
        let args = limits.iter().map(|limit| {
            let (counter, start) = names(&limit.of);
            Args::default().bytes(&counter).bytes(&start)
        });
        let [now, used] =
            self.read(&LIMIT_WAITS, Args::default().list(Args::lists(args))).await?.parts()?;
        let now: Timestamp = now.time()?;
        let waits = limits.iter().zip(used.list()?).map(|(limit, used)| {
            let [leased, last] = used.parts()?;
            Ok(limit.wait(read_use(leased, last)?, now))
        });
        waits.collect()
    }
}

fn read_use(leased: Reply, last: Reply) -> StoreResult<LimitUse> {
    let leased = usize::try_from(leased.count()?).unwrap_or(usize::MAX);
    Ok(LimitUse { leased, last: last.maybe_time()? })
}
