//! Claims due jobs within fleet-wide limits.

use super::super::error::VerbError;
use super::super::row::{get, instant, unsigned};
use super::super::transaction::Transaction;
use super::claim::Claiming;
use super::claim_ends;
use mysql_async::Value;
use rewheel_core::Limits;
use rewheel_core::store::{
    FleetLimit, FleetSlots, LimitOf, LimitUse, LimitWait, LimitedClaim, LimitedClaimed,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Claims under the same limit wait for each other: each locks the rows of its limits first, in one order.
pub(in super::super) async fn claim_limited(
    tx: &mut Transaction<'_>,
    claim: &LimitedClaim<'_>,
) -> Result<LimitedClaimed, VerbError> {
    let of: BTreeSet<&LimitOf> = claim.limits.iter().map(|limit| &limit.of).collect();
    for of in of {
        lock(tx, of).await?;
    }
    tx.refresh_now().await?;
    claim_ends::subtract(tx).await?;
    let mut claiming = Claiming::new(tx, claim.holder, claim.visits, Duration::ZERO).await?;
    let mut used = Vec::with_capacity(claim.limits.len());
    for limit in claim.limits {
        used.push(limit_use(tx, limit).await?);
    }
    let mut slots = FleetSlots::new(claim, used, tx.now);
    for visit in claim.visits.iter().take(Limits::LANES_MAX) {
        let taken = slots.take(&visit.lane, visit.limit);
        let gave = claiming.visit(tx, visit, taken).await?;
        slots.give_back(&visit.lane, taken, gave);
        if gave == taken {
            slots.has_more(&visit.lane);
        }
    }
    let (starts, at) = slots.starts();
    for of in starts {
        let values = vec![at.as_millis().into(), of.scope().into(), of.name().into()];
        tx.execute(include_str!("../sql/claim_limited_start.sql"), values).await?;
    }
    Ok(LimitedClaimed { leased: claiming.leased, waits: slots.waits() })
}

async fn lock(tx: &mut Transaction<'_>, of: &LimitOf) -> Result<(), VerbError> {
    let name = || -> Vec<Value> { vec![of.scope().into(), of.name().into()] };
    if tx.find(include_str!("../sql/claim_limited_lock.sql"), name()).await?.is_none() {
        tx.execute(include_str!("../sql/claim_limited_make.sql"), name()).await?;
    }
    Ok(())
}

pub(in super::super) async fn limit_waits(
    tx: &mut Transaction<'_>,
    limits: &[FleetLimit],
) -> Result<Vec<Option<LimitWait>>, VerbError> {
    let mut waits = Vec::with_capacity(limits.len());
    for limit in limits {
        waits.push(limit.wait(limit_use(tx, limit).await?, tx.now));
    }
    Ok(waits)
}

async fn limit_use(tx: &mut Transaction<'_>, limit: &FleetLimit) -> Result<LimitUse, VerbError> {
    let name = vec![limit.of.scope().into(), limit.of.name().into()];
    let last = tx.find(include_str!("../sql/limit_waits.sql"), name).await?;
    let last: Option<i64> = last.map_or(Ok(None), |row| get(&row, 0))?;
    let counted = match &limit.of {
        LimitOf::Kind(_) => include_str!("../sql/leased_of_kind.sql"),
        LimitOf::Tenant(_) => include_str!("../sql/leased_of_tenant.sql"),
    };
    let leased = tx.find(counted, vec![limit.of.name().into()]).await?;
    let leased: i64 = leased.map_or(Ok(0), |row| get(&row, 0))?;
    let leased = usize::try_from(unsigned(leased)).unwrap_or(usize::MAX);
    Ok(LimitUse { leased, last: last.map(instant) })
}
