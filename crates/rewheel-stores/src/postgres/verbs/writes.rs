//! Collects changes of locked live jobs, and writes them with one statement per sort of change.

use super::super::bins::width_ms;
use super::super::error::{VerbError, unreadable};
use super::super::row::count;
use super::super::row::{counter, fence, holder_uuid, job_id, millis, small, texts, uuid, wanted};
use super::super::session::{Param, Session};
use super::super::statements::{
    DROP_JOBS, END_DEAD, END_FINISHED, END_KEYS, INSERT_ATTEMPTS, INSERT_LEDGER, KEEP_LEASE,
    LET_GO, TRIM_ATTEMPTS,
};
use super::audit::{Noted, write_notes};
use super::groups::Touched;
use super::results::{self, Ran, Rans};
use rewheel_core::store::Settlement;
use rewheel_core::{
    Actor, Cause, Failure, Fence, GivenResult, HolderId, JobId, Limits, Retain, State, Timestamp,
    Transition, Wanted,
};
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// A locked row of the hot table.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) id: JobId,
    pub(super) lane: i32,
    pub(super) state: State,
    pub(super) fence: Fence,
    pub(super) wanted: Option<Wanted>,
    pub(super) attempt: u32,
    pub(super) takeovers: u32,
    pub(super) takeovers_counted: u32,
    pub(super) started: bool,
    pub(super) holder: Option<i32>,
    pub(super) key: Option<String>,
    /// Whether it has a group.
    pub(super) grouped: bool,
    /// Whether it was never settled nor given back, so that no failed attempt is on record.
    pub(super) unsettled: bool,
    /// How often the row was written: at least once for every attempt on record.
    pub(super) version: i64,
}

impl Live {
    /// Reads the columns that every statement which locks live jobs starts with.
    pub(super) fn read(row: &Row) -> Result<Live, VerbError> {
        let number: i64 = row.try_get(3)?;
        Ok(Live {
            id: job_id(row.try_get(0)?),
            lane: row.try_get(1)?,
            state: row.try_get::<_, &str>(2)?.parse().map_err(|_| unreadable("a state"))?,
            fence: fence(number),
            wanted: wanted(row.try_get(4)?)?,
            attempt: small(row.try_get(5)?),
            takeovers: small(row.try_get(6)?),
            takeovers_counted: small(row.try_get(7)?),
            started: row.try_get::<_, Option<i64>>(8)? == Some(number),
            holder: row.try_get(9)?,
            key: row.try_get(10)?,
            grouped: row.try_get(11)?,
            unsettled: row.try_get(12)?,
            version: row.try_get(13)?,
        })
    }

    /// Describes what the engine is about to do to the job.
    pub(super) fn transition(
        &self,
        cause: Cause,
        to: State,
        holder: Option<HolderId>,
    ) -> Transition<'static> {
        Transition {
            cause,
            from: self.state,
            to,
            holder,
            fence: self.fence,
            wanted: self.wanted,
            takeovers: self.takeovers,
            takeovers_counted: self.takeovers_counted,
            failure: None,
        }
    }
}

/// The holder that settled a job, and under which fence.
pub(super) type SettledBy = Option<(i32, Fence)>;

/// The collected writes.
#[derive(Default)]
pub(super) struct Writes<'a> {
    let_go: Vec<LetGo<'a>>,
    kept: Vec<KeptLease<'a>>,
    dead: Vec<End>,
    /// With the retention.
    finished: Vec<(End, State, Duration)>,
    results: Vec<(JobId, &'a GivenResult, Timestamp)>,
    dropped: Vec<Uuid>,
    keys: Vec<(i32, String, JobId, State, Timestamp)>,
    attempts: Vec<(&'a Settlement, &'a Failure, u32)>,
    /// Those of the jobs with such records that may have too many.
    long: Vec<Uuid>,
    noted: Vec<Noted>,
    /// The jobs of groups.
    touched: Touched,
}

struct LetGo<'a> {
    live: Live,
    state: State,
    due: Option<(Timestamp, &'static str)>,
    settled_by: SettledBy,
    failure: Option<&'a Failure>,
}

struct KeptLease<'a> {
    id: JobId,
    attempt: u32,
    due: Timestamp,
    because: &'static str,
    overdue: Timestamp,
    failure: Option<&'a Failure>,
}

struct End {
    live: Live,
    settled_by: SettledBy,
    failure: Option<Failure>,
    ran: Option<Ran>,
}

impl End {
    /// Returns whether it succeeded at once, so that no failed attempt is on record, and no group lists it.
    fn is_plain(&self) -> bool {
        self.ran.is_some() && self.live.unsettled && !self.live.grouped
    }
}

impl<'a> Writes<'a> {
    /// Releases a job, which stays live.
    pub(super) fn let_go(
        &mut self,
        live: Live,
        state: State,
        due: Option<(Timestamp, &'static str)>,
        settled_by: SettledBy,
        failure: Option<&'a Failure>,
    ) {
        self.let_go.push(LetGo { live, state, due, settled_by, failure });
    }

    /// Keeps a sticky retry with its holder.
    pub(super) fn keep(
        &mut self,
        live: &Live,
        (due, because): (Timestamp, &'static str),
        overdue: Timestamp,
        failure: Option<&'a Failure>,
    ) {
        let (id, attempt) = (live.id, live.attempt);
        self.kept.push(KeptLease { id, attempt, due, because, overdue, failure });
    }

    /// Moves a job out of the hot table.
    pub(super) fn end(
        &mut self,
        mut live: Live,
        state: State,
        failure: Option<Failure>,
        settled_by: SettledBy,
        (now, keep): (Timestamp, Retain),
    ) {
        // A job that is taken from its holder gets a larger fence, as in any takeover.
        if live.state == State::Leased && settled_by.is_none() {
            live.fence = live.fence.next();
        }
        if live.grouped {
            if state == State::Dead {
                self.touched.die(live.id);
            } else {
                self.touched.end(live.id);
            }
        }
        if state == State::Dead {
            self.dead.push(End { live, settled_by, failure, ran: None });
            return;
        }
        if let Some(key) = live.key.take() {
            self.keys.push((live.lane, key, live.id, state, now.plus(keep.key)));
        }
        if keep.job.is_zero() {
            self.dropped.push(uuid(live.id));
        } else {
            let end = End { live, settled_by, failure, ran: None };
            self.finished.push((end, state, keep.job));
        }
    }

    /// Stores the result of a job that succeeded and is kept, and the record of its attempt. Call it after [`Writes::end`].
    pub(super) fn succeeded(&mut self, settled: &'a Settlement, holder: HolderId, now: Timestamp) {
        let job = settled.lease.job;
        let ended = self.finished.last_mut().filter(|(end, ..)| end.live.id == job);
        let Some((end, State::Succeeded, keep)) = ended else { return };
        end.ran = Ran::of(settled, holder, now);
        let expires = now.plus(*keep);
        self.results.extend(settled.result.as_ref().map(|result| (job, result, expires)));
    }

    /// Records a failed attempt.
    pub(super) fn record(&mut self, live: &Live, settlement: &'a Settlement, failure: &'a Failure) {
        self.attempts.push((settlement, failure, live.attempt + 1));
        if live.version > count(Limits::ATTEMPTS_LISTED_MAX as u64) {
            self.long.push(uuid(live.id));
        }
    }

    /// Adds an audit entry, if this change of a job needs one.
    pub(super) fn note(&mut self, live: &Live, transition: &Transition<'_>, who: &Actor) {
        let (job, lane) = (live.id, live.lane);
        let noted = transition.notes().map(|note| Noted { who: who.clone(), job, lane, note });
        self.noted.extend(noted);
    }

    /// Ends the key of a job that is not in the hot table and reaches its final state.
    pub(super) fn end_key(
        &mut self,
        lane: i32,
        key: String,
        job: JobId,
        state: State,
        expires: Timestamp,
    ) {
        self.keys.push((lane, key, job, state, expires));
    }

    /// Takes a job that is not in the hot table out of the line of its group.
    pub(super) fn leave_group(&mut self, job: JobId) {
        self.touched.end(job);
    }

    /// Writes everything but the lines of groups, and returns the jobs whose lines are left to do.
    pub(super) async fn flush(
        self,
        session: &Session<'_>,
        now: Timestamp,
        holder: Option<(HolderId, i32)>,
    ) -> Result<Touched, VerbError> {
        if let Some((id, number)) = holder {
            write_attempts(session, &self.attempts, id, now).await?;
            trim_attempts(session, &self.long).await?;
            write_kept(session, &self.kept, number, now).await?;
        }
        write_let_go(session, &self.let_go, now).await?;
        write_dead(session, &self.dead, now).await?;
        write_finished(session, &self.finished, now).await?;
        results::store(session, &self.results).await?;
        if !self.dropped.is_empty() {
            session.execute(&DROP_JOBS, &[&self.dropped]).await?;
            let line: [Param<'_>; 3] =
                [&now.as_millis(), &0_i64, &count(self.dropped.len() as u64)];
            session.execute(&INSERT_LEDGER, &line).await?;
        }
        write_keys(session, &self.keys).await?;
        write_notes(session, &self.noted, now).await?;
        Ok(self.touched)
    }
}

async fn write_attempts(
    session: &Session<'_>,
    attempts: &[(&Settlement, &Failure, u32)],
    holder: HolderId,
    now: Timestamp,
) -> Result<(), VerbError> {
    if attempts.is_empty() {
        return Ok(());
    }
    let column = |value: &dyn Fn(&Settlement) -> i64| -> Vec<i64> {
        attempts.iter().map(|(settled, ..)| value(settled)).collect()
    };
    let params: [Param<'_>; 11] = [
        &holder_uuid(holder),
        &attempts.iter().map(|(settled, ..)| uuid(settled.lease.job)).collect::<Vec<Uuid>>(),
        &attempts.iter().map(|(.., attempt)| counter(*attempt)).collect::<Vec<i32>>(),
        &column(&|settled| count(settled.lease.fence.get())),
        &column(&|settled| now.as_millis().saturating_sub(millis(settled.ran.started_ago))),
        &column(&|settled| millis(settled.ran.duration)),
        &attempts.iter().map(|(_, failure, _)| failure.category().as_str()).collect::<Vec<_>>(),
        &attempts.iter().map(|(_, failure, _)| failure.code()).collect::<Vec<_>>(),
        &attempts.iter().map(|(_, failure, _)| failure.message()).collect::<Vec<_>>(),
        &attempts.iter().map(|(settled, ..)| settled.decision.as_str()).collect::<Vec<_>>(),
        &attempts
            .iter()
            .map(|(settled, ..)| settled.decision.wait().map(|(after, _)| millis(after)))
            .collect::<Vec<_>>(),
    ];
    session.execute(&INSERT_ATTEMPTS, &params).await.map(drop)
}

/// Drops records from the middle of long histories.
async fn trim_attempts(session: &Session<'_>, jobs: &[Uuid]) -> Result<(), VerbError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let first = count(Limits::ATTEMPTS_FIRST_KEPT as u64);
    let last = count(Limits::ATTEMPTS_LAST_KEPT as u64);
    session.execute(&TRIM_ATTEMPTS, &[&jobs, &first, &last]).await.map(drop)
}

async fn write_kept(
    session: &Session<'_>,
    kept: &[KeptLease<'_>],
    holder: i32,
    now: Timestamp,
) -> Result<(), VerbError> {
    if kept.is_empty() {
        return Ok(());
    }
    let failures = Failures::of(kept.iter().map(|kept| kept.failure));
    let params: [Param<'_>; 10] = [
        &holder,
        &now.as_millis(),
        &kept.iter().map(|kept| uuid(kept.id)).collect::<Vec<_>>(),
        &kept.iter().map(|kept| counter(kept.attempt)).collect::<Vec<_>>(),
        &kept.iter().map(|kept| kept.due.as_millis()).collect::<Vec<_>>(),
        &kept.iter().map(|kept| kept.because).collect::<Vec<_>>(),
        &kept.iter().map(|kept| kept.overdue.as_millis()).collect::<Vec<_>>(),
        &failures.categories,
        &failures.codes,
        &failures.messages,
    ];
    session.execute(&KEEP_LEASE, &params).await.map(drop)
}

async fn write_let_go(
    session: &Session<'_>,
    jobs: &[LetGo<'_>],
    now: Timestamp,
) -> Result<(), VerbError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let lives = Lives::of(jobs.iter().map(|job| (&job.live, job.settled_by)));
    let failures = Failures::of(jobs.iter().map(|job| job.failure));
    let params: [Param<'_>; 13] = [
        &lives.ids,
        &jobs.iter().map(|job| job.state.as_str()).collect::<Vec<_>>(),
        &lives.fences,
        &lives.attempts,
        &lives.takeovers,
        &lives.takeovers_counted,
        &jobs.iter().map(|job| job.due.map(|(due, _)| due.as_millis())).collect::<Vec<_>>(),
        &jobs.iter().map(|job| job.due.map(|(_, because)| because)).collect::<Vec<_>>(),
        &lives.settled_by,
        &lives.settled_fence,
        &failures.categories,
        &failures.codes,
        &failures.messages,
    ];
    session.execute_returning_before(&LET_GO, &params, now).await
}

async fn write_dead(session: &Session<'_>, ends: &[End], now: Timestamp) -> Result<(), VerbError> {
    if ends.is_empty() {
        return Ok(());
    }
    let lives = Lives::of(ends.iter().map(|end| (&end.live, end.settled_by)));
    let failures = Failures::of(ends.iter().map(|end| end.failure.as_ref()));
    let now = now.as_millis();
    let mut params: Vec<Param<'_>> = vec![&now];
    params.extend(lives.params());
    params.extend(failures.params());
    session.execute(&END_DEAD, &params).await.map(drop)
}

async fn write_finished(
    session: &Session<'_>,
    ends: &[(End, State, Duration)],
    now: Timestamp,
) -> Result<(), VerbError> {
    if ends.is_empty() {
        return Ok(());
    }
    let lives = Lives::of(ends.iter().map(|(end, ..)| (&end.live, end.settled_by)));
    let failures = Failures::of(ends.iter().map(|(end, ..)| end.failure.as_ref()));
    let rans = Rans::of(ends.iter().map(|(end, ..)| end.ran.as_ref()));
    let states: Vec<&str> = ends.iter().map(|(_, state, _)| state.as_str()).collect();
    let expires: Vec<i64> = ends.iter().map(|(.., keep)| now.plus(*keep).as_millis()).collect();
    let binned = |(end, _, keep): &(End, State, Duration)| end.is_plain().then_some(*keep);
    let widths: Vec<Option<i64>> = ends.iter().map(|end| width_ms(binned(end)?)).collect();
    for keep in ends.iter().filter_map(binned) {
        session.shared.bins.kept(now, keep, 1);
    }
    let now = now.as_millis();
    let mut params: Vec<Param<'_>> = vec![&now];
    params.extend(lives.params());
    params.extend(failures.params());
    params.extend([&states as Param<'_>, &expires]);
    params.extend(rans.params());
    params.push(&widths);
    session.execute(&END_FINISHED, &params).await.map(drop)
}

async fn write_keys(
    session: &Session<'_>,
    keys: &[(i32, String, JobId, State, Timestamp)],
) -> Result<(), VerbError> {
    if keys.is_empty() {
        return Ok(());
    }
    let params: [Param<'_>; 5] = [
        &keys.iter().map(|(lane, ..)| *lane).collect::<Vec<_>>(),
        &keys.iter().map(|(_, key, ..)| key.as_str()).collect::<Vec<_>>(),
        &keys.iter().map(|(_, _, job, ..)| uuid(*job)).collect::<Vec<_>>(),
        &keys.iter().map(|(.., state, _)| state.as_str()).collect::<Vec<_>>(),
        &keys.iter().map(|(.., expires)| expires.as_millis()).collect::<Vec<_>>(),
    ];
    session.execute(&END_KEYS, &params).await.map(drop)
}

/// The changed columns of released jobs, one array per column.
struct Lives {
    ids: Vec<Uuid>,
    fences: Vec<i64>,
    attempts: Vec<i32>,
    takeovers: Vec<i32>,
    takeovers_counted: Vec<i32>,
    settled_by: Vec<Option<i32>>,
    settled_fence: Vec<Option<i64>>,
}

impl Lives {
    fn of<'l>(lives: impl Iterator<Item = (&'l Live, SettledBy)> + Clone) -> Lives {
        let column = |value: fn(&Live) -> u32| -> Vec<i32> {
            lives.clone().map(|(live, _)| counter(value(live))).collect()
        };
        Lives {
            ids: lives.clone().map(|(live, _)| uuid(live.id)).collect(),
            fences: lives.clone().map(|(live, _)| count(live.fence.get())).collect(),
            attempts: column(|live| live.attempt),
            takeovers: column(|live| live.takeovers),
            takeovers_counted: column(|live| live.takeovers_counted),
            settled_by: lives.clone().map(|(_, by)| by.map(|(holder, _)| holder)).collect(),
            settled_fence: lives.map(|(_, by)| by.map(|(_, fence)| count(fence.get()))).collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 7] {
        [
            &self.ids,
            &self.fences,
            &self.attempts,
            &self.takeovers,
            &self.takeovers_counted,
            &self.settled_by,
            &self.settled_fence,
        ]
    }
}

/// Failures as one array per column.
struct Failures<'f> {
    categories: Vec<Option<&'f str>>,
    codes: Vec<Option<&'f str>>,
    messages: Vec<Option<&'f str>>,
}

impl<'f> Failures<'f> {
    fn of(failures: impl Iterator<Item = Option<&'f Failure>>) -> Failures<'f> {
        let mut columns =
            Failures { categories: Vec::new(), codes: Vec::new(), messages: Vec::new() };
        for failure in failures {
            let (category, code, message) = texts(failure);
            columns.categories.push(category);
            columns.codes.push(code);
            columns.messages.push(message);
        }
        columns
    }

    fn params(&self) -> [Param<'_>; 3] {
        [&self.categories, &self.codes, &self.messages]
    }
}
