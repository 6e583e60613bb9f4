//! Writes audit log entries in batches.

use super::super::error::{VerbError, unreadable};
use super::super::row::uuid;
use super::super::session::{Param, Session};
use super::super::statements::INSERT_AUDIT;
use crate::audit::document;
use rewheel_core::{Actor, AuditFields, AuditNote, HolderId, JobId, KindName, Timestamp};

/// An entry of the audit log.
pub(super) struct Line<'a> {
    pub(super) who: &'a Actor,
    pub(super) what: &'a str,
    pub(super) job: Option<JobId>,
    pub(super) kind: Option<&'a KindName>,
    pub(super) before: &'a AuditFields,
    pub(super) after: &'a AuditFields,
}

pub(super) async fn audit(
    session: &Session<'_>,
    now: Timestamp,
    lines: &[Line<'_>],
) -> Result<(), VerbError> {
    let params: [Param<'_>; 7] = [
        &now.as_millis(),
        &lines.iter().map(|line| line.who.as_str()).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.what).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.job.map(uuid)).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.kind.map(KindName::as_str)).collect::<Vec<_>>(),
        &lines.iter().map(|line| document(line.before)).collect::<Vec<_>>(),
        &lines.iter().map(|line| document(line.after)).collect::<Vec<_>>(),
    ];
    session.execute(&INSERT_AUDIT, &params).await.map(drop)
}

/// A job's change that the audit log records.
pub(super) struct Noted {
    pub(super) who: Actor,
    pub(super) job: JobId,
    pub(super) lane: i32,
    pub(super) note: AuditNote,
}

/// Writes audit entries for changed jobs, if there are any.
pub(super) async fn write_notes(
    session: &Session<'_>,
    noted: &[Noted],
    now: Timestamp,
) -> Result<(), VerbError> {
    if noted.is_empty() {
        return Ok(());
    }
    let lanes = super::super::lanes::names(session, noted.iter().map(|noted| noted.lane)).await?;
    let mut lines = Vec::with_capacity(noted.len());
    for Noted { who, job, lane, note } in noted {
        let lane = lanes.get(lane).ok_or_else(|| unreadable("a lane that does not exist"))?;
        let AuditNote { what, before, after } = note;
        lines.push(Line { who, what, job: Some(*job), kind: Some(&lane.kind), before, after });
    }
    audit(session, now, &lines).await
}

/// Returns the name of a holder in the audit log, whether its name is known or not.
pub(super) fn actor(holder: HolderId, name: Option<&str>) -> Actor {
    match name {
        Some(name) => Actor::of_holder(name),
        None => Actor::of_holder(&holder.to_string()),
    }
}
