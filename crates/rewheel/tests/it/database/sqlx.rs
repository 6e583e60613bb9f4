//! Errors of sqlx. Its drivers cannot be linked beside rusqlite, so a database error stands in for theirs.

use rewheel::{Category, Class, Classify};
use sqlx_core::error::{DatabaseError, Error, ErrorKind};
use std::borrow::Cow;
use std::fmt;
use std::io;

#[derive(Debug)]
struct Said {
    code: Option<&'static str>,
    message: &'static str,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for Said {}

impl DatabaseError for Said {
    fn message(&self) -> &str {
        self.message
    }
    fn code(&self) -> Option<Cow<'_, str>> {
        self.code.map(Cow::Borrowed)
    }
    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }
    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }
    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

#[track_caller]
fn check(code: Option<&'static str>, message: &'static str, expected: Class) {
    let class = Error::Database(Box::new(Said { code, message })).classify();
    assert_eq!(class, expected, "{message}");
}

#[test]
fn a_database_error_is_classified_by_its_code() {
    let passes = || Class::retry(Category::Transient);
    check(Some("40001"), "could not serialize", passes().with_code("40001"));
    check(Some("23505"), "duplicate key", Class::stop(Category::Rejected).with_code("23505"));
    // SQLite.
    check(Some("517"), "database is locked", passes().with_code(517_u32));
    check(Some("2067"), "UNIQUE", Class::stop(Category::Rejected).with_code(2067_u32));
}

#[test]
fn a_general_state_of_mysql_is_classified_by_its_message() {
    let message = "Lock wait timeout exceeded; try restarting transaction";
    check(Some("HY000"), message, Class::retry(Category::Transient).with_code("HY000"));
    check(Some("HY000"), "disk", Class::stop(Category::Unknown).with_code("HY000"));
}

#[test]
fn errors_of_the_pool_and_the_connection() {
    let reset = io::ErrorKind::ConnectionReset;
    assert_eq!(Error::Io(reset.into()).classify(), io::Error::from(reset).classify());
    let full = Class::stop(Category::BulkheadFull).with_code("pool_timed_out");
    assert_eq!(Error::PoolTimedOut.classify(), full);
    assert_eq!(Error::RowNotFound.classify(), Class::stop(Category::Rejected).with_code("driver"));
}
