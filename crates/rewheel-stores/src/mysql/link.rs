//! Runs statements on a connection of the pool or in the caller's transaction.

use super::error::VerbError;
use super::pool::Connection;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The result of a statement.
pub(super) struct Done {
    pub(super) rows: Vec<Row>,
    /// Rows that a write matched, also where it changed nothing.
    pub(super) affected: u64,
    /// The number that the server chose for an inserted row.
    pub(super) number: i64,
}

pub(super) type Doing<'a> = Pin<Box<dyn Future<Output = mysql_async::Result<Done>> + Send + 'a>>;

/// What runs statements: a connection of the pool, or the caller's transaction.
pub(super) trait Link: Send {
    /// Runs a prepared statement.
    fn exec<'a>(&'a mut self, sql: Arc<str>, values: Vec<Value>) -> Doing<'a>;

    /// Runs several statements without values, and returns the rows of the last one.
    fn query<'a>(&'a mut self, sql: &'a str) -> Doing<'a>;

    /// Says that the connection is in the middle of something, or not any more.
    fn set_busy(&mut self, busy: bool);
}

macro_rules! run {
    ($queryable:expr, $sql:expr, $values:expr) => {{
        let params = if $values.is_empty() { Params::Empty } else { Params::Positional($values) };
        let mut result = $queryable.exec_iter(&*$sql, params).await?;
        let (affected, number) = (result.affected_rows(), result.last_insert_id());
        let rows = result.collect().await?;
        result.drop_result().await?;
        let number = number.and_then(|number| i64::try_from(number).ok()).unwrap_or(0);
        Ok(Done { rows, affected, number })
    }};
}

macro_rules! run_text {
    ($queryable:expr, $sql:expr) => {{
        let mut result = $queryable.query_iter($sql).await?;
        let mut rows: Vec<Row> = Vec::new();
        while !result.is_empty() {
            rows = result.collect().await?;
        }
        result.drop_result().await?;
        Ok(Done { rows, affected: 0, number: 0 })
    }};
}

impl Link for Connection {
    fn exec<'a>(&'a mut self, sql: Arc<str>, values: Vec<Value>) -> Doing<'a> {
        Box::pin(async move { run!(self, sql, values) })
    }

    fn query<'a>(&'a mut self, sql: &'a str) -> Doing<'a> {
        Box::pin(async move { run_text!(self, sql) })
    }

    fn set_busy(&mut self, busy: bool) {
        if busy { self.begin() } else { self.finish() }
    }
}

impl Link for &mut mysql_async::Transaction<'_> {
    fn exec<'a>(&'a mut self, sql: Arc<str>, values: Vec<Value>) -> Doing<'a> {
        Box::pin(async move { run!(self, sql, values) })
    }

    fn query<'a>(&'a mut self, sql: &'a str) -> Doing<'a> {
        Box::pin(async move { run_text!(self, sql) })
    }

    fn set_busy(&mut self, _busy: bool) {}
}

/// Ends a statement that takes too long. Its connection cannot be used any more.
pub(super) async fn within(timeout: Duration, doing: Doing<'_>) -> Result<Done, VerbError> {
    match tokio::time::timeout(timeout, doing).await {
        Ok(done) => Ok(done?),
        Err(_) => {
            let what = format!("no answer from the server within {timeout:?}");
            let error = std::io::Error::new(std::io::ErrorKind::TimedOut, what);
            Err(VerbError::Sql(mysql_async::Error::Io(mysql_async::IoError::Io(error))))
        }
    }
}
