//! The JSON document of a job.

mod because;

use self::because::Wait;
use crate::payload;
use crate::rfc3339;
use rewheel::duration;
use rewheel_core::store::{AttemptEnd, AttemptRecord};
use rewheel_core::{
    AuditEntry, AuditFields, Failure, Incident, Job, Status, StoredResult, SuccessCode, Timestamp,
};
use rewheel_engine::{HeldJob, KindSettings};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// A job as JSON. Lists omit `payload`, `result`, `attempts` and `audit`.
#[derive(Debug, Serialize)]
pub struct JobDocument {
    id: String,
    kind: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    key: Option<String>,
    tenant: Option<String>,
    shard_key: Option<String>,
    parent: Option<String>,
    instant: Option<String>,
    group_key: Option<String>,
    blocked: bool,
    turn: Option<u64>,
    priority: u8,
    attempt: u32,
    attempts_max: u32,
    takeovers: u32,
    fence: u64,
    holder: Option<String>,
    wanted: Option<&'static str>,
    version: u64,
    due: String,
    deadline: Option<String>,
    due_because: DueBecause,
    held_because: Option<HeldBecauseDocument>,
    attempt_timeout: String,
    backoff: String,
    created: String,
    finished: Option<String>,
    failure: Option<FailureDocument>,
    incident: Option<String>,
    #[serde(flatten)]
    result: Option<ResultDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<AttemptDocument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_dropped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<Vec<AuditDocument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replaced: bool,
}

#[derive(Debug, Serialize)]
struct DueBecause {
    reason: &'static str,
    text: String,
    #[serde(skip)]
    wait: Wait,
}

#[derive(Debug, Serialize)]
struct HeldBecauseDocument {
    reason: &'static str,
    until: Option<String>,
    text: String,
}

#[derive(Debug, Serialize)]
struct FailureDocument {
    category: &'static str,
    code: Option<String>,
    message: String,
}

#[derive(Debug, Default, Serialize)]
struct ResultDocument {
    result: Option<ResultHead>,
    result_dropped: Option<String>,
}

#[derive(Debug, Serialize)]
struct ResultHead {
    content_type: String,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct AttemptDocument {
    attempt: u32,
    fence: u64,
    holder: String,
    started: String,
    duration: String,
    category: Option<&'static str>,
    code: Option<String>,
    message: Option<String>,
    decision: String,
    delay: Option<String>,
}

/// An entry of the audit log as JSON.
#[derive(Debug, Serialize)]
pub struct AuditDocument {
    at: String,
    who: String,
    what: String,
    before: serde_json::Value,
    after: serde_json::Value,
}

impl JobDocument {
    /// Builds the document of a job with the settings of its kind, at the store's time `now`.
    pub fn new(job: &Job, kind: &KindSettings, now: Timestamp) -> JobDocument {
        let (holder, wanted) = match job.status {
            Status::Leased { holder, wanted, .. } => (Some(holder), wanted),
            Status::Scheduled
            | Status::Paused
            | Status::Succeeded(_)
            | Status::Failed(_)
            | Status::Dead(_)
            | Status::Cancelled(_) => (None, None),
        };
        let is_started = holder.is_some() && job.due <= now;
        let is_over = is_started || job.status.finished().is_some();
        let wait = if is_over { Wait::IsOver } else { Wait::Lasts };
        JobDocument {
            id: job.id.to_string(),
            kind: job.lane.kind.to_string(),
            state: job.state().as_str(),
            payload: job.payload.as_deref().map(payload::raw),
            key: job.key.as_ref().map(ToString::to_string),
            tenant: job.lane.tenant.as_ref().map(ToString::to_string),
            shard_key: job.shard_key.as_ref().map(ToString::to_string),
            // The parent of the engine's own jobs stands for a list, and is no job.
            parent: job
                .parent
                .filter(|_| !job.lane.kind.is_reserved())
                .map(|parent| parent.to_string()),
            instant: job.instant.map(rfc3339::text),
            group_key: job.group.as_ref().map(|group| group.key.to_string()),
            blocked: job.is_blocked(),
            turn: job.group.as_ref().and_then(|group| group.turn).map(rewheel_core::Turn::get),
            priority: job.lane.priority.get(),
            attempt: job.attempt + u32::from(is_started),
            attempts_max: kind.attempts_max_of(job).saturating_add(job.attempts_before),
            takeovers: job.takeovers,
            fence: job.fence.get(),
            holder: holder.map(|holder| holder.to_string()),
            wanted: wanted.map(rewheel_core::Wanted::as_str),
            version: job.version.get(),
            due: rfc3339::text(job.due),
            deadline: job.deadline.map(rfc3339::text),
            due_because: DueBecause::new(job, wait),
            held_because: None,
            attempt_timeout: text(kind.attempt_timeout_of(job)),
            backoff: job.backoff.unwrap_or(kind.backoff).to_string(),
            created: rfc3339::text(job.created),
            finished: job.status.finished().map(rfc3339::text),
            failure: job.failure.as_ref().map(FailureDocument::new),
            incident: Incident::of(job),
            result: None,
            attempts: None,
            attempts_dropped: None,
            audit: None,
            duplicate: None,
            replaced: false,
        }
    }

    /// Returns the version, which grows with every visible change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Adds why the job waits although it is due.
    #[must_use]
    pub fn with_held(mut self, held: Option<HeldJob>) -> JobDocument {
        self.held_because = held.map(|held| HeldBecauseDocument {
            reason: held.because.as_str(),
            until: held.until.map(rfc3339::text),
            text: held.text,
        });
        self
    }

    /// Adds the attempts and the audit log. The job has no result, unless one is added.
    #[must_use]
    pub fn with_history(
        mut self,
        job: &Job,
        attempts: &[AttemptRecord],
        audit: &[AuditEntry],
    ) -> JobDocument {
        self.due_because.text = because::text(job, self.due_because.wait, attempts);
        self.attempts = Some(attempts.iter().map(AttemptDocument::new).collect());
        self.attempts_dropped = Some(attempts.iter().map(|record| record.dropped).sum());
        self.audit = Some(audit.iter().map(AuditDocument::new).collect());
        self.result.get_or_insert_default();
        self
    }

    /// Adds what is known of the result.
    #[must_use]
    pub fn with_result(mut self, result: Option<&StoredResult>) -> JobDocument {
        let (result, dropped) = match result {
            Some(StoredResult::Kept(result)) => (Some(result), None),
            Some(StoredResult::Dropped(why)) => (None, Some(why.as_str().to_owned())),
            Some(StoredResult::Pruned) | None => (None, None),
        };
        let result = result.map(|result| ResultHead {
            content_type: result.content_type.to_string(),
            bytes: result.body.len(),
        });
        self.result = Some(ResultDocument { result, result_dropped: dropped });
        self
    }

    /// Adds whether the submit found an existing job.
    #[must_use]
    pub fn with_duplicate(mut self, duplicate: bool) -> JobDocument {
        self.duplicate = Some(duplicate);
        self
    }

    /// Adds that the submit replaced what the existing job will run.
    #[must_use]
    pub fn with_replaced(mut self, replaced: bool) -> JobDocument {
        self.replaced = replaced;
        self
    }

    /// Sets the final state of a job whose other data has been deleted.
    #[must_use]
    pub fn ended_as(mut self, state: rewheel_core::State) -> JobDocument {
        self.state = state.as_str();
        self.holder = None;
        self
    }
}

impl DueBecause {
    fn new(job: &Job, wait: Wait) -> DueBecause {
        let text = because::text(job, wait, &[]);
        DueBecause { reason: job.because.as_str(), text, wait }
    }
}

impl FailureDocument {
    fn new(failure: &Failure) -> FailureDocument {
        FailureDocument {
            category: failure.category().as_str(),
            code: failure.code().map(str::to_owned),
            message: failure.message().to_owned(),
        }
    }
}

impl AttemptDocument {
    fn new(record: &AttemptRecord) -> AttemptDocument {
        let (failure, code) = match &record.ended {
            AttemptEnd::Failed(failure) => (Some(failure), failure.code()),
            AttemptEnd::Succeeded(code) => (None, code.as_ref().map(SuccessCode::as_str)),
        };
        AttemptDocument {
            attempt: record.attempt,
            fence: record.fence.get(),
            holder: record.holder.to_string(),
            started: rfc3339::text(record.started),
            duration: text(record.duration),
            category: failure.map(|failure| failure.category().as_str()),
            code: code.map(str::to_owned),
            message: failure.map(|failure| failure.message().to_owned()),
            decision: record.decision.clone(),
            delay: record.delay.map(text),
        }
    }
}

impl AuditDocument {
    pub(crate) fn new(entry: &AuditEntry) -> AuditDocument {
        AuditDocument {
            at: rfc3339::text(entry.at),
            who: entry.who.to_string(),
            what: entry.what.clone(),
            before: facts(&entry.before),
            after: facts(&entry.after),
        }
    }
}

/// Fields that are timestamps, which the log stores as milliseconds.
const INSTANTS: [&str; 3] = ["due", "deadline", "parked"];

fn facts(facts: &AuditFields) -> serde_json::Value {
    facts.iter().map(|(name, value)| (name.to_owned(), fact(name, value))).collect()
}

fn fact(name: &str, value: Option<&str>) -> serde_json::Value {
    let millis = value.filter(|_| INSTANTS.contains(&name)).and_then(|text| text.parse().ok());
    match millis {
        Some(millis) => rfc3339::text(Timestamp::from_millis(millis)).into(),
        None => value.into(),
    }
}

fn text(duration: Duration) -> String {
    duration::text(duration).to_string()
}

#[cfg(test)]
mod tests;
