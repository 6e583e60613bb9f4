//! Frees jobs of dead holders and overdue jobs, ends jobs whose deadline has passed, and announces dead letters.

use super::super::connection::Use;
use super::super::error::unreadable;
use super::super::pack::{Args, count, number, time};
use super::super::script::{ANNOUNCE, DEADLINES, SWEEP, UNANNOUNCED};
use super::super::values::{Values, With, state};
use super::super::{RedisStore, SCRIPT_CHANGES_MAX, SCRIPT_JOBS_MAX};
use super::rows::readable;
use rewheel_core::store::{DeadLetter, StoreResult, Sweep};
use rewheel_core::{Cause, JobEvent, JobId, State, Status};
use std::time::Duration;

/// Jobs whose deadline has passed that one script looks at.
const DEADLINES_READ: usize = 100;

/// Leased jobs within the grace that a call passes over, before it leaves the rest to the next call.
const DEADLINES_PASSED_MAX: usize = 10_000;

/// Leases that one script of a sweep looks at.
const LEASES_READ: usize = 500;

impl RedisStore {
    pub(in super::super) async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        self.finish_batches().await?;
        let events = self.take_over(sweep).await?;
        // Not urgent: takeovers come first, and their events must not be lost to a timeout.
        if events.is_empty() {
            self.count_forgotten().await;
        }
        Ok(events)
    }

    async fn take_over(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        // Where a script has stopped: the holder, and how many of its leases were passed over.
        let (mut events, mut stopped) = (Vec::new(), (Vec::new(), 0));
        loop {
            let room = (sweep.limit - events.len()).min(SCRIPT_CHANGES_MAX);
            let args = Args::default()
                .bytes(&self.shared.me)
                .bytes(&sweep.by.to_bytes())
                .number(count(room))
                .millis(sweep.keep.job)
                .millis(sweep.keep.key)
                .number(time(sweep.watched.until))
                .millis(sweep.watched.since)
                .bytes(&stopped.0)
                .count(stopped.1)
                .count(LEASES_READ);
            let answer = self.run_alive(Use::Work, &SWEEP, args, sweep.by).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(_) if !events.is_empty() => return Ok(events),
                Err(error) => return Err(error),
            };
            let [at, taken, woken, holder, passed] = answer.parts()?;
            self.wake(woken)?;
            let at = at.time()?;
            let taken = taken.list()?;
            let has_taken = !taken.is_empty();
            for event in taken {
                let [job, kind, to, holder] = event.parts()?;
                events.push(JobEvent {
                    job: job.job()?,
                    kind: kind.kind()?,
                    from: State::Leased,
                    to: state(&to.must()?).map_err(|why| unreadable(why.0))?,
                    cause: Cause::Takeover,
                    holder: Some(holder.holder()?),
                    at,
                });
            }
            let Some(holder) = holder.bytes()? else { return Ok(events) };
            let next = (holder, usize::try_from(passed.count()?).unwrap_or(usize::MAX));
            // Without progress: the entries belong to no job.
            if events.len() >= sweep.limit || (!has_taken && next == stopped) {
                return Ok(events);
            }
            stopped = next;
        }
    }

    pub(in super::super) async fn deadlines(
        &self,
        grace: Duration,
        limit: usize,
    ) -> StoreResult<Vec<JobEvent>> {
        let (mut events, mut from) = (Vec::new(), 0);
        loop {
            let room = (limit - events.len()).min(SCRIPT_CHANGES_MAX);
            let args = Args::default().bytes(&self.shared.me).millis(grace).count(room);
            let args = args.count(from).count(DEADLINES_READ);
            let answer = match self.run(&DEADLINES, args).await {
                Ok(answer) => answer,
                Err(_) if !events.is_empty() => return Ok(events),
                Err(error) => return Err(error),
            };
            let [at, ended, woken, left, more] = answer.parts()?;
            self.wake(woken)?;
            let (at, ended) = (at.time()?, ended.list()?);
            // Those that ended are not in the list any more.
            from += usize::try_from(left.count()?).unwrap_or(usize::MAX);
            let has_more = more.count()? == 1 && from < DEADLINES_PASSED_MAX;
            for event in ended {
                let [job, kind, from, holder] = event.parts()?;
                let holder = if holder.is_missing() { None } else { Some(holder.holder()?) };
                events.push(JobEvent {
                    job: job.job()?,
                    kind: kind.kind()?,
                    from: state(&from.must()?).map_err(|why| unreadable(why.0))?,
                    to: State::Dead,
                    cause: Cause::Deadline,
                    holder,
                    at,
                });
            }
            if !has_more || events.len() >= limit {
                return Ok(events);
            }
        }
    }

    pub(in super::super) async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let args = Args::default().number(count(limit.min(SCRIPT_JOBS_MAX)));
        let [jobs, bodies, changed] = self.read(&UNANNOUNCED, args).await?.parts()?;
        let rows = jobs.list()?.into_iter().zip(bodies.list()?).zip(changed.list()?);
        let mut letters = Vec::new();
        for ((id, body), changed) in rows {
            let (id, Some(body)): (JobId, _) = (id.job()?, body.bytes()?) else { continue };
            let values = Values { body, changed: changed.bytes()?, ..Values::default() };
            let Some(job) = readable(id, values.job(id, With::NoPayload)) else { continue };
            let Status::Dead(died) = job.status else { continue };
            let (version, lane, attempt, failure) =
                (job.version, job.lane, job.attempt, job.failure);
            letters.push(DeadLetter { job: id, version, lane, attempt, died, failure });
        }
        Ok(letters)
    }

    pub(in super::super) async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        for part in dead.chunks(SCRIPT_CHANGES_MAX) {
            let letters = part.iter().map(|letter| {
                Args::default().bytes(&letter.job.to_bytes()).number(number(letter.version.get()))
            });
            self.run(&ANNOUNCE, Args::default().list(Args::lists(letters))).await?;
        }
        Ok(())
    }
}
