//! Claims due jobs.

use super::super::error::VerbError;
use super::super::job_columns::{CLAIMED, ID, read_claimed};
use super::super::row::{instant, millis, unsigned};
use super::super::transaction::{Transaction, read_tenant, tenant_text};
use super::super::writer::count;
use super::unreadable::{Unreadable, readable};
use rewheel_core::store::{Extension, LaneHead, Leased, StoreError, Visit};
use rewheel_core::{
    Fence, HolderId, JobId, KindName, Lane, Lease, Limits, Priority, Shard, Status, Timestamp,
};
use rusqlite::types::Value;
use std::rc::Rc;
use std::time::Duration;

/// An owned [`Claim`](rewheel_core::store::Claim) that can be sent to another thread.
pub(in super::super) struct Wish {
    pub(in super::super) holder: HolderId,
    pub(in super::super) visits: Vec<Visit>,
    pub(in super::super) horizon: Duration,
    pub(in super::super) limit: usize,
}

pub(in super::super) fn claim(
    tx: &mut Transaction<'_, '_>,
    wish: &Wish,
) -> Result<Vec<Leased>, VerbError> {
    let number = tx.alive(wish.holder)?.ok_or(StoreError::HolderDead(wish.holder))?;
    let mut claimed = Vec::with_capacity(wish.limit.min(Limits::BATCH_MAX));
    for visit in wish.visits.iter().take(Limits::LANES_MAX) {
        let left = wish.limit.saturating_sub(claimed.len()).min(visit.limit);
        self::visit(tx, wish, number, visit, left, &mut claimed)?;
    }
    Ok(claimed)
}

/// Leases at most this many jobs of a lane, if its kind is open.
pub(super) fn visit(
    tx: &mut Transaction<'_, '_>,
    wish: &Wish,
    number: i64,
    visit: &Visit,
    limit: usize,
    claimed: &mut Vec<Leased>,
) -> Result<(), VerbError> {
    if limit == 0 {
        return Ok(());
    }
    match entry(tx, &visit.lane.kind, wish.holder)? {
        Entry::Closed => {}
        Entry::Open => take(tx, wish, number, visit, limit, claimed)?,
        Entry::OneProbe => {
            take(tx, wish, number, visit, 1, claimed)?;
            if let Some(probe) = claimed.last().filter(|job| job.job.lane == visit.lane) {
                let name = (visit.lane.kind.as_str(), probe.job.id.to_bytes());
                tx.execute(include_str!("../sql/use_probe.sql"), name)?;
            }
        }
    }
    Ok(())
}

/// What a holder may claim of a kind.
enum Entry {
    Closed,
    OneProbe,
    Open,
}

fn entry(tx: &Transaction<'_, '_>, kind: &KindName, holder: HolderId) -> Result<Entry, VerbError> {
    let found = tx.find(include_str!("../sql/find_kind.sql"), [kind.as_str()], |row| {
        let prober: Option<[u8; 16]> = row.get(2)?;
        let used: Option<[u8; 16]> = row.get(3)?;
        Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?, prober, used))
    })?;
    Ok(match found {
        None | Some((true, ..)) => Entry::Closed,
        Some((false, false, ..)) => Entry::Open,
        Some((false, true, Some(prober), None)) if prober == holder.to_bytes() => Entry::OneProbe,
        Some((false, true, ..)) => Entry::Closed,
    })
}

fn take(
    tx: &mut Transaction<'_, '_>,
    wish: &Wish,
    number: i64,
    visit: &Visit,
    limit: usize,
    claimed: &mut Vec<Leased>,
) -> Result<(), VerbError> {
    let Some(lane) = tx.lane(&visit.lane)? else { return Ok(()) };
    let now = tx.now;
    let mut places = Vec::with_capacity(limit.min(Limits::BATCH_MAX));
    let mut unreadable = Unreadable::default();
    let until = now.plus(visit.lane.horizon(wish.horizon));
    let values = (lane, until.as_millis(), now.as_millis(), count(limit as u64));
    {
        let statement = tx.sql(include_str!("../sql/claim.sql"))?;
        let mut statement = statement.get();
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let read = read_claimed(row, visit.lane.clone());
            let id = JobId::from_bytes(row.get(ID)?);
            let Some(mut job) = unreadable.check(id, read)? else { continue };
            places.push(Value::Integer(row.get(CLAIMED)?));
            let timeout = visit.timeout(job.attempt_timeout);
            let overdue = job.due.max(now).plus(timeout).plus(visit.grace);
            job.status = Status::Leased { holder: wish.holder, overdue, wanted: None };
            (job.fence, job.version) = (job.fence.next(), job.version.next());
            claimed.push(Leased {
                due_in: job.due.since(now),
                deadline_in: job.deadline.map(|deadline| deadline.since(now)),
                job,
            });
        }
    }
    if !places.is_empty() {
        let values = (
            Rc::new(places),
            number,
            now.as_millis(),
            millis(visit.attempt_timeout),
            millis(visit.grace),
            millis(visit.attempt_timeout_ceiling),
        );
        tx.execute(include_str!("../sql/lease.sql"), values)?;
    }
    unreadable.set_aside(tx)
}

pub(in super::super) fn lanes(
    tx: &mut Transaction<'_, '_>,
    kinds: &mut Vec<KindName>,
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<LaneHead>, VerbError> {
    kinds.sort();
    kinds.dedup();
    let now = tx.now;
    let mut found = Vec::new();
    for kind in kinds.iter().filter(|kind| after.is_none_or(|after| **kind >= after.kind)) {
        let mut behind: (String, i64, u16) = match after.filter(|after| after.kind == *kind) {
            Some(after) => {
                let (priority, shard) = (after.priority.get(), after.shard.get());
                (tenant_text(after.tenant.as_ref()).into(), priority.into(), shard)
            }
            None => (String::new(), -1, 0),
        };
        loop {
            let left = limit - found.len();
            let statement = tx.sql(include_str!("../sql/lanes.sql"))?;
            let mut statement = statement.get();
            let values = (kind.as_str(), &behind.0, behind.1, behind.2, count(left as u64));
            let mut rows = statement.query(values)?;
            let (mut rows_read, mut last) = (0, None);
            while let Some(row) = rows.next()? {
                rows_read += 1;
                let (priority, shard) = (row.get(2)?, row.get(3)?);
                let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
                last = Some((text.to_owned(), priority, shard));
                // The jobs of a lane that cannot be read wait; those of others go on.
                let Some(tenant) = readable(read_tenant(text))? else { continue };
                let Some(shard) = Shard::stored(shard) else { continue };
                let due: Timestamp = instant(row.get(4)?);
                let priority = u8::try_from(priority).unwrap_or(u8::MAX);
                let priority = Priority::new(priority).unwrap_or_default();
                let lane = Lane { kind: kind.clone(), tenant, priority, shard };
                found.push(LaneHead { lane, due, due_in: due.since(now) });
            }
            // Callers take a page that is not full for the last one: lanes that cannot be read must not make one look so.
            match last {
                Some(last) if rows_read == left && found.len() < limit => behind = last,
                Some(_) | None => break,
            }
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// Reads the lanes that have scheduled jobs.
pub(in super::super) fn lane_heads(
    tx: &mut Transaction<'_, '_>,
    lanes: &[Lane],
) -> Result<Vec<LaneHead>, VerbError> {
    let mut heads = Vec::new();
    for lane in lanes {
        let Some(number) = tx.lane(lane)? else { continue };
        let due = tx.find(include_str!("../sql/lane_head.sql"), [number], |row| row.get(0))?;
        if let Some(due) = due.map(instant) {
            heads.push(LaneHead { lane: lane.clone(), due, due_in: due.since(tx.now) });
        }
    }
    Ok(heads)
}

/// Returns a number that changes with every commit of another connection, that is, of another process: all writes of this process go
/// through the connection that is asked.
pub(in super::super) fn data_version(tx: &Transaction<'_, '_>) -> Result<u64, VerbError> {
    let version: Option<i64> = tx.find("PRAGMA data_version", [], |row| row.get(0))?;
    Ok(version.map_or(0, unsigned))
}

pub(in super::super) fn start(
    tx: &Transaction<'_, '_>,
    holder: HolderId,
    leases: &[Lease],
) -> Result<Vec<bool>, VerbError> {
    let Some(number) = tx.alive(holder)? else { return Ok(vec![false; leases.len()]) };
    let statement = tx.sql(include_str!("../sql/start.sql"))?;
    let mut statement = statement.get();
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        let values = (lease.job.to_bytes(), number, count(lease.fence.get()));
        answers.push(statement.execute(values)? == 1);
    }
    Ok(answers)
}

pub(in super::super) fn checkpoint(
    tx: &Transaction<'_, '_>,
    holder: HolderId,
    lease: Lease,
    payload: &[u8],
) -> Result<bool, VerbError> {
    let Some(number) = tx.number(holder)? else { return Ok(false) };
    let values = (lease.job.to_bytes(), number, count(lease.fence.get()), payload);
    Ok(tx.execute(include_str!("../sql/checkpoint.sql"), values)? == 1)
}

pub(in super::super) fn extend(
    tx: &Transaction<'_, '_>,
    holder: HolderId,
    extension: &Extension,
) -> Result<Option<Timestamp>, VerbError> {
    let Some(number) = tx.alive(holder)? else { return Ok(None) };
    let lease = extension.lease;
    let values = (
        lease.job.to_bytes(),
        number,
        count(lease.fence.get()),
        tx.now.plus(extension.timeout).as_millis(),
        millis(extension.total_max),
        millis(extension.grace),
    );
    let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    Ok(tx.find(include_str!("../sql/extend.sql"), values, read)?.map(instant))
}

pub(in super::super) fn held(
    tx: &Transaction<'_, '_>,
    holder: HolderId,
    older_than: Duration,
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<Lease>, VerbError> {
    let Some(number) = tx.number(holder)? else { return Ok(Vec::new()) };
    // The clock may have been set back since they were leased.
    let all = older_than.is_zero();
    let since = if all { i64::MAX } else { tx.now.as_millis().saturating_sub(millis(older_than)) };
    let after = after.map(|job| job.to_bytes().to_vec()).unwrap_or_default();
    let statement = tx.sql(include_str!("../sql/held.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query((number, since, after, count(limit as u64)))?;
    let mut leases = Vec::new();
    while let Some(row) = rows.next()? {
        let fence = Fence::new(unsigned(row.get(1)?));
        leases.push(Lease { job: JobId::from_bytes(row.get(0)?), fence });
    }
    Ok(leases)
}
