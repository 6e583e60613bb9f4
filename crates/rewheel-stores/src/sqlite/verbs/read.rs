//! Reads jobs, attempts, counts and the audit log.

use super::super::error::{VerbError, unreadable};
use super::super::job_columns::{ID, Payload, may_match, read_job};
use super::super::row::{duration, failure, instant, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count as number;
use super::unreadable::readable;
use crate::audit::facts;
use crate::pages::cut;
use crate::patience::Patience;
use crate::tables::{Listed, Reading, Table, tables};
use rewheel_core::store::{
    AttemptEnd, AttemptRecord, Books, Count, DeadLetter, Filter, Page, PageRequest, Risk,
};
use rewheel_core::{
    Actor, AuditEntry, AuditFields, Fence, HolderId, Job, JobId, KindName, Limits, Version,
};
use rusqlite::ErrorCode;
use rusqlite::types::Value;
use std::collections::BTreeSet;
use std::rc::Rc;

pub(in super::super) fn get(
    tx: &mut Transaction<'_, '_>,
    job: JobId,
    payload: Payload,
) -> Result<Option<Job>, VerbError> {
    for sql in [
        include_str!("../sql/get_live.sql"),
        include_str!("../sql/get_dead.sql"),
        include_str!("../sql/get_finished.sql"),
    ] {
        let statement = tx.sql(sql)?;
        let mut statement = statement.get();
        let mut rows = statement.query([job.to_bytes()])?;
        if let Some(row) = rows.next()? {
            return read_job(tx, row, payload).map(Some);
        }
    }
    Ok(None)
}

pub(in super::super) fn find(
    tx: &mut Transaction<'_, '_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs.iter().collect::<BTreeSet<_>>() {
        found.extend(get(tx, *job, Payload::LeaveOut)?);
    }
    Ok(found)
}

pub(in super::super) fn live(
    tx: &mut Transaction<'_, '_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let ids: Vec<Value> = jobs.iter().map(|job| Value::Blob(job.to_bytes().to_vec())).collect();
    let statement = tx.sql(include_str!("../sql/live.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([Rc::new(ids)])?;
    let mut live = Vec::with_capacity(jobs.len());
    while let Some(row) = rows.next()? {
        live.extend(readable(read_job(tx, row, Payload::LeaveOut))?);
    }
    Ok(live)
}

/// Returns the statement that lists a table, or the jobs in it that one job submitted, or those of groups with one key.
fn listing(table: Table, by: Listed) -> &'static str {
    match (table, by) {
        (Table::Live, Listed::All) => include_str!("../sql/list_live.sql"),
        (Table::Dead, Listed::All) => include_str!("../sql/list_dead.sql"),
        (Table::Finished, Listed::All) => include_str!("../sql/list_finished.sql"),
        (Table::Live, Listed::ByParent) => include_str!("../sql/children_live.sql"),
        (Table::Dead, Listed::ByParent) => include_str!("../sql/children_dead.sql"),
        (Table::Finished, Listed::ByParent) => include_str!("../sql/children_finished.sql"),
        (Table::Live, Listed::ByGroup) => include_str!("../sql/grouped_live.sql"),
        (Table::Dead, Listed::ByGroup) => include_str!("../sql/grouped_dead.sql"),
        (Table::Finished, Listed::ByGroup) => include_str!("../sql/grouped_finished.sql"),
    }
}

/// Starts to list a table, or the jobs in it that one job submitted: from the newest id before `before`. Returns one row more than
/// `rows_max`, to know whether there are more and where the next page begins.
fn rows_of<'s>(
    statement: &'s mut rusqlite::Statement<'_>,
    filter: &Filter,
    before: [u8; 16],
    rows_max: usize,
) -> rusqlite::Result<rusqlite::Rows<'s>> {
    let rows_max = number((rows_max as u64).saturating_add(1));
    match (filter.parent, &filter.group_key) {
        (Some(parent), _) => statement.query((before, rows_max, parent.to_bytes())),
        (None, Some(key)) => statement.query((before, rows_max, key.as_str())),
        (None, None) => statement.query((before, rows_max)),
    }
}

/// Reads the job in a row, if it matches a filter.
fn read_matching(
    tx: &mut Transaction<'_, '_>,
    row: &rusqlite::Row<'_>,
    filter: &Filter,
) -> Result<Option<Job>, VerbError> {
    if !may_match(tx, row, filter)? {
        return Ok(None);
    }
    read_job(tx, row, Payload::LeaveOut).map(|job| Some(job).filter(|job| filter.matches(job)))
}

pub(in super::super) fn list(
    tx: &mut Transaction<'_, '_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Job>, VerbError> {
    let limit = page.limit.clamp(1, Limits::PAGE_MAX);
    let scan_max = page.scan_max.max(1);
    // Greater than every id.
    let before = page.cursor.map_or([0xff; 16], |cursor| cursor.job().to_bytes());
    if let Some(key) = &filter.key {
        let mut found = super::keyed::keyed(tx, filter, key)?;
        found.retain(|job| job.id.to_bytes() < before);
        return Ok(cut(found, None, limit));
    }
    let mut found: Vec<Job> = Vec::new();
    // The highest id down to which a table was read, if one was not read to its end.
    let mut read_to: Option<JobId> = None;
    let patience = Patience::new(page);
    for table in tables(filter) {
        let statement = tx.sql(listing(table, Listed::by(filter)))?;
        let mut statement = statement.get();
        let mut rows = rows_of(&mut statement, filter, before, scan_max)?;
        let mut reading = Reading::new(limit, page, &patience);
        while let Some(row) = rows.next()? {
            if !reading.goes_on(JobId::from_bytes(row.get(ID)?)) {
                break;
            }
            let read = readable(read_matching(tx, row, filter))?;
            if let Some(job) = read.flatten() {
                reading.matched += 1;
                found.push(job);
            }
        }
        read_to = read_to.max(reading.read_to);
    }
    Ok(cut(found, read_to, limit))
}

pub(in super::super) fn count(
    tx: &mut Transaction<'_, '_>,
    filter: &Filter,
    scan_max: usize,
) -> Result<Count, VerbError> {
    if let Some(key) = &filter.key {
        return Ok(Count::Exactly(super::keyed::keyed(tx, filter, key)?.len() as u64));
    }
    let (mut matched, mut scanned) = (0, 0);
    for table in tables(filter) {
        let statement = tx.sql(listing(table, Listed::by(filter)))?;
        let mut statement = statement.get();
        let left = scan_max.saturating_sub(scanned);
        let mut rows = rows_of(&mut statement, filter, [0xff; 16], left)?;
        while let Some(row) = rows.next()? {
            if scanned == scan_max {
                return Ok(Count::AtLeast(matched));
            }
            scanned += 1;
            let read = readable(read_matching(tx, row, filter))?;
            matched += u64::from(read.flatten().is_some());
        }
    }
    Ok(Count::Exactly(matched))
}

pub(in super::super) fn attempts(
    tx: &Transaction<'_, '_>,
    job: JobId,
) -> Result<Vec<AttemptRecord>, VerbError> {
    let statement = tx.sql(include_str!("../sql/attempts.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query((job.to_bytes(), Limits::ATTEMPTS_LISTED_MAX))?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(AttemptRecord {
            attempt: row.get(0)?,
            fence: Fence::new(unsigned(row.get(1)?)),
            holder: HolderId::from_bytes(row.get(2)?),
            started: instant(row.get(3)?),
            duration: duration(row.get(4)?),
            ended: failure(row.get(5)?, row.get(6)?, row.get(7)?)?
                .map(AttemptEnd::Failed)
                .ok_or_else(|| unreadable("an attempt"))?,
            decision: row.get(8)?,
            delay: row.get::<_, Option<i64>>(9)?.map(duration),
            dropped: unsigned(row.get(10)?),
        });
    }
    attempts.reverse();
    attempts.extend(super::results::succeeded(tx, job)?);
    Ok(attempts)
}

pub(in super::super) fn audit(
    tx: &Transaction<'_, '_>,
    job: Option<JobId>,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, VerbError> {
    let before = before.map_or(i64::MAX, number);
    let limit = number(limit.min(Limits::PAGE_MAX) as u64);
    let statement = match job {
        Some(_) => tx.sql(include_str!("../sql/audit_job.sql"))?,
        None => tx.sql(include_str!("../sql/audit.sql"))?,
    };
    let mut statement = statement.get();
    let mut rows = match job {
        Some(job) => statement.query((before, limit, job.to_bytes()))?,
        None => statement.query((before, limit))?,
    };
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let who: String = row.get(2)?;
        let kind: Option<String> = row.get(5)?;
        entries.push(AuditEntry {
            seq: unsigned(row.get(0)?),
            at: instant(row.get(1)?),
            who: Actor::new(&who),
            what: row.get(3)?,
            job: row.get::<_, Option<[u8; 16]>>(4)?.map(JobId::from_bytes),
            kind: kind
                .map(|kind| KindName::parse(&kind).map_err(|_| unreadable("a kind")))
                .transpose()?,
            before: entry(&row.get::<_, String>(6)?)?,
            after: entry(&row.get::<_, String>(7)?)?,
        });
    }
    Ok(entries)
}

fn entry(document: &str) -> Result<AuditFields, VerbError> {
    facts(document).ok_or_else(|| unreadable("an audit entry"))
}

pub(in super::super) fn risks(tx: &Transaction<'_, '_>) -> Result<Vec<Risk>, VerbError> {
    let found: Option<String> =
        match tx.find(include_str!("../sql/quick_check.sql"), [], |row| row.get(0)) {
            Ok(found) => found,
            // The file is too damaged for the check.
            Err(VerbError::Sql(error))
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) =>
            {
                Some(error.to_string())
            }
            Err(trouble) => return Err(trouble),
        };
    let wrong = found.filter(|found| found != "ok");
    let risk = |wrong| Risk {
        name: "file",
        message: format!("corrupt: {wrong}; stop the server and restore a backup"),
    };
    let mut risks: Vec<Risk> = wrong.map(risk).into_iter().collect();
    // A damaged file may lack the tables to read.
    if risks.is_empty() {
        risks.extend(super::unreadable::unreadable(tx)?);
    }
    Ok(risks)
}

/// Returns the bytes of the free pages, and those of all pages of the file.
pub(in super::super) fn free_pages(tx: &Transaction<'_, '_>) -> Result<(u64, u64), VerbError> {
    let found = tx.find(include_str!("../sql/free_pages.sql"), [], |row| {
        let page = unsigned(row.get(2)?);
        Ok((unsigned(row.get(0)?) * page, unsigned(row.get(1)?) * page))
    })?;
    Ok(found.unwrap_or_default())
}

pub(in super::super) fn books(tx: &Transaction<'_, '_>) -> Result<Books, VerbError> {
    let books = tx.find(include_str!("../sql/books.sql"), [], |row| {
        Ok(Books {
            submitted: unsigned(row.get(0)?),
            live: unsigned(row.get(1)?),
            dead: unsigned(row.get(2)?),
            finished: unsigned(row.get(3)?),
            pruned: unsigned(row.get(4)?),
        })
    })?;
    Ok(books.unwrap_or_default())
}

pub(in super::super) fn unannounced(
    tx: &mut Transaction<'_, '_>,
    limit: usize,
) -> Result<Vec<DeadLetter>, VerbError> {
    let statement = tx.sql(include_str!("../sql/unannounced.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([number(limit as u64)])?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(lane) = readable(tx.lane_of(row.get(2)?))? else { continue };
        letters.push(DeadLetter {
            job: JobId::from_bytes(row.get(0)?),
            version: Version::new(unsigned(row.get(1)?)),
            lane,
            attempt: row.get(3)?,
            died: instant(row.get(4)?),
            // An attempt with an unreadable failure is listed without it.
            failure: readable(failure(row.get(5)?, row.get(6)?, row.get(7)?))?.flatten(),
        });
    }
    Ok(letters)
}
