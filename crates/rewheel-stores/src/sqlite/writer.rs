//! The one thread that writes: verbs that wait together are committed together.

use super::error::{echo, judge, judge_commit};
use super::queue::{Queue, Request};
use super::transaction::{Lanes, Transaction};
use super::{Files, error::Trouble};
use rewheel_core::Timestamp;
use rewheel_core::store::{ClockOffset, StoreError};
use rusqlite::Connection;
use tokio::sync::watch;

/// Rows that one commit carries. A commit costs one write to the disk however many it carries; at
/// this size that is a few percent of it, and those who come later wait some ten milliseconds.
const GROUP_ROWS_MAX: usize = 2_000;

pub(super) struct Writer {
    pub(super) files: Files,
    pub(super) connection: Connection,
    pub(super) queue: Queue,
    pub(super) clock: ClockOffset,
    pub(super) woken: watch::Sender<u64>,
}

impl Writer {
    /// Serves until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // Whatever ends this thread, nobody may wait for it.
        let _closing = Closing(self.queue.clone());
        let mut lanes = Lanes::default();
        while let Some(group) = self.queue.take(GROUP_ROWS_MAX) {
            self.flush(group, &mut lanes);
        }
        // Leaves one plain file behind. Nothing depends on it: the next one to open the file would
        // do it.
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    fn flush(&mut self, group: Vec<Box<dyn Request>>, lanes: &mut Lanes) {
        let now = crate::clock::now(&self.clock);
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            answer_all(group, &judge(error));
            return;
        }
        let mut served = Vec::with_capacity(group.len());
        let mut ledger = Ledger::default();
        let mut group = group.into_iter();
        while let Some(mut request) = group.next() {
            match self.serve(&mut *request, now, lanes, &mut ledger) {
                Ok(()) => served.push(request),
                Err(error) if self.connection.is_autocommit() => {
                    // SQLite gave up the whole transaction: so must everybody in it.
                    lanes.forget();
                    served.extend(group);
                    answer_all(served, &error);
                    request.answer(Err(error));
                    return;
                }
                Err(error) => {
                    lanes.forget();
                    request.answer(Err(error));
                }
            }
        }
        match self.commit(now, &ledger) {
            Ok(()) => {
                for request in served {
                    request.answer(Ok(()));
                }
                if ledger.woke {
                    self.woken.send_modify(|count| *count += 1);
                }
            }
            Err(error) => {
                lanes.forget();
                answer_all(served, &error);
            }
        }
    }

    /// Runs one verb in a savepoint, so that its failure is its own.
    fn serve(
        &self,
        request: &mut dyn Request,
        now: Timestamp,
        lanes: &mut Lanes,
        ledger: &mut Ledger,
    ) -> Result<(), StoreError> {
        self.plain("SAVEPOINT verb").map_err(judge)?;
        let mut tx = Transaction::new(&self.connection, now, lanes);
        match request.run(&mut tx) {
            Ok(()) => {
                ledger.submitted += tx.submitted;
                ledger.pruned += tx.pruned;
                ledger.woke |= tx.woke;
                self.plain("RELEASE verb").map_err(judge)
            }
            Err(trouble) => {
                if !self.connection.is_autocommit() {
                    self.plain("ROLLBACK TO verb").map_err(judge)?;
                    self.plain("RELEASE verb").map_err(judge)?;
                }
                Err(trouble.into())
            }
        }
    }

    fn commit(&mut self, now: Timestamp, ledger: &Ledger) -> Result<(), StoreError> {
        let written = if ledger.submitted + ledger.pruned > 0 {
            let line = (now.as_millis(), count(ledger.submitted), count(ledger.pruned));
            self.connection
                .prepare_cached(include_str!("sql/insert_ledger.sql"))
                .and_then(|mut insert| insert.execute(line))
                .map(drop)
                .map_err(judge)
        } else {
            Ok(())
        };
        let committed = written.and_then(|()| self.plain("COMMIT").map_err(judge_commit));
        if committed.is_err() {
            if !self.connection.is_autocommit() {
                let _ = self.plain("ROLLBACK");
            }
            self.reopen();
        }
        committed
    }

    /// A connection whose write to the disk failed may remember pages that never got there.
    fn reopen(&mut self) {
        if let Ok(fresh) = self.files.open_writer() {
            self.connection = fresh;
        }
    }

    fn plain(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
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
    let mut lanes = Lanes::default();
    while let Some(group) = queue.take(1) {
        for mut request in group {
            let now = crate::clock::now(clock);
            let outcome = connection.execute_batch("BEGIN").map_err(Trouble::Sql).and_then(|()| {
                let mut tx = Transaction::new(connection, now, &mut lanes);
                request.run(&mut tx)
            });
            if !connection.is_autocommit() {
                let _ = connection.execute_batch("COMMIT");
            }
            request.answer(outcome.map_err(StoreError::from));
        }
    }
}

/// A number as SQLite keeps it. None of ours comes near the end of it.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
