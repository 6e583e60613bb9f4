//! Leases jobs to holders.

use super::super::RedisStore;
use super::super::connection::Use;
use super::super::error::unreadable;
use super::super::pack::{Args, count, millis, number};
use super::super::reply::Reply;
use super::super::script::{CHECKPOINT, CLAIM, EXTEND, HELD, LANE_HEADS, LANES, START};
use super::super::values::{Lease as StoredLease, With, lane_name, read_lane};
use super::super::{PAYLOAD_BYTES_MAX, SCRIPT_JOBS_MAX};
use super::rows::{ids, values};
use super::unreadable::Aside;
use crate::payload::refuse_large;
use redis::cmd;
use rewheel_core::store::{Claim, Extension, LaneHead, Leased, StoreResult, Visit};
use rewheel_core::{HolderId, JobId, KindName, Lane, Lease, Timestamp};
use std::time::Duration;

/// Lanes that one script reads.
const LANES_READ: usize = 500;

/// Kinds whose lanes one script reads.
const KINDS_READ: usize = 500;

/// Writes a visit as an argument.
pub(super) fn visit_args(visit: &Visit) -> Args {
    Args::default()
        .bytes(&lane_name(&visit.lane))
        .count(visit.limit)
        .millis(visit.attempt_timeout)
        .millis(visit.attempt_timeout_ceiling)
        .millis(visit.grace)
}

/// Writes leases as an argument.
pub(super) fn lease_args(leases: &[Lease]) -> Args {
    let lease = |lease: &Lease| {
        Args::default().bytes(&lease.job.to_bytes()).number(number(lease.fence.get()))
    };
    Args::lists(leases.iter().map(lease))
}

impl RedisStore {
    pub(in super::super) async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        let mut claimed = Vec::new();
        let mut visits = claim.visits.to_vec();
        loop {
            let room = claim.limit.saturating_sub(claimed.len()).min(SCRIPT_JOBS_MAX);
            let args = visits
                .iter()
                .map(|visit| visit_args(visit).number(millis(visit.lane.horizon(claim.horizon))));
            let args = Args::default()
                .bytes(&claim.holder.to_bytes())
                .number(count(room))
                .list(Args::lists(args));
            let answer = self.run_alive(Use::Work, &CLAIM, args, claim.holder).await;
            let answer = match answer {
                Ok(answer) => answer,
                // What an earlier script leased is not lost: the caller gets it.
                Err(_) if !claimed.is_empty() => return Ok(claimed),
                Err(error) => return Err(error),
            };
            let [now, taken] = answer.parts()?;
            let (more, asked) = self.leased(now.time()?, taken).await?;
            for leased in &more {
                let visit = visits.iter_mut().find(|visit| visit.lane == leased.job.lane);
                visit.into_iter().for_each(|visit| visit.limit = visit.limit.saturating_sub(1));
            }
            claimed.extend(more);
            if asked < room || claimed.len() >= claim.limit {
                return Ok(claimed);
            }
        }
    }

    /// Reads the jobs that a script has leased. One that cannot be read is set aside. Also returns how many there were.
    pub(super) async fn leased(
        &self,
        now: Timestamp,
        taken: Reply,
    ) -> StoreResult<(Vec<Leased>, usize)> {
        let [jobs, bodies, changed, leases, bigs] = taken.parts()?;
        let jobs: Vec<JobId> =
            jobs.list()?.into_iter().map(Reply::job).collect::<StoreResult<_>>()?;
        let rows = values(bodies, changed, leases, Some(bigs))?;
        let mut aside = Aside::default();
        let mut leased = Vec::with_capacity(jobs.len());
        for (id, row) in jobs.iter().zip(rows) {
            let Some(row) = row else { continue };
            match row.job(*id, With::Payload) {
                Ok(job) => leased.push(Leased {
                    due_in: job.due.since(now),
                    deadline_in: job.deadline.map(|deadline| deadline.since(now)),
                    job,
                }),
                Err(reason) => aside.add(*id, reason),
            }
        }
        self.set_aside(aside).await;
        Ok((leased, jobs.len()))
    }

    pub(in super::super) async fn start(
        &self,
        holder: HolderId,
        leases: &[Lease],
    ) -> StoreResult<Vec<bool>> {
        let args = Args::default().bytes(&holder.to_bytes()).list(lease_args(leases));
        let answers = self.run(&START, args).await?.list()?;
        answers.into_iter().map(|answer| Ok(answer.count()? == 1)).collect()
    }

    pub(in super::super) async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        refuse_large(payload, PAYLOAD_BYTES_MAX)?;
        let args = Args::default().bytes(&holder.to_bytes()).bytes(&lease.job.to_bytes());
        let args = args.number(number(lease.fence.get())).bytes(payload);
        Ok(self.run(&CHECKPOINT, args).await?.count()? == 1)
    }

    pub(in super::super) async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        let lease = extension.lease;
        let args = Args::default().bytes(&holder.to_bytes()).bytes(&lease.job.to_bytes());
        let args = args.number(number(lease.fence.get())).millis(extension.timeout);
        let args = args.millis(extension.total_max).millis(extension.grace);
        self.run(&EXTEND, args).await?.maybe_time()
    }

    /// Reads the ids of all held jobs, which are few, and then the leases of one page.
    pub(in super::super) async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        let mut command = cmd("ZRANGE");
        command
            .arg([self.shared.prefix.as_bytes(), b"held:", &holder.to_bytes()].concat())
            .arg(0)
            .arg(-1);
        let held = self.ask(&command).await?.list()?;
        let mut jobs: Vec<JobId> = held.into_iter().map(Reply::job).collect::<StoreResult<_>>()?;
        jobs.retain(|job| after.is_none_or(|after| *job > after));
        jobs.sort_unstable();
        let mut found = Vec::new();
        for part in jobs.chunks(SCRIPT_JOBS_MAX) {
            let args = Args::default().bytes(&holder.to_bytes()).list(ids(part));
            let [now, leases] = self.read(&HELD, args).await?.parts()?;
            let now = now.time()?;
            for (job, lease) in part.iter().zip(leases.list()?) {
                let Some(raw) = lease.bytes()? else { continue };
                let lease = StoredLease::read(&raw).map_err(|why| unreadable(why.0))?;
                let is_old = older_than.is_zero() || lease.leased.plus(older_than) <= now;
                if lease.holder == holder && is_old && found.len() < limit {
                    found.push(Lease { job: *job, fence: lease.fence });
                }
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    pub(in super::super) async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        let mut heads = Vec::new();
        for part in lanes.chunks(LANES_READ) {
            let args = Args::default().list(Args::texts(part.iter().map(lane_name)));
            let [now, dues] = self.read(&LANE_HEADS, args).await?.parts()?;
            let now = now.time()?;
            for (lane, due) in part.iter().zip(dues.list()?) {
                if let Some(due) = due.maybe_time()? {
                    heads.push(LaneHead { lane: lane.clone(), due, due_in: due.since(now) });
                }
            }
        }
        Ok(heads)
    }

    pub(in super::super) async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        let mut kinds: Vec<&str> = kinds.iter().map(KindName::as_str).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut from = None;
        if let Some(after) = after {
            kinds.retain(|kind| *kind >= after.kind.as_str());
            if kinds.first() == Some(&after.kind.as_str()) {
                from = Some([b"(".as_slice(), &lane_name(after)].concat());
            }
        }
        let (mut kinds, mut heads) = (kinds.as_slice(), Vec::new());
        while !kinds.is_empty() && heads.len() < limit {
            let part = &kinds[..kinds.len().min(KINDS_READ)];
            let most = LANES_READ.min(limit - heads.len());
            let args = Args::default().maybe_bytes(from.as_deref()).count(most);
            let args = args.list(Args::texts(part));
            let [now, lanes, dues, done] = self.read(&LANES, args).await?.parts()?;
            let (now, mut last) = (now.time()?, None);
            for (lane, due) in lanes.list()?.into_iter().zip(dues.list()?) {
                let name = lane.must()?;
                let lane = read_lane(&name).map_err(|why| unreadable(why.0))?;
                last = Some(name);
                if let Some(due) = due.maybe_time()? {
                    heads.push(LaneHead { lane, due, due_in: due.since(now) });
                }
            }
            let done = usize::try_from(done.count()?).unwrap_or(usize::MAX).min(part.len());
            // A script that stops at its limit stops in the kind of the last lane.
            from = last.filter(|_| done < part.len()).map(|last| [b"(".as_slice(), &last].concat());
            kinds = &kinds[done..];
        }
        Ok(heads)
    }
}
