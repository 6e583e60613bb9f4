//! Connections to a MySQL or MariaDB server that keeps locks.

use super::error::{judge, unavailable};
use crate::backend::BackendError;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Params, Row, Value};
use rewheel_stores::MysqlOptions;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum time to open a connection, and to wait for a free one: less than a renewal of the default lease may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Settings of every session, whatever the server's defaults are. Without `autocommit`, statements would be rolled back; a `sql_mode` that is
/// not strict would cut values off.
const SETTINGS: &str = "SET SESSION autocommit = 1, completion_type = 'NO_CHAIN', innodb_lock_wait_timeout = 3, \
     sql_select_limit = 18446744073709551615, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'";

const ISOLATION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// A pool of connections.
pub(super) struct Connections {
    opts: Opts,
    /// Host and port, for errors.
    pub(super) address: String,
    statement_timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Conn>>,
}

/// A connection in use. One that is dropped without [`finish`](Connection::finish) is closed: it may not answer any more, or may still run a
/// statement.
pub(super) struct Connection<'c> {
    connections: &'c Connections,
    conn: Conn,
    /// Whether it waited in the pool: the server may have closed it meanwhile.
    pub(super) was_idle: bool,
    _permit: OwnedSemaphorePermit,
}

/// What a statement did.
pub(super) struct Done {
    pub(super) rows: Vec<Row>,
    pub(super) affected: u64,
}

impl Connections {
    pub(super) fn new(options: &MysqlOptions) -> Connections {
        let opts = OptsBuilder::from_opts(options.server.clone())
            .client_found_rows(true)
            .prefer_socket(false)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(Duration::from_secs(10)));
        Connections {
            opts: opts.into(),
            address: format!("{}:{}", options.server.ip_or_hostname(), options.server.tcp_port()),
            statement_timeout: options.statement_timeout,
            permits: Arc::new(Semaphore::new(options.pool_max)),
            idle: Mutex::default(),
        }
    }

    pub(super) async fn get(&self) -> Result<Connection<'_>, BackendError> {
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(CONNECT_TIMEOUT, waiting).await else {
            let what = "got no connection in time: raise `pool_max` if many locks are in use";
            return Err(unavailable(&self.address, what));
        };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let was_idle = idle.is_some();
        let conn = match idle {
            Some(conn) => conn,
            None => match tokio::time::timeout(CONNECT_TIMEOUT, self.open()).await {
                Ok(Ok(conn)) => conn,
                Ok(Err(error)) => return Err(judge(error, &self.address)),
                Err(_) => {
                    let what = format!("no answer within {CONNECT_TIMEOUT:?}");
                    return Err(unavailable(&self.address, &what));
                }
            },
        };
        Ok(Connection { connections: self, conn, was_idle, _permit: permit })
    }

    async fn open(&self) -> Result<Conn, Error> {
        let mut conn = Conn::new(self.opts.clone()).await?;
        conn.query_drop(SETTINGS).await?;
        conn.query_drop(ISOLATION).await?;
        Ok(conn)
    }

    /// Closes the connections that nothing uses: the server has closed one of them.
    pub(super) fn forget_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Connection<'_> {
    /// Runs a statement. After an error that ended the connection, it must not be used again.
    pub(super) async fn run(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Done, Error> {
        let timeout = self.connections.statement_timeout;
        let running = async {
            let sql = without_comments(sql);
            let params = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
            let result = self.conn.exec_iter(sql, params).await?;
            let affected = result.affected_rows();
            Ok(Done { rows: result.collect_and_drop().await?, affected })
        };
        match tokio::time::timeout(timeout, running).await {
            Ok(done) => done,
            Err(_) => {
                let what = format!("no answer within {timeout:?}");
                let error = std::io::Error::new(std::io::ErrorKind::TimedOut, what);
                Err(Error::Io(mysql_async::IoError::Io(error)))
            }
        }
    }

    /// Gives the connection back to the pool.
    pub(super) fn finish(self) {
        self.connections.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.conn);
    }
}

/// The driver would take a question mark or a colon in a comment for a parameter.
fn without_comments(sql: &str) -> String {
    let lines = sql.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n")
}
