//! Translates errors of MySQL and MariaDB.

use crate::backend::BackendError;
use mysql_async::Error;
use std::error::Error as _;

/// A unique key has this value already.
const DUPLICATE: u16 = 1062;
/// Lock wait timeout, deadlock, and a row that changed since it was read (`innodb_snapshot_isolation`).
const PASSING: [u16; 3] = [1205, 1213, 1020];
/// A table or a column does not exist.
const MISSING: [u16; 2] = [1146, 1054];

fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Server(error) => Some(error.code),
        Error::Driver(_) | Error::Io(_) | Error::Other(_) | Error::Url(_) => None,
    }
}

/// Returns whether the statement changed nothing because another process was faster.
pub(super) fn is_conflict(error: &Error) -> bool {
    code(error).is_some_and(|code| code == DUPLICATE || PASSING.contains(&code))
}

/// Returns whether the tables do not exist yet.
pub(super) fn has_no_table(error: &Error) -> bool {
    code(error) == Some(MISSING[0])
}

pub(super) fn unavailable(address: &str, what: &str) -> BackendError {
    BackendError::Unavailable(format!("MySQL at {address}: {what}").into())
}

pub(super) fn judge(error: Error, address: &str) -> BackendError {
    let text = error_text(&error);
    let advice = match code(&error) {
        Some(1045 | 1698 | 1251 | 1275) => "check user and password in the URL",
        Some(1049) => "create the database, or name another in the URL",
        Some(1044 | 1142 | 1143 | 1227) => {
            "permission denied: allow the user to create, select, insert, update and delete in the database"
        }
        Some(1665) => {
            "binlog_format STATEMENT does not allow READ COMMITTED: set it to ROW or MIXED"
        }
        Some(code) if MISSING.contains(&code) => {
            "check that nothing else has changed the tables `rewheel_locks` and `rewheel_lock_floor`"
        }
        Some(_) | None => return unavailable(address, &text),
    };
    BackendError::Broken { what: format!("MySQL at {address}: {text}: {advice}"), source: None }
}

fn error_text(error: &Error) -> String {
    if let Error::Server(error) = error {
        return format!("{} (error {})", error.message, error.code);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{is_conflict, judge};
    use crate::backend::BackendError;
    use mysql_async::{Error, ServerError};

    fn server(code: u16) -> Error {
        let (message, state) = ("a message".to_owned(), "HY000".to_owned());
        Error::Server(ServerError { code, message, state })
    }

    #[test]
    fn errors_say_whether_an_operator_must_act() {
        for (code, is_broken, is_repeated) in [
            (1045, true, false),
            (1049, true, false),
            (1142, true, false),
            (1146, true, false),
            (1062, false, true),
            (1205, false, true),
            (1213, false, true),
            (1290, false, false),
        ] {
            let judged = judge(server(code), "db:3306");
            assert!(judged.to_string().starts_with("MySQL at db:3306: a message"), "{judged}");
            assert_eq!(matches!(judged, BackendError::Broken { .. }), is_broken, "{code}");
            assert_eq!(is_conflict(&server(code)), is_repeated, "{code}");
        }
    }
}
