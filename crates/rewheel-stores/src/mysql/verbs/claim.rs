//! Claims due jobs.

use super::super::error::VerbError;
use super::super::job_columns::{CLAIMED, ID, read_claimed};
use super::super::places;
use super::super::row::{bytes, get, id16, maybe_bytes, millis};
use super::super::transaction::Transaction;
use super::rows;
use super::unreadable::Unreadable;
use mysql_async::{Row, Value};
use rewheel_core::store::{Claim, Leased, StoreError, Visit};
use rewheel_core::{Fence, HolderId, JobId, KindName, Limits, Status};
use std::collections::HashMap;
use std::time::Duration;

pub(in super::super) async fn claim(
    tx: &mut Transaction<'_>,
    claim: &Claim<'_>,
) -> Result<Vec<Leased>, VerbError> {
    let mut claiming = Claiming::new(tx, claim.holder, claim.visits, claim.horizon).await?;
    for visit in claim.visits.iter().take(Limits::LANES_MAX) {
        let left = claim.limit.saturating_sub(claiming.leased.len()).min(visit.limit);
        claiming.visit(tx, visit, left).await?;
    }
    Ok(claiming.leased)
}

/// The visits of one claim.
pub(super) struct Claiming {
    holder: HolderId,
    number: i64,
    horizon: Duration,
    entries: HashMap<String, Entry>,
    pub(super) leased: Vec<Leased>,
}

/// What a holder may claim of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Closed,
    OneProbe,
    Open,
}

impl Claiming {
    pub(super) async fn new(
        tx: &mut Transaction<'_>,
        holder: HolderId,
        visits: &[Visit],
        horizon: Duration,
    ) -> Result<Claiming, VerbError> {
        let number = tx.alive(holder).await?.ok_or(StoreError::HolderDead(holder))?;
        let mut kinds: Vec<&str> = visits.iter().map(|visit| visit.lane.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let list: Vec<Value> = kinds.into_iter().map(Value::from).collect();
        let rows = tx.run_list(include_str!("../sql/find_entries.sql"), &[], &list, &[]).await?;
        // Otherwise the jobs of another lane could run as those of this one.
        tx.check_lanes(visits.iter().map(|visit| visit.lane.clone())).await?;
        let mut entries = HashMap::new();
        for row in rows.rows {
            entries.insert(get(&row, 0)?, entry(&row, holder)?);
        }
        Ok(Claiming { holder, number, horizon, entries, leased: Vec::new() })
    }

    /// Leases at most this many jobs of a lane, if its kind is open. Returns how many.
    pub(super) async fn visit(
        &mut self,
        tx: &mut Transaction<'_>,
        visit: &Visit,
        limit: usize,
    ) -> Result<usize, VerbError> {
        if limit == 0 {
            return Ok(0);
        }
        let kind = &visit.lane.kind;
        match self.entries.get(kind.as_str()) {
            None | Some(Entry::Closed) => Ok(0),
            Some(Entry::Open) => self.take(tx, visit, limit).await,
            Some(Entry::OneProbe) => self.probe(tx, kind, visit).await,
        }
    }

    async fn probe(
        &mut self,
        tx: &mut Transaction<'_>,
        kind: &KindName,
        visit: &Visit,
    ) -> Result<usize, VerbError> {
        let name = vec![kind.as_str().into()];
        let row = tx.find(include_str!("../sql/lock_entry.sql"), name).await?;
        let now = row.map_or(Ok(Entry::Closed), |row| entry(&row, self.holder))?;
        if now != Entry::OneProbe {
            return Ok(0);
        }
        let taken = self.take(tx, visit, 1).await?;
        if let Some(probe) = self.leased.last().filter(|_| taken == 1) {
            let values = vec![id16(probe.job.id.to_bytes()), kind.as_str().into()];
            tx.execute(include_str!("../sql/use_probe.sql"), values).await?;
            self.entries.insert(kind.as_str().to_owned(), Entry::Closed);
        }
        Ok(taken)
    }

    async fn take(
        &mut self,
        tx: &mut Transaction<'_>,
        visit: &Visit,
        limit: usize,
    ) -> Result<usize, VerbError> {
        let Some(lane) = tx.lane(&visit.lane).await? else { return Ok(0) };
        let now = tx.now;
        let until = now.plus(visit.lane.horizon(self.horizon));
        let values = vec![
            lane.into(),
            places::last(until).into(),
            now.as_millis().into(),
            (limit.min(Limits::SUBMIT_MAX) as u64).into(),
        ];
        let rows = tx.rows(include_str!("../sql/claim.sql"), values).await?;
        let (mut places, mut ids) = (Vec::new(), Vec::new());
        let (mut unreadable, mut earliest) = (Unreadable::default(), None);
        let floor = Fence::new(u64::try_from(tx.shared.epoch.fence_floor()).unwrap_or(0));
        for row in &rows {
            let id = JobId::from_bytes(bytes(row, ID)?);
            let read = read_claimed(row, visit.lane.clone());
            let Some(mut job) = unreadable.check(id, read)? else { continue };
            places.push(Value::from(get::<i64>(row, CLAIMED)?));
            ids.extend(id.to_bytes());
            let timeout = visit.timeout(job.attempt_timeout);
            let overdue = job.due.max(now).plus(timeout).plus(visit.grace);
            earliest = Some(earliest.map_or(overdue, |earliest| overdue.min(earliest)));
            job.status = Status::Leased { holder: self.holder, overdue, wanted: None };
            (job.fence, job.version) = (job.fence.max(floor).next(), job.version.next());
            self.leased.push(Leased {
                due_in: job.due.since(now),
                deadline_in: job.deadline.map(|deadline| deadline.since(now)),
                job,
            });
        }
        if let Some(earliest) = earliest {
            let claim = rows::claim(tx, self.number, lane, earliest, ids).await?;
            self.lease(tx, visit, (claim, lane), &places).await?;
        }
        unreadable.set_aside(tx).await?;
        Ok(places.len())
    }

    async fn lease(
        &self,
        tx: &mut Transaction<'_>,
        visit: &Visit,
        (claim, lane): (i64, i64),
        places: &[Value],
    ) -> Result<(), VerbError> {
        let span = |duration: Duration| Value::Int(millis(duration));
        let now = Value::Int(tx.now.as_millis());
        let before = [
            self.number.into(),
            claim.into(),
            now.clone(),
            tx.shared.epoch.fence_floor().into(),
            now.clone(),
            now,
            span(visit.attempt_timeout_ceiling),
            span(visit.attempt_timeout),
            span(visit.grace),
            lane.into(),
        ];
        let sql = include_str!("../sql/lease.sql");
        let leased = tx.run_list(sql, &before, places, &[]).await?.affected;
        debug_assert_eq!(leased, places.len() as u64, "locked rows do not change");
        Ok(())
    }
}

fn entry(row: &Row, holder: HolderId) -> Result<Entry, VerbError> {
    let (paused, parked): (bool, bool) = (get(row, 1)?, get(row, 2)?);
    let prober: Option<[u8; 16]> = maybe_bytes(row, 3)?;
    let used: Option<[u8; 16]> = maybe_bytes(row, 4)?;
    Ok(match (paused, parked, prober, used) {
        (true, ..) => Entry::Closed,
        (false, false, ..) => Entry::Open,
        (false, true, Some(prober), None) if prober == holder.to_bytes() => Entry::OneProbe,
        (false, true, ..) => Entry::Closed,
    })
}
