//! Stores, pauses, resumes, fires and removes schedules.

use super::document::Document;
use super::{Schedule, ScheduleError, ScheduleStatus, kind, parse_name, settings};
use crate::engine::Engine;
use crate::own_jobs;
use crate::submit::{self, SubmitError};
use rewheel_core::store::{
    Change, ChangeScope, ChangeVerb, Changed, Edit, Insert, Inserted, Refusal, StoreError,
};
use rewheel_core::{
    Actor, Job, JobId, Key, Limits, NewJob, Priority, Retain, ShardKey, State, Timestamp, Version,
    When,
};
use std::time::Duration;

/// How often a change is tried while the schedule fires, which takes some milliseconds, or others change it.
const TRIES_MAX: usize = 100;

/// The delay between two tries.
const TRY_AFTER: Duration = Duration::from_millis(20);

/// A change of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// It does not fire until it is resumed. Instants that pass meanwhile are neither caught up nor counted.
    Pause,
    /// It fires again, from the next instant on.
    Resume,
    /// It is deleted. Its jobs stay.
    Remove,
}

/// Result of a [`ScheduleChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChanged {
    /// The schedule after the change; before it, if it was removed.
    Done(Box<ScheduleStatus>),
    /// It has another version.
    VersionChanged(Version),
    /// There is no such schedule.
    NotFound,
}

impl Engine {
    /// Creates a schedule, or changes its definition. A changed schedule keeps its counters and, if its timing stays the same,
    /// its next instant; the same definition changes nothing.
    ///
    /// # Errors
    /// Names the invalid field: then nothing is stored. Otherwise returns the error of the store.
    pub async fn put_schedule(
        &self,
        name: &str,
        schedule: &Schedule,
        by: &Actor,
    ) -> Result<ScheduleStatus, ScheduleError> {
        let key = parse_name(name)?;
        let id = self.new_id();
        let job = NewJob { id, instant: Some(Timestamp::from_millis(0)), ..schedule.job.clone() };
        let job = NewJob { parent: Some(id), ..job };
        self.shared().check_follow_up(&job).map_err(ScheduleError::Job)?;
        check_size(&job)?;
        let kind = kind();
        if self.kind_settings(&kind).is_none() {
            self.put_kind(&kind, &settings(), &Actor::engine()).await?;
        }
        for _ in 0..TRIES_MAX {
            let now = self.store().now().await?;
            let never = || ScheduleError::field("cron", "has no instant in the future");
            let before = self.schedule_job(&key).await?;
            let from = before.as_ref().map_or(now, |job| after_last(job, now));
            let next = schedule.timing.next_after(from).ok_or_else(never)?;
            let document = Document::new(schedule, next);
            let is_stored = match before {
                None => self.insert_schedule(&key, schedule, &document).await?,
                Some(before) => self.redefine(&before, schedule, document, by).await?,
            };
            if is_stored
                && let Some(job) = self.schedule_job(&key).await?
                && let Some(status) = ScheduleStatus::of(&job)
            {
                return Ok(status);
            }
            self.shared().clock.sleep(TRY_AFTER).await;
        }
        Err(ScheduleError::Busy)
    }

    /// Returns whether the schedule was stored: another caller may have stored one of this name meanwhile.
    async fn insert_schedule(
        &self,
        name: &Key,
        schedule: &Schedule,
        document: &Document,
    ) -> Result<bool, ScheduleError> {
        let job = NewJob {
            key: Some(name.clone()),
            // Schedules that are due at the same instant are spread over the nodes.
            shard_key: ShardKey::parse(name.as_str()).ok(),
            priority: Priority::new(9).unwrap_or_default(),
            due: When::At(document.next().plus(schedule.timing.spread(name.as_str()))),
            parent: Some(own_jobs::SCHEDULES),
            ..NewJob::new(self.new_id(), kind(), document.encode())
        };
        match self.insert(&Insert::new(std::slice::from_ref(&job))).await?.pop() {
            Some(Inserted::Created { .. } | Inserted::Replaced { .. }) => Ok(true),
            Some(Inserted::Duplicate { .. } | Inserted::Refused(Refusal::KeyReused { .. })) => {
                Ok(false)
            }
            Some(Inserted::Refused(why)) => Err(ScheduleError::Job(SubmitError::Refused(why))),
            Some(Inserted::LeftOut) | None => Err(submit::no_result().into()),
        }
    }

    /// Returns whether the definition was changed: not while the schedule fires.
    async fn redefine(
        &self,
        before: &Job,
        schedule: &Schedule,
        definition: Document,
        by: &Actor,
    ) -> Result<bool, ScheduleError> {
        let known = before.payload.as_deref().and_then(|payload| Document::decode(payload).ok());
        let after = match &known {
            Some(known) => known.redefined(definition),
            None => definition,
        };
        let is_same = known.as_ref() == Some(&after);
        if is_same && before.state() != State::Dead {
            return Ok(true);
        }
        let keeps_time = known.as_ref().is_some_and(|known| known.has_timing_of(&after));
        let name = before.key.as_ref().map_or("", Key::as_str);
        let due = if keeps_time { Due::Stays } else { Due::Next };
        let edit = ChangeVerb::Edit(Box::new(edit(&after, schedule, name, due)));
        let mut is_done = self.change_own(before, Some(before.version), edit, by).await?;
        if is_done && before.state() == State::Dead {
            let redrive = ChangeVerb::Redrive { deadline: None };
            is_done = self.change_own(before, None, redrive, by).await?;
        }
        Ok(is_done)
    }

    /// Pauses, resumes or removes a schedule.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn change_schedule(
        &self,
        name: &str,
        change: ScheduleChange,
        if_version: Option<Version>,
        by: &Actor,
    ) -> Result<ScheduleChanged, ScheduleError> {
        let Ok(key) = parse_name(name) else { return Ok(ScheduleChanged::NotFound) };
        for _ in 0..TRIES_MAX {
            let Some(job) = self.schedule_job(&key).await? else {
                return Ok(ScheduleChanged::NotFound);
            };
            if if_version.is_some_and(|wanted| wanted != job.version) {
                return Ok(ScheduleChanged::VersionChanged(job.version));
            }
            // It fires, which takes some milliseconds.
            if job.state() != State::Leased && self.change_idle(&job, change, by).await? {
                let after = match change {
                    ScheduleChange::Remove => Some(job),
                    ScheduleChange::Pause | ScheduleChange::Resume => {
                        self.store().get(job.id).await?
                    }
                };
                if let Some(status) = after.as_ref().and_then(ScheduleStatus::of) {
                    return Ok(ScheduleChanged::Done(Box::new(status)));
                }
            }
            self.shared().clock.sleep(TRY_AFTER).await;
        }
        Err(ScheduleError::Busy)
    }

    /// Changes a schedule that is not firing. Returns whether nothing else changed it meanwhile.
    async fn change_idle(
        &self,
        job: &Job,
        change: ScheduleChange,
        by: &Actor,
    ) -> Result<bool, ScheduleError> {
        let version = Some(job.version);
        match (change, job.state()) {
            (ScheduleChange::Pause, State::Paused) | (ScheduleChange::Resume, State::Scheduled) => {
                Ok(true)
            }
            (ScheduleChange::Pause, _) => {
                self.change_own(job, version, ChangeVerb::Pause, by).await
            }
            (ScheduleChange::Remove, _) => {
                self.change_own(job, version, ChangeVerb::Cancel, by).await
            }
            (ScheduleChange::Resume, state) => {
                let Some(edit) = self.fire_from_now(job).await? else { return Ok(false) };
                let edit = ChangeVerb::Edit(Box::new(edit));
                if !self.change_own(job, version, edit, by).await? {
                    return Ok(false);
                }
                let resume = if state == State::Dead {
                    ChangeVerb::Redrive { deadline: None }
                } else {
                    ChangeVerb::Resume
                };
                self.change_own(job, None, resume, by).await
            }
        }
    }

    /// Returns the edit after which a schedule fires from now on: instants that passed while it was paused do not count.
    async fn fire_from_now(&self, job: &Job) -> Result<Option<Edit>, StoreError> {
        let document = job.payload.as_deref().and_then(|payload| Document::decode(payload).ok());
        let Some(mut document) = document else { return Ok(None) };
        let Ok(schedule) = document.schedule() else { return Ok(None) };
        let now = self.store().now().await?;
        let from = after_last(job, now);
        let Some(next) = schedule.timing.next_after(from) else { return Ok(None) };
        document.next_ms = next.as_millis();
        let name = job.key.as_ref().map_or("", Key::as_str);
        Ok(Some(edit(&document, &schedule, name, Due::Next)))
    }

    /// Submits the job of a schedule now, whatever its timing. Returns `None` if there is no such schedule.
    ///
    /// # Errors
    /// Fails if the job is refused; otherwise returns the error of the store.
    pub async fn fire_schedule(
        &self,
        name: &str,
        by: &Actor,
    ) -> Result<Option<JobId>, ScheduleError> {
        let Some(status) = self.schedule(name).await? else { return Ok(None) };
        let now = self.store().now().await?;
        let job = NewJob {
            id: self.new_id(),
            parent: Some(status.id),
            instant: Some(now),
            ..status.schedule.job
        };
        self.shared().check_follow_up(&job).map_err(ScheduleError::Job)?;
        tracing::info!(schedule = name, job = %job.id, %by, "schedule fired by hand");
        match self.insert(&Insert::new(std::slice::from_ref(&job))).await?.pop() {
            Some(
                Inserted::Created { .. } | Inserted::Replaced { .. } | Inserted::Duplicate { .. },
            ) => Ok(Some(job.id)),
            Some(Inserted::Refused(why)) => Err(ScheduleError::Job(SubmitError::Refused(why))),
            Some(Inserted::LeftOut) | None => Err(submit::no_result().into()),
        }
    }

    /// Makes one change of a schedule's own job. Returns whether it was made.
    async fn change_own(
        &self,
        job: &Job,
        if_version: Option<Version>,
        what: ChangeVerb,
        by: &Actor,
    ) -> Result<bool, ScheduleError> {
        let change = Change { job: job.id, what, if_version, scope: ChangeScope::Engine };
        // The name of a removed schedule is free at once.
        let keep = Retain { key: Duration::ZERO, ..self.shared().retain_ended() };
        let changed = self.store().change(&[change], by, keep).await?;
        match changed.first() {
            Some(Changed::Applied { .. } | Changed::Unchanged { .. }) => Ok(true),
            Some(Changed::TooLarge { bytes_max }) => {
                let why = format!("is too large: the limit of the store is {bytes_max} bytes");
                Err(ScheduleError::field("job.payload", why))
            }
            _ => Ok(false),
        }
    }
}

/// Refuses a payload that is too large to be submitted together with the result of the schedule's own job: it could never fire.
fn check_size(job: &NewJob) -> Result<(), ScheduleError> {
    let (bytes, bytes_max) = (job.payload.len(), Limits::FOLLOW_UPS_BYTES_MAX);
    if bytes <= bytes_max {
        return Ok(());
    }
    let why = format!("has {bytes} bytes: the limit for the job of a schedule is {bytes_max}");
    Err(ScheduleError::field("job.payload", why))
}

/// Returns the time after which a schedule may fire: an instant that fired does not fire again, even if the store's clock was set
/// back.
fn after_last(job: &Job, now: Timestamp) -> Timestamp {
    let document = job.payload.as_deref().and_then(|payload| Document::decode(payload).ok());
    document.and_then(|document| document.last()).map_or(now, |last| last.instant.max(now))
}

/// When a changed schedule is due.
#[derive(Clone, Copy)]
enum Due {
    /// As before.
    Stays,
    /// At its next instant.
    Next,
}

/// Returns the edit of a schedule's own job.
fn edit(document: &Document, schedule: &Schedule, name: &str, due: Due) -> Edit {
    let due = match due {
        Due::Stays => None,
        Due::Next => Some(When::At(document.next().plus(schedule.timing.spread(name)))),
    };
    Edit { payload: Some(document.encode()), due, ..Edit::default() }
}
