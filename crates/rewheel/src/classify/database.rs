//! Recognizes transient database failures.

use super::Matcher;
use std::io::ErrorKind;

impl Matcher {
    /// Matches errors of drivers for PostgreSQL, MySQL, MariaDB, SQLite and Redis after which the
    /// same work may succeed if it is repeated from its start: deadlocks, serialization failures,
    /// lock timeouts, servers that start, stop, fail over or have too many connections, and broken
    /// connections.
    ///
    /// Repeat a transaction as a whole, on a new connection if the old one broke. If a connection
    /// breaks during a commit, it is unknown whether the commit succeeded.
    ///
    /// Two types of errors are not matched, although some of them are temporary. The first type
    /// is a statement that was cancelled because it took too long: repeating a slow query adds
    /// load. The second type is a connection pool without a free connection, because this pool belongs to the process itself.
    ///
    /// The matcher reads the error messages. If the messages of a server are not in English, match
    /// its error codes instead. A message that quotes user data can contain one of these texts.
    ///
    /// ```
    /// use rewheel::Matcher;
    /// use std::io::Error;
    ///
    /// let passes = Matcher::database();
    /// assert!(passes.matches(&Error::other("ERROR: deadlock detected")));
    /// assert!(!passes.matches(&Error::other("Duplicate entry '7' for key 'orders.PRIMARY'")));
    /// ```
    pub fn database() -> Matcher {
        Matcher::texts([POSTGRES, MYSQL, SQLITE, REDIS, DRIVERS].into_iter().flatten().copied())
            .or(Matcher::io(BROKEN_CONNECTION))
    }
}

const BROKEN_CONNECTION: [ErrorKind; 10] = [
    ErrorKind::TimedOut,
    ErrorKind::ConnectionRefused,
    ErrorKind::ConnectionReset,
    ErrorKind::ConnectionAborted,
    ErrorKind::NotConnected,
    ErrorKind::BrokenPipe,
    ErrorKind::UnexpectedEof,
    ErrorKind::HostUnreachable,
    ErrorKind::NetworkUnreachable,
    ErrorKind::NetworkDown,
];

/// PostgreSQL, its client library, PgBouncer. The SQLSTATE follows each text.
///
/// `cannot execute … in a read-only transaction` is not included: a standby reports it after a
/// failover, but an application also gets it for its own `BEGIN READ ONLY`.
const POSTGRES: &[&str] = &[
    "deadlock detected",                                    // 40P01
    "could not serialize access",                           // 40001, each of its causes
    "canceling statement due to conflict with recovery",    // 40001, on a standby
    "terminating connection due to conflict with recovery", // 40001 or 40P01, on a standby
    "already moved to another partition due to concurrent", // 40001
    "tuple concurrently updated",                           // XX000, of two DDL statements
    "could not obtain lock on",                             // 55P03, NOWAIT
    "canceling statement due to lock timeout",              // 55P03
    "sorry, too many clients already",                      // 53300
    "remaining connection slots are reserved",              // 53300
    "the database system is starting up",                   // 57P03
    "the database system is shutting down",                 // 57P03
    "the database system is in recovery mode",              // 57P03
    "the database system is not yet accepting connections", // 57P03
    "terminating connection due to administrator command",  // 57P01
    "terminating connection because of crash of another",   // 57P02
    "terminating connection due to idle-session timeout",   // 57P05
    "server closed the connection unexpectedly",            // libpq
    "ssl connection has been closed unexpectedly",          // libpq
    "query_wait_timeout",                                   // PgBouncer: no server was free
    "no more connections allowed (max_client_conn)",        // PgBouncer
    "server conn crashed?",                                 // PgBouncer
];

/// MySQL, MariaDB, Galera, and their client libraries. The error number follows each text.
const MYSQL: &[&str] = &[
    "deadlock found when trying to get lock",       // 1213
    "transaction branch was rolled back: deadlock", // 1614
    "wsrep detected deadlock/conflict",             // 1213 of Galera
    "lock wait timeout exceeded",                   // 1205
    "lock(s) could not be acquired immediately and nowait", // 3572
    "record has changed since last read in table",  // 1020, MariaDB's snapshot isolation
    "instructed the server to rollback the current transaction", // 3101, group replication
    "has more than 'max_user_connections' active connections", // 1203
    "server shutdown in progress",                  // 1053
    "wsrep has not yet prepared node for application use", // 1047 of Galera
    // Error 1290 after a failover, until the name points to the new primary. Other options that
    // prevent a statement have the same number, and are permanent.
    "running with the --read-only option",
    "running with the --super-read-only option",
    "server has gone away",                             // 2006
    "lost connection to mysql server",                  // 2013
    "lost connection to server",                        // 2013 of MariaDB
    "can't connect to mysql server",                    // 2003
    "can't connect to server on",                       // 2003 of MariaDB
    "can't connect to local",                           // 2002
    "got an error reading communication packets",       // 1158
    "got timeout reading communication packets",        // 1159
    "got an error writing communication packets",       // 1160
    "got timeout writing communication packets",        // 1161
    "connection was killed",                            // 1927 of MariaDB
    "disconnected by the server because of inactivity", // 4031
];

const SQLITE: &[&str] = &[
    "database is locked",        // SQLITE_BUSY
    "database table is locked",  // SQLITE_LOCKED
    "database schema is locked", // SQLITE_LOCKED
    "locking protocol",          // SQLITE_PROTOCOL: two connections race to open the log
];

/// Redis, Valkey, Sentinel. If the code is an ordinary word, the message after it is matched.
const REDIS: &[&str] = &[
    "is loading the dataset in memory",       // LOADING
    "can't write against a read only",        // READONLY, after a failover
    "clusterdown",                            // has several messages
    "tryagain",                               // keys are on the move between two nodes
    "multiple keys request during rehashing", // TRYAGAIN
    "masterdown",
    "link with master is down",              // MASTERDOWN
    "not enough good replicas to write",     // NOREPLICAS
    "is busy running a script",              // BUSY
    "max number of clients reached",         // ERR
    "force unblock from blocking operation", // UNBLOCKED: the node became a replica
];

/// Messages of servers or drivers of more than one product.
const DRIVERS: &[&str] = &[
    "too many connections", // MySQL 1040; PostgreSQL 53300, of a role or a database
    "connection closed",
    "connection was closed",
    "connection reset",
    "connection refused",
    "connection aborted",
    "connection timed out",
    "broken pipe",
];
