//! Submits a job for a dead letter, such as a refund for a charge that was given up.

use super::NotifyError;
use super::dead_letters::LetterId;
use super::event::Event;
use super::notice::Notice;
use crate::shared::Shared;
use crate::submit;
use rewheel_core::store::{Insert, Inserted, Refusal, StoreError};
use rewheel_core::{Failure, Job, JobId, Key, KindName, NewJob, State};
use serde_json::json;
use std::sync::Arc;

/// Returns whether jobs of this kind are submitted for such a notice. Not for dead letters of the same kind: each would submit the
/// next.
pub(super) fn takes(kind: &KindName, notice: &Notice) -> bool {
    notice.event == Event::DeadLetter && notice.kind.as_ref() != Some(kind)
}

/// Submits the job. Returns without an error if there is nothing to submit: the job exists, or an operator has redriven the dead
/// letter.
pub(super) async fn submit(
    shared: &Arc<Shared>,
    kind: &KindName,
    (id, version): LetterId,
) -> Result<(), NotifyError> {
    let unavailable = |error: StoreError| NotifyError::retry(error.to_string());
    let Some(letter) = shared.store.get(id).await.map_err(unavailable)? else { return Ok(()) };
    if letter.state() != State::Dead || letter.version != version {
        return Ok(());
    }
    if is_of_letter(&letter) {
        tracing::warn!(job = %id, kind = %letter.lane.kind, to = %kind, "no job submitted for this dead letter: the dead letter was itself submitted for another dead letter, and this could repeat forever");
        return Ok(());
    }
    let job = NewJob {
        tenant: letter.lane.tenant.clone(),
        key: Some(key(id)),
        parent: Some(id),
        traceparent: letter.traceparent.clone(),
        ..NewJob::new(shared.new_id(), kind.clone(), payload(shared, &letter))
    };
    let jobs = [job];
    let routed = shared.intake.shards.route(&jobs);
    let jobs = routed.as_deref().unwrap_or(&jobs);
    let answers = submit::insert(shared, &Insert::new(jobs)).await.map_err(unavailable)?;
    submit::count(shared, jobs, &answers);
    match answers.into_iter().next() {
        Some(Inserted::Created { .. } | Inserted::Replaced { .. } | Inserted::Duplicate { .. }) => {
            Ok(())
        }
        // The job of an earlier death of the same job: one charge is refunded once.
        Some(Inserted::Refused(Refusal::KeyReused { .. })) => Ok(()),
        Some(Inserted::Refused(why @ Refusal::UnknownKind)) => {
            // Its kind does not come back within seconds. The letter is offered again in a minute.
            Err(NotifyError::stop(why.to_string()))
        }
        Some(Inserted::Refused(why)) => Err(NotifyError::retry(why.to_string())),
        Some(Inserted::LeftOut) | None => Err(NotifyError::retry("the store did not answer")),
    }
}

/// The same for each death of a job, so that it gets one job.
fn key(letter: JobId) -> Key {
    Key::parse(&format!("dead-letter:{letter}")).unwrap_or_else(|_| unreachable!("it is a key"))
}

/// Returns whether a job was submitted for a dead letter.
fn is_of_letter(job: &Job) -> bool {
    job.parent.is_some_and(|parent| job.key.as_ref() == Some(&key(parent)))
}

/// Returns the dead letter as JSON. Its own payload is part of it, byte for byte, if it is JSON and the whole is within the limit.
fn payload(shared: &Shared, letter: &Job) -> Vec<u8> {
    let failure = letter.failure.as_ref().map(|failure: &Failure| {
        json!({
            "category": failure.category().as_str(),
            "code": failure.code(),
            "message": failure.message(),
        })
    });
    let known = json!({
        "id": letter.id.to_string(),
        "kind": letter.lane.kind.as_str(),
        "tenant": letter.lane.tenant.as_ref().map(ToString::to_string),
        "key": letter.key.as_ref().map(ToString::to_string),
        "attempts": letter.attempt,
        "failure": failure,
    });
    let bytes = letter.payload.as_deref().unwrap_or_default();
    let is_json = std::str::from_utf8(bytes)
        .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
    let bytes_max = shared.settings.payload_bytes_max;
    let whole = is_json.then(|| written(&known, None, bytes));
    match whole {
        Some(whole) if whole.len() <= bytes_max => whole,
        Some(_) => written(&known, Some("too_large"), b"null"),
        None => written(&known, Some("not_json"), b"null"),
    }
}

/// Writes the members of an object, and the payload as it is: to parse it and write it again would change numbers and order.
fn written(known: &serde_json::Value, left_out: Option<&str>, payload: &[u8]) -> Vec<u8> {
    let mut text = known.to_string();
    text.pop();
    text.push_str(&format!(",\"payload_left_out\":{},\"payload\":", json!(left_out)));
    let mut text = text.into_bytes();
    text.extend_from_slice(payload);
    text.push(b'}');
    text
}

impl Shared {
    /// Returns a kind that dead letters are routed to and that does not exist.
    pub(crate) fn unknown_letter_kind(&self) -> Option<&KindName> {
        let desk = self.reports.desk.as_ref()?;
        desk.job_kinds().find(|kind| kind.is_reserved() || self.kind(kind).is_none())
    }
}
