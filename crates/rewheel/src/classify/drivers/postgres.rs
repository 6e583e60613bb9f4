//! Classifies errors of tokio-postgres.

use crate::classify::matcher::{chain, find};
use crate::classify::{Category, Class, Classify};
use std::io;
use tokio_postgres::Error;

/// Classifies by the SQLSTATE as [`Class::of_sqlstate`], or by the I/O error inside it. A connection that is closed has the code
/// `closed`. An error of the driver itself, such as a value of the wrong type, stops with the category `rejected` and the code
/// `driver`.
impl Classify for Error {
    fn classify(&self) -> Class {
        if let Some(state) = self.code() {
            return Class::of_sqlstate(state.code());
        }
        if self.is_closed() {
            return Class::retry(Category::Io).with_code("closed");
        }
        if let Some(error) = chain(self).find_map(find::<io::Error>) {
            return error.classify();
        }
        // The driver has no method for these two.
        match self.to_string().as_str() {
            "timeout waiting for server" => Class::retry(Category::Timeout).with_code("timeout"),
            "unexpected message from server" => Class::retry(Category::Io).with_code("protocol"),
            _ => Class::stop(Category::Rejected).with_code("driver"),
        }
    }
}
