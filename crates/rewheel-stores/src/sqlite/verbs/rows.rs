//! Inserts new rows into the hot table, many with one statement.

use super::super::error::VerbError;
use super::super::job_columns::{self, SUBMITTED};
use super::super::transaction::Transaction;
use super::groups;
use rewheel_core::{NewJob, State, Timestamp};
use rusqlite::Statement;
use std::sync::LazyLock;

/// Rows per statement. A statement opens every index of the table, which takes as long as writing
/// one row; with sixteen rows that cost is small.
const ROWS: usize = 16;

/// Number of values per row: those of the job, and ten more.
const VALUES: usize = SUBMITTED + 10;

const ONE: &str = include_str!("../sql/insert.sql");

/// The statement for [`ROWS`] rows: its tuple repeated.
static MANY: LazyLock<String> = LazyLock::new(|| {
    let (head, tuple) = ONE.trim_end().split_once("VALUES ").unwrap_or((ONE, ""));
    format!("{head}VALUES {}", vec![tuple; ROWS].join(", "))
});

/// A job to be stored.
#[derive(Clone, Copy)]
pub(super) struct NewRow<'a> {
    pub(super) job: &'a NewJob,
    pub(super) lane: i64,
    pub(super) due: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    /// The holder that gets it at once, and when it becomes overdue.
    pub(super) lease: Option<(i64, Timestamp)>,
}

pub(super) fn write(tx: &Transaction<'_, '_>, rows: &[NewRow<'_>]) -> Result<(), VerbError> {
    // In this order: the first in a batch is the first in its lane.
    let (chunks, rest) = rows.as_chunks::<ROWS>();
    for chunk in chunks {
        let statement = tx.sql(MANY.as_str())?;
        let mut statement = statement.get();
        for (nth, row) in chunk.iter().enumerate() {
            bind(&mut statement, nth * VALUES, row, tx.now)?;
        }
        statement.raw_execute()?;
    }
    for row in rest {
        let statement = tx.sql(ONE)?;
        let mut statement = statement.get();
        bind(&mut statement, 0, row, tx.now)?;
        statement.raw_execute()?;
    }
    rows.iter().try_for_each(|row| groups::join(tx, row.job))
}

fn bind(
    statement: &mut Statement<'_>,
    first: usize,
    row: &NewRow<'_>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    job_columns::bind(statement, first + 1, row.job, row.lane)?;
    let state = match row.lease {
        Some(_) => State::Leased.as_str(),
        None if row.job.group_key.is_some() => groups::BLOCKED,
        None => State::Scheduled.as_str(),
    };
    let mut place = first + SUBMITTED;
    let mut at = || {
        place += 1;
        place
    };
    statement.raw_bind_parameter(at(), state)?;
    statement.raw_bind_parameter(at(), row.due.as_millis())?;
    statement.raw_bind_parameter(at(), i64::from(row.lease.is_some()))?;
    // Attempts so far, and those that do not count against the limit: the same for a new job.
    statement.raw_bind_parameter(at(), row.job.attempts_before)?;
    statement.raw_bind_parameter(at(), row.job.attempts_before)?;
    statement.raw_bind_parameter(at(), row.lease.map(|(holder, _)| holder))?;
    statement.raw_bind_parameter(at(), row.lease.map(|_| now.as_millis()))?;
    statement.raw_bind_parameter(at(), row.lease.map(|(_, overdue)| overdue.as_millis()))?;
    statement.raw_bind_parameter(at(), now.as_millis())?;
    statement.raw_bind_parameter(at(), row.deadline.map(Timestamp::as_millis))?;
    debug_assert_eq!(
        place,
        first + VALUES,
        "the SQL file and this function have the same number of values"
    );
    Ok(())
}
