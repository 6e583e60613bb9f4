//! The columns of a lock in a table, which all SQL backends share.

use crate::backend::{BackendError, RequestId};
use crate::record::{Held, Record, line};
use crate::server_clock::ServerTime;
use std::time::Duration;

/// How long the row of a free lock is kept. It remembers the last token, in case the clock goes back. Tokens of deleted
/// rows are in the floor.
pub(crate) const IDLE_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// A backend deletes old rows each time it has handled this many calls.
pub(crate) const CALLS_PER_PRUNE: u64 = 1_000;

/// A row of the table of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) token: i64,
    /// The request that has the lock; empty if none has it.
    pub(crate) holder: String,
    pub(crate) owner: String,
    /// When the lease ends; without a holder, when the row was last written.
    pub(crate) until_ms: i64,
    pub(crate) lease_ms: i64,
    pub(crate) line: String,
}

impl Row {
    pub(crate) fn write(record: &Record, now: ServerTime) -> Row {
        let Record { token, held, line: places } = record;
        let (token, line) = (*token, line::write(places));
        match held {
            Some(Held { id, owner, until_ms, lease_ms }) => {
                let (holder, owner) = (id.to_string(), owner.clone());
                Row { token, holder, owner, until_ms: *until_ms, lease_ms: *lease_ms, line }
            }
            None => {
                let (holder, owner) = (String::new(), String::new());
                Row { token, holder, owner, until_ms: now.as_millis(), lease_ms: 0, line }
            }
        }
    }

    pub(crate) fn read(self) -> Result<Record, BackendError> {
        let unreadable = || {
            BackendError::Broken {
            what: "a row of the table of locks cannot be read: a newer version of Rewheel, or something else, wrote it; upgrade this process".to_owned(),
            source: None,
        }
        };
        let Row { token, holder, owner, until_ms, lease_ms, line } = self;
        let line = line::read(&line).ok_or_else(unreadable)?;
        let held = match holder.as_str() {
            "" => None,
            holder => {
                let id = RequestId::parse(holder).ok_or_else(unreadable)?;
                Some(Held { id, owner, until_ms, lease_ms })
            }
        };
        Ok(Record { token, held, line })
    }
}

#[cfg(test)]
mod tests {
    use super::Row;
    use crate::backend::RequestId;
    use crate::record::{Held, Place, Record};
    use crate::server_clock::ServerTime;
    use rewheel::Random;

    #[test]
    fn a_row_says_all_that_a_record_says() {
        let (random, now) = (Random::seeded(1), ServerTime::from_micros(5_000));
        let id = || RequestId::new(&random);
        let held = Some(Held { id: id(), owner: "a".to_owned(), until_ms: 7, lease_ms: 3 });
        let line = vec![Place { id: id(), until_ms: 1 }, Place { id: id(), until_ms: 22 }];
        for record in [Record { token: 9, held, line }, Record::default()] {
            assert_eq!(Row::write(&record, now).read().unwrap(), record);
        }
    }

    #[test]
    fn a_row_of_another_version_is_an_error() {
        let good = Row::write(&Record::default(), ServerTime::from_micros(0));
        for line in ["x", "1:2", "00000000000000000000000000000001", ":"] {
            assert!(Row { line: line.to_owned(), ..good.clone() }.read().is_err(), "{line}");
        }
        assert!(Row { holder: "no holder id".to_owned(), ..good }.read().is_err());
    }
}
