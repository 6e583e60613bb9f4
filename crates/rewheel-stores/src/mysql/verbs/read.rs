//! Reads jobs.

use super::super::error::VerbError;
use super::super::job_columns::{ID, Payload, read_ended, read_live};
use super::super::row::{bytes, id16};
use super::super::transaction::Transaction;
use super::keyed::keyed;
use super::unreadable::readable;
use crate::pages::cut;
use crate::patience::Patience;
use crate::tables::{Reading, Table, tables};
use mysql_async::{Row, Value};
use rewheel_core::store::{Count, Filter, Page, PageRequest};
use rewheel_core::{Job, JobId, Limits};
use std::collections::HashMap;

/// Rows that a list reads with one statement at most.
const ROWS_READ: usize = 1_000;

/// Greater than every id.
const AFTER_ALL: [u8; 16] = [0xff; 16];

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

/// Reads a job that is about to be changed, and keeps others from changing it.
pub(super) async fn lock(
    tx: &mut Transaction<'_>,
    job: JobId,
    payload: Payload,
) -> Result<Option<Job>, VerbError> {
    for (table, sql) in [
        (Table::Live, include_str!("../sql/lock_job.sql")),
        (Table::Dead, include_str!("../sql/lock_dead.sql")),
        // It may have been put back to work in between.
        (Table::Live, include_str!("../sql/lock_job.sql")),
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

/// Returns the statement that reads jobs of a table by their ids.
fn finding(table: Table) -> &'static str {
    match table {
        Table::Live => include_str!("../sql/live.sql"),
        Table::Dead => include_str!("../sql/find_dead.sql"),
        Table::Finished => include_str!("../sql/find_finished.sql"),
    }
}

pub(in super::super) async fn find(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let mut found = Vec::with_capacity(jobs.len());
    for table in [Table::Live, Table::Dead, Table::Finished] {
        found.extend(find_in(tx, table, jobs).await?);
    }
    Ok(found)
}

async fn find_in(
    tx: &mut Transaction<'_>,
    table: Table,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    let mut ids = jobs.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let list: Vec<Value> = ids.iter().map(|job| id16(job.to_bytes())).collect();
    let rows = tx.run_list(finding(table), &[], &list, &[]).await?.rows;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        found.extend(readable(read_job(tx, table, &row, Payload::LeaveOut).await)?);
    }
    Ok(found)
}

pub(in super::super) async fn live(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<Vec<Job>, VerbError> {
    find_in(tx, Table::Live, jobs).await
}

/// Reads a table from the newest id before `before`, in steps.
struct Listing<'f> {
    table: Table,
    filter: &'f Filter,
    before: [u8; 16],
    is_at_end: bool,
}

impl<'f> Listing<'f> {
    fn new(table: Table, filter: &'f Filter, before: [u8; 16]) -> Listing<'f> {
        Listing { table, filter, before, is_at_end: false }
    }

    /// Returns the next ids with their rows, the newest first; none at the end. A link to a job in another table has no row.
    async fn next(
        &mut self,
        tx: &mut Transaction<'_>,
        rows_max: usize,
    ) -> Result<Vec<(JobId, Option<Row>)>, VerbError> {
        if self.is_at_end {
            return Ok(Vec::new());
        }
        let limit = rows_max.clamp(2, ROWS_READ);
        match (self.filter.parent, &self.filter.group_key) {
            (Some(parent), _) => {
                let sql = include_str!("../sql/children.sql");
                self.by_link(tx, sql, id16(parent.to_bytes()), limit).await
            }
            (None, Some(key)) => {
                let sql = include_str!("../sql/grouped.sql");
                self.by_link(tx, sql, key.as_str().into(), limit).await
            }
            (None, None) => self.all(tx, limit).await,
        }
    }

    async fn all(
        &mut self,
        tx: &mut Transaction<'_>,
        limit: usize,
    ) -> Result<Vec<(JobId, Option<Row>)>, VerbError> {
        let sql = match self.table {
            Table::Live => include_str!("../sql/list_live.sql"),
            Table::Dead => include_str!("../sql/list_dead.sql"),
            Table::Finished => include_str!("../sql/list_finished.sql"),
        };
        let rows = tx.rows(sql, vec![id16(self.before), (limit as u64).into()]).await?;
        self.is_at_end = rows.len() < limit;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            self.before = bytes(&row, ID)?;
            found.push((JobId::from_bytes(self.before), Some(row)));
        }
        Ok(found)
    }

    /// Reads ids from a table of links, and of those the jobs that are in this table.
    async fn by_link(
        &mut self,
        tx: &mut Transaction<'_>,
        sql: &'static str,
        name: Value,
        limit: usize,
    ) -> Result<Vec<(JobId, Option<Row>)>, VerbError> {
        let links = tx.rows(sql, vec![name, id16(self.before), (limit as u64).into()]).await?;
        self.is_at_end = links.len() < limit;
        let (mut ids, mut found) = (Vec::new(), Vec::new());
        for link in &links {
            self.before = bytes(link, 0)?;
            ids.push(id16(self.before));
            found.push(JobId::from_bytes(self.before));
        }
        let mut rows = HashMap::with_capacity(links.len());
        for row in tx.run_list(finding(self.table), &[], &ids, &[]).await?.rows {
            rows.insert(JobId::from_bytes(bytes(&row, ID)?), row);
        }
        Ok(found.into_iter().map(|id| (id, rows.remove(&id))).collect())
    }
}

/// Returns whether a filter has a condition besides states, which tables have already.
fn narrows(filter: &Filter) -> bool {
    let states = filter.states.clone();
    *filter != Filter { states, ..Filter::default() }
}

pub(in super::super) async fn list(
    tx: &mut Transaction<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Job>, VerbError> {
    let limit = page.limit.clamp(1, Limits::PAGE_MAX);
    let before = page.cursor.map_or(AFTER_ALL, |cursor| cursor.job().to_bytes());
    if let Some(key) = &filter.key {
        let mut found = keyed(tx, filter, key).await?;
        found.retain(|job| job.id.to_bytes() < before);
        return Ok(cut(found, None, limit));
    }
    let mut found: Vec<Job> = Vec::new();
    // The highest id down to which a table was read, if one was not read to its end.
    let mut read_to: Option<JobId> = None;
    let patience = Patience::new(page);
    // A filter may match few rows: then a page needs more than it has.
    let rows_max = if narrows(filter) { ROWS_READ } else { limit.saturating_add(1) };
    for table in tables(filter) {
        let mut listing = Listing::new(table, filter, before);
        let mut reading = Reading::new(limit, page, &patience);
        'table: loop {
            // One row more than a page, to know whether there are more and where the next page begins.
            let rows = listing.next(tx, rows_max).await?;
            if rows.is_empty() {
                break;
            }
            for (id, row) in rows {
                // A link to a job in another table is also looked at: an old schedule has very many of them.
                let goes_on = match row {
                    Some(_) => reading.goes_on(id),
                    None => reading.goes_past(id),
                };
                if !goes_on {
                    break 'table;
                }
                let Some(row) = row else { continue };
                let read = read_job(tx, table, &row, Payload::LeaveOut).await;
                let Some(job) = readable(read)? else { continue };
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
    tx: &mut Transaction<'_>,
    filter: &Filter,
    scan_max: usize,
) -> Result<Count, VerbError> {
    if let Some(key) = &filter.key {
        return Ok(Count::Exactly(keyed(tx, filter, key).await?.len() as u64));
    }
    let (mut matched, mut scanned) = (0, 0);
    for table in tables(filter) {
        let mut listing = Listing::new(table, filter, AFTER_ALL);
        loop {
            let left = scan_max.saturating_sub(scanned);
            let rows = listing.next(tx, left.saturating_add(1)).await?;
            if rows.is_empty() {
                break;
            }
            for (_, row) in rows {
                if scanned == scan_max {
                    return Ok(Count::AtLeast(matched));
                }
                scanned += 1;
                let Some(row) = row else { continue };
                let read = readable(read_job(tx, table, &row, Payload::LeaveOut).await)?;
                matched += u64::from(read.is_some_and(|job| filter.matches(&job)));
            }
        }
    }
    Ok(Count::Exactly(matched))
}
