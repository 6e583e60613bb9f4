//! Classifies errors of mysql_async.

use crate::classify::{Category, Class, Classify};
use mysql_async::{DriverError, Error, IoError};

/// Classifies an error of the server by its number as [`Class::of_mysql`], and an I/O error by its kind. A connection that is closed
/// or out of step has the code `closed`; another error of the driver stops with the category `rejected` and the code `driver`.
impl Classify for Error {
    fn classify(&self) -> Class {
        match self {
            // The number means any option that prevents a statement; only this one passes, after a failover.
            Error::Server(error) if error.code == 1290 && error.message.contains("read-only") => {
                Class::retry(Category::Transient).with_code(error.code)
            }
            Error::Server(error) => Class::of_mysql(error.code),
            Error::Io(IoError::Io(error)) => error.classify(),
            #[allow(
                unreachable_patterns,
                clippy::allow_attributes,
                reason = "features of the driver add a variant"
            )]
            Error::Io(_) => Class::stop(Category::Io).with_code("tls"),
            Error::Driver(
                DriverError::ConnectionClosed
                | DriverError::PacketOutOfOrder
                | DriverError::UnexpectedPacket { .. },
            ) => Class::retry(Category::Io).with_code("closed"),
            Error::Driver(_) | Error::Url(_) => Class::stop(Category::Rejected).with_code("driver"),
            Error::Other(_) => Class::stop(Category::Unknown).with_code("driver"),
        }
    }
}
