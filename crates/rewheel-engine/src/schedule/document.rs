//! A schedule as the payload of its job: its definition and what became of its instants.

use super::timing::Timing;
use super::{Fired, Schedule, ScheduleError};
use rewheel::Backoff;
use rewheel_core::{
    GroupKey, JobId, KindName, NewJob, Priority, ShardKey, Tenant, Timestamp, When,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that the next instant must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every_ms: Option<u64>,
    job: StoredJob,
    overlap: String,
    catch_up: String,
    /// The first instant that has not been handled.
    pub(super) next_ms: i64,
    /// The latest instant that submitted a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_job: Option<String>,
    #[serde(default)]
    pub(super) fired: u64,
    #[serde(default)]
    pub(super) skipped: u64,
    #[serde(default)]
    pub(super) missed: u64,
}

/// The job of each instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredJob {
    kind: String,
    /// As text, which it usually is; otherwise as hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group_key: Option<String>,
    priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt_timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backoff: Option<String>,
}

impl Document {
    /// Creates the document of a schedule that has not fired yet.
    pub(super) fn new(schedule: &Schedule, next: Timestamp) -> Document {
        let (cron, zone) =
            schedule.timing.as_cron().map(|(cron, zone)| (cron, zone.to_owned())).unzip();
        Document {
            cron,
            zone,
            every_ms: schedule.timing.as_period().map(millis),
            job: StoredJob::of(&schedule.job),
            overlap: schedule.overlap.as_str().to_owned(),
            catch_up: schedule.catch_up.as_str().to_owned(),
            next_ms: next.as_millis(),
            last_ms: None,
            last_job: None,
            fired: 0,
            skipped: 0,
            missed: 0,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Document, String> {
        serde_json::from_slice(payload).map_err(|error| error.to_string())
    }

    /// Reads the definition.
    pub(super) fn schedule(&self) -> Result<Schedule, String> {
        let text = |error: ScheduleError| error.to_string();
        let timing = match (&self.cron, &self.zone, self.every_ms) {
            (Some(cron), Some(zone), None) => Timing::cron(cron, zone).map_err(text)?,
            (None, None, Some(every)) => {
                Timing::every(Duration::from_millis(every)).map_err(text)?
            }
            _ => return Err("it must have either `cron` and `zone`, or `every_ms`".to_owned()),
        };
        Ok(Schedule {
            timing,
            job: self.job.new_job()?,
            overlap: self.overlap.parse()?,
            catch_up: self.catch_up.parse()?,
        })
    }

    /// Returns the document of a changed definition: what became of earlier instants stays.
    pub(super) fn redefined(&self, definition: Document) -> Document {
        let is_same_time = self.has_timing_of(&definition);
        Document {
            next_ms: if is_same_time { self.next_ms } else { definition.next_ms },
            last_ms: self.last_ms,
            last_job: self.last_job.clone(),
            fired: self.fired,
            skipped: self.skipped,
            missed: self.missed,
            ..definition
        }
    }

    /// Returns whether both fire at the same instants.
    pub(super) fn has_timing_of(&self, other: &Document) -> bool {
        (&self.cron, &self.zone, self.every_ms) == (&other.cron, &other.zone, other.every_ms)
    }

    pub(super) fn next(&self) -> Timestamp {
        Timestamp::from_millis(self.next_ms)
    }

    pub(super) fn last(&self) -> Option<Fired> {
        let instant = Timestamp::from_millis(self.last_ms?);
        Some(Fired { instant, job: self.last_job.as_ref()?.parse().ok()? })
    }

    /// Records that an instant submitted a job.
    pub(super) fn note_fired(&mut self, instant: Timestamp, job: JobId) {
        self.last_ms = Some(instant.as_millis());
        self.last_job = Some(job.to_string());
        self.fired = self.fired.saturating_add(1);
    }
}

impl StoredJob {
    fn of(job: &NewJob) -> StoredJob {
        // Every field by name: a new field of jobs must be stored here too, or be named among those that a schedule sets itself.
        let NewJob {
            kind,
            payload,
            tenant,
            shard_key,
            group_key,
            priority,
            due,
            deadline,
            attempts_max,
            attempt_timeout,
            backoff,
            id: _,
            key: _,
            duplicates: _,
            shard: _,
            traceparent: _,
            attempts_before: _,
            parent: _,
            instant: _,
        } = job;
        let text = std::str::from_utf8(payload).ok().map(str::to_owned);
        let hex = || payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let relative = |when: When| match when {
            When::In(wait) => Some(millis(wait)),
            When::At(_) => None,
        };
        StoredJob {
            kind: kind.to_string(),
            payload_hex: text.is_none().then(hex),
            payload: text,
            tenant: tenant.as_ref().map(ToString::to_string),
            shard_key: shard_key.as_ref().map(ToString::to_string),
            group_key: group_key.as_ref().map(ToString::to_string),
            priority: priority.get(),
            delay_ms: relative(*due).filter(|delay| *delay > 0),
            deadline_ms: deadline.and_then(relative),
            attempts_max: *attempts_max,
            attempt_timeout_ms: attempt_timeout.map(millis),
            backoff: backoff.map(|backoff| backoff.to_string()),
        }
    }

    /// Returns the job, with an id that is set when it is submitted.
    fn new_job(&self) -> Result<NewJob, String> {
        let name = |error: rewheel_core::NameError| error.to_string();
        let payload = match (&self.payload, &self.payload_hex) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(hex)) => from_hex(hex).ok_or("its payload is damaged")?,
            (None, None) => return Err("it has no payload".to_owned()),
        };
        let kind = KindName::parse(&self.kind).map_err(name)?;
        let wait = |millis: u64| When::In(Duration::from_millis(millis));
        Ok(NewJob {
            tenant: self.tenant.as_deref().map(Tenant::parse).transpose().map_err(name)?,
            shard_key: self.shard_key.as_deref().map(ShardKey::parse).transpose().map_err(name)?,
            group_key: self.group_key.as_deref().map(GroupKey::parse).transpose().map_err(name)?,
            priority: Priority::new(self.priority).map_err(|error| error.to_string())?,
            due: wait(self.delay_ms.unwrap_or(0)),
            deadline: self.deadline_ms.map(wait),
            attempts_max: self.attempts_max,
            attempt_timeout: self.attempt_timeout_ms.map(Duration::from_millis),
            backoff: self
                .backoff
                .as_deref()
                .map(str::parse::<Backoff>)
                .transpose()
                .map_err(|error| error.to_string())?,
            ..NewJob::new(JobId::from_bytes([0; 16]), kind, payload)
        })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    digits.map(byte).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
