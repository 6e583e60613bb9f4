//! Reads the values of jobs.

use super::super::RedisStore;
use super::super::SCRIPT_JOBS_MAX;
use super::super::error::unreadable;
use super::super::pack::Args;
use super::super::reply::Reply;
use super::super::script::GET;
use super::super::values::{Unreadable, Values, With};
use rewheel_core::store::{StoreError, StoreResult};
use rewheel_core::{Job, JobId, Timestamp};

/// A job whose own row was asked for cannot be read.
pub(super) fn unreadable_job(id: JobId, why: Unreadable) -> StoreError {
    unreadable(&format!("job {id} with {why}"))
}

/// Leaves out a row that cannot be read: the claim or sweep that reads it sets it aside.
pub(super) fn readable(id: JobId, read: Result<Job, Unreadable>) -> Option<Job> {
    match read {
        Ok(job) => Some(job),
        Err(reason) => {
            tracing::warn!(job = %id, %reason, "unreadable job skipped: the list is incomplete; run `rewheel doctor`");
            None
        }
    }
}

/// Combines the lists of values that a script returns. A job that does not exist has no body.
pub(super) fn values(
    bodies: Reply,
    changed: Reply,
    leases: Reply,
    bigs: Option<Reply>,
) -> StoreResult<Vec<Option<Values>>> {
    let (bodies, changed, leases) = (bodies.list()?, changed.list()?, leases.list()?);
    let bigs = bigs.map_or(Ok(Vec::new()), Reply::list)?;
    let mut bigs = bigs.into_iter();
    let rows = bodies.into_iter().zip(changed).zip(leases);
    rows.map(|((body, changed), lease)| {
        let big = bigs.next().map_or(Ok(None), Reply::bytes)?;
        let (changed, lease) = (changed.bytes()?, lease.bytes()?);
        Ok(body.bytes()?.map(|body| Values { body, changed, lease, big }))
    })
    .collect()
}

/// Writes ids as a list of arguments.
pub(super) fn ids(jobs: &[JobId]) -> Args {
    Args::texts(jobs.iter().map(|job| job.to_bytes()))
}

impl RedisStore {
    /// Reads the values of jobs at one moment, and the time.
    pub(super) async fn rows(
        &self,
        jobs: &[JobId],
        with: With,
    ) -> StoreResult<(Timestamp, Vec<Option<Values>>)> {
        let args = Args::default().list(ids(jobs)).flag(with == With::Payload);
        let [now, bodies, changed, leases, bigs] = self.read(&GET, args).await?.parts()?;
        Ok((now.time()?, values(bodies, changed, leases, Some(bigs))?))
    }

    pub(in super::super) async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        let (_, rows) = self.rows(&[job], With::Payload).await?;
        let row = rows.into_iter().next().flatten();
        row.map(|row| row.job(job, With::Payload).map_err(|why| unreadable_job(job, why)))
            .transpose()
    }

    pub(in super::super) async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let mut jobs = jobs.to_vec();
        jobs.sort_unstable();
        jobs.dedup();
        let mut found = Vec::new();
        for part in jobs.chunks(SCRIPT_JOBS_MAX) {
            let (_, rows) = self.rows(part, With::NoPayload).await?;
            let rows = part.iter().zip(rows).filter_map(|(id, row)| Some((*id, row?)));
            found.extend(rows.filter_map(|(id, row)| readable(id, row.job(id, With::NoPayload))));
        }
        Ok(found)
    }
}
