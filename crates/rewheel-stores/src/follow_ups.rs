//! Decides how the jobs that settlements submit (follow-ups) are stored; shared by all stores.
//!
//! A bad follow-up must not make the settle fail. So a follow-up that cannot be stored as submitted becomes a dead letter.

use crate::batch::check_backoff;
use rewheel_core::store::{IfRefused, Insert, Inserted, Refusal, Sent, Settlement};
use rewheel_core::{Duplicates, Failure, JobId, Lane, Limits, NewJob, NewKind, OnDead, When};
use std::collections::HashSet;
use std::time::Duration;

/// The jobs that settlements submit, all of them applied in the current transaction.
#[derive(Default)]
pub(crate) struct FollowUps {
    /// To be stored as they are.
    pub(crate) jobs: Vec<NewJob>,
    /// To be stored as dead letters.
    pub(crate) letters: Vec<Letter>,
    ids: HashSet<JobId>,
}

/// A refused job, made fit to be stored as a dead letter.
pub(crate) struct Letter {
    pub(crate) job: NewJob,
    pub(crate) failure: Failure,
}

impl FollowUps {
    /// Adds the jobs of a settlement that was applied now, for a settled job of this lane. They get its tenant; one of the engine's
    /// own jobs submits jobs of any tenant.
    pub(crate) fn add(&mut self, settlement: &Settlement, lane: &Lane) {
        let mut bytes = 0_usize;
        for (place, job) in settlement.follow_ups.iter().enumerate() {
            // Two jobs with one id would fail the transaction.
            if !self.ids.insert(job.id) {
                continue;
            }
            bytes = bytes.saturating_add(job.payload.len());
            let parent = Some(settlement.lease.job);
            let tenant = if lane.kind.is_reserved() { &job.tenant } else { &lane.tenant };
            let job = NewJob { tenant: tenant.clone(), parent, ..job.clone() };
            match excess(place, bytes, &job) {
                None => self.jobs.push(job),
                Some(why) => self.letters.push(letter(job, &why)),
            }
        }
    }

    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns how to store the jobs. A job whose id exists already was submitted before.
    pub(crate) fn insert(jobs: &[NewJob]) -> Insert<'_> {
        let (if_refused, sent) = (IfRefused::StoreOthers, Sent::Again);
        Insert { jobs, if_refused, sent, direct: None }
    }

    /// Turns the refused ones into dead letters.
    pub(crate) fn refused(&mut self, answers: &[Inserted]) {
        for (job, answer) in self.jobs.iter().zip(answers) {
            if let Inserted::Refused(why) = answer {
                // Not even a dead letter of a group may exist while such a holder lives.
                let is_old = matches!(why, Refusal::HolderTooOld { .. });
                let ungrouped = is_old.then(|| FollowUps::ungrouped(job)).flatten();
                let (job, told) = ungrouped.unwrap_or_else(|| (job.clone(), String::new()));
                self.letters.push(letter(job, &format!("{why}{told}")));
            }
        }
    }

    /// Returns the kinds of the dead letters, each once, in case some do not exist: a dead letter needs one, to be listed and
    /// redriven by. Only a kind that was deleted between submit and settle is missing, because the submit checks it.
    pub(crate) fn kinds(&self) -> Vec<NewKind> {
        let mut names: Vec<_> = self.letters.iter().map(|letter| &letter.job.kind).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(FollowUps::kind).collect()
    }

    /// Returns the kind of a dead letter whose kind does not exist.
    pub(crate) fn kind(name: &rewheel_core::KindName) -> NewKind {
        NewKind {
            name: name.clone(),
            settings: "{}".to_owned(),
            takeovers_max: Limits::TAKEOVERS_MAX_DEFAULT,
            on_dead: OnDead::default(),
        }
    }

    /// Returns a job without its group, and what to tell about it; `None` if it has no group.
    pub(crate) fn ungrouped(job: &NewJob) -> Option<(NewJob, String)> {
        let group = job.group_key.as_ref()?;
        let told = format!("; the job was stored without its group `{group}`");
        Some((NewJob { group_key: None, ..job.clone() }, told))
    }

    /// Leaves out of a refused job what may be the reason of the refusal: another job has its key, its deadline has passed, its backoff
    /// cannot be stored, its payload is too large. Returns the rest, and what to tell about it.
    pub(crate) fn fit(job: NewJob) -> (NewJob, String) {
        let mut told = String::new();
        if let Some(key) = &job.key {
            told.push_str(&format!("; the job was stored without its key `{key}`"));
        }
        let is_large = job.payload.len() > Limits::FOLLOW_UPS_BYTES_MAX;
        if is_large {
            told.push_str(&format!("; its payload of {} bytes was dropped", job.payload.len()));
        }
        let backoff = job.backoff.filter(|_| check_backoff(&job).is_ok());
        let payload = if is_large { Vec::new() } else { job.payload.clone() };
        let due = When::In(Duration::ZERO);
        let duplicates = Duplicates::default();
        let job = NewJob { key: None, duplicates, deadline: None, due, backoff, payload, ..job };
        (job, told)
    }
}

/// Returns what no store accepts in a settlement.
fn excess(place: usize, bytes: usize, job: &NewJob) -> Option<String> {
    let (count_max, bytes_max) = (Limits::FOLLOW_UPS_MAX, Limits::FOLLOW_UPS_BYTES_MAX);
    if place >= count_max {
        Some(format!("one settle may submit at most {count_max} jobs"))
    } else if bytes > bytes_max {
        Some(format!(
            "the payloads of all jobs that one settle submits may have at most {bytes_max} bytes together"
        ))
    } else {
        check_backoff(job).err().map(|error| error.to_string())
    }
}

fn letter(job: NewJob, why: &str) -> Letter {
    let (job, told) = FollowUps::fit(job);
    Letter { job, failure: Failure::of_follow_up(&format!("{why}{told}")) }
}
