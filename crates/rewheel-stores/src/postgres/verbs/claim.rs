//! Claims due jobs.

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::floors::Reading;
use super::super::job_columns::{CLAIMED, ID, LANE, read_claimed};
use super::super::lanes::Names;
use super::super::row::{count, fence, holder_uuid, instant, job_id, millis, uuid};
use super::super::row_address::RowAddress;
use super::super::session::{Param, Session};
use super::super::statements::{
    CHECKPOINT, CLAIM, CLAIM_LOOK, EXTEND, HELD, PROBE, PROBE_KIND, START, USE_PROBE,
};
use super::unreadable::Unreadable;
use rewheel_core::store::{Claim, Extension, Leased, StoreError, StoreResult, Visit};
use rewheel_core::{HolderId, Job, JobId, KindName, Lease, Limits, Timestamp};
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

// What a claim returns after the columns of the job and the time when it becomes overdue.
const NOW: usize = CLAIMED + 1;
const SEQ: usize = CLAIMED + 2;
const PLACE: usize = CLAIMED + 3;
const LIST: usize = CLAIMED + 4;

impl PostgresStore {
    pub(in super::super) async fn claim_batch(
        &self,
        claim: &Claim<'_>,
    ) -> StoreResult<Vec<Leased>> {
        let session = self.write().await?;
        let wish = match Wish::new(self, &session, claim).await {
            Ok(wish) => wish,
            Err(trouble) => return session.end(Err(trouble)).await,
        };
        let claimed = wish.claim(&session).await;
        let claimed = session.end(claimed).await?;
        // An unreadable job was taken too, but it is not known from which lane.
        if claimed.unreadable.is_empty() {
            wish.note_floors(&claimed.jobs, claimed.now);
        }
        self.set_aside(&claimed.unreadable).await;
        let mut jobs: Vec<Job> = claimed.jobs.into_iter().map(|(_, _, job)| job).collect();
        if claimed.may_probe && jobs.len() < claim.limit {
            match self.probe(&wish, claim.limit - jobs.len()).await {
                Ok(probes) => jobs.extend(probes),
                Err(error) if jobs.is_empty() => return Err(error),
                // The jobs that are already leased must still be returned.
                Err(_) => {}
            }
        }
        let left = |until: Timestamp| until.since(claimed.now);
        let leased =
            |job: Job| Leased { due_in: left(job.due), deadline_in: job.deadline.map(left), job };
        Ok(jobs.into_iter().map(leased).collect())
    }

    async fn probe(&self, wish: &Wish<'_>, limit: usize) -> StoreResult<Vec<Job>> {
        let session = self.transaction().await?;
        let probes = wish.probe(&session, limit).await;
        session.end(probes).await
    }
}

/// The request of a claim, as one array per column.
pub(super) struct Wish<'a> {
    claim: &'a Claim<'a>,
    store: &'a PostgresStore,
    visits: Vec<(&'a Visit, i32)>,
    kinds: Vec<&'a str>,
    lanes: Vec<i32>,
    limits: Vec<i64>,
    reading: Reading,
    /// The lanes in the order of their numbers, each with its limits.
    limits_of_time: LimitsOfTime,
}

/// The times of each lane, in the order of the lanes' numbers.
struct LimitsOfTime {
    lanes: Vec<i32>,
    /// The attempt timeout of jobs without their own, and the grace.
    holds: Vec<i64>,
    graces: Vec<i64>,
    /// The longest attempt timeout that a job may have itself.
    ceilings: Vec<i64>,
}

/// Whether a claim writes a list of its jobs and leaves them on their shelf.
#[derive(Clone, Copy)]
pub(super) enum Listing {
    /// With at least this many jobs. The claim also removes lists that are no longer needed.
    From(usize),
    /// For transactions that may be rolled back.
    Never,
}

/// The jobs leased from open kinds.
pub(super) struct Taken {
    /// Each job with its visit and its insertion order, for jobs with the same due time.
    pub(super) jobs: Vec<(usize, i64, Job)>,
    /// The time of the lease, if any job was leased.
    pub(super) at: Option<Timestamp>,
    /// Leased jobs that cannot be read.
    pub(super) unreadable: Unreadable,
}

/// The result of a claim.
struct Claimed {
    /// As in `Taken`.
    jobs: Vec<(usize, i64, Job)>,
    now: Timestamp,
    /// Whether the holder may claim one job of a parked kind.
    may_probe: bool,
    /// Leased jobs that cannot be read.
    unreadable: Unreadable,
}

impl<'a> Wish<'a> {
    pub(super) async fn new(
        store: &'a PostgresStore,
        session: &Session<'_>,
        claim: &'a Claim<'a>,
    ) -> Result<Wish<'a>, VerbError> {
        let known = &store.shared.lanes;
        known.find(session, claim.visits.iter().map(|visit| &visit.lane)).await?;
        let visits: Vec<(&Visit, i32)> = claim
            .visits
            .iter()
            .take(Limits::LANES_MAX)
            // A lane without a number never had a job.
            .filter_map(|visit| Some((visit, known.number(&visit.lane)?)))
            .collect();
        let lanes: Vec<i32> = visits.iter().map(|(_, lane)| *lane).collect();
        Ok(Wish {
            claim,
            store,
            kinds: visits.iter().map(|(visit, _)| visit.lane.kind.as_str()).collect(),
            reading: known.floors.of(&lanes),
            lanes,
            limits: visits.iter().map(|(visit, _)| count(visit.limit as u64)).collect(),
            limits_of_time: LimitsOfTime::new(&visits),
            visits,
        })
    }

    async fn claim(&self, session: &Session<'_>) -> Result<Claimed, VerbError> {
        let Taken { jobs, at, unreadable } =
            self.take(session, Listing::From(self.store.shared.listed_min)).await?;
        let (now, may_probe) = match at {
            Some(now) => {
                // A failure of this additional query must not lose the claimed jobs.
                let seen = !self.all_gave(&jobs)
                    && look(session, self.claim.holder, &self.kinds).await.is_ok_and(|seen| seen.1);
                (now, seen)
            }
            None => look(session, self.claim.holder, &self.kinds).await?,
        };
        Ok(Claimed { jobs, now, may_probe, unreadable })
    }

    /// Leases due jobs of open kinds.
    pub(super) async fn take(
        &self,
        session: &Session<'_>,
        listing: Listing,
    ) -> Result<Taken, VerbError> {
        let (holder, offset) = (holder_uuid(self.claim.holder), session.offset());
        let (horizon, limit) = (millis(self.claim.horizon), count(self.claim.limit as u64));
        let (listed_min, (done, done_at)) = match listing {
            Listing::From(listed_min) => {
                (count(listed_min as u64), self.store.shared.places.done())
            }
            Listing::Never => (i64::MAX, Default::default()),
        };
        let names = Names::of(self.visits.iter().map(|(visit, _)| &visit.lane));
        let [_, tenants, priorities, shards] = names.params();
        let LimitsOfTime { lanes, holds, graces, ceilings } = &self.limits_of_time;
        let params: [Param<'_>; 18] = [
            &holder,
            &offset,
            &horizon,
            &self.kinds,
            &self.lanes,
            &self.limits,
            &self.reading.from,
            lanes,
            holds,
            graces,
            &limit,
            &listed_min,
            &done,
            tenants,
            priorities,
            shards,
            &done_at,
            ceilings,
        ];
        let rows = session.query(&CLAIM, &params).await?;
        let mut jobs: Vec<(usize, i64, Job)> = Vec::with_capacity(rows.len());
        let mut places: Vec<(Lease, RowAddress)> = Vec::with_capacity(rows.len());
        let mut unreadable = Unreadable::default();
        for row in &rows {
            let nth = self.nth(row.try_get(LANE)?)?;
            let lane = self.visits[nth].0.lane.clone();
            let id = job_id(row.try_get(ID)?);
            let read = read_claimed(row, lane, self.claim.holder);
            let Some(job) = unreadable.check(id, read)? else { continue };
            self.store.shared.turn.see_job(&job);
            places.push((Lease { job: job.id, fence: job.fence }, row.try_get(PLACE)?));
            jobs.push((nth, row.try_get(SEQ)?, job));
        }
        let list = rows.first().map(|row| row.try_get(LIST)).transpose()?.flatten();
        let at = rows.first().map(|row| row.try_get(NOW)).transpose()?;
        // A list with a job that is never settled is left to the sweep.
        let list = list.zip(at).filter(|_| unreadable.is_empty());
        self.store.shared.places.remember(&places, list);
        let grouped = jobs.iter().map(|(_, _, job)| job).filter(|job| job.group.is_some());
        self.store.shared.places.remember_groups(grouped.map(|job| job.id));
        // An update returns its rows in no particular order.
        jobs.sort_by_key(|(nth, seq, job)| (*nth, job.due, *seq));
        let at = at.map(instant);
        Ok(Taken { jobs, at, unreadable })
    }

    /// Returns the visit that a lane belongs to.
    fn nth(&self, lane: i32) -> Result<usize, VerbError> {
        let nth = self.lanes.iter().position(|visited| *visited == lane);
        nth.ok_or_else(|| unreadable("a lane that was not requested"))
    }

    /// Returns whether every kind gave at least one job: then none of them is parked.
    fn all_gave(&self, jobs: &[(usize, i64, Job)]) -> bool {
        let gave: HashSet<&str> = jobs.iter().map(|(nth, ..)| self.kinds[*nth]).collect();
        self.kinds.iter().all(|kind| gave.contains(kind))
    }

    /// Records up to where the lanes that gave jobs are empty now. A lane that gave none may be empty, paused or parked: that proves
    /// nothing.
    fn note_floors(&self, jobs: &[(usize, i64, Job)], now: Timestamp) {
        // The claim ended in the middle of a lane, and no lane after that was read.
        let was_cut = jobs.len() >= self.claim.limit;
        let mut from = 0;
        for (nth, (_, lane)) in self.visits.iter().enumerate() {
            let until = from + jobs[from..].iter().take_while(|(visit, ..)| *visit == nth).count();
            if let Some((_, _, last)) = jobs[from..until].last() {
                let was_full = was_cut || count((until - from) as u64) >= self.limits[nth];
                let emptied = if was_full { last.due } else { Timestamp::from_millis(i64::MAX) };
                let looked = (*lane, self.reading.from[nth]);
                self.store.shared.lanes.floors.emptied(&self.reading, looked, emptied, now);
            }
            from = until;
        }
    }

    /// Claims the probe job of each parked kind that the holder may probe.
    pub(super) async fn probe(
        &self,
        session: &Session<'_>,
        limit: usize,
    ) -> Result<Vec<Job>, VerbError> {
        let (holder, offset) = (holder_uuid(self.claim.holder), session.offset());
        let mut probed: HashSet<&KindName> = HashSet::new();
        let (mut jobs, mut unreadable) = (Vec::new(), Unreadable::default());
        let known = &self.store.shared.lanes;
        for ((visit, number), from) in self.visits.iter().zip(&self.reading.from) {
            let kind = &visit.lane.kind;
            if probed.contains(kind) || visit.limit == 0 || jobs.len() >= limit {
                continue;
            }
            if session.find(&PROBE_KIND, &[&kind.as_str(), &holder]).await?.is_none() {
                continue;
            }
            let (timeout, grace) = (millis(visit.attempt_timeout), millis(visit.grace));
            let ceiling = millis(visit.attempt_timeout_ceiling);
            let horizon = millis(visit.lane.horizon(self.claim.horizon));
            let lane = known.number_in(session, &visit.lane).await?;
            let from = if lane == *number { *from } else { i64::MIN };
            let params: [Param<'_>; 8] =
                [&holder, &lane, &offset, &horizon, &timeout, &grace, &ceiling, &from];
            if let Some(row) = session.find(&PROBE, &params).await? {
                let read = read_claimed(&row, visit.lane.clone(), self.claim.holder);
                let Some(job) = unreadable.check(job_id(row.try_get(ID)?), read)? else { continue };
                session.execute(&USE_PROBE, &[&kind.as_str(), &uuid(job.id)]).await?;
                probed.insert(kind);
                jobs.push(job);
            }
        }
        unreadable.set_aside(session).await?;
        Ok(jobs)
    }
}

/// Finds out why some kinds gave no jobs. Returns the time, and whether the holder may probe a parked kind.
pub(super) async fn look(
    session: &Session<'_>,
    holder: HolderId,
    kinds: &[&str],
) -> Result<(Timestamp, bool), VerbError> {
    let row = session.one(&CLAIM_LOOK, &[&holder_uuid(holder), &session.offset(), &kinds]).await?;
    if row.try_get(1)? {
        Ok((instant(row.try_get(0)?), row.try_get(2)?))
    } else {
        Err(StoreError::HolderDead(holder).into())
    }
}

impl LimitsOfTime {
    fn new(visits: &[(&Visit, i32)]) -> LimitsOfTime {
        let mut limits: Vec<(i32, &Visit)> =
            visits.iter().map(|(visit, lane)| (*lane, *visit)).collect();
        limits.sort_unstable_by_key(|(lane, _)| *lane);
        let all = |time: fn(&Visit) -> Duration| -> Vec<i64> {
            limits.iter().map(|(_, visit)| millis(time(visit))).collect()
        };
        LimitsOfTime {
            holds: all(|visit| visit.attempt_timeout.saturating_add(visit.grace)),
            graces: all(|visit| visit.grace),
            ceilings: all(|visit| visit.attempt_timeout_ceiling),
            lanes: limits.iter().map(|(lane, _)| *lane).collect(),
        }
    }
}

pub(in super::super) async fn start(
    session: &Session<'_>,
    holder: HolderId,
    leases: &[Lease],
) -> Result<Vec<bool>, VerbError> {
    let (ids, fences) = columns(leases.iter().copied());
    let rows = session.query(&START, &[&holder_uuid(holder), &ids, &fences]).await?;
    let mut started = HashSet::new();
    for row in rows {
        started.insert(Lease { job: job_id(row.try_get(0)?), fence: fence(row.try_get(1)?) });
    }
    Ok(leases.iter().map(|lease| started.contains(lease)).collect())
}

pub(in super::super) async fn checkpoint(
    session: &Session<'_>,
    holder: HolderId,
    lease: Lease,
    payload: &[u8],
) -> Result<bool, VerbError> {
    let params: [Param<'_>; 4] =
        [&holder_uuid(holder), &uuid(lease.job), &count(lease.fence.get()), &payload];
    Ok(session.execute(&CHECKPOINT, &params).await? == 1)
}

pub(in super::super) async fn extend(
    session: &Session<'_>,
    holder: HolderId,
    extension: &Extension,
) -> Result<Option<Timestamp>, VerbError> {
    let params: [Param<'_>; 7] = [
        &holder_uuid(holder),
        &uuid(extension.lease.job),
        &count(extension.lease.fence.get()),
        &session.offset(),
        &millis(extension.timeout),
        &millis(extension.total_max),
        &millis(extension.grace),
    ];
    let row = session.find(&EXTEND, &params).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.map(instant))
}

/// Leases as one array per column, in the order of their ids, so that two callers that lock the same jobs cannot deadlock.
pub(super) fn columns(leases: impl Iterator<Item = Lease>) -> (Vec<Uuid>, Vec<i64>) {
    let mut leases: Vec<_> =
        leases.map(|lease| (uuid(lease.job), count(lease.fence.get()))).collect();
    leases.sort_unstable();
    leases.into_iter().unzip()
}

pub(in super::super) async fn held(
    session: &Session<'_>,
    holder: HolderId,
    older_than: Duration,
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<Lease>, VerbError> {
    let params: [Param<'_>; 6] = [
        &holder_uuid(holder),
        &session.offset(),
        &millis(older_than),
        &after.map(uuid),
        &count(limit as u64),
        // No job of a living holder is overdue for long: below that are only dead rows.
        &session.shared.overdue.from().at,
    ];
    let rows = session.query(&HELD, &params).await?;
    rows.iter()
        .map(|row| Ok(Lease { job: job_id(row.try_get(0)?), fence: fence(row.try_get(1)?) }))
        .collect()
}
