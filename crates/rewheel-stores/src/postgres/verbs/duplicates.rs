//! Stores jobs whose submit says what to do about another job with the same key.
//!
//! A transaction that ends a job locks the job and then its key. So does this one: it locks the jobs to replace, in the order of their
//! ids, before it writes a key. If another transaction was faster with a key, it gives up its locks and begins again: to lock more jobs
//! now would be out of order. A key passes from one job to another by compare-and-set, so that a claimed job need not be locked.

use super::super::error::{VerbError, unreadable};
use super::super::job_columns::{LANE, array_params, read_job};
use super::super::row::{job_id, tenant_text, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{
    AUDIT_REPLACES, DUPLICATES_BEGIN, DUPLICATES_END, DUPLICATES_UNDO, FIND_KEY_JOBS, INSERT_KEYS,
    LOCK_WAITING, MOVE_KEYS, REPLACE, REPLACED_BY,
};
use super::insert::{find_states, lanes_changed, lost_job};
use super::numbered_lanes::lanes;
use crate::audit::document;
use crate::duplicates::{GONE, SUBMIT, wakes};
use crate::groups::Line;
use crate::payload::payload_hash;
use rewheel_core::store::{Inserted, Refusal, StoreChange, StoreError};
use rewheel_core::{
    AuditFields, Job, JobId, Key, KindName, NewJob, OnDuplicate, OnKey, State, Timestamp, Waits,
    replaced_facts,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use uuid::Uuid;

/// How often it begins again. Each time, another transaction has stored a job with one of the keys.
pub(super) const ROUNDS_MAX: usize = 32;

/// Fills in the results of jobs that replaced another job when the batch was sent before.
pub(super) async fn answer_sent_before(
    session: &Session<'_>,
    jobs: &[NewJob],
    answers: &mut [Option<Inserted>],
) -> Result<(), VerbError> {
    let replaces = |job: &NewJob| job.duplicates.on_duplicate() == OnDuplicate::Replace;
    let submits: Vec<Uuid> =
        jobs.iter().filter(|job| replaces(job)).map(|job| uuid(job.id)).collect();
    if submits.is_empty() {
        return Ok(());
    }
    let mut replaced: HashMap<JobId, JobId> = HashMap::new();
    for row in session.query(&REPLACED_BY, &[&submits]).await? {
        replaced.insert(job_id(row.try_get(0)?), job_id(row.try_get(1)?));
    }
    let states = find_states(session, replaced.values().copied()).await?;
    for (new, answer) in jobs.iter().zip(answers) {
        if let (None, Some(job)) = (&answer, replaced.get(&new.id)) {
            let state = states.get(job).copied().unwrap_or(GONE);
            *answer = Some(Inserted::Replaced { job: *job, state });
        }
    }
    Ok(())
}

/// The jobs of a batch that replace others, and those that were given their keys.
#[derive(Default)]
pub(super) struct Resolved {
    /// Jobs to store that have their keys already, by their places.
    pub(super) fresh: HashSet<usize>,
    replacements: Vec<Replacement>,
}

/// What one job becomes.
struct Replacement {
    /// The last of the submits that replaced it, with the id of the job.
    last: NewJob,
    /// The job before, and after each submit.
    steps: Vec<Step>,
    wakes: bool,
}

/// What the audit log says about one replacement.
struct Step {
    submit: JobId,
    before: AuditFields,
    after: AuditFields,
}

/// The jobs of a batch with the same key, in their order.
struct Group<'a> {
    kind: &'a str,
    tenant: &'a str,
    key: &'a str,
    places: Vec<usize>,
    /// Whether one of them may replace the job that has the key.
    replaces: bool,
}

/// The job that has a key.
struct Known {
    job: JobId,
    hash: Vec<u8>,
    state: Option<State>,
    waits: Waits,
    /// Whether the key is free by now.
    has_expired: bool,
}

/// Decides about the jobs that have a key, and takes their keys. Adds the lines of locked jobs to `lines`: the caller looks at them
/// after the commit.
pub(super) async fn resolve(
    session: &Session<'_>,
    jobs: &[NewJob],
    now: Timestamp,
    answers: &mut [Option<Inserted>],
    lines: &mut BTreeSet<Line>,
) -> Result<Resolved, VerbError> {
    let groups = groups(jobs, answers);
    if groups.is_empty() {
        return Ok(Resolved::default());
    }
    session.execute(&DUPLICATES_BEGIN, &[]).await?;
    for _ in 0..ROUNDS_MAX {
        if let Some(folds) = fold(session, &groups, jobs, now, lines).await? {
            session.execute(&DUPLICATES_END, &[]).await?;
            let mut resolved = Resolved::default();
            folds.into_iter().for_each(|fold| fold.finish(answers, &mut resolved));
            return Ok(resolved);
        }
        session.execute(&DUPLICATES_UNDO, &[]).await?;
    }
    let why = "a key was submitted too often at the same time: repeat the request";
    Err(StoreError::Unavailable(why.into()).into())
}

/// Decides once. Returns `None` if another transaction was faster with a key.
async fn fold<'a>(
    session: &Session<'_>,
    groups: &'a [Group<'a>],
    jobs: &[NewJob],
    now: Timestamp,
    lines: &mut BTreeSet<Line>,
) -> Result<Option<Vec<Fold<'a>>>, VerbError> {
    let mut known = find(session, groups, now).await?;
    let to_lock: Vec<JobId> = to_lock(groups, &known).collect();
    let mut locked: HashMap<JobId, Job> = HashMap::new();
    if !to_lock.is_empty() {
        locked.extend(lock(session, to_lock).await?);
        lines.extend(locked.values().filter_map(Line::of_job));
        // One may have been claimed or ended meanwhile.
        known = find(session, groups, now).await?;
        if self::to_lock(groups, &known).any(|job| !locked.contains_key(&job)) {
            return Ok(None);
        }
    }
    let mut folds = Vec::with_capacity(groups.len());
    for (group, known) in groups.iter().zip(known) {
        folds.push(Fold::new(group, known, jobs, &locked, now)?);
    }
    let written = write_keys(session, &folds).await?;
    let is_lost = |fold: &Fold<'_>| fold.writes_key() && !written.contains(&fold.key_job());
    Ok((!folds.iter().any(is_lost)).then_some(folds))
}

/// Returns the jobs that wait and that a submit may replace.
fn to_lock(groups: &[Group<'_>], known: &[Option<Known>]) -> impl Iterator<Item = JobId> {
    groups.iter().zip(known).filter_map(|(group, known)| {
        let known = known.as_ref().filter(|known| known.waits == Waits::Yes)?;
        group.replaces.then_some(known.job)
    })
}

/// Collects the jobs of each key.
fn groups<'a>(jobs: &'a [NewJob], answers: &[Option<Inserted>]) -> Vec<Group<'a>> {
    let mut named: HashMap<(&KindName, &str, &Key), Vec<usize>> = HashMap::new();
    for (place, job) in jobs.iter().enumerate() {
        if let (Some(key), None) = (&job.key, &answers[place]) {
            let name = (&job.kind, tenant_text(job.tenant.as_ref()), key);
            named.entry(name).or_default().push(place);
        }
    }
    let group = |((kind, tenant, key), places): ((&'a KindName, &'a str, &'a Key), Vec<usize>)| {
        let replaces = places
            .iter()
            .any(|place| jobs[*place].duplicates.on_duplicate() == OnDuplicate::Replace);
        Group { kind: kind.as_str(), tenant, key: key.as_str(), places, replaces }
    };
    named.into_iter().map(group).collect()
}

/// Finds the jobs that have the keys.
async fn find(
    session: &Session<'_>,
    groups: &[Group<'_>],
    now: Timestamp,
) -> Result<Vec<Option<Known>>, VerbError> {
    let column = |of: fn(&Group<'_>) -> String| groups.iter().map(of).collect::<Vec<String>>();
    let kinds = column(|group| group.kind.to_owned());
    let tenants = column(|group| group.tenant.to_owned());
    let keys = column(|group| group.key.to_owned());
    let params: [Param<'_>; 4] = [&now.as_millis(), &kinds, &tenants, &keys];
    let mut known: Vec<Option<Known>> = groups.iter().map(|_| None).collect();
    for row in session.query(&FIND_KEY_JOBS, &params).await? {
        let nth = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(1) - 1;
        let state = row.try_get::<_, Option<&str>>(3)?.map(str::parse).transpose();
        known[nth] = Some(Known {
            job: job_id(row.try_get(1)?),
            hash: row.try_get(2)?,
            state: state.map_err(|_| unreadable("a state"))?,
            waits: if row.try_get(4)? { Waits::Yes } else { Waits::No },
            has_expired: row.try_get(5)?,
        });
    }
    Ok(known)
}

/// Locks those of these jobs that still wait, in the order of their ids, and reads them with the beginnings of their payloads.
async fn lock(session: &Session<'_>, mut jobs: Vec<JobId>) -> Result<Vec<(JobId, Job)>, VerbError> {
    jobs.sort_unstable();
    let ids: Vec<Uuid> = jobs.into_iter().map(uuid).collect();
    let rows = session.query(&LOCK_WAITING, &[&ids]).await?;
    let lanes = super::read::lanes(session, &rows, LANE).await?;
    let mut locked = Vec::with_capacity(rows.len());
    for row in &rows {
        let job = read_job(row, super::read::lane(&lanes, row, LANE)?)?;
        let payload = row.try_get("payload_start")?;
        locked.push((job.id, Job { payload: Some(payload), ..job }));
    }
    Ok(locked)
}

/// The decisions about the jobs of one key, each as if those before it had been stored.
struct Fold<'a> {
    group: &'a Group<'a>,
    answers: Vec<(usize, Inserted)>,
    /// The job that has the key before, or had it until it expired.
    from: Option<JobId>,
    /// The job of this batch that gets the key, by its place and its id.
    fresh: Option<(usize, JobId)>,
    replacement: Option<Replacement>,
    hash: [u8; 32],
}

/// The job that has the key while a batch is folded.
enum Holds {
    Nothing,
    Known(Known),
    /// A job that waits, as it is by now.
    Waiting(Box<Job>, [u8; 32]),
}

impl<'a> Fold<'a> {
    fn new(
        group: &'a Group<'a>,
        known: Option<Known>,
        jobs: &[NewJob],
        locked: &HashMap<JobId, Job>,
        now: Timestamp,
    ) -> Result<Fold<'a>, VerbError> {
        let from = known.as_ref().map(|known| known.job);
        let mut holds = match known.filter(|known| !known.has_expired) {
            None => Holds::Nothing,
            Some(known) => match (known.waits, locked.get(&known.job)) {
                (Waits::Yes, Some(job)) => {
                    let hash = known.hash.as_slice().try_into();
                    let hash = hash.map_err(|_| unreadable("a payload hash"))?;
                    Holds::Waiting(Box::new(job.clone()), hash)
                }
                (Waits::Yes | Waits::No, _) => Holds::Known(known),
            },
        };
        let (answers, fresh, replacement) = (Vec::new(), None, None);
        let mut fold = Fold { group, answers, from, fresh, replacement, hash: [0; 32] };
        for place in &group.places {
            holds = fold.add(*place, &jobs[*place], holds, now)?;
        }
        Ok(fold)
    }

    /// Decides about the next job. Returns the job that has the key then.
    fn add(
        &mut self,
        place: usize,
        new: &NewJob,
        holds: Holds,
        now: Timestamp,
    ) -> Result<Holds, VerbError> {
        let (decision, reused) = match &holds {
            Holds::Nothing => (OnKey::Take, None),
            Holds::Known(known) => {
                let is_same = known.hash == payload_hash(&new.payload);
                (new.duplicates.decide(known.waits), Some((known.job, known.state, is_same)))
            }
            Holds::Waiting(job, hash) => {
                let is_same = *hash == payload_hash(&new.payload);
                (new.duplicates.decide(Waits::Yes), Some((job.id, Some(job.state()), is_same)))
            }
        };
        match (decision, holds, reused) {
            (OnKey::Replace, Holds::Waiting(job, hash), _) => {
                let fresh = new.in_place_of(&job, now);
                if fresh.is_too_late(now) {
                    self.refuse(place, Refusal::DeadlineTooEarly);
                    return Ok(Holds::Waiting(job, hash));
                }
                Ok(self.replace(place, new, fresh, &job))
            }
            // The caller locks every job that waits before it asks, so that it is here as `Waiting`.
            (OnKey::Replace, ..) => Err(unreadable("a job to be replaced that is not locked")),
            (OnKey::Answer, holds, Some((job, state, is_same))) => {
                if is_same {
                    let state = state.ok_or_else(|| lost_job(job))?;
                    self.answers.push((place, Inserted::Duplicate { job, state }));
                } else {
                    self.refuse(place, Refusal::KeyReused { job });
                }
                Ok(holds)
            }
            (_, holds, _) if new.is_too_late(now) => {
                self.refuse(place, Refusal::DeadlineTooEarly);
                Ok(holds)
            }
            _ => {
                self.fresh = Some((place, new.id));
                self.hash = payload_hash(&new.payload);
                Ok(Holds::Waiting(Box::new(new.to_job(now)), self.hash))
            }
        }
    }

    fn refuse(&mut self, place: usize, why: Refusal) {
        self.answers.push((place, Inserted::Refused(why)));
    }

    fn replace(&mut self, place: usize, new: &NewJob, fresh: NewJob, before: &Job) -> Holds {
        let after = fresh.replaced(before);
        self.answers.push((place, Inserted::Replaced { job: before.id, state: after.state() }));
        self.hash = payload_hash(&new.payload);
        let (old, facts) = replaced_facts(before, &after, new.id);
        let step = Step { submit: new.id, before: old, after: facts };
        let does_wake = wakes(before, &after);
        match &mut self.replacement {
            Some(replacement) => {
                replacement.last = fresh;
                replacement.steps.push(step);
                replacement.wakes |= does_wake;
            }
            None => {
                let (last, steps) = (fresh, vec![step]);
                self.replacement = Some(Replacement { last, steps, wakes: does_wake });
            }
        }
        Holds::Waiting(Box::new(after), self.hash)
    }

    fn writes_key(&self) -> bool {
        self.fresh.is_some() || self.replacement.is_some()
    }

    /// Returns the job that has the key afterwards.
    fn key_job(&self) -> JobId {
        let replaced = || self.replacement.as_ref().map(|replacement| replacement.last.id);
        let job = self.fresh.map(|(_, id)| id).or_else(replaced).or(self.from);
        job.unwrap_or_else(|| JobId::from_bytes([0; 16]))
    }

    fn finish(self, answers: &mut [Option<Inserted>], resolved: &mut Resolved) {
        for (place, answer) in self.answers {
            answers[place] = Some(answer);
        }
        resolved.fresh.extend(self.fresh.map(|(place, _)| place));
        resolved.replacements.extend(self.replacement);
    }
}

/// Writes the jobs and hashes of keys. Returns the jobs that have their keys now.
async fn write_keys(
    session: &Session<'_>,
    folds: &[Fold<'_>],
) -> Result<HashSet<JobId>, VerbError> {
    let written = folds.iter().filter(|fold| fold.writes_key());
    let (moved, new): (Vec<_>, Vec<_>) = written.partition(|fold| fold.from.is_some());
    let mut jobs = HashSet::new();
    // First the keys of which the jobs are locked.
    for (folds, sql) in [(moved, &MOVE_KEYS), (new, &INSERT_KEYS)] {
        if folds.is_empty() {
            continue;
        }
        let kinds: Vec<&str> = folds.iter().map(|fold| fold.group.kind).collect();
        let tenants: Vec<&str> = folds.iter().map(|fold| fold.group.tenant).collect();
        let keys: Vec<&str> = folds.iter().map(|fold| fold.group.key).collect();
        let from: Vec<Option<Uuid>> = folds.iter().map(|fold| fold.from.map(uuid)).collect();
        let to: Vec<Uuid> = folds.iter().map(|fold| uuid(fold.key_job())).collect();
        let hashes: Vec<&[u8]> = folds.iter().map(|fold| fold.hash.as_slice()).collect();
        let params: [Param<'_>; 6] = [&kinds, &tenants, &keys, &from, &to, &hashes];
        for row in session.query(sql, &params).await? {
            jobs.insert(job_id(row.try_get(0)?));
        }
    }
    Ok(jobs)
}

impl Resolved {
    /// Writes what the replaced jobs will run, and the audit log. Returns the lanes that engines must look at again.
    pub(super) async fn write(
        self,
        session: &Session<'_>,
        now: Timestamp,
    ) -> Result<Option<StoreChange>, VerbError> {
        if self.replacements.is_empty() {
            return Ok(None);
        }
        let jobs: Vec<NewJob> = self.replacements.iter().map(|one| one.last.clone()).collect();
        let numbers = session.shared.lanes.numbers_in(session, lanes(&jobs)).await?;
        let mut rows = Vec::with_capacity(jobs.len());
        for job in &jobs {
            rows.push((job, numbers.get(&job.lane()).copied().ok_or_else(lanes_changed)?));
        }
        let times = |one: &Replacement| one.steps.len().try_into().unwrap_or(1);
        let mut counted: Vec<(Uuid, i64)> =
            self.replacements.iter().map(|one| (uuid(one.last.id), times(one))).collect();
        counted.sort_unstable();
        let (ids, times): (Vec<Uuid>, Vec<i64>) = counted.into_iter().unzip();
        let (used, columns) = array_params(&rows);
        let mut params: Vec<Param<'_>> = vec![&ids, &times];
        params.extend(columns.iter().map(|column| -> Param<'_> { column.as_ref() }));
        session.execute_returning_before(REPLACE.with(used), &params, now).await?;
        self.audit(session, now).await?;
        let mut woken: Option<StoreChange> = None;
        for one in self.replacements.iter().filter(|one| one.wakes) {
            woken.get_or_insert_default().add(&one.last.lane());
        }
        Ok(woken)
    }

    async fn audit(&self, session: &Session<'_>, now: Timestamp) -> Result<(), VerbError> {
        let lines: Vec<(&NewJob, &Step)> = self
            .replacements
            .iter()
            .flat_map(|one| one.steps.iter().map(move |step| (&one.last, step)))
            .collect();
        let params: [Param<'_>; 7] = [
            &now.as_millis(),
            &SUBMIT,
            &lines.iter().map(|(job, _)| uuid(job.id)).collect::<Vec<_>>(),
            &lines.iter().map(|(job, _)| job.kind.as_str()).collect::<Vec<_>>(),
            &lines.iter().map(|(_, step)| document(&step.before)).collect::<Vec<_>>(),
            &lines.iter().map(|(_, step)| document(&step.after)).collect::<Vec<_>>(),
            &lines.iter().map(|(_, step)| uuid(step.submit)).collect::<Vec<_>>(),
        ];
        session.execute(&AUDIT_REPLACES, &params).await.map(drop)
    }
}
