//! Tests of which database messages count as transient.

use super::*;

#[track_caller]
fn check(messages: &[&str], expected: bool) {
    for &message in messages {
        let error = DueReason(Some(message.into()));
        assert_eq!(Matcher::database().matches(&error), expected, "{message}");
    }
}

#[test]
fn recognises_failures_that_pass() {
    check(
        &[
            // PostgreSQL
            "ERROR: deadlock detected",
            "could not serialize access due to concurrent update",
            "could not serialize access due to read/write dependencies among transactions",
            r#"could not obtain lock on row in relation "jobs""#,
            "FATAL: sorry, too many clients already",
            r#"too many connections for role "app""#,
            "the database system is starting up",
            "terminating connection due to administrator command",
            "connection closed",
            // MySQL, MariaDB
            "Deadlock found when trying to get lock; try restarting transaction",
            "Lock wait timeout exceeded; try restarting transaction",
            "ERROR 1040 (08004): Too many connections",
            "MySQL server has gone away",
            "Lost connection to MySQL server during query",
            "The MySQL server is running with the --read-only option so it cannot execute \
             this statement",
            // SQLite
            "error returned from database: (code: 5) database is locked",
            "database table is locked: jobs",
            // Redis
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
            "CLUSTERDOWN Hash slot not served",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "ERR max number of clients reached",
        ],
        true,
    );
    assert!(Matcher::database().matches(&io::Error::from(ErrorKind::ConnectionReset)));
}

#[test]
fn leaves_failures_that_stay() {
    check(
        &[
            // PostgreSQL
            r#"duplicate key value violates unique constraint "jobs_pkey""#,
            r#"insert or update on table "a" violates foreign key constraint "a_b_fkey""#,
            r#"syntax error at or near "SELEC""#,
            r#"column "locked" does not exist"#,
            r#"permission denied for table jobs"#,
            r#"password authentication failed for user "app""#,
            r#"could not extend file "base/1/2": No space left on device"#,
            "cannot execute INSERT in a read-only transaction",
            "canceling statement due to statement timeout",
            // MySQL, MariaDB
            "Duplicate entry '1' for key 'PRIMARY'",
            "Cannot add or update a child row: a foreign key constraint fails",
            "You have an error in your SQL syntax; check the manual",
            "Unknown column 'locked' in 'field list'",
            "Access denied for user 'app'@'localhost' (using password: YES)",
            "The table 'jobs' is full",
            "The MySQL server is running with the --secure-file-priv option so it cannot \
             execute this statement",
            "Cannot execute statement in a READ ONLY transaction.",
            // SQLite
            "UNIQUE constraint failed: jobs.id",
            "FOREIGN KEY constraint failed",
            r#"near "SELEC": syntax error"#,
            "no such column: locked",
            "attempt to write a readonly database",
            "database or disk is full",
            "unable to open database file",
            // Redis
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "ERR syntax error",
            "ERR unknown command 'GETT'",
            "NOAUTH Authentication required.",
            "NOPERM this user has no permissions to run the 'get' command",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to \
             persist to disk.",
            "OOM command not allowed when used memory > 'maxmemory'.",
        ],
        false,
    );
    assert!(!Matcher::database().matches(&io::Error::from(ErrorKind::StorageFull)));
}
