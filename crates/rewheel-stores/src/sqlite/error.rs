//! Translates SQLite errors into store errors.

use rewheel_core::store::StoreError;
use rusqlite::ErrorCode;

/// An error inside a verb.
#[derive(Debug)]
pub(super) enum VerbError {
    /// An error of SQLite.
    Sql(rusqlite::Error),
    /// An error that the verb itself returns.
    Said(StoreError),
    /// A row contains a value that this version never writes; the text says which.
    Unreadable(String),
}

impl VerbError {
    /// Returns which part of a row cannot be read, if that is the error: the statement may still
    /// read other rows.
    ///
    /// # Errors
    /// Returns any other error unchanged.
    pub(super) fn of_row(self) -> Result<String, VerbError> {
        use rusqlite::Error as Sql;
        match self {
            VerbError::Unreadable(what) => Ok(what),
            VerbError::Sql(
                error @ (Sql::FromSqlConversionFailure(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::InvalidColumnType(..)
                | Sql::Utf8Error(..)),
            ) => Ok(error.to_string()),
            trouble @ (VerbError::Sql(_) | VerbError::Said(_)) => Err(trouble),
        }
    }
}

impl From<rusqlite::Error> for VerbError {
    fn from(error: rusqlite::Error) -> VerbError {
        VerbError::Sql(error)
    }
}

impl From<StoreError> for VerbError {
    fn from(error: StoreError) -> VerbError {
        VerbError::Said(error)
    }
}

impl From<VerbError> for StoreError {
    fn from(trouble: VerbError) -> StoreError {
        match trouble {
            VerbError::Sql(error) => judge(error),
            VerbError::Said(error) => error,
            VerbError::Unreadable(what) => {
                let what = format!(
                    "a row of the store has an unreadable value: {what}; if a newer version of Rewheel wrote the row, upgrade this node; otherwise repair the row"
                );
                broken(what, None)
            }
        }
    }
}

/// Returns the error for a row that this version cannot read.
pub(super) fn unreadable(what: &str) -> VerbError {
    VerbError::Unreadable(what.to_owned())
}

/// Converts an error of a statement, after which its transaction is rolled back.
pub(super) fn judge(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(error.into()),
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted
            | ErrorCode::OperationAborted,
        ) => StoreError::Unavailable(error.into()),
        Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
            StoreError::Rejected(error.into())
        }
        Some(ErrorCode::ReadOnly) => broken(
            "the database file cannot be written: give this process write access to the file and \
             to its folder",
            Some(error),
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => broken(
            "the database file cannot be opened: check that its folder exists and that this \
             process may read and write there",
            Some(error),
        ),
        Some(ErrorCode::NotADatabase) => broken(
            "the file is not a SQLite database: check the path in the store's URL, or move the file away",
            Some(error),
        ),
        Some(ErrorCode::DatabaseCorrupt) => broken(
            "the database file is damaged: stop every process that uses it, keep a copy of it with \
             its -wal file, and restore from a backup or with `sqlite3 FILE .recover`",
            Some(error),
        ),
        _ => broken("unexpected error from SQLite", Some(error)),
    }
}

/// Converts an error of a commit. Data may have reached the disk before it.
pub(super) fn judge_commit(error: rusqlite::Error) -> StoreError {
    if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
        StoreError::Ambiguous(error.into())
    } else {
        judge(error)
    }
}

pub(super) fn broken(what: impl Into<String>, source: Option<rusqlite::Error>) -> StoreError {
    StoreError::Broken { what: what.into(), source: source.map(Into::into) }
}

/// Returns the same error for another caller of the same group.
pub(super) fn echo(error: &StoreError) -> StoreError {
    let cause = |source: &dyn std::error::Error| source.to_string().into();
    match error {
        StoreError::Unavailable(source) => StoreError::Unavailable(cause(&**source)),
        StoreError::Ambiguous(source) => StoreError::Ambiguous(cause(&**source)),
        StoreError::Full(source) => StoreError::Full(cause(&**source)),
        // The invalid input came from one caller; the other callers were only in the same group.
        StoreError::Rejected(source) => StoreError::Unavailable(cause(&**source)),
        StoreError::HolderDead(holder) => StoreError::HolderDead(*holder),
        StoreError::Broken { what, source } => StoreError::Broken {
            what: what.clone(),
            source: source.as_ref().map(|source| cause(&**source)),
        },
        StoreError::Closed => StoreError::Closed,
    }
}
