//! A connection for one verb, with or without a transaction.

use super::Shared;
use super::error::{Stage, VerbError, judge};
use super::statements::{NOW, Sql};
use deadpool_postgres::Object;
use rewheel_core::Timestamp;
use rewheel_core::store::{StoreError, StoreResult};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, Transaction};

/// A parameter of a statement.
pub(super) type Param<'p> = &'p (dyn ToSql + Sync);

/// A connection for the duration of one verb.
pub(super) struct Session<'s> {
    pub(super) shared: &'s Shared,
    /// Our own connection, until it is closed or returned.
    ours: Option<Object>,
    /// The caller's transaction, which the caller ends.
    theirs: Option<&'s Transaction<'s>>,
    /// The SQL that begins a transaction; without it each statement commits on its own.
    begin: Option<&'s str>,
    begun: AtomicBool,
    /// A statement was sent and its response has not arrived.
    asked: AtomicBool,
    /// Lanes and due times of jobs that were put back, for the floors after the commit.
    put_back: Mutex<Vec<(i32, i64)>>,
    /// How to judge a lost response when each statement commits on its own.
    stage: Stage,
}

impl<'s> Session<'s> {
    pub(super) fn ours(
        shared: &'s Shared,
        connection: Object,
        begin: Option<&'s str>,
        stage: Stage,
    ) -> Session<'s> {
        let mut session = Session::of(shared);
        (session.ours, session.begin, session.stage) = (Some(connection), begin, stage);
        session
    }

    pub(super) fn theirs(shared: &'s Shared, transaction: &'s Transaction<'s>) -> Session<'s> {
        let mut session = Session::of(shared);
        session.theirs = Some(transaction);
        session
    }

    fn of(shared: &'s Shared) -> Session<'s> {
        Session {
            shared,
            ours: None,
            theirs: None,
            begin: None,
            begun: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            put_back: Mutex::default(),
            stage: Stage::Open,
        }
    }

    /// Returns the clock offset: zero except in tests.
    pub(super) fn offset(&self) -> i64 {
        self.shared.clock.as_millis()
    }

    /// Returns the store's time.
    pub(super) async fn now(&self) -> Result<Timestamp, VerbError> {
        let row = self.one(&NOW, &[&self.offset()]).await?;
        Ok(Timestamp::from_millis(row.try_get(0)?))
    }

    /// Runs a statement and returns its rows.
    pub(super) async fn query(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, VerbError> {
        let text = self.shared.text(sql);
        if let Some(transaction) = self.theirs {
            return Ok(transaction.query_typed(&text, &typed(sql, params)).await?);
        }
        let connection = self.connection()?;
        self.asked.store(true, Ordering::Relaxed);
        let answer = if self.shared.prepares {
            let statement = connection.prepare_typed_cached(&text, &sql.types).await?;
            self.after_begin(connection, connection.query(&statement, params)).await
        } else {
            let params = typed(sql, params);
            self.after_begin(connection, connection.query_typed(&text, &params)).await
        };
        self.asked.store(false, Ordering::Relaxed);
        answer
    }

    /// Runs a statement and returns how many rows it changed.
    pub(super) async fn execute(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<u64, VerbError> {
        let text = self.shared.text(sql);
        if let Some(transaction) = self.theirs {
            return Ok(transaction.execute_typed(&text, &typed(sql, params)).await?);
        }
        let connection = self.connection()?;
        self.asked.store(true, Ordering::Relaxed);
        let answer = if self.shared.prepares {
            let statement = connection.prepare_typed_cached(&text, &sql.types).await?;
            self.after_begin(connection, connection.execute(&statement, params)).await
        } else {
            let params = typed(sql, params);
            self.after_begin(connection, connection.execute_typed(&text, &params)).await
        };
        self.asked.store(false, Ordering::Relaxed);
        answer
    }

    /// Runs a statement that puts jobs back, and returns their lanes and due times. After the commit they lower the floors.
    pub(super) async fn execute_returning(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<(), VerbError> {
        self.execute_returning_before(sql, params, Timestamp::from_millis(i64::MAX)).await
    }

    /// Returns whether the caller's transaction is a user's, which may stay open for long.
    pub(super) fn is_theirs(&self) -> bool {
        self.theirs.is_some()
    }

    /// Reads lane and due time of a job that was put back, from two columns of a row, and returns the lane. As in
    /// `execute_returning_before`.
    pub(super) fn put_back_row(
        &self,
        row: &Row,
        first: usize,
        now: Timestamp,
    ) -> Result<i32, VerbError> {
        let lane = row.try_get(first)?;
        self.put_back(lane, row.try_get(first + 1)?, now);
        Ok(lane)
    }

    fn put_back(&self, lane: i32, due: i64, now: Timestamp) {
        if due < now.as_millis() {
            self.put_back.lock().unwrap_or_else(PoisonError::into_inner).push((lane, due));
        }
    }

    /// As `execute_returning`, where jobs that are due at `now` or later are like new ones: they are above all floors.
    pub(super) async fn execute_returning_before(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
        now: Timestamp,
    ) -> Result<(), VerbError> {
        for row in self.query(sql, params).await? {
            self.put_back(row.try_get(0)?, row.try_get(1)?, now);
        }
        Ok(())
    }

    fn connection(&self) -> Result<&Object, VerbError> {
        self.ours.as_ref().ok_or(VerbError::Said(StoreError::Closed))
    }

    /// Sends `BEGIN` together with the first statement, in one round trip.
    async fn after_begin<T>(
        &self,
        connection: &Object,
        statement: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, VerbError> {
        match self.begin {
            Some(begin) if !self.begun.swap(true, Ordering::Relaxed) => {
                let (begun, answer) =
                    tokio::join!(biased; connection.batch_execute(begin), statement);
                begun?;
                Ok(answer?)
            }
            Some(_) | None => Ok(statement.await?),
        }
    }

    /// Runs a statement that returns exactly one row.
    pub(super) async fn one(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Row, VerbError> {
        let mut rows = self.query(sql, params).await?;
        rows.pop().ok_or_else(|| super::error::unreadable("a statement without an answer"))
    }

    /// Runs a statement that returns one row or none.
    pub(super) async fn find(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, VerbError> {
        Ok(self.query(sql, params).await?.pop())
    }

    /// Ends the verb: commits if it succeeded, rolls back otherwise.
    pub(super) async fn end<T>(mut self, result: Result<T, VerbError>) -> StoreResult<T> {
        if let Err(trouble) = &result {
            self.shared.epochs.hear(trouble);
            // As if there was no response: this connection is not used again.
            *self.asked.get_mut() |= trouble.ends_connection();
        }
        let put_back =
            std::mem::take(&mut *self.put_back.lock().unwrap_or_else(PoisonError::into_inner));
        let floors = &self.shared.lanes.floors;
        if !self.begun.load(Ordering::Relaxed) {
            floors.lower(&put_back);
            return result.map_err(|trouble| judge(trouble, self.stage));
        }
        match result {
            Ok(answer) => {
                let committed = self.finish("COMMIT").await;
                // Without an answer it may have been committed.
                floors.lower(&put_back);
                committed.map_err(|trouble| judge(trouble, Stage::Committing))?;
                Ok(answer)
            }
            Err(trouble) => {
                // If the rollback fails too, the connection is closed.
                let _ = self.finish("ROLLBACK").await;
                Err(judge(trouble, Stage::Open))
            }
        }
    }

    /// Ends the verb and rolls back everything that it wrote.
    pub(super) async fn undo<T>(mut self, answer: T) -> StoreResult<T> {
        let _ = self.finish("ROLLBACK").await;
        Ok(answer)
    }

    async fn finish(&mut self, how: &str) -> Result<(), VerbError> {
        self.connection()?.batch_execute(how).await?;
        self.begun.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Session<'_> {
    /// Closes a connection that another verb must not use. It may be in the middle of a transaction, because the caller stopped waiting
    /// or the commit failed; closing it ends the transaction. Or it did not answer in time: the next verb would wait behind that
    /// response, which never arrives if the network is broken.
    fn drop(&mut self) {
        if (*self.begun.get_mut() || *self.asked.get_mut())
            && let Some(connection) = self.ours.take()
        {
            drop(Object::take(connection));
        }
    }
}

fn typed<'p>(sql: &'static Sql, params: &[Param<'p>]) -> Vec<(Param<'p>, Type)> {
    debug_assert_eq!(params.len(), sql.types.len(), "{}", sql.text);
    params.iter().copied().zip(sql.types.iter().cloned()).collect()
}
