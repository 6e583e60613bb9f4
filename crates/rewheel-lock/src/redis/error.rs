//! Decides what an error of the server or the connection means.

use crate::backend::BackendError;
use redis::{ErrorKind, RedisError};

/// An answer that this version does not understand.
pub(super) fn unreadable() -> BackendError {
    BackendError::Broken {
        what: "Redis returned a lock that this version of Rewheel cannot read: a newer version, or something else, wrote it; upgrade this process".to_owned(),
        source: None,
    }
}

/// Says whether the next call must open a new connection.
///
/// After a failover, the old primary may stay up as a replica. A new connection resolves the name of the server again, and finds the new
/// primary.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    is_disconnect(error) || matches!(code(error).as_str(), "READONLY" | "MASTERDOWN")
}

fn is_disconnect(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.kind() == ErrorKind::Parse
}

pub(super) fn judge(error: RedisError, address: &str) -> BackendError {
    let unavailable = |advice: &str| {
        BackendError::Unavailable(format!("Redis at {address}: {advice}: {error}").into())
    };
    if is_disconnect(&error) {
        return unavailable("cannot connect or lost the connection");
    }
    let broken = |advice: &str| format!("Redis at {address}: {advice}: {error}");
    let what = match code(&error).as_str() {
        "LOADING" => return unavailable("it is loading its data after a start"),
        "READONLY" => {
            return unavailable(
                "the server is a replica and accepts no writes; if this lasts longer than a failover, use the address of the primary",
            );
        }
        "OOM" => return unavailable("its memory is full; raise `maxmemory`"),
        "MISCONF" => return unavailable("it cannot write to its disk; make space on the disk"),
        "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            return unavailable("it accepts no writes at the moment");
        }
        "MOVED" | "ASK" | "CROSSSLOT" => {
            broken("it is a node of a Redis Cluster: use a single server")
        }
        "NOAUTH" | "WRONGPASS" | "NOPERM" => broken(
            "it refuses this user: check user and password in the URL; the user needs scripts, TIME, INFO and all commands on keys and channels of its prefix",
        ),
        _ if error.kind() == ErrorKind::AuthenticationFailed => {
            broken("it refuses user or password of the URL")
        }
        _ => broken("it rejected a command: check that nothing else uses keys with this prefix"),
    };
    BackendError::Broken { what, source: Some(error.into()) }
}

/// The code at the start of an error's text, also of one that a script passes on.
fn code(error: &RedisError) -> String {
    match error.code() {
        Some("ERR") | None => {
            let text = error.detail().unwrap_or_default();
            text.split(' ').next().unwrap_or_default().to_owned()
        }
        Some(code) => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ends_connection, judge};
    use crate::backend::BackendError;
    use redis::{RedisError, make_extension_error};

    fn error(code: &str) -> RedisError {
        make_extension_error(code.to_owned(), Some("it says".to_owned()))
    }

    fn judged(code: &str) -> BackendError {
        judge(error(code), "cache:6379")
    }

    #[test]
    fn a_replica_is_left_and_a_server_that_loads_its_data_is_not() {
        for code in ["READONLY", "MASTERDOWN"] {
            assert!(ends_connection(&error(code)), "{code}");
        }
        for code in ["LOADING", "OOM", "BUSY", "NOPERM"] {
            assert!(!ends_connection(&error(code)), "{code}");
        }
    }

    #[test]
    fn only_what_passes_by_itself_is_repeated() {
        for code in ["LOADING", "READONLY", "MASTERDOWN", "OOM", "MISCONF", "NOREPLICAS"] {
            assert!(matches!(judged(code), BackendError::Unavailable(_)), "{code}");
        }
        for code in ["NOAUTH", "NOPERM", "MOVED", "WRONGTYPE"] {
            assert!(matches!(judged(code), BackendError::Broken { .. }), "{code}");
        }
        assert!(judged("OOM").to_string().starts_with("Redis at cache:6379: its memory is full"));
    }
}
