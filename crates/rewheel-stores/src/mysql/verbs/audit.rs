//! Writes and reads the audit log.

use super::super::error::{VerbError, unreadable};
use super::super::row::{count, get, id16, instant, maybe_bytes, unsigned};
use super::super::statement::chunks;
use super::super::transaction::Transaction;
use super::ending::Live;
use crate::audit::{document, facts};
use mysql_async::{Row, Value};
use rewheel_core::{Actor, AuditEntry, AuditFields, HolderId, JobId, KindName, Limits, Transition};

/// An entry of the audit log.
pub(super) struct Line<'a> {
    pub(super) what: &'a str,
    pub(super) job: Option<JobId>,
    pub(super) kind: Option<&'a KindName>,
    pub(super) before: AuditFields,
    pub(super) after: AuditFields,
}

pub(super) async fn audit(
    tx: &mut Transaction<'_>,
    by: &Actor,
    line: Line<'_>,
) -> Result<(), VerbError> {
    let values = values(tx, by, &line);
    tx.insert_rows(include_str!("../sql/insert_audit.sql"), 1, values).await.map(drop)
}

fn values(tx: &Transaction<'_>, by: &Actor, line: &Line<'_>) -> Vec<Value> {
    vec![
        tx.now.as_millis().into(),
        by.as_str().into(),
        line.what.into(),
        line.job.map(|job| id16(job.to_bytes())).into(),
        line.kind.map(KindName::as_str).into(),
        document(&line.before).into(),
        document(&line.after).into(),
    ]
}

/// Audit entries that are written with one statement.
const LINES_MAX: usize = 256;

/// Collects audit entries for jobs, until [`Auditor::write`] writes them. It looks up the holder's name only when there is an entry to
/// write.
pub(super) struct Auditor {
    holder: Option<HolderId>,
    who: Option<Actor>,
    lines: Vec<Vec<Value>>,
}

impl Auditor {
    pub(super) const fn of_holder(holder: HolderId) -> Auditor {
        Auditor { holder: Some(holder), who: None, lines: Vec::new() }
    }

    /// An auditor for actions of the engine as a whole, not of one holder.
    pub(super) fn of_engine() -> Auditor {
        Auditor { holder: None, who: Some(Actor::engine()), lines: Vec::new() }
    }

    /// An auditor for actions of a user.
    pub(super) fn of(who: &Actor) -> Auditor {
        Auditor { holder: None, who: Some(who.clone()), lines: Vec::new() }
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, tx: &Transaction<'_>, by: &Actor, line: &Line<'_>) {
        self.lines.push(values(tx, by, line));
    }

    pub(super) async fn note(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        transition: &Transition<'_>,
    ) -> Result<(), VerbError> {
        for note in transition.notes() {
            let who = self.who(tx).await?;
            let lane = tx.lane_of(live.lane).await?;
            let (what, before, after) = (note.what, note.before, note.after);
            let line = Line { what, job: Some(live.id), kind: Some(&lane.kind), before, after };
            self.lines.push(values(tx, &who, &line));
        }
        Ok(())
    }

    /// Writes the entries. Every verb with an auditor ends with it.
    pub(super) async fn write(self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        let sizes = chunks(self.lines.len(), LINES_MAX);
        let mut lines = self.lines.into_iter();
        for size in sizes {
            let values = lines.by_ref().take(size).flatten().collect();
            tx.insert_rows(include_str!("../sql/insert_audit.sql"), size, values).await?;
        }
        Ok(())
    }

    async fn who(&mut self, tx: &mut Transaction<'_>) -> Result<Actor, VerbError> {
        if let Some(who) = &self.who {
            return Ok(who.clone());
        }
        let id = self.holder.map(|holder| id16(holder.to_bytes()));
        let row = tx.find(include_str!("../sql/name_holder.sql"), vec![id.into()]).await?;
        let name: Option<String> = row.map(|row| get(&row, 0)).transpose()?;
        let name = name.or_else(|| self.holder.map(|holder| holder.to_string()));
        let who = Actor::of_holder(&name.unwrap_or_default());
        self.who = Some(who.clone());
        Ok(who)
    }
}

pub(in super::super) async fn read(
    tx: &mut Transaction<'_>,
    job: Option<JobId>,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, VerbError> {
    let before = before.map_or(Value::Int(i64::MAX), count);
    let limit = count(limit.min(Limits::PAGE_MAX) as u64);
    let rows = match job {
        Some(job) => {
            let values = vec![id16(job.to_bytes()), before, limit];
            tx.rows(include_str!("../sql/audit_job.sql"), values).await?
        }
        None => tx.rows(include_str!("../sql/audit.sql"), vec![before, limit]).await?,
    };
    rows.iter().map(read_entry).collect()
}

fn read_entry(row: &Row) -> Result<AuditEntry, VerbError> {
    let fields = |at| facts(&get::<String>(row, at)?).ok_or_else(|| unreadable("an audit entry"));
    let kind = get::<Option<String>>(row, 5)?;
    Ok(AuditEntry {
        seq: unsigned(get(row, 0)?),
        at: instant(get(row, 1)?),
        who: Actor::new(&get::<String>(row, 2)?),
        what: get(row, 3)?,
        job: maybe_bytes(row, 4)?.map(JobId::from_bytes),
        kind: kind
            .map(|kind| KindName::parse(&kind).map_err(|_| unreadable("a kind")))
            .transpose()?,
        before: fields(6)?,
        after: fields(7)?,
    })
}
