//! Translates errors of MySQL and MariaDB into store errors.

use mysql_async::{DriverError, Error, ServerError};
use rewheel_core::store::StoreError;
use std::error::Error as _;
use std::fmt;

/// An error inside a verb.
#[derive(Debug)]
pub(super) enum VerbError {
    /// An error of the server or of the connection.
    Sql(Error),
    /// An error that the verb itself returns.
    Said(StoreError),
    /// A row contains a value that this version never writes; the text says which.
    Unreadable(String),
}

impl From<Error> for VerbError {
    fn from(error: Error) -> VerbError {
        VerbError::Sql(error)
    }
}

impl From<StoreError> for VerbError {
    fn from(error: StoreError) -> VerbError {
        VerbError::Said(error)
    }
}

/// Deadlock: the server has rolled the transaction back.
const DEADLOCK: u16 = 1213;
/// Lock wait timeout.
const LOCK_WAIT: u16 = 1205;
/// A lock that a statement with NOWAIT did not get, on MySQL; MariaDB reports 1205.
const LOCK_NOWAIT: u16 = 3572;
/// A row changed since it was read (`innodb_snapshot_isolation`, on by default since MariaDB 11.8).
const CHANGED_SINCE: u16 = 1020;
/// A unique key has this value already.
const DUPLICATE: u16 = 1062;
/// The server has as many prepared statements as `max_prepared_stmt_count` allows.
const STATEMENTS_FULL: u16 = 1461;
/// A group of servers rolled the transaction back during its commit, because of a conflict.
const ROLLED_BACK: u16 = 3101;
/// The server runs with `--read-only`, so it refused to commit.
const READ_ONLY_OPTION: u16 = 1290;
/// The server is in read-only mode, so it refused to commit.
const READ_ONLY_MODE: u16 = 1836;

impl VerbError {
    /// Returns whether the whole transaction can be repeated at once: others were faster, and nothing was written.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            VerbError::Sql(Error::Server(error)) => {
                matches!(error.code, DEADLOCK | LOCK_WAIT | CHANGED_SINCE) || is_overtaken(error)
            }
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }

    /// Returns whether a commit that failed with this error can be repeated at once: the server rolled the transaction back, because it met
    /// another one.
    pub(super) fn is_conflict_of_commit(&self) -> bool {
        match self {
            VerbError::Sql(Error::Server(error)) => {
                matches!(error.code, DEADLOCK | LOCK_WAIT | CHANGED_SINCE | ROLLED_BACK)
            }
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }

    /// Returns whether another transaction kept a lock for too long.
    pub(super) fn is_lock(&self) -> bool {
        match self {
            VerbError::Sql(Error::Server(error)) => {
                matches!(error.code, LOCK_WAIT | LOCK_NOWAIT)
            }
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }

    /// Returns the number of the server's error.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            VerbError::Sql(Error::Server(error)) => Some(error.code),
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => None,
        }
    }

    /// Returns whether the server has no room for another prepared statement. A connection that is closed gives back those it has.
    pub(super) fn is_out_of_statements(&self) -> bool {
        match self {
            VerbError::Sql(Error::Server(error)) => error.code == STATEMENTS_FULL,
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }

    /// Returns whether a unique key of a table has the value already.
    pub(super) fn is_duplicate(&self) -> bool {
        match self {
            VerbError::Sql(Error::Server(error)) => error.code == DUPLICATE,
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }

    /// Returns whether the user lacks a privilege.
    pub(super) fn is_forbidden(&self) -> bool {
        match self {
            VerbError::Sql(Error::Server(error)) => matches!(error.code, 1044 | 1142 | 1143 | 1227),
            VerbError::Sql(_) | VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }

    /// Returns which part of a row cannot be read, if that is the error: the statement may still read other rows.
    ///
    /// # Errors
    /// Returns any other error unchanged.
    pub(super) fn of_row(self) -> Result<String, VerbError> {
        match self {
            VerbError::Unreadable(what) => Ok(what),
            trouble @ (VerbError::Sql(_) | VerbError::Said(_)) => Err(trouble),
        }
    }
}

/// Returns whether another transaction took a value first that this one chose by itself: a place in a lane, or a key, lane or line that did
/// not exist a moment ago. A job whose id exists is an error of the caller.
fn is_overtaken(error: &ServerError) -> bool {
    let is_of_id = |name: &str| error.message.contains(name);
    error.code == DUPLICATE
        && !is_of_id("'id'")
        && !is_of_id("rewheel_jobs.id'")
        && !is_of_id("rewheel_tokens")
        && !is_of_id("'valid_name'")
}

/// The progress of a transaction when an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing can have been committed.
    Open,
    /// The commit was sent: after an error the writes may or may not have been committed.
    Committing,
}

/// Returns the error for a row that this version cannot read.
pub(super) fn unreadable(what: &str) -> VerbError {
    VerbError::Unreadable(what.to_owned())
}

/// Converts an error of a verb into a store error.
pub(super) fn judge(trouble: VerbError, stage: Stage) -> StoreError {
    match trouble {
        VerbError::Said(error) => error,
        VerbError::Unreadable(what) => {
            let what = format!(
                "a row of the store has an unreadable value: {what}; if a newer version of Rewheel wrote the row, upgrade this node; otherwise repair the row"
            );
            broken(what, None)
        }
        VerbError::Sql(error) if stage == Stage::Committing => judge_commit(error),
        VerbError::Sql(Error::Server(error)) => judge_server(error),
        VerbError::Sql(error @ Error::Driver(DriverError::PacketTooLarge)) => {
            StoreError::Rejected(Shown(error).into())
        }
        VerbError::Sql(error) => StoreError::Unavailable(Shown(error).into()),
    }
}

/// Converts an error of a verb that writes, before its commit. A value that this transaction chose, and that another one took first, is no
/// fault of what the caller gave: the caller may try again.
pub(super) fn judge_write(trouble: VerbError) -> StoreError {
    let passes = trouble.is_passing();
    match judge(trouble, Stage::Open) {
        StoreError::Rejected(why) if passes => StoreError::Unavailable(why),
        error @ (StoreError::Unavailable(_)
        | StoreError::Ambiguous(_)
        | StoreError::Full(_)
        | StoreError::Rejected(_)
        | StoreError::HolderDead(_)
        | StoreError::Broken { .. }
        | StoreError::Closed) => error,
    }
}

/// Judges an error of a COMMIT. Only the errors in this list prove that nothing was written. After any other error the writes may exist.
fn judge_commit(error: Error) -> StoreError {
    let wrote_nothing = matches!(
        &error,
        Error::Server(error) if matches!(
            error.code,
            DEADLOCK | LOCK_WAIT | CHANGED_SINCE | ROLLED_BACK | READ_ONLY_OPTION | READ_ONLY_MODE
        )
    );
    match wrote_nothing {
        true => StoreError::Unavailable(Shown(error).into()),
        false => StoreError::Ambiguous(Shown(error).into()),
    }
}

fn judge_server(error: ServerError) -> StoreError {
    if let Some(what) = a_person_must_look(&error) {
        return broken(what, Some(Error::Server(error)));
    }
    let (code, shown) = (error.code, Shown(Error::Server(error)));
    match code {
        // Disk full, table full, quota.
        1021 | 1114 | 1041 => StoreError::Full(shown.into()),
        // What was given breaks a rule, cannot be a value, or is too large.
        1048 | 1062 | 1153 | 1264 | 1292 | 1301 | 1366 | 1406 | 1118 | 1451 | 1452 | 3140
        | 4025 => StoreError::Rejected(shown.into()),
        // Conflicts, resources, timeouts, shutdowns, a server that is read-only for now: all of them pass.
        _ => StoreError::Unavailable(shown.into()),
    }
}

/// Returns what an operator must do about an error that retrying does not solve.
fn a_person_must_look(error: &ServerError) -> Option<&'static str> {
    Some(match error.code {
        1045 | 1698 | 1251 | 1275 => {
            "the server rejected the login: check user and password in the store's URL"
        }
        1049 => "the database does not exist: create it, or name another in the store's URL",
        1044 | 1142 | 1143 | 1227 | 1370 => {
            "permission denied: the user must be allowed to create, alter, index, select, insert, update and delete in the database"
        }
        1146 | 1054 | 1305 => {
            "a table or column of Rewheel is missing: run `rewheel migrate`, and check that nothing else changed the tables"
        }
        1034 | 1035 | 1194 | 1195 | 1712 => {
            "a table is corrupt: stop every process that uses it, and restore a backup"
        }
        1665 => {
            "the server's binlog_format is STATEMENT, which does not allow READ COMMITTED: set binlog_format to ROW or MIXED"
        }
        1064 => {
            "the server does not understand a statement: use MariaDB 10.6 or later, or MySQL 8.0 or later"
        }
        _ => return None,
    })
}

/// An error with its causes in one line.
#[derive(Debug)]
pub(super) struct Shown(pub(super) Error);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Error::Server(error) = &self.0 {
            return write!(f, "{} (error {})", error.message, error.code);
        }
        let mut text = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text.push_str(&format!(": {said}"));
            }
            cause = error.source();
        }
        f.write_str(&text)
    }
}

impl std::error::Error for Shown {}

pub(super) fn broken(what: impl Into<String>, source: Option<Error>) -> StoreError {
    StoreError::Broken { what: what.into(), source: source.map(|error| Shown(error).into()) }
}

#[cfg(test)]
mod tests {
    use super::{Stage, VerbError, judge, judge_write};
    use mysql_async::{DriverError, Error, IoError, ServerError};
    use rewheel_core::store::StoreError;

    fn server(code: u16) -> VerbError {
        let (message, state) = ("a message".to_owned(), "HY000".to_owned());
        VerbError::Sql(Error::Server(ServerError { code, message, state }))
    }

    #[test]
    fn only_listed_errors_of_a_commit_prove_that_nothing_was_written() {
        for code in 1_000..5_000 {
            let is_listed = [1213, 1205, 1020, 3101, 1290, 1836].contains(&code);
            let judged = judge(server(code), Stage::Committing);
            let is_as_listed = match is_listed {
                true => matches!(judged, StoreError::Unavailable(_)),
                false => matches!(judged, StoreError::Ambiguous(_)),
            };
            assert!(is_as_listed, "error {code}: {judged}");
            assert!(!server(code).is_conflict_of_commit() || is_listed, "error {code}");
        }
    }

    #[test]
    fn a_commit_without_an_answer_may_have_been_written() {
        let io = IoError::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        for error in [Error::Io(io), Error::Driver(DriverError::PacketTooLarge)] {
            let judged = judge(VerbError::Sql(error), Stage::Committing);
            assert!(matches!(judged, StoreError::Ambiguous(_)), "{judged}");
        }
    }

    #[test]
    fn a_value_that_another_transaction_took_first_is_no_fault_of_the_caller() {
        let duplicate = |index: &str| {
            let message = format!("Duplicate entry '1' for key '{index}'");
            let (code, state) = (1062, "23000".to_owned());
            VerbError::Sql(Error::Server(ServerError { code, message, state }))
        };
        for index in ["PRIMARY", "name", "rewheel_keys.PRIMARY"] {
            let judged = judge_write(duplicate(index));
            assert!(matches!(judged, StoreError::Unavailable(_)), "{index}: {judged}");
        }
        let judged = judge_write(duplicate("id"));
        assert!(matches!(judged, StoreError::Rejected(_)), "{judged}");
    }

    #[test]
    fn an_error_before_the_commit_is_never_ambiguous() {
        for code in 1_000..5_000 {
            let judged = judge(server(code), Stage::Open);
            assert!(!matches!(judged, StoreError::Ambiguous(_)), "error {code}");
        }
    }
}
