//! Writes audit log entries.

use super::super::error::VerbError;
use super::super::row::column;
use super::super::transaction::Transaction;
use super::ending::Live;
use crate::audit::document;
use rewheel_core::{Actor, AuditFields, HolderId, JobId, KindName, Transition};

/// An entry of the audit log.
pub(super) struct Line<'a> {
    pub(super) what: &'a str,
    pub(super) job: Option<JobId>,
    pub(super) kind: Option<&'a KindName>,
    pub(super) before: AuditFields,
    pub(super) after: AuditFields,
}

pub(super) fn audit(tx: &Transaction<'_, '_>, by: &Actor, line: Line<'_>) -> Result<(), VerbError> {
    let values = (
        tx.now.as_millis(),
        by.as_str(),
        line.what,
        line.job.map(JobId::to_bytes),
        line.kind.map(KindName::as_str),
        document(&line.before),
        document(&line.after),
    );
    tx.execute(include_str!("../sql/insert_audit.sql"), values)?;
    Ok(())
}

/// Writes audit entries for jobs. It looks up the holder's name only when there is an entry to
/// write.
pub(super) struct Auditor {
    holder: Option<HolderId>,
    who: Option<Actor>,
}

impl Auditor {
    pub(super) const fn of_holder(holder: HolderId) -> Auditor {
        Auditor { holder: Some(holder), who: None }
    }

    /// An auditor for actions of the engine as a whole, not of one holder.
    pub(super) fn of_engine() -> Auditor {
        Auditor { holder: None, who: Some(Actor::engine()) }
    }

    pub(super) fn note(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        live: &Live,
        transition: &Transition<'_>,
    ) -> Result<(), VerbError> {
        for note in transition.notes() {
            let who = self.who(tx)?;
            let kind = Some(&tx.lane_of(live.lane)?.kind);
            let (what, before, after) = (note.what, note.before, note.after);
            audit(tx, &who, Line { what, job: Some(live.id), kind, before, after })?;
        }
        Ok(())
    }

    fn who(&mut self, tx: &Transaction<'_, '_>) -> Result<Actor, VerbError> {
        if let Some(who) = &self.who {
            return Ok(who.clone());
        }
        let id = self.holder.map(HolderId::to_bytes);
        let name: Option<String> = tx.find(include_str!("../sql/name_holder.sql"), [id], column)?;
        let name = name.or_else(|| self.holder.map(|holder| holder.to_string()));
        let who = Actor::of_holder(&name.unwrap_or_default());
        self.who = Some(who.clone());
        Ok(who)
    }
}
