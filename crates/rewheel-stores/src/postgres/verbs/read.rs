//! Reads jobs, attempts, counts and the audit log.

use super::super::error::{VerbError, unreadable};
use super::super::job_columns::{LANE, read_job};
use super::super::row::{
    count as number, duration, failure, fence, holder_id, instant, job_id, small, unsigned, uuid,
    version,
};
use super::super::session::{Param, Session};
use super::super::statements::{
    ATTEMPTS, AUDIT, AUDIT_JOB, BOOKS, CHILDREN_DEAD, CHILDREN_FINISHED, CHILDREN_LIVE, FIND, GET,
    GROUPED_DEAD, GROUPED_FINISHED, GROUPED_LIVE, LIST_DEAD, LIST_FINISHED, LIST_LIVE, LIVE, Sql,
    UNANNOUNCED,
};
use super::unreadable::readable;
use crate::audit::facts;
use crate::pages::cut;
use crate::patience::Patience;
use crate::tables::{Listed, Reading, Table, tables};
use rewheel_core::store::{
    AttemptEnd, AttemptRecord, Books, Count, DeadLetter, Filter, Page, PageRequest,
};
use rewheel_core::{Actor, AuditEntry, AuditFields, Job, JobId, KindName, Lane, Limits};
use std::collections::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

/// Number of rows per read of a list.
const CHUNK: usize = 1_000;

pub(in super::super) async fn get(
    session: &Session<'_>,
    job: JobId,
) -> Result<Option<Job>, VerbError> {
    let rows = session.query(&GET, &[&uuid(job)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let lanes = lanes(session, &rows, LANE).await?;
    read_job(row, lane(&lanes, row, LANE)?).map(Some)
}

pub(in super::super) async fn find(
    session: &Session<'_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| uuid(*job)).collect();
    let rows = session.query(&FIND, &[&ids]).await?;
    read_jobs(session, &rows).await
}

pub(in super::super) async fn live(
    session: &Session<'_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| uuid(*job)).collect();
    let rows = session.query(&LIVE, &[&ids]).await?;
    read_jobs(session, &rows).await
}

async fn read_jobs(session: &Session<'_>, rows: &[Row]) -> Result<Vec<Job>, VerbError> {
    let lanes = lanes(session, rows, LANE).await?;
    let read = |row| readable(lane(&lanes, row, LANE).and_then(|lane| read_job(row, lane)));
    rows.iter().filter_map(|row| read(row).transpose()).collect()
}

pub(super) async fn lanes(
    session: &Session<'_>,
    rows: &[Row],
    column: usize,
) -> Result<HashMap<i32, Lane>, VerbError> {
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        numbers.push(row.try_get::<_, i32>(column)?);
    }
    super::super::lanes::names(session, numbers.into_iter()).await
}

pub(super) fn lane(
    lanes: &HashMap<i32, Lane>,
    row: &Row,
    column: usize,
) -> Result<Lane, VerbError> {
    let number: i32 = row.try_get(column)?;
    lanes.get(&number).cloned().ok_or_else(|| unreadable("a lane that does not exist"))
}

/// Returns the statement that lists a table, or the jobs in it that one job submitted, or those of groups with one key.
fn listing(table: Table, by: Listed) -> &'static Sql {
    match (table, by) {
        (Table::Live, Listed::All) => &LIST_LIVE,
        (Table::Dead, Listed::All) => &LIST_DEAD,
        (Table::Finished, Listed::All) => &LIST_FINISHED,
        (Table::Live, Listed::ByParent) => &CHILDREN_LIVE,
        (Table::Dead, Listed::ByParent) => &CHILDREN_DEAD,
        (Table::Finished, Listed::ByParent) => &CHILDREN_FINISHED,
        (Table::Live, Listed::ByGroup) => &GROUPED_LIVE,
        (Table::Dead, Listed::ByGroup) => &GROUPED_DEAD,
        (Table::Finished, Listed::ByGroup) => &GROUPED_FINISHED,
    }
}

/// Reads a table from the newest id to the oldest, in chunks.
struct Scan {
    sql: &'static Sql,
    parent: Option<Uuid>,
    group_key: Option<String>,
    before: Uuid,
    left: usize,
    ended: bool,
}

impl Scan {
    fn new(table: Table, filter: &Filter, before: Uuid, most: usize) -> Scan {
        let parent = filter.parent.map(uuid);
        let sql = listing(table, Listed::by(filter));
        let group_key = filter.group_key.as_ref().map(ToString::to_string);
        Scan { sql, parent, group_key, before, left: most, ended: false }
    }

    async fn next(&mut self, session: &Session<'_>) -> Result<Vec<Job>, VerbError> {
        // Continue if none of the rows can be read.
        loop {
            let most = self.left.min(CHUNK);
            if self.ended || most == 0 {
                return Ok(Vec::new());
            }
            let limit = number(most as u64);
            let mut params: Vec<Param<'_>> = vec![&self.before, &limit];
            match (&self.parent, &self.group_key) {
                (Some(parent), _) => params.push(parent),
                (None, Some(key)) => params.push(key),
                (None, None) => {}
            }
            let rows = session.query(self.sql, &params).await?;
            self.ended = rows.len() < most;
            self.left -= rows.len();
            if let Some(last) = rows.last() {
                self.before = last.try_get(0)?;
            }
            let jobs = read_jobs(session, &rows).await?;
            if !jobs.is_empty() {
                return Ok(jobs);
            }
        }
    }
}

pub(in super::super) async fn list(
    session: &Session<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Job>, VerbError> {
    let limit = page.limit.clamp(1, Limits::PAGE_MAX);
    let scan_max = page.scan_max.max(1);
    // Greater than every id.
    let before = page.cursor.map_or(Uuid::max(), |cursor| uuid(cursor.job()));
    if let Some(key) = &filter.key {
        let mut found = super::keyed::keyed(session, filter, key).await?;
        found.retain(|job| uuid(job.id) < before);
        return Ok(cut(found, None, limit));
    }
    let mut found: Vec<Job> = Vec::new();
    // The highest id down to which a table was read, if one was not read to its end.
    let mut read_to: Option<JobId> = None;
    let patience = Patience::new(page);
    for table in tables(filter) {
        // Ask for one row more than the limit, to know where the next page begins.
        let mut scan = Scan::new(table, filter, before, scan_max.saturating_add(1));
        let mut reading = Reading::new(limit, page, &patience);
        'table: loop {
            let jobs = scan.next(session).await?;
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                if !reading.goes_on(job.id) {
                    break 'table;
                }
                if filter.matches(&job) {
                    reading.matched += 1;
                    found.push(job);
                }
            }
        }
        read_to = read_to.max(reading.read_to);
    }
    Ok(cut(found, read_to, limit))
}

pub(in super::super) async fn count(
    session: &Session<'_>,
    filter: &Filter,
    scan_max: usize,
) -> Result<Count, VerbError> {
    if let Some(key) = &filter.key {
        let found = super::keyed::keyed(session, filter, key).await?;
        return Ok(Count::Exactly(found.len() as u64));
    }
    let (mut matched, mut scanned) = (0, 0);
    for table in tables(filter) {
        // Ask for one row more than the limit, to know whether there are more.
        let mut scan =
            Scan::new(table, filter, Uuid::max(), (scan_max - scanned).saturating_add(1));
        loop {
            let jobs = scan.next(session).await?;
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                if scanned == scan_max {
                    return Ok(Count::AtLeast(matched));
                }
                scanned += 1;
                matched += u64::from(filter.matches(&job));
            }
        }
    }
    Ok(Count::Exactly(matched))
}

pub(in super::super) async fn attempts(
    session: &Session<'_>,
    job: JobId,
) -> Result<Vec<AttemptRecord>, VerbError> {
    let most = number(Limits::ATTEMPTS_LISTED_MAX as u64);
    let rows = session.query(&ATTEMPTS, &[&uuid(job), &most]).await?;
    let read = |row: &Row| {
        Ok(AttemptRecord {
            attempt: small(row.try_get(0)?),
            fence: fence(row.try_get(1)?),
            holder: holder_id(row.try_get(2)?),
            started: instant(row.try_get(3)?),
            duration: duration(row.try_get(4)?),
            ended: failure(row.try_get(5)?, row.try_get(6)?, row.try_get(7)?)?
                .map(AttemptEnd::Failed)
                .ok_or_else(|| unreadable("an attempt"))?,
            decision: row.try_get(8)?,
            delay: row.try_get::<_, Option<i64>>(9)?.map(duration),
            dropped: unsigned(row.try_get(10)?),
        })
    };
    let mut attempts: Vec<AttemptRecord> =
        rows.iter().rev().map(read).collect::<Result<_, VerbError>>()?;
    attempts.extend(super::results::succeeded(session, job).await?);
    Ok(attempts)
}

pub(in super::super) async fn audit(
    session: &Session<'_>,
    job: Option<JobId>,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, VerbError> {
    let before = before.map_or(i64::MAX, number);
    let limit = number(limit.min(Limits::PAGE_MAX) as u64);
    let rows = match job {
        Some(job) => session.query(&AUDIT_JOB, &[&before, &limit, &uuid(job)]).await?,
        None => session.query(&AUDIT, &[&before, &limit]).await?,
    };
    rows.iter().map(read_entry).collect()
}

fn read_entry(row: &Row) -> Result<AuditEntry, VerbError> {
    let kind: Option<&str> = row.try_get(5)?;
    let says = |document: &str| -> Result<AuditFields, VerbError> {
        facts(document).ok_or_else(|| unreadable("an audit entry"))
    };
    Ok(AuditEntry {
        seq: unsigned(row.try_get(0)?),
        at: instant(row.try_get(1)?),
        who: Actor::new(row.try_get(2)?),
        what: row.try_get(3)?,
        job: row.try_get::<_, Option<Uuid>>(4)?.map(job_id),
        kind: kind
            .map(|kind| KindName::parse(kind).map_err(|_| unreadable("a kind")))
            .transpose()?,
        before: says(row.try_get(6)?)?,
        after: says(row.try_get(7)?)?,
    })
}

pub(in super::super) async fn books(session: &Session<'_>) -> Result<Books, VerbError> {
    let row = session.one(&BOOKS, &[]).await?;
    Ok(Books {
        submitted: unsigned(row.try_get(0)?),
        live: unsigned(row.try_get(1)?),
        dead: unsigned(row.try_get(2)?),
        finished: unsigned(row.try_get(3)?),
        pruned: unsigned(row.try_get(4)?),
    })
}

pub(in super::super) async fn unannounced(
    session: &Session<'_>,
    limit: usize,
) -> Result<Vec<DeadLetter>, VerbError> {
    let rows = session.query(&UNANNOUNCED, &[&number(limit as u64)]).await?;
    let lanes = lanes(session, &rows, 2).await?;
    let read = |row: &Row| {
        Ok(DeadLetter {
            job: job_id(row.try_get(0)?),
            version: version(row.try_get(1)?),
            lane: lane(&lanes, row, 2)?,
            attempt: small(row.try_get(3)?),
            died: instant(row.try_get(4)?),
            // An attempt with an unreadable failure is listed without it.
            failure: readable(failure(row.try_get(5)?, row.try_get(6)?, row.try_get(7)?))?
                .flatten(),
        })
    };
    rows.iter().filter_map(|row| readable(read(row)).transpose()).collect()
}
