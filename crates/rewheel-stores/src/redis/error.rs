//! Decides what an error of the server or the connection means for the caller.

use super::script::Effect;
use redis::{ErrorKind, RedisError};
use rewheel_core::store::{BoxError, StoreError};

/// Whether a call had been sent when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Connecting,
    Sent(Effect),
}

pub(super) fn broken(what: impl Into<String>, source: Option<BoxError>) -> StoreError {
    StoreError::Broken { what: what.into(), source }
}

/// An answer that this version of Rewheel does not understand.
pub(super) fn unreadable(what: &str) -> StoreError {
    broken(
        format!(
            "the Redis store contains {what} that this version cannot read: if a newer version wrote it, upgrade this node; \
             otherwise restore the data from a backup"
        ),
        None,
    )
}

/// The code at the start of an error's text, also of one that a script passes on.
pub(super) fn code(error: &RedisError) -> String {
    let text = error.detail().unwrap_or_default();
    match error.code() {
        // A script that fails repeats the error of its command.
        Some("ERR") | None => text.split(' ').next().unwrap_or_default().to_owned(),
        Some(code) => code.to_owned(),
    }
}

/// Says whether the connection can still be used.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.kind() == ErrorKind::Parse
}

pub(super) fn judge(error: RedisError, stage: Stage, address: &str) -> StoreError {
    let told = |advice: &str| BoxError::from(format!("{address}: {advice}: {error}"));
    if ends_connection(&error) {
        return match stage {
            Stage::Connecting | Stage::Sent(Effect::Reads) => {
                StoreError::Unavailable(told("cannot connect or lost the connection"))
            }
            Stage::Sent(Effect::Writes) => StoreError::Ambiguous(told("no answer")),
        };
    }
    match code(&error).as_str() {
        "LOADING" => StoreError::Unavailable(told("Redis is loading its data after a start")),
        "BUSY" => StoreError::Unavailable(told("a script of another program runs for too long")),
        "READONLY" => StoreError::Unavailable(told(
            "this server is a replica and accepts no writes; if this does not end with the failover, use the address of the primary",
        )),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" | "UNBLOCKED" => {
            StoreError::Unavailable(told("Redis accepts no writes at the moment"))
        }
        "OOM" => StoreError::Full(told(
            "the memory of Redis is full; raise `maxmemory`, or let jobs end and their retention pass",
        )),
        "MISCONF" => StoreError::Full(told(
            "Redis cannot write to its disk and accepts no writes; make space on the disk and see the log of Redis",
        )),
        "RESERVED" => {
            StoreError::Unavailable(told("a large batch with the same keys is being stored"))
        }
        "GIVENUP" => StoreError::Unavailable(told(
            "another node has deleted the first parts of this batch, because it took too long; send the batch again",
        )),
        "TOOOLD" => StoreError::Rejected(told("upgrade this node or worker")),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            let what = format!(
                "{address} is a node of a Redis Cluster: use redis+cluster://HOST:PORT,HOST:PORT as the URL of the store"
            );
            broken(what, Some(error.into()))
        }
        "NOAUTH" | "WRONGPASS" | "NOPERM" => {
            let what = format!(
                "{address} refuses this user: check user and password in the URL; the user needs all commands on keys and channels of its prefix"
            );
            broken(what, Some(error.into()))
        }
        _ if error.kind() == ErrorKind::AuthenticationFailed => {
            broken(format!("{address} refuses user or password of the URL"), Some(error.into()))
        }
        _ => broken(format!("{address} rejected a command of Rewheel"), Some(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, Stage, judge};
    use redis::{RedisError, make_extension_error};
    use rewheel_core::store::StoreError;

    fn judged(code: &str) -> StoreError {
        let error = make_extension_error(code.to_owned(), Some("says the server".to_owned()));
        judge(error, Stage::Sent(Effect::Writes), "cache:6379")
    }

    #[test]
    fn an_answer_of_the_server_wrote_nothing() {
        for code in ["LOADING", "BUSY", "READONLY", "MASTERDOWN", "NOREPLICAS"] {
            assert!(matches!(judged(code), StoreError::Unavailable(_)), "{code}");
        }
        for code in ["OOM", "MISCONF"] {
            assert!(matches!(judged(code), StoreError::Full(_)), "{code}");
        }
        for code in ["NOAUTH", "NOPERM", "MOVED", "CROSSSLOT", "WRONGTYPE"] {
            assert!(matches!(judged(code), StoreError::Broken { .. }), "{code}");
        }
        assert!(judged("READONLY").to_string().contains("cache:6379: this server is a replica"));
    }

    #[test]
    fn a_lost_answer_is_unknown_only_for_a_write() {
        let lost = || RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        let of = |stage| judge(lost(), stage, "cache:6379");
        assert!(matches!(of(Stage::Connecting), StoreError::Unavailable(_)));
        assert!(matches!(of(Stage::Sent(Effect::Reads)), StoreError::Unavailable(_)));
        assert!(matches!(of(Stage::Sent(Effect::Writes)), StoreError::Ambiguous(_)));
    }
}
