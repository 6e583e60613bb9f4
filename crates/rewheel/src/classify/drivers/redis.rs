//! Classifies errors of the crate redis.

use crate::classify::{Category, Class, Classify};
use redis::{ErrorKind, RedisError};

/// Classifies an error of the server by its first word as [`Class::of_redis`]. A connection that is broken has the code `connection`,
/// one that did not answer in time `timeout`. Too many connections are `throttled`. Wrong credentials and errors of the client stop.
impl Classify for RedisError {
    fn classify(&self) -> Class {
        if self.is_timeout() {
            return Class::retry(Category::Timeout).with_code("timeout");
        }
        if self.is_connection_dropped() || self.is_io_error() {
            return Class::retry(Category::Io).with_code("connection");
        }
        if self.kind() == ErrorKind::Parse || self.kind() == ErrorKind::ClusterConnectionNotFound {
            return Class::retry(Category::Io).with_code("connection");
        }
        let detail = self.detail().unwrap_or_default();
        match self.code() {
            Some("ERR") if detail.contains("max number of clients") => {
                Class::retry(Category::Throttled).with_code("ERR")
            }
            // A script that fails repeats the error of its command.
            Some("ERR") => match detail.split(' ').next() {
                Some(word)
                    if Class::of_redis(word)
                        != Class::stop(Category::Rejected).with_code(word.to_owned()) =>
                {
                    Class::of_redis(word)
                }
                _ => Class::of_redis("ERR"),
            },
            Some(code) => Class::of_redis(code),
            None => Class::stop(Category::Rejected).with_code("client"),
        }
    }
}
