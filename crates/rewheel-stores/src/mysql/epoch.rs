//! Notices a failover or restore, and begins an epoch: its fences are larger than all before.
//!
//! The table `rewheel_epochs` names the server of the latest epoch. A new connection to another server begins the next epoch: a replica was
//! promoted, or the data was copied. A heartbeat whose number is not larger than the last one shows that older data was restored, and so
//! does a holder that has sent heartbeats and is not in the store at all, unless the last one is so old that the holder was pruned. Every transaction that checks its holder reads the latest epoch in the same statement. See the decision record 0054.

use super::error::VerbError;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use rewheel_core::{HolderId, Limits, Timestamp};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bits of a fence below its epoch.
const FENCE_BITS: u32 = 32;

/// What distinguishes a server and its data directory from others. Each of the two servers has one of the last two columns.
const SERVER: [&str; 3] = [
    "SELECT CONCAT_WS('|', @@hostname, @@port, @@datadir, DATABASE(), @@server_uuid)",
    "SELECT CONCAT_WS('|', @@hostname, @@port, @@datadir, DATABASE(), @@server_uid)",
    "SELECT CONCAT_WS('|', @@hostname, @@port, @@datadir, DATABASE())",
];

const LATEST: &str = "SELECT epoch, server FROM rewheel_epochs ORDER BY epoch DESC LIMIT 1";

const BEGIN: &str = "INSERT INTO rewheel_epochs (epoch, server, begun_ms) \
     VALUES (?, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)";

/// Maximum number of holders whose heartbeats are remembered: a process has one, and a few workers.
const HOLDERS_MAX: usize = 10_000;

/// The latest epoch that this process knows.
#[derive(Debug, Default)]
pub(super) struct Epoch {
    current: AtomicI64,
    /// The latest acknowledged heartbeat of each holder.
    renewals: Mutex<HashMap<HolderId, Heartbeat>>,
}

/// An acknowledged heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heartbeat {
    /// Its number.
    pub(super) renewals: u64,
    /// When it was written, by the store's clock.
    pub(super) at: Timestamp,
}

impl Heartbeat {
    /// Returns whether the store may have deleted the holder since: then it says nothing that the holder is gone.
    pub(super) fn may_be_pruned(&self, now: Timestamp) -> bool {
        now >= self.at.plus(Limits::DEAD_HOLDERS_KEPT)
    }
}

/// Whether the store is still the one that this process knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observed {
    Same,
    /// It was promoted or restored: what was cached may be wrong.
    New,
}

impl Epoch {
    /// Returns the number above which all new fences are.
    pub(super) fn fence_floor(&self) -> i64 {
        self.current() << FENCE_BITS
    }

    /// Returns the latest epoch that this process knows.
    pub(super) fn current(&self) -> i64 {
        self.current.load(Ordering::Acquire)
    }

    /// Notes an epoch that the store is in.
    pub(super) fn observe(&self, epoch: i64) -> Observed {
        let before = self.current.fetch_max(epoch, Ordering::AcqRel);
        if epoch <= before {
            return Observed::Same;
        }
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Observed::New
    }

    /// Returns the latest heartbeat of a holder that was acknowledged so far.
    pub(super) fn heartbeat_of(&self, holder: HolderId) -> Option<Heartbeat> {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner).get(&holder).copied()
    }

    /// Notes an acknowledged heartbeat. Returns whether its number is not greater than that of `before`, which was acknowledged before it
    /// was sent: then older data was restored. Two heartbeats of a worker may be answered in any order.
    pub(super) fn went_back(
        &self,
        holder: HolderId,
        before: Option<Heartbeat>,
        heartbeat: Heartbeat,
    ) -> bool {
        let mut known = self.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        // If an epoch began meanwhile, the number from before says nothing.
        let went_back = known.contains_key(&holder)
            && before.is_some_and(|before| heartbeat.renewals <= before.renewals);
        if known.len() >= HOLDERS_MAX {
            known.clear();
        }
        let latest = known.entry(holder).or_insert(heartbeat);
        if heartbeat.renewals > latest.renewals {
            *latest = heartbeat;
        }
        went_back
    }
}

/// Whether this process knows that older data was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restored {
    No,
    /// It was. The epochs that were known before, up to this one, may be missing in the store: they are not used again.
    After(i64),
}

/// Returns the epoch of the server of a connection, and begins one if it is another server than before, or if older data was restored.
pub(super) async fn find(conn: &mut Conn, restored: Restored) -> Result<i64, VerbError> {
    let server = server(conn).await?;
    let latest: Option<(i64, Vec<u8>)> = conn.query_first(LATEST).await?;
    let next = match latest {
        Some((epoch, known)) if known == server && restored == Restored::No => return Ok(epoch),
        latest => {
            let stored = latest.map(|(epoch, _)| epoch);
            let known = match restored {
                Restored::No => None,
                Restored::After(epoch) => Some(epoch),
            };
            stored.max(known).map_or(0, |epoch| epoch + 1)
        }
    };
    match conn.exec_drop(BEGIN, (next, &server)).await.map_err(VerbError::from) {
        Ok(()) => {
            if next > 0 {
                tracing::warn!(
                    epoch = next,
                    "a new epoch of the store begins: the database was promoted or restored"
                );
            }
            Ok(next)
        }
        // Another process was faster.
        Err(trouble) if trouble.is_duplicate() => Ok(next),
        Err(trouble) => Err(trouble),
    }
}

async fn server(conn: &mut Conn) -> Result<Vec<u8>, VerbError> {
    for sql in SERVER {
        match conn.query_first::<Vec<u8>, _>(sql).await {
            Ok(server) => return Ok(server.unwrap_or_default()),
            // The server has no such variable.
            Err(Error::Server(error)) if error.code == 1193 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::{Epoch, Heartbeat, Observed};
    use rewheel_core::{HolderId, Limits, Timestamp};
    use std::time::Duration;

    #[test]
    fn a_new_epoch_has_larger_fences_and_is_noticed_once() {
        let epoch = Epoch::default();
        assert_eq!((epoch.fence_floor(), epoch.observe(0)), (0, Observed::Same));
        assert_eq!((epoch.observe(2), epoch.observe(2)), (Observed::New, Observed::Same));
        assert_eq!((epoch.observe(1), epoch.fence_floor()), (Observed::Same, 2 << 32));
    }

    fn heartbeat(renewals: u64) -> Heartbeat {
        Heartbeat { renewals, at: Timestamp::from_millis(1_700_000_000_000) }
    }

    #[test]
    fn a_heartbeat_that_goes_back_shows_a_restore() {
        let (epoch, holder) = (Epoch::default(), HolderId::from_bytes([7; 16]));
        let went_back = |before: Option<u64>, renewals| {
            epoch.went_back(holder, before.map(heartbeat), heartbeat(renewals))
        };
        assert!(!went_back(None, 4) && !went_back(Some(4), 6));
        // It was sent before the one that is answered already.
        assert!(!went_back(Some(4), 5));
        assert_eq!(epoch.heartbeat_of(holder), Some(heartbeat(6)));
        assert!(went_back(Some(6), 6));
        epoch.observe(1);
        assert!(!went_back(Some(6), 1));
    }

    #[test]
    fn a_holder_may_be_pruned_a_day_after_its_last_heartbeat() {
        let (last, day) = (heartbeat(3), Limits::DEAD_HOLDERS_KEPT);
        let almost = last.at.plus(day - Duration::from_millis(1));
        assert_eq!(
            (last.may_be_pruned(almost), last.may_be_pruned(last.at.plus(day))),
            (false, true)
        );
    }
}
