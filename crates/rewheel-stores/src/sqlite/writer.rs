//! The one thread that writes: verbs that wait together are committed together.

use super::error::{echo, judge, judge_commit};
use super::queue::{Queue, Request};
use super::transaction::{Lanes, Statements, Transaction};
use super::{Files, error::Trouble};
use crate::wakeup::Wakeup;
use rewheel_core::Timestamp;
use rewheel_core::store::{ClockOffset, StoreError};
use rusqlite::Connection;

/// Rows that one commit carries. A commit costs one write to the disk however many it carries; at
/// this size that is a few percent of it, and those who come later wait some ten milliseconds.
const GROUP_ROWS_MAX: usize = 2_000;

pub(super) struct Writer {
    pub(super) files: Files,
    pub(super) connection: Connection,
    pub(super) queue: Queue,
    pub(super) clock: ClockOffset,
    pub(super) woken: Wakeup,
}

impl Writer {
    /// Serves until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // Whatever ends this thread, nobody may wait for it.
        let _closing = Closing(self.queue.clone());
        let mut lanes = Lanes::default();
        loop {
            let statements = Statements::new(&self.connection);
            if self.serve_until_failure(&statements, &mut lanes) {
                break;
            }
            lanes.forget();
            // A connection whose write to the disk failed may remember pages that never got there.
            if let Ok(fresh) = self.files.open_writer() {
                drop(statements);
                self.connection = fresh;
            }
        }
        // Leaves one plain file behind. Nothing depends on it: the next one to open the file would
        // do it.
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// Returns whether it is done; otherwise a commit failed.
    fn serve_until_failure(&self, statements: &Statements<'_>, lanes: &mut Lanes) -> bool {
        while let Some(group) = self.queue.take(GROUP_ROWS_MAX) {
            let flush = Flush { statements, now: crate::clock::now(&self.clock) };
            match flush.run(group, lanes) {
                Ok(false) => {}
                Ok(true) => self.woken.wake(),
                Err(CommitFailed) => return false,
            }
        }
        true
    }
}

struct CommitFailed;

enum Flushed {
    Done {
        woke: bool,
    },
    /// Nothing was written.
    Undone,
}

/// A verb failed.
enum Failed {
    /// Before it wrote anything.
    Cleanly(StoreError),
    HalfWay(StoreError),
}

/// One transaction for all that waited together.
struct Flush<'a, 'c> {
    statements: &'a Statements<'c>,
    now: Timestamp,
}

impl Flush<'_, '_> {
    /// Commits all of them together. Returns whether watchers should look.
    ///
    /// A verb that fails half-way is rare, and undoing it alone would need every page that others
    /// write to be copied first: all are rolled back instead, and each is done again on its own.
    fn run(
        &self,
        mut group: Vec<Box<dyn Request>>,
        lanes: &mut Lanes,
    ) -> Result<bool, CommitFailed> {
        match self.together(&mut group, lanes)? {
            Flushed::Done { woke } => Ok(woke),
            Flushed::Undone => {
                let mut woke = false;
                for request in group {
                    let mut alone = vec![request];
                    match self.together(&mut alone, lanes)? {
                        Flushed::Done { woke: one } => woke |= one,
                        Flushed::Undone => debug_assert!(alone.is_empty(), "it has its answer"),
                    }
                }
                Ok(woke)
            }
        }
    }

    /// Leaves in the group whoever has no answer yet.
    fn together(
        &self,
        group: &mut Vec<Box<dyn Request>>,
        lanes: &mut Lanes,
    ) -> Result<Flushed, CommitFailed> {
        if let Err(error) = self.statements.run("BEGIN IMMEDIATE") {
            answer_all(std::mem::take(group), &judge(error));
            return Ok(Flushed::Done { woke: false });
        }
        let mut served = Vec::with_capacity(group.len());
        let mut ledger = Ledger::default();
        let mut waiting = std::mem::take(group).into_iter();
        while let Some(mut request) = waiting.next() {
            match self.serve(&mut *request, lanes, &mut ledger) {
                Ok(()) => served.push(request),
                Err(Failed::Cleanly(error)) => request.answer(Err(error)),
                Err(Failed::HalfWay(error)) => {
                    lanes.forget();
                    if !self.is_over() {
                        let _ = self.statements.run("ROLLBACK");
                    }
                    if served.is_empty() && waiting.len() == 0 {
                        request.answer(Err(error));
                    } else {
                        served.push(request);
                        served.extend(waiting);
                        *group = served;
                    }
                    return Ok(Flushed::Undone);
                }
            }
        }
        if let Err(error) = self.commit(&ledger) {
            lanes.forget();
            answer_all(served, &error);
            return Err(CommitFailed);
        }
        for request in served {
            request.answer(Ok(()));
        }
        Ok(Flushed::Done { woke: ledger.woke })
    }

    fn serve(
        &self,
        request: &mut dyn Request,
        lanes: &mut Lanes,
        ledger: &mut Ledger,
    ) -> Result<(), Failed> {
        let connection = self.statements.connection;
        let before = connection.total_changes();
        let mut tx = Transaction::new(self.statements, self.now, lanes);
        match request.run(&mut tx) {
            Ok(()) => {
                ledger.submitted += tx.submitted;
                ledger.pruned += tx.pruned;
                ledger.woke |= tx.woke;
                Ok(())
            }
            Err(trouble) if connection.total_changes() == before && !self.is_over() => {
                Err(Failed::Cleanly(trouble.into()))
            }
            Err(trouble) => Err(Failed::HalfWay(trouble.into())),
        }
    }

    fn commit(&self, ledger: &Ledger) -> Result<(), StoreError> {
        let committed = self
            .append(ledger)
            .map_err(judge)
            .and_then(|()| self.statements.run("COMMIT").map_err(judge_commit));
        if committed.is_err() && !self.is_over() {
            let _ = self.statements.run("ROLLBACK");
        }
        committed
    }

    /// Writes what the flush did to the books.
    fn append(&self, ledger: &Ledger) -> rusqlite::Result<()> {
        if ledger.submitted + ledger.pruned == 0 {
            return Ok(());
        }
        let line = (self.now.as_millis(), count(ledger.submitted), count(ledger.pruned));
        let sql = include_str!("sql/insert_ledger.sql");
        self.statements.compiled(sql)?.get().execute(line).map(drop)
    }

    /// Whether SQLite has ended the transaction.
    fn is_over(&self) -> bool {
        self.statements.connection.is_autocommit()
    }
}

#[derive(Default)]
struct Ledger {
    submitted: u64,
    pruned: u64,
    woke: bool,
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

/// Serves reads on a connection of its own, each in one snapshot.
pub(super) fn read(connection: &Connection, queue: &Queue, clock: &ClockOffset) {
    let statements = Statements::new(connection);
    let mut lanes = Lanes::default();
    while let Some(group) = queue.take(1) {
        for mut request in group {
            let now = crate::clock::now(clock);
            let outcome = statements.run("BEGIN").map_err(Trouble::Sql).and_then(|()| {
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

/// A number as SQLite keeps it. None of ours comes near the end of it.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
