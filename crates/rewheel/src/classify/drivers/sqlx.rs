//! Classifies errors of sqlx, without its drivers.

use crate::classify::{Category, Class, Classify, Matcher};
use sqlx_core::error::{DatabaseError, Error};
use std::sync::LazyLock;

/// Classifies an error of the database by its SQLSTATE as [`Class::of_sqlstate`], for SQLite by its result code as
/// [`Class::of_sqlite`]. MySQL has no SQLSTATE for some errors, such as a lock wait timeout: then the message decides, see
/// [`Matcher::database`]. An I/O error is classified by its kind.
///
/// A pool without a free connection stops with the category `bulkhead_full`: the pool belongs to this process.
impl Classify for Error {
    fn classify(&self) -> Class {
        if let Error::Database(error) = self {
            return of_database(&**error);
        }
        if let Error::Io(error) = self {
            return error.classify();
        }
        // sqlx adds variants with its features: all others are errors of the program.
        let (class, code) = if matches!(self, Error::Tls(_)) {
            (Class::stop(Category::Io), "tls")
        } else if matches!(self, Error::Protocol(_) | Error::WorkerCrashed) {
            (Class::retry(Category::Io), "protocol")
        } else if matches!(self, Error::PoolTimedOut) {
            (Class::stop(Category::BulkheadFull), "pool_timed_out")
        } else if matches!(self, Error::PoolClosed) {
            (Class::stop(Category::Cancelled), "pool_closed")
        } else {
            (Class::stop(Category::Rejected), "driver")
        };
        class.with_code(code)
    }
}

fn of_database(error: &dyn DatabaseError) -> Class {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(Matcher::database);
    let code = error.code().unwrap_or_default();
    // SQLite has numbers of up to four digits.
    if let Some(number) = (code.len() < 5).then(|| code.parse().ok()).flatten() {
        return Class::of_sqlite(number);
    }
    let class = Class::of_sqlstate(&code);
    if class.category == Category::Unknown && MATCHER.matches(error.as_error()) {
        return Class { code: class.code, ..Class::retry(Category::Transient) };
    }
    class
}
