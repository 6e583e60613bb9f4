//! The single writer thread: commits waiting verbs together in one transaction.

use super::error::{echo, judge, judge_commit};
use super::files::is_busy;
use super::queue::{Queue, Request};
use super::transaction::{Lanes, Statements, Transaction};
use super::{Files, error::VerbError};
use crate::wakeup::Wakeup;
use rewheel_core::Timestamp;
use rewheel_core::store::{ClockOffset, StoreChange, StoreError};
use rusqlite::Connection;
use std::time::Duration;

/// Maximum number of rows in one commit. A commit costs one disk write however many rows it has; at
/// this size that is a few percent of the time, and later callers wait about ten milliseconds.
const GROUP_ROWS_MAX: usize = 2_000;

pub(super) struct Writer {
    pub(super) files: Files,
    pub(super) connection: Connection,
    pub(super) queue: Queue,
    pub(super) clock: ClockOffset,
    pub(super) woken: Wakeup,
}

impl Writer {
    /// Serves verbs until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // However this thread ends, no caller may keep waiting for it.
        let _closing = Closing(self.queue.clone());
        let mut lanes = Lanes::default();
        loop {
            let statements = Statements::new(&self.connection);
            if self.serve_until_failure(&statements, &mut lanes) {
                break;
            }
            lanes.forget();
            // After a failed disk write a connection may cache pages that never reached the disk.
            if let Ok(fresh) = self.files.reopen_writer() {
                drop(statements);
                self.connection = fresh;
            }
        }
        // Leave one plain file behind. Nothing depends on it, so do not wait for readers: the next
        // process that opens the file would do it.
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// Returns whether the queue is done; otherwise the connection must not be used any more.
    fn serve_until_failure(&self, statements: &Statements<'_>, lanes: &mut Lanes) -> bool {
        let flush = Flush { statements, clock: &self.clock, woken: &self.woken };
        while let Some(group) = self.queue.take(GROUP_ROWS_MAX) {
            if let Err(ConnectionFailed) = flush.run(group, lanes) {
                return false;
            }
        }
        true
    }
}

/// A commit failed, or a transaction could not begin.
struct ConnectionFailed;

enum Flushed {
    /// All callers have their results.
    Done,
    /// Nothing was written: the verb at this position failed half-way.
    Undone { place: usize },
}

/// A verb failed.
enum Failed {
    /// Before it wrote anything.
    Cleanly(StoreError),
    HalfWay(StoreError),
}

/// One transaction for all waiting verbs.
struct Flush<'a, 'c> {
    statements: &'a Statements<'c>,
    clock: &'a ClockOffset,
    woken: &'a Wakeup,
}

impl Flush<'_, '_> {
    /// Commits all verbs of a group together.
    ///
    /// A verb rarely fails half-way, and undoing it alone would require a copy of every page that
    /// the others write. So the whole group is rolled back. Then the verbs before it run again
    /// together, the failed one alone, and the verbs after it together.
    fn run(&self, group: Vec<Box<dyn Request>>, lanes: &mut Lanes) -> Result<(), ConnectionFailed> {
        // The parts still to be served, the next one last.
        let mut parts = vec![group];
        while let Some(mut part) = parts.pop() {
            match self.together(&mut part, lanes) {
                Ok(Flushed::Done) => {}
                Ok(Flushed::Undone { place }) => {
                    let behind = part.split_off(place + 1);
                    let failed = part.split_off(place);
                    let rest = [behind, failed, part];
                    parts.extend(rest.into_iter().filter(|part| !part.is_empty()));
                }
                Err(ConnectionFailed) => {
                    let error = StoreError::Unavailable(
                        "an earlier write in the same transaction failed: repeat the request"
                            .into(),
                    );
                    parts.into_iter().for_each(|part| answer_all(part, &error));
                    return Err(ConnectionFailed);
                }
            }
        }
        Ok(())
    }

    /// Answers all callers, or leaves all of them in the group. No caller gets a result before the
    /// commit, not even an error: its cause may be something that another verb of the group wrote.
    fn together(
        &self,
        group: &mut Vec<Box<dyn Request>>,
        lanes: &mut Lanes,
    ) -> Result<Flushed, ConnectionFailed> {
        if let Err(error) = self.statements.run("BEGIN IMMEDIATE") {
            let busy = is_busy(&error);
            answer_all(std::mem::take(group), &judge(error));
            return if busy { Ok(Flushed::Done) } else { Err(ConnectionFailed) };
        }
        // Read the time here: BEGIN may have waited for another process.
        let now = crate::clock::now(self.clock);
        let mut ledger = Ledger::default();
        let mut outcomes = Vec::with_capacity(group.len());
        for (place, request) in group.iter_mut().enumerate() {
            match self.serve(&mut **request, now, lanes, &mut ledger) {
                Ok(()) => outcomes.push(Ok(())),
                Err(Failed::Cleanly(error)) => outcomes.push(Err(error)),
                Err(Failed::HalfWay(error)) => {
                    lanes.forget();
                    if !self.is_over() {
                        let _ = self.statements.run("ROLLBACK");
                    }
                    if group.len() > 1 {
                        return Ok(Flushed::Undone { place });
                    }
                    if let Some(alone) = group.pop() {
                        alone.answer(Err(error));
                    }
                    return Ok(Flushed::Done);
                }
            }
        }
        let group = std::mem::take(group);
        if let Err(error) = self.commit(&ledger, now) {
            lanes.forget();
            answer_all(group, &error);
            return Err(ConnectionFailed);
        }
        for (request, outcome) in group.into_iter().zip(outcomes) {
            request.answer(outcome);
        }
        if let Some(report) = ledger.report {
            self.woken.wake(report);
        }
        Ok(Flushed::Done)
    }

    fn serve(
        &self,
        request: &mut dyn Request,
        now: Timestamp,
        lanes: &mut Lanes,
        ledger: &mut Ledger,
    ) -> Result<(), Failed> {
        let connection = self.statements.connection;
        let before = connection.total_changes();
        let mut tx = Transaction::new(self.statements, now, lanes);
        match request.run(&mut tx) {
            Ok(()) => {
                ledger.submitted += tx.submitted;
                ledger.pruned += tx.pruned;
                ledger.report(tx.report);
                Ok(())
            }
            Err(trouble) if connection.total_changes() == before && !self.is_over() => {
                Err(Failed::Cleanly(trouble.into()))
            }
            Err(trouble) => Err(Failed::HalfWay(trouble.into())),
        }
    }

    fn commit(&self, ledger: &Ledger, now: Timestamp) -> Result<(), StoreError> {
        let committed = self
            .append(ledger, now)
            .map_err(judge)
            .and_then(|()| self.statements.run("COMMIT").map_err(judge_commit));
        if committed.is_err() && !self.is_over() {
            let _ = self.statements.run("ROLLBACK");
        }
        committed
    }

    /// Appends the changes of the flush to the ledger.
    fn append(&self, ledger: &Ledger, now: Timestamp) -> rusqlite::Result<()> {
        if ledger.submitted + ledger.pruned == 0 {
            return Ok(());
        }
        let line = (now.as_millis(), count(ledger.submitted), count(ledger.pruned));
        let sql = include_str!("sql/insert_ledger.sql");
        self.statements.compiled(sql)?.get().execute(line).map(drop)
    }

    /// Returns whether SQLite has ended the transaction.
    fn is_over(&self) -> bool {
        self.statements.connection.is_autocommit()
    }
}

#[derive(Default)]
struct Ledger {
    submitted: u64,
    pruned: u64,
    report: Option<StoreChange>,
}

impl Ledger {
    fn report(&mut self, report: Option<StoreChange>) {
        if let Some(report) = report {
            self.report.get_or_insert_default().merge(report);
        }
    }
}

fn answer_all(group: Vec<Box<dyn Request>>, error: &StoreError) {
    for request in group {
        request.answer(Err(echo(error)));
    }
}

struct Closing(Queue);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
        while let Some(group) = self.0.take(usize::MAX) {
            answer_all(group, &StoreError::Closed);
        }
    }
}

/// Serves reads on its own connection, each in one snapshot.
pub(super) fn read(connection: &Connection, queue: &Queue, clock: &ClockOffset) {
    let statements = Statements::new(connection);
    let mut lanes = Lanes::default();
    while let Some(group) = queue.take(1) {
        for mut request in group {
            let now = crate::clock::now(clock);
            let outcome = statements.run("BEGIN").map_err(VerbError::Sql).and_then(|()| {
                let mut tx = Transaction::new(&statements, now, &mut lanes);
                request.run(&mut tx)
            });
            if !connection.is_autocommit() {
                let _ = statements.run("COMMIT");
            }
            request.answer(outcome.map_err(StoreError::from));
        }
    }
}

/// Converts a number for SQLite. No number of Rewheel comes near the largest one.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
