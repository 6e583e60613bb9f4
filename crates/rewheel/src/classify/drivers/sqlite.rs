//! Classifies errors of rusqlite.

use crate::classify::{Category, Class, Classify};
use rusqlite::Error;

/// Classifies by the extended result code as [`Class::of_sqlite`]. An error of the driver itself, such as a value of the wrong type,
/// stops with the category `rejected` and the code `driver`.
impl Classify for Error {
    fn classify(&self) -> Class {
        match self.sqlite_error() {
            Some(error) => Class::of_sqlite(error.extended_code),
            None => Class::stop(Category::Rejected).with_code("driver"),
        }
    }
}
