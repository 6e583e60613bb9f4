//! Claims due jobs within fleet-wide limits.

use super::super::error::VerbError;
use super::super::row::{instant, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use super::claim::{Wish, visit};
use rewheel_core::Limits;
use rewheel_core::store::{
    FleetLimit, FleetSlots, LimitUse, LimitWait, LimitedClaim, LimitedClaimed, StoreError,
};

/// Claims without locks: there is only one writer.
pub(in super::super) fn claim_limited(
    tx: &mut Transaction<'_, '_>,
    wish: &Wish,
    limits: &[FleetLimit],
) -> Result<LimitedClaimed, VerbError> {
    let number = tx.alive(wish.holder)?.ok_or(StoreError::HolderDead(wish.holder))?;
    let Wish { holder, visits, limit, .. } = wish;
    let claim = LimitedClaim { holder: *holder, visits, limit: *limit, limits };
    let used: Result<Vec<LimitUse>, VerbError> =
        limits.iter().map(|limit| limit_use(tx, limit)).collect();
    let mut slots = FleetSlots::new(&claim, used?, tx.now);
    let mut leased = Vec::new();
    for one in visits.iter().take(Limits::LANES_MAX) {
        let taken = slots.take(&one.lane, one.limit);
        let before = leased.len();
        visit(tx, wish, number, one, taken, &mut leased)?;
        let gave = leased.len() - before;
        slots.give_back(&one.lane, taken, gave);
        if gave == taken {
            slots.has_more(&one.lane);
        }
    }
    let (starts, at) = slots.starts();
    for of in starts {
        let start = (of.scope(), of.name(), at.as_millis());
        tx.execute(include_str!("../sql/claim_limited_start.sql"), start)?;
    }
    Ok(LimitedClaimed { leased, waits: slots.waits() })
}

pub(in super::super) fn limit_waits(
    tx: &Transaction<'_, '_>,
    limits: &[FleetLimit],
) -> Result<Vec<Option<LimitWait>>, VerbError> {
    limits.iter().map(|limit| Ok(limit.wait(limit_use(tx, limit)?, tx.now))).collect()
}

fn limit_use(tx: &Transaction<'_, '_>, limit: &FleetLimit) -> Result<LimitUse, VerbError> {
    let most = limit.concurrency_max.map_or(0, u64::from);
    let values = (limit.of.scope(), limit.of.name(), count(most));
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?));
    let found = tx.find(include_str!("../sql/limit_waits.sql"), values, read)?;
    let (last, leased) = found.unwrap_or_default();
    let leased = usize::try_from(unsigned(leased)).unwrap_or(usize::MAX);
    Ok(LimitUse { leased, last: last.map(instant) })
}
