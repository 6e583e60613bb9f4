//! A bulk operation as the payload of its job: the order and its progress.

use super::canary::Seen;
use super::{Bulk, BulkVerb, Canary, Operation, OperationState, Selection};
use crate::rate::Rate;
use rewheel_core::store::{Change, Changed, Cursor};
use rewheel_core::{Actor, Job, JobId, KindName, State, Timestamp, Version, When};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that the next attempt must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Document {
    verb: String,
    pub(super) filter: Selection,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<Rate>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) canary: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Deadline>,
    by: String,
    pub(super) began_ms: i64,
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) refused: BTreeMap<String, u64>,
    /// Jobs that are about to be changed: written first, so that they are not counted twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pending: Vec<Subject>,
    /// Where to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Whether everything was read.
    #[serde(default)]
    pub(super) is_read: bool,
    /// The current canary step, from 0.
    #[serde(default)]
    pub(super) step: usize,
    /// Jobs that this step has redriven, and waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) watched: Vec<String>,
    /// Since when it waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) watched_ms: Option<i64>,
    /// What the latest look at these jobs found.
    #[serde(default)]
    pub(super) seen: Seen,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// A job that is about to be changed, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    id: String,
    kind: String,
    version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Deadline {
    InMs(u64),
    AtMs(i64),
}

impl Document {
    pub(super) fn new(order: Bulk, by: &Actor, began: Timestamp, total: u64) -> Document {
        Document {
            verb: order.verb.as_str().to_owned(),
            filter: order.selection,
            rate: order.rate,
            canary: order.canary,
            deadline: order.deadline.map(|deadline| match deadline {
                When::In(left) => {
                    Deadline::InMs(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
                }
                When::At(at) => Deadline::AtMs(at.as_millis()),
            }),
            by: by.to_string(),
            began_ms: began.as_millis(),
            total,
            done: 0,
            failed: 0,
            refused: BTreeMap::new(),
            pending: Vec::new(),
            cursor: None,
            is_read: false,
            step: 0,
            watched: Vec::new(),
            watched_ms: None,
            seen: Seen::default(),
            reason: None,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Document, String> {
        let document: Document =
            serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        document.verb.parse::<BulkVerb>()?;
        Ok(document)
    }

    pub(super) fn verb(&self) -> BulkVerb {
        self.verb.parse().unwrap_or(BulkVerb::Resume)
    }

    /// Returns the actor for the audit log: the author of the order, and the operation.
    pub(super) fn actor(&self, id: JobId) -> Actor {
        Actor::new(&format!("{} by operation {id}", self.by))
    }

    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.cursor.as_ref()?.parse().ok()
    }

    /// Records the next jobs, and where to continue reading after them.
    pub(super) fn intend(&mut self, jobs: &[Job], next: Option<Cursor>) {
        let subject = |job: &Job| Subject {
            id: job.id.to_string(),
            kind: job.lane.kind.to_string(),
            version: job.version.get(),
        };
        self.pending = jobs.iter().map(subject).collect();
        self.cursor = next.map(|next| next.to_string());
        self.is_read = next.is_none();
    }

    /// Returns the changes of the next jobs, conditional on the read version: a late repetition must not redrive a job that has
    /// died again since, nor cancel a dead letter that was live when it was read.
    pub(super) fn changes(&self) -> Vec<Change> {
        let verb = self.verb();
        let deadline = self.deadline.map(|deadline| match deadline {
            Deadline::InMs(left) => When::In(Duration::from_millis(left)),
            Deadline::AtMs(at) => When::At(Timestamp::from_millis(at)),
        });
        let change = |subject: &Subject| {
            let if_version = Some(Version::new(subject.version));
            let job = subject.id.parse().ok()?;
            Some(Change { if_version, ..Change::new(job, verb.what(deadline)) })
        };
        self.pending.iter().filter_map(change).collect()
    }

    /// Returns the changed jobs with their new states.
    pub(super) fn told(&self, answers: &[Changed]) -> Vec<(JobId, KindName, State)> {
        let told = |(subject, answer): (&Subject, &Changed)| match answer {
            Changed::Applied { state, .. } => {
                Some((subject.id.parse().ok()?, KindName::parse(&subject.kind).ok()?, *state))
            }
            Changed::Wanted { .. }
            | Changed::Unchanged { .. }
            | Changed::WrongState(_)
            | Changed::VersionChanged(_)
            | Changed::NeedsDeadline
            | Changed::TooLarge { .. }
            | Changed::Reserved
            | Changed::NotFound => None,
        };
        self.pending.iter().zip(answers).filter_map(told).collect()
    }

    /// Returns the number of jobs of the current canary step; `None` once all steps succeeded.
    pub(super) fn step_size(&self) -> Option<usize> {
        self.canary.get(self.step).map(|size| *size as usize)
    }

    pub(super) fn operation(
        &self,
        id: JobId,
        state: OperationState,
        created: Timestamp,
    ) -> Operation {
        Operation {
            id,
            verb: self.verb(),
            state,
            total: self.total,
            done: self.done,
            failed: self.failed,
            refused: self.refused.clone(),
            reason: self.reason.clone(),
            step: self.step_size().map(|_| (self.step + 1, self.canary.len())),
            canary: (!self.canary.is_empty()).then(|| Canary {
                sizes: self.canary.clone(),
                redriven: self.watched.len(),
                ok: self.seen.ok,
                failed: self.seen.failed,
                example: self.seen.example.as_ref().and_then(|id| id.parse().ok()),
            }),
            incident: self.filter.incident.clone().or_else(|| self.filter.filter.incident.clone()),
            tenant: self.filter.filter.tenant.clone(),
            by: Actor::new(&self.by),
            created,
            finished: None,
        }
    }
}
