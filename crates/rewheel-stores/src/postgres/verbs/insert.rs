//! Stores new jobs.

mod keys;

pub(super) use self::keys::lost_job;

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::job_columns::array_params;
use super::super::lanes::Names;
use super::super::row::{fence, holder_uuid, instant, job_id, millis, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{FIND_STATES, INSERT, INSERT_GROUPED, INSERT_MANY};
use super::duplicates::{self, Resolved};
use super::formats::refuse_for_old_holders;
use super::numbered_lanes::{Numbered, lanes};
use crate::batch::{check_backoff, leave_out};
use crate::duplicates::has_twins;
use crate::groups::{Line, Release};
use rewheel_core::store::{
    Direct, IfRefused, Insert, Inserted, Refusal, Sent, StoreChange, StoreError, StoreResult,
};
use rewheel_core::{Fence, Format, JobId, Lane, NewJob, State, Timestamp};
use std::collections::{BTreeSet, HashMap, HashSet};
use uuid::Uuid;

/// The largest payload. PostgreSQL could store more, but a batch of payloads is one message.
pub(in super::super) const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest total size of the payloads of one batch: PostgreSQL accepts messages of up to 1 GiB.
const BATCH_BYTES_MAX: usize = 512 * 1024 * 1024;

impl PostgresStore {
    pub(in super::super) async fn insert_batch(
        &self,
        insert: &Insert<'_>,
    ) -> StoreResult<Vec<Inserted>> {
        // Try twice: if the cached lanes are out of date, nothing was stored, and they are looked up again.
        for _ in 0..2 {
            let lanes = self.prepare_insert(insert).await?;
            let mut insertion = Insertion::new(insert, lanes);
            if let Some(answers) = self.try_insert(insert, &mut insertion).await? {
                self.shared.lanes.floors.lower(&insertion.past_due(&answers));
                self.release_stored(insert.jobs, &answers, std::mem::take(&mut insertion.lines))
                    .await;
                self.wake_for(insert.jobs, insertion.now, &answers);
                if let Some(lanes) = insertion.woken {
                    self.wake(lanes);
                }
                return Ok(answers);
            }
            self.shared.lanes.forget();
        }
        Err(lanes_changed())
    }

    /// Releases stored jobs that are the first of their lines, and looks at other lines, whose jobs were locked.
    async fn release_stored(
        &self,
        jobs: &[NewJob],
        answers: &[Inserted],
        mut lines: BTreeSet<Line>,
    ) {
        lines.extend(stored_lines(jobs, answers));
        if lines.is_empty() {
            return;
        }
        let stored: Vec<JobId> = stored(jobs, answers).map(|job| job.id).collect();
        self.release_lines(lines, Release::WithInsert(&stored)).await;
    }

    async fn try_insert(
        &self,
        insert: &Insert<'_>,
        insertion: &mut Insertion<'_>,
    ) -> StoreResult<Option<Vec<Inserted>>> {
        if insertion.is_plain() {
            let session = self.write().await?;
            let answers = insertion.plain(&session).await;
            return session.end(answers).await;
        }
        let session = self.transaction().await?;
        match insertion.careful(&session).await {
            Ok(None) => session.undo(None).await,
            Ok(Some(mut answers)) if insertion.must_undo(&answers) => {
                leave_out(insert.jobs, &mut answers);
                session.undo(Some(answers)).await
            }
            answers => session.end(answers).await,
        }
    }

    /// Runs the checks that need no rows of jobs, and numbers the lanes.
    pub(in super::super) async fn prepare_insert(
        &self,
        insert: &Insert<'_>,
    ) -> StoreResult<Numbered> {
        insert.check()?;
        insert.jobs.iter().try_for_each(check_backoff)?;
        let fits = |job: &&NewJob| job.payload.len() <= PAYLOAD_BYTES_MAX;
        let bytes: usize = insert.jobs.iter().filter(fits).map(|job| job.payload.len()).sum();
        if bytes > BATCH_BYTES_MAX {
            let why = format!(
                "{bytes} bytes of payloads are too many for one batch: submit fewer jobs at a time"
            );
            return Err(StoreError::Rejected(why.into()));
        }
        let named: Vec<Lane> = lanes(insert.jobs);
        let known = &self.shared.lanes;
        if named.iter().any(|lane| known.number(lane).is_none()) {
            let session = self.write().await?;
            let made = known.find_or_make(&session, named.iter()).await;
            if session.end(made).await? {
                let session = self.read().await?;
                let found = known.find(&session, named.iter()).await;
                session.end(found).await?;
            }
        }
        let numbers: HashMap<Lane, i32> = named
            .into_iter()
            .filter_map(|lane| known.number(&lane).map(|number| (lane, number)))
            .collect();
        Ok(Numbered::new(insert.jobs, numbers))
    }
}

/// Returns the lines that stored jobs joined.
pub(in super::super) fn stored_lines<'j>(
    jobs: &'j [NewJob],
    answers: &'j [Inserted],
) -> impl Iterator<Item = Line> {
    stored(jobs, answers).filter_map(Line::of_new)
}

/// Returns the jobs that were stored.
fn stored<'j>(jobs: &'j [NewJob], answers: &'j [Inserted]) -> impl Iterator<Item = &'j NewJob> {
    let is_stored = |(_, answer): &(_, &Inserted)| matches!(answer, Inserted::Created { .. });
    jobs.iter().zip(answers).filter(is_stored).map(|(job, _)| job)
}

/// The error when the cached lanes were out of date twice.
pub(in super::super) fn lanes_changed() -> StoreError {
    StoreError::Unavailable(
        "kinds or lanes changed while their jobs were being stored: repeat the request".into(),
    )
}

/// One batch being stored.
pub(in super::super) struct Insertion<'a> {
    insert: &'a Insert<'a>,
    lanes: Numbered,
    /// The holder of the direct path.
    direct: Option<Direct>,
    /// The fence of jobs that were leased at once.
    fence: Fence,
    /// The store's time; known after the first statement.
    now: Timestamp,
    /// The lanes of replaced jobs that engines must look at again after the commit.
    pub(super) woken: Option<StoreChange>,
    /// The lines of replaced jobs, to look at after the commit: meanwhile no transaction could release their jobs.
    pub(in super::super) lines: BTreeSet<Line>,
}

impl<'a> Insertion<'a> {
    pub(in super::super) fn new(insert: &'a Insert<'a>, lanes: Numbered) -> Insertion<'a> {
        let direct = insert.direct.filter(|_| !has_twins(insert.jobs));
        let (fence, now) = (Fence::new(1), Timestamp::from_millis(0));
        Insertion { insert, lanes, direct, fence, now, woken: None, lines: BTreeSet::new() }
    }

    /// Returns whether all results follow from the time alone: then one statement is enough.
    fn is_plain(&self) -> bool {
        self.insert.sent == Sent::First
            && self.insert.if_refused == IfRefused::StoreOthers
            && self.insert.jobs.iter().all(|job| job.key.is_none() && job.format() == Format::FIRST)
    }

    fn must_undo(&self, answers: &[Inserted]) -> bool {
        self.insert.if_refused == IfRefused::StoreNothing
            && answers.iter().any(|answer| matches!(answer, Inserted::Refused(_)))
    }

    /// Returns `None` if the cached lanes are out of date. Nothing was stored then.
    async fn plain(&mut self, session: &Session<'_>) -> Result<Option<Vec<Inserted>>, VerbError> {
        let mut answers: Vec<Option<Inserted>> = self.refusals();
        let rows = self.rows(&answers);
        let Some(open) = self.store(session, &rows, None).await? else { return Ok(None) };
        self.created(&mut answers, &open);
        Ok(Some(finish(answers)))
    }

    /// Looks up keys and existing jobs before it writes. Returns `None` if the cached lanes are out of date: the caller must roll back.
    pub(in super::super) async fn careful(
        &mut self,
        session: &Session<'_>,
    ) -> Result<Option<Vec<Inserted>>, VerbError> {
        self.now = session.now().await?;
        let mut answers = self.refusals();
        refuse_for_old_holders(session, self.insert.jobs, &mut answers).await?;
        let jobs = self.insert.jobs;
        if self.insert.sent == Sent::Again {
            self.known_ids(session, &mut answers).await?;
            duplicates::answer_sent_before(session, jobs, &mut answers).await?;
        }
        let resolved = if jobs.iter().all(|job| job.duplicates.is_default()) {
            Resolved::default()
        } else {
            duplicates::resolve(session, jobs, self.now, &mut answers, &mut self.lines).await?
        };
        let twins = self.keys(session, &resolved.fresh, &mut answers).await?;
        // Leave it out until the result of the other job is known.
        twins.keys().for_each(|place| answers[*place] = Some(Inserted::LeftOut));
        let rows = self.rows(&answers);
        let open = if rows.is_empty() {
            Some(HashSet::new())
        } else {
            self.store(session, &rows, Some(self.now)).await?
        };
        let Some(open) = open else { return Ok(None) };
        self.created(&mut answers, &open);
        self.answer_twins(&mut answers, &twins);
        self.woken = resolved.write(session, self.now).await?;
        Ok(Some(finish(answers)))
    }

    /// Returns the refusals of jobs that cannot be stored, whatever the time is.
    fn refusals(&self) -> Vec<Option<Inserted>> {
        let refusal = |(job, lane): (&NewJob, &Option<i32>)| {
            let bytes = job.payload.len();
            if bytes > PAYLOAD_BYTES_MAX {
                return Some(Refusal::TooLarge { bytes, bytes_max: PAYLOAD_BYTES_MAX });
            }
            lane.is_none().then_some(Refusal::UnknownKind)
        };
        self.insert
            .jobs
            .iter()
            .zip(&self.lanes.of_jobs)
            .map(|pair| refusal(pair).map(Inserted::Refused))
            .collect()
    }

    /// Returns lanes and due times of stored jobs that may be below a floor.
    pub(super) fn past_due(&self, answers: &[Inserted]) -> Vec<(i32, i64)> {
        let jobs = self.lanes.of_jobs.iter().zip(answers).filter_map(|(lane, answer)| {
            let Inserted::Created { leased: None, due } = answer else { return None };
            Some(((*lane)?, due.as_millis()))
        });
        jobs.filter(|(_, due)| *due < self.now.as_millis()).collect()
    }

    /// Returns the jobs to store, with their lanes.
    fn rows(&self, answers: &[Option<Inserted>]) -> Vec<(&'a NewJob, i32)> {
        let jobs = self.insert.jobs.iter().zip(&self.lanes.of_jobs).zip(answers);
        jobs.filter(|(_, answer)| answer.is_none())
            .filter_map(|((job, lane), _)| lane.map(|lane| (job, lane)))
            .collect()
    }

    /// Writes the rows, and returns the lanes whose due jobs were leased at once. Returns `None` if the cached lanes are out of date: the
    /// caller must roll back what it wrote for jobs of groups.
    pub(super) async fn store(
        &mut self,
        session: &Session<'_>,
        rows: &[(&NewJob, i32)],
        now: Option<Timestamp>,
    ) -> Result<Option<HashSet<i32>>, VerbError> {
        if self.lanes.is_ambiguous() {
            return Ok(None);
        }
        let is_grouped = |(job, _): &(&NewJob, i32)| job.group_key.is_some();
        if !rows.iter().any(is_grouped) {
            return self.store_rows(session, rows, now).await;
        }
        let (grouped, others): (Vec<_>, Vec<_>) = rows.iter().copied().partition(is_grouped);
        if !self.store_grouped(session, &grouped, now).await? {
            return Ok(None);
        }
        if others.is_empty() {
            return Ok(Some(HashSet::new()));
        }
        self.store_rows(session, &others, Some(self.now)).await
    }

    /// Writes the rows of jobs that have a group, and their places in line. Writes nothing and returns `false` if the cached lanes are out
    /// of date.
    async fn store_grouped(
        &mut self,
        session: &Session<'_>,
        rows: &[(&NewJob, i32)],
        now: Option<Timestamp>,
    ) -> Result<bool, VerbError> {
        let (offset, now) = (session.offset(), now.map(Timestamp::as_millis));
        let (used, columns) = array_params(rows);
        let (lanes, names) = (&self.lanes.numbers, Names::of(&self.lanes.lanes));
        let mut params: Vec<Param<'_>> = vec![&offset, &now, lanes];
        params.extend(names.params());
        params.extend(columns.iter().map(|column| -> Param<'_> { column.as_ref() }));
        let row = session.one(INSERT_GROUPED.with(used), &params).await?;
        self.now = instant(row.try_get(0)?);
        Ok(row.try_get(2)?)
    }

    async fn store_rows(
        &mut self,
        session: &Session<'_>,
        rows: &[(&NewJob, i32)],
        now: Option<Timestamp>,
    ) -> Result<Option<HashSet<i32>>, VerbError> {
        let (offset, now) = (session.offset(), now.map(Timestamp::as_millis));
        let (used, columns) = array_params(rows);
        let columns = columns.iter().map(|column| -> Param<'_> { column.as_ref() });
        let (lanes, names) = (&self.lanes.numbers, Names::of(&self.lanes.lanes));
        let row = if let Some(direct) = self.direct {
            let holder = Some(holder_uuid(direct.holder));
            let reading = session.shared.lanes.floors.peek();
            let (timeout, grace) = (millis(direct.attempt_timeout), millis(direct.grace));
            let mut params: Vec<Param<'_>> = vec![&offset, &now, &holder, &timeout, &grace];
            params.extend([&reading.lanes as Param<'_>, &reading.from, lanes]);
            params.extend(names.params());
            params.extend(columns);
            let row = session.one(INSERT.with(used), &params).await?;
            if let Some(number) = row.try_get::<_, Option<i64>>(3)? {
                self.fence = fence(number);
            }
            row
        } else {
            let mut params: Vec<Param<'_>> = vec![&offset, &now, lanes];
            params.extend(names.params());
            params.extend(columns);
            session.one(INSERT_MANY.with(used), &params).await?
        };
        self.now = instant(row.try_get(0)?);
        if !row.try_get::<_, bool>(2)? {
            return Ok(None);
        }
        Ok(Some(row.try_get::<_, Vec<i32>>(1)?.into_iter().collect()))
    }

    /// Fills in the results of stored jobs, as the statement decided.
    fn created(&self, answers: &mut [Option<Inserted>], open: &HashSet<i32>) {
        for ((job, lane), answer) in self.insert.jobs.iter().zip(&self.lanes.of_jobs).zip(answers) {
            if answer.is_some() {
                continue;
            }
            let due = job.due.resolve(self.now);
            *answer = Some(if job.is_too_late(self.now) {
                Inserted::Refused(Refusal::DeadlineTooEarly)
            } else {
                let is_open = lane.is_some_and(|lane| open.contains(&lane));
                let leased = due <= self.now && is_open && job.group_key.is_none();
                Inserted::Created { due, leased: leased.then_some(self.fence) }
            });
        }
    }

    async fn known_ids(
        &self,
        session: &Session<'_>,
        answers: &mut [Option<Inserted>],
    ) -> Result<(), VerbError> {
        let states = find_states(session, self.insert.jobs.iter().map(|job| job.id)).await?;
        for (job, answer) in self.insert.jobs.iter().zip(answers) {
            if answer.is_none()
                && let Some(state) = states.get(&job.id)
            {
                *answer = Some(Inserted::Duplicate { job: job.id, state: *state });
            }
        }
        Ok(())
    }
}

pub(super) async fn find_states(
    session: &Session<'_>,
    jobs: impl Iterator<Item = JobId>,
) -> Result<HashMap<JobId, State>, VerbError> {
    let ids: Vec<Uuid> = jobs.map(uuid).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.query(&FIND_STATES, &[&ids]).await?;
    rows.iter()
        .map(|row| {
            let state = row.try_get::<_, &str>(1)?.parse().map_err(|_| unreadable("a state"))?;
            Ok((job_id(row.try_get(0)?), state))
        })
        .collect()
}

fn finish(answers: Vec<Option<Inserted>>) -> Vec<Inserted> {
    answers.into_iter().map(|answer| answer.unwrap_or(Inserted::LeftOut)).collect()
}
