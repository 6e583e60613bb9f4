//! Translates PostgreSQL errors into store errors.

use super::hosts::Hosts;
use deadpool_postgres::{PoolError, TimeoutType};
use rewheel_core::store::StoreError;
use std::error::Error as _;
use std::fmt;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

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

impl VerbError {
    /// Returns whether the error is a lock timeout: another transaction kept a lock for too long.
    pub(super) fn is_lock(&self) -> bool {
        match self {
            VerbError::Sql(error) => error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE),
            VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }
}

impl VerbError {
    /// Returns whether the connection must not be used again: its server ends it, or accepts no writes any more. After a failover the
    /// next connection finds the new primary.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            VerbError::Sql(error) => error.code().is_some_and(is_of_another_server),
            VerbError::Said(_) | VerbError::Unreadable(_) => false,
        }
    }
}

/// Returns whether an error means that another server, or this one later, must be asked.
fn is_of_another_server(state: &SqlState) -> bool {
    *state == SqlState::READ_ONLY_SQL_TRANSACTION
        || state.code().starts_with("57P")
        || state.code().starts_with("08")
}

impl VerbError {
    /// Returns which part of a row cannot be read, if that is the error: the statement may still read other rows.
    ///
    /// # Errors
    /// Returns any other error unchanged.
    pub(super) fn of_row(self) -> Result<String, VerbError> {
        match self {
            VerbError::Unreadable(what) => Ok(what),
            VerbError::Sql(error) if is_conversion(&error) => Ok(error.to_string()),
            trouble @ (VerbError::Sql(_) | VerbError::Said(_)) => Err(trouble),
        }
    }
}

/// Returns whether the connection works but a value has an unexpected type or form.
fn is_conversion(error: &Error) -> bool {
    error.code().is_none() && error.source().is_some_and(|source| !source.is::<io::Error>())
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
    let error = match trouble {
        VerbError::Said(error) => return error,
        VerbError::Unreadable(what) => {
            let what = format!(
                "a row of the store has an unreadable value: {what}; if a newer version of Rewheel wrote the row, upgrade this node; otherwise repair the row"
            );
            return broken(what, None);
        }
        VerbError::Sql(error) => error,
    };
    let Some(state) = error.code() else {
        if is_conversion(&error) {
            // A repeated call would fail in the same way.
            return broken(
                "unexpected response from PostgreSQL: check that nothing else changed the tables of Rewheel",
                Some(error),
            );
        }
        // The connection broke.
        return match stage {
            Stage::Open => StoreError::Unavailable(DriverError(error).into()),
            Stage::Committing => StoreError::Ambiguous(DriverError(error).into()),
        };
    };
    if let Some(what) = a_person_must_look(state) {
        return broken(what, Some(error));
    }
    match state.code().get(..2).unwrap_or_default() {
        _ if *state == SqlState::DISK_FULL => StoreError::Full(DriverError(error).into()),
        // The server ends the session; with a synchronous standby the commit may be on this disk. Or a pooler lost the
        // server, and does not know either.
        "57" | "08" if stage == Stage::Committing && *state != SqlState::QUERY_CANCELED => {
            StoreError::Ambiguous(DriverError(error).into())
        }
        // What was given breaks a rule, cannot be a value, or is too much for one statement.
        "22" | "23" | "21" | "54" => StoreError::Rejected(DriverError(error).into()),
        // Conflicts, resources, timeouts, shutdowns, a standby, a new epoch: all of them pass.
        "08" | "25" | "40" | "53" | "55" | "57" | "58" | "RW" => {
            StoreError::Unavailable(DriverError(error).into())
        }
        _ => broken("unexpected error from PostgreSQL: check the server's log", Some(error)),
    }
}

/// An error of PostgreSQL or of the way to it, with its cause in one line. The text of the driver's own error is only
/// "db error".
#[derive(Debug)]
pub(super) struct DriverError(pub(super) Error);

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&DriverError::text(&self.0))?;
        if self.0.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) {
            f.write_str(": the server is a standby, or read-only: a new connection is made")?;
        }
        Ok(())
    }
}

impl DriverError {
    /// Returns the text of an error with its causes.
    pub(super) fn text(error: &Error) -> String {
        if let Some(said) = error.as_db_error() {
            let (severity, code) = (said.severity(), said.code().code());
            let detail = said.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
            return format!("{severity}: {} (SQLSTATE {code}){detail}", said.message());
        }
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

impl std::error::Error for DriverError {}

impl From<DriverError> for StoreError {
    /// Nothing was written.
    fn from(said: DriverError) -> StoreError {
        StoreError::Unavailable(said.into())
    }
}

/// There is no connection, and waiting may help.
#[derive(Debug)]
struct Unreachable {
    /// Hosts and ports.
    address: String,
    /// How each of several hosts failed.
    failures: String,
    error: DriverError,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreachable { address, failures, error } = self;
        if !failures.is_empty() {
            return write!(
                f,
                "no host of PostgreSQL accepts connections for writing: {failures}: check that one of them is the primary, and check \
                 hosts and ports in the store's URL"
            );
        }
        match error.0.code() {
            Some(_) => write!(f, "PostgreSQL at {address} accepts no connections: {error}"),
            None if error.0.to_string().contains("TLS") => write!(
                f,
                "the connection to PostgreSQL at {address} cannot be encrypted: {error}: check sslmode and \
                 sslrootcert in the store's URL, and the server's certificate"
            ),
            None => write!(
                f,
                "cannot connect to PostgreSQL at {address}: {error}: check that it runs, and check host and port in \
                 the store's URL"
            ),
        }
    }
}

impl std::error::Error for Unreachable {}

/// Judges why there is no connection to a server.
pub(super) fn judge_pool(error: PoolError, hosts: &Hosts) -> StoreError {
    match error {
        PoolError::Backend(error) => match error.code().and_then(a_person_must_look) {
            Some(what) => broken(what, Some(error)),
            None => {
                let (address, failures) = (hosts.address(), hosts.failures());
                let error = DriverError(error);
                StoreError::Unavailable(Box::new(Unreachable { address, failures, error }))
            }
        },
        PoolError::Closed => StoreError::Closed,
        PoolError::Timeout(waited) => {
            let (address, failures) = (hosts.address(), hosts.failures());
            let failures = if failures.is_empty() { failures } else { format!(" ({failures})") };
            let advice = match waited {
                TimeoutType::Wait | TimeoutType::Recycle => {
                    "all connections of this node are in use: check whether the server is slow, or raise `pool_max`"
                }
                TimeoutType::Create => "check that the server is reachable",
            };
            let message =
                format!("got no connection to PostgreSQL at {address} in time{failures}: {advice}");
            StoreError::Unavailable(message.into())
        }
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            StoreError::Unavailable(error.into())
        }
    }
}

/// Returns what an operator must do about an error that retrying does not solve.
pub(super) fn a_person_must_look(state: &SqlState) -> Option<&'static str> {
    let what = match *state {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "PostgreSQL rejected the login: check user and password in the store's URL, and pg_hba.conf"
        }
        SqlState::INVALID_CATALOG_NAME => {
            "the database does not exist: create it, or name another in the store's URL"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "permission denied: the user must own Rewheel's schema, or be allowed to create it"
        }
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_FUNCTION => {
            "a table, column or function of Rewheel is missing: run `rewheel migrate`, and check that nothing else changed \
             the tables"
        }
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
            "the connection pooler in front of PostgreSQL does not keep prepared statements: add `pooler=transaction` to \
             the store's URL"
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
            "the database is corrupt: stop every process that uses it, and restore a backup"
        }
        _ => return None,
    };
    Some(what)
}

pub(super) fn broken(what: impl Into<String>, source: Option<Error>) -> StoreError {
    StoreError::Broken { what: what.into(), source: source.map(|error| DriverError(error).into()) }
}
