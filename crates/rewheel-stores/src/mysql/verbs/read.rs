//! Reads, lists and counts jobs.

use super::super::error::VerbError;
use super::super::job_columns::{ID, Payload, read_ended, read_live};
use super::super::row::{bytes, count as number, id16};
use super::super::transaction::Transaction;
use super::unreadable::readable;
use crate::pages::cut;
use crate::tables::{Listed, Reading, Table, tables};
use mysql_async::{Row, Value};
use rewheel_core::store::{Count, Filter, Page, PageRequest};
use rewheel_core::{GroupKey, Job, JobId, Limits};
use std::collections::{BTreeSet, HashMap};

/// Rows that one statement of a long scan reads: a few megabytes at most.
const ROWS_MAX: usize = 1_000;

/// Greater than every id.
const NEWEST: [u8; 16] = [0xff; 16];

pub(in super::super) async fn get(
    tx: &mut Transaction<'_>,
    job: JobId,
    payload: Payload,
) -> Result<Option<Job>, VerbError> {
    for (table, sql) in [
        (Table::Live, include_str!("../sql/get_live.sql")),
        (Table::Dead, include_str!("../sql/get_dead.sql")),
        (Table::Finished, include_str!("../sql/get_finished.sql")),
    ] {
        if let Some(row) = tx.find(sql, vec![id16(job.to_bytes())]).await? {
            return read_job(tx, table, &row, payload).await.map(Some);
        }
    }
    Ok(None)
}

async fn read_job(
    tx: &mut Transaction<'_>,
    table: Table,
    row: &Row,
    payload: Payload,
) -> Result<Job, VerbError> {
    match table {
        Table::Live => read_live(tx, row, payload).await,
        Table::Dead | Table::Finished => read_ended(tx, row, payload).await,
    }
}

pub(in super::super) async fn find(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let mut found = Vec::with_capacity(jobs.len());
    for table in [Table::Live, Table::Dead, Table::Finished] {
        for row in &rows_with_ids(tx, table, jobs).await? {
            found.push(read_job(tx, table, row, Payload::LeaveOut).await?);
        }
    }
    Ok(found)
}

pub(in super::super) async fn live(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let mut live = Vec::with_capacity(jobs.len());
    for row in &rows_with_ids(tx, Table::Live, jobs).await? {
        live.extend(readable(read_live(tx, row, Payload::LeaveOut).await)?);
    }
    Ok(live)
}

/// Returns the rows of those of these jobs that are in a table, each once.
async fn rows_with_ids(
    tx: &mut Transaction<'_>,
    table: Table,
    jobs: &[JobId],
) -> Result<Vec<Row>, VerbError> {
    let sql = match table {
        Table::Live => include_str!("../sql/live.sql"),
        Table::Dead => include_str!("../sql/find_dead.sql"),
        Table::Finished => include_str!("../sql/find_finished.sql"),
    };
    let ids: BTreeSet<JobId> = jobs.iter().copied().collect();
    let ids: Vec<Value> = ids.into_iter().map(|job| id16(job.to_bytes())).collect();
    Ok(tx.run_list(sql, &[], &ids, &[]).await?.rows)
}

/// What a scan lists, from the newest id to the oldest.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The jobs of one table.
    Table(Table),
    /// The jobs that one job submitted, or those of groups with one key, in all tables.
    Named,
}

impl Source {
    fn of(filter: &Filter) -> Vec<Source> {
        match Listed::by(filter) {
            Listed::All => tables(filter).into_iter().map(Source::Table).collect(),
            Listed::ByParent | Listed::ByGroup => vec![Source::Named],
        }
    }
}

/// A row of a scan: a job, unless it cannot be read or is in a table that the filter does not want.
type Scanned = (JobId, Option<Job>);

/// Reads the next rows of a source before an id, at most `most`. Fewer mean that it has come to the end.
async fn scan(
    tx: &mut Transaction<'_>,
    source: Source,
    filter: &Filter,
    before: [u8; 16],
    most: usize,
) -> Result<Vec<Scanned>, VerbError> {
    let Source::Table(table) = source else {
        return scan_named(tx, filter, before, most).await;
    };
    let sql = match table {
        Table::Live => include_str!("../sql/list_live.sql"),
        Table::Dead => include_str!("../sql/list_dead.sql"),
        Table::Finished => include_str!("../sql/list_finished.sql"),
    };
    let rows = tx.rows(sql, vec![id16(before), number(most as u64)]).await?;
    let mut scanned = Vec::with_capacity(rows.len());
    for row in &rows {
        let read = read_job(tx, table, row, Payload::LeaveOut).await;
        scanned.push((JobId::from_bytes(bytes(row, ID)?), readable(read)?));
    }
    Ok(scanned)
}

async fn scan_named(
    tx: &mut Transaction<'_>,
    filter: &Filter,
    before: [u8; 16],
    most: usize,
) -> Result<Vec<Scanned>, VerbError> {
    let (sql, name) = match (filter.parent, &filter.group_key) {
        (Some(parent), _) => (include_str!("../sql/list_children.sql"), id16(parent.to_bytes())),
        (None, key) => {
            let key = key.as_ref().map_or("", GroupKey::as_str);
            (include_str!("../sql/list_grouped.sql"), Value::from(key))
        }
    };
    let rows = tx.rows(sql, vec![name, id16(before), number(most as u64)]).await?;
    let ids = rows.iter().map(|row| bytes(row, 0).map(JobId::from_bytes));
    let ids = ids.collect::<Result<Vec<JobId>, _>>()?;
    let mut found: HashMap<JobId, Job> = HashMap::new();
    for table in tables(filter) {
        for row in &rows_with_ids(tx, table, &ids).await? {
            let read = read_job(tx, table, row, Payload::LeaveOut).await;
            found.extend(readable(read)?.map(|job| (job.id, job)));
        }
    }
    Ok(ids.into_iter().map(|id| (id, found.remove(&id))).collect())
}

/// Lists jobs. The transaction must see one snapshot: a job may move from one table to another.
pub(in super::super) async fn list(
    tx: &mut Transaction<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Job>, VerbError> {
    let limit = page.limit.clamp(1, Limits::PAGE_MAX);
    let scan_max = page.scan_max.max(1);
    let before = page.cursor.map_or(NEWEST, |cursor| cursor.job().to_bytes());
    if let Some(key) = &filter.key {
        let mut found = super::keyed::keyed(tx, filter, key).await?;
        found.retain(|job| job.id.to_bytes() < before);
        return Ok(cut(found, None, limit));
    }
    let mut found: Vec<Job> = Vec::new();
    // The highest id down to which a source was read, if one was not read to its end.
    let mut read_to: Option<JobId> = None;
    // One row more than the page has, to know whether there are more.
    let most = limit.min(scan_max).saturating_add(1).min(ROWS_MAX);
    for source in Source::of(filter) {
        let mut reading = Reading::new(limit, scan_max);
        let (mut before, mut has_more) = (before, true);
        while has_more {
            let scanned = scan(tx, source, filter, before, most).await?;
            has_more = scanned.len() == most;
            for (id, job) in scanned {
                if !reading.goes_on(id) {
                    has_more = false;
                    break;
                }
                before = id.to_bytes();
                if let Some(job) = job.filter(|job| filter.matches(job)) {
                    reading.matched += 1;
                    found.push(job);
                }
            }
        }
        read_to = read_to.max(reading.read_to);
    }
    Ok(cut(found, read_to, limit))
}

/// Counts jobs. The transaction must see one snapshot: a job may move from one table to another.
pub(in super::super) async fn count(
    tx: &mut Transaction<'_>,
    filter: &Filter,
    scan_max: usize,
) -> Result<Count, VerbError> {
    if let Some(key) = &filter.key {
        return Ok(Count::Exactly(super::keyed::keyed(tx, filter, key).await?.len() as u64));
    }
    let (mut matched, mut scanned) = (0, 0);
    for source in Source::of(filter) {
        let (mut before, mut has_more) = (NEWEST, true);
        while has_more {
            let rows = scan(tx, source, filter, before, ROWS_MAX).await?;
            has_more = rows.len() == ROWS_MAX;
            for (id, job) in rows {
                if scanned == scan_max {
                    return Ok(Count::AtLeast(matched));
                }
                scanned += 1;
                before = id.to_bytes();
                matched += u64::from(job.is_some_and(|job| filter.matches(&job)));
            }
        }
    }
    Ok(Count::Exactly(matched))
}
