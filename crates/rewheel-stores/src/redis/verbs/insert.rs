//! Stores new jobs.

use super::super::error::unreadable;
use super::super::pack::{Args, count, millis, time};
use super::super::reply::Reply;
use super::super::script::{GET, INSERT};
use super::super::values::{Body, failure_refusal, lane_name, scope, state};
use super::super::{PAYLOAD_BYTES_MAX, RedisStore, SCRIPT_JOBS_MAX};
use super::rows::ids;
use crate::batch::check_backoff;
use crate::duplicates::has_twins;
use crate::payload::payload_hash;
use rewheel_core::store::{Direct, IfRefused, Insert, Inserted, Sent, StoreError, StoreResult};
use rewheel_core::{Fence, JobId, NewJob, OnDuplicate, UniqueUntil, When};

/// Copying so many bytes of a payload takes about as long as storing a small job.
const PAYLOAD_BYTES_PER_WORK: usize = 8 * 1024;

impl RedisStore {
    pub(in super::super) async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        insert.check()?;
        insert.jobs.iter().try_for_each(check_backoff)?;
        let direct = insert.direct.filter(|_| !has_twins(insert.jobs));
        let parts = portions(insert.jobs);
        if let [whole] = parts.as_slice() {
            return self.insert_part(whole, insert, direct).await;
        }
        if insert.if_refused == IfRefused::StoreNothing {
            return self.insert_together(insert, &parts).await;
        }
        if insert.sent == Sent::First {
            // Otherwise a batch that is rejected in its middle would have stored its first part.
            self.must_be_new(insert.jobs).await?;
        }
        let mut answers = Vec::with_capacity(insert.jobs.len());
        for part in parts {
            match self.insert_part(part, insert, direct).await {
                Ok(more) => answers.extend(more),
                // What was stored before stays, so the caller has to ask again.
                Err(StoreError::Unavailable(why) | StoreError::Full(why))
                    if !answers.is_empty() =>
                {
                    return Err(StoreError::Ambiguous(why));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    async fn must_be_new(&self, jobs: &[NewJob]) -> StoreResult<()> {
        for part in jobs.chunks(SCRIPT_JOBS_MAX) {
            let known: Vec<JobId> = part.iter().map(|job| job.id).collect();
            let args = Args::default().list(ids(&known)).flag(false);
            let [_, bodies, ..] = self.read(&GET, args).await?.parts::<5>()?;
            let stored =
                bodies.list()?.into_iter().zip(&known).find(|(body, _)| !body.is_missing());
            if let Some((_, id)) = stored {
                return Err(exists(*id));
            }
        }
        Ok(())
    }

    async fn insert_part(
        &self,
        jobs: &[NewJob],
        insert: &Insert<'_>,
        direct: Option<Direct>,
    ) -> StoreResult<Vec<Inserted>> {
        let direct = direct.map(|direct| {
            let args = Args::default().bytes(&direct.holder.to_bytes());
            args.millis(direct.attempt_timeout).millis(direct.grace)
        });
        let args = Args::default()
            .bytes(&self.shared.me)
            .flag(insert.sent == Sent::Again)
            .flag(insert.if_refused == IfRefused::StoreNothing)
            .maybe_list(direct)
            .list(Args::lists(jobs.iter().map(|job| new_job(job, None))));
        let [answers, lanes] = self.run(&INSERT, args).await?.parts()?;
        let Ok(answers) = answers.clone().list() else {
            return Err(exists(lanes.job()?));
        };
        self.wake(lanes)?;
        let answers: Vec<Inserted> =
            answers.into_iter().map(inserted).collect::<StoreResult<_>>()?;
        self.acknowledge(jobs, &answers);
        Ok(answers)
    }
}

/// Splits jobs into what one script can store without keeping other clients waiting for more than a few milliseconds.
fn portions(jobs: &[NewJob]) -> Vec<&[NewJob]> {
    let (mut parts, mut from, mut sum) = (Vec::new(), 0, 0);
    for (at, job) in jobs.iter().enumerate() {
        let work = work(job);
        if sum + work > SCRIPT_JOBS_MAX && at > from {
            parts.push(&jobs[from..at]);
            (from, sum) = (at, 0);
        }
        sum += work;
    }
    parts.push(&jobs[from..]);
    parts
}

/// The work of storing a job, in plain jobs.
fn work(job: &NewJob) -> usize {
    let is_special = job.key.is_some() || job.deadline.is_some() || job.parent.is_some();
    let is_changed =
        job.group_key.is_some() || job.duplicates.on_duplicate() == OnDuplicate::Replace;
    let of_job = if is_changed {
        8
    } else if is_special {
        3
    } else {
        1
    };
    of_job + job.payload.len() / PAYLOAD_BYTES_PER_WORK
}

pub(super) fn exists(id: JobId) -> StoreError {
    let why = format!("a job with id {id} already exists: use a new id for each job");
    StoreError::Rejected(why.into())
}

/// Writes a new job as an argument, see `lua/lib/store.lua`. The letter is what becomes of a follow-up that is refused.
pub(super) fn new_job(new: &NewJob, letter: Option<Args>) -> Args {
    let too_large = (new.payload.len() > PAYLOAD_BYTES_MAX).then(|| count(new.payload.len()));
    let body = match too_large {
        None => Body::of_new(new),
        Some(_) => Body::of_new(&NewJob { payload: Vec::new(), ..new.clone() }),
    };
    let (due_is_time, due) = match new.due {
        When::In(after) => (false, millis(after)),
        When::At(at) => (true, time(at)),
    };
    let (limit, deadline) = match new.deadline {
        None => (0.0, 0.0),
        Some(When::In(after)) => (1.0, millis(after)),
        Some(When::At(at)) => (2.0, time(at)),
    };
    let field = new.key.as_ref().map(|key| {
        let mut field = scope(&new.kind, new.tenant.as_ref(), b"");
        field.push(0);
        field.extend_from_slice(key.as_str().as_bytes());
        field
    });
    let hash = new.key.as_ref().map(|_| payload_hash(&new.payload));
    let duplicates = new.duplicates;
    let args = Args::default()
        .bytes(&new.id.to_bytes())
        .number(body.flags.into())
        .count(body.head)
        .bytes(&body.tail)
        .bytes(&lane_name(&new.lane()))
        .flag(due_is_time)
        .number(due);
    let format = new.format().get();
    if (body.flags, format) == (0, 0)
        && body.big.is_none()
        && too_large.is_none()
        && letter.is_none()
    {
        // Most jobs: the rest is missing.
        return args;
    }
    args.number(limit)
        .number(deadline)
        .number(format.into())
        .maybe_bytes(field.as_deref())
        .maybe_bytes(hash.as_ref().map(<[u8; 32]>::as_slice))
        .flag(duplicates.on_duplicate() == OnDuplicate::Replace)
        .flag(duplicates.unique_until() == UniqueUntil::Claimed)
        .maybe_number(duplicates.debounce().map(|debounce| millis(debounce.max())))
        .maybe_bytes(new.parent.map(JobId::to_bytes).as_ref().map(<[u8; 16]>::as_slice))
        .maybe_bytes(body.big.as_deref())
        .maybe_number(new.attempt_timeout.map(millis))
        .maybe_number(too_large)
        .maybe_list(letter)
}

/// Reads the answer for one job.
pub(super) fn inserted(answer: Reply) -> StoreResult<Inserted> {
    let mut parts = answer.list()?.into_iter();
    let mut next = || parts.next().unwrap_or_default();
    let what = next().must()?;
    let known_state = |letter: Reply| state(&letter.must()?).map_err(|why| unreadable(why.0));
    Ok(match what.as_slice() {
        b"C" => {
            let (due, fence) = (next().time()?, next().count()?);
            Inserted::Created { due, leased: (fence > 0).then(|| Fence::new(fence)) }
        }
        b"U" => Inserted::Duplicate { job: next().job()?, state: known_state(next())? },
        b"P" => Inserted::Replaced { job: next().job()?, state: known_state(next())? },
        b"X" => {
            let (why, detail) = (next().must()?, next().must()?);
            let why = why.first().copied().unwrap_or_default();
            Inserted::Refused(failure_refusal(why, &detail).map_err(|why| unreadable(why.0))?)
        }
        b"O" => Inserted::LeftOut,
        _ => return Err(unreadable("a reply")),
    })
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT_JOBS_MAX, portions};
    use rewheel::Random;
    use rewheel_core::{JobId, Key, KindName, NewJob, Timestamp};

    fn jobs(count: usize, change: impl Fn(&mut NewJob)) -> Vec<NewJob> {
        let (random, kind) = (Random::seeded(1), KindName::parse("mail").unwrap());
        let job = |_| {
            let id = JobId::new(Timestamp::from_millis(0), &random);
            let mut job = NewJob::new(id, kind.clone(), Vec::new());
            change(&mut job);
            job
        };
        (0..count).map(job).collect()
    }

    fn lengths(jobs: &[NewJob]) -> Vec<usize> {
        portions(jobs).iter().map(|part| part.len()).collect()
    }

    #[test]
    fn a_script_gets_fewer_jobs_that_are_more_work() {
        assert_eq!(lengths(&[]), [0]);
        assert_eq!(lengths(&jobs(SCRIPT_JOBS_MAX, |_| {})), [SCRIPT_JOBS_MAX]);
        assert_eq!(lengths(&jobs(SCRIPT_JOBS_MAX + 1, |_| {})), [SCRIPT_JOBS_MAX, 1]);
        let keyed = jobs(100, |job| job.key = Key::parse("k").ok());
        assert_eq!(lengths(&keyed), [SCRIPT_JOBS_MAX / 3, 100 - SCRIPT_JOBS_MAX / 3]);
        // One that is too much work alone is still stored.
        let large = jobs(2, |job| job.payload = vec![0; 4 * 1024 * 1024]);
        assert_eq!(lengths(&large), [1, 1]);
    }
}
