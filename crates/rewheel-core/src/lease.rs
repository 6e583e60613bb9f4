//! Leases, holders and their roles.

use crate::format::Format;
use crate::id::{Fence, HolderId, JobId};
use crate::timestamp::Timestamp;
use crate::token::TokenId;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// The lease of one job. Every write by a holder contains both values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// The fence that the holder received with the lease.
    pub fence: Fence,
}

/// The type of a holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// An engine. Engines share fleet-wide rates, and report to each other that a dependency is down.
    #[default]
    Engine,
    /// A worker in another process that receives jobs from a server.
    Worker {
        /// The caller that created it. Only the same caller may act for it.
        owner: WorkerOwner,
    },
}

impl Role {
    /// Returns the name used in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Engine => "engine",
            Role::Worker { .. } => "worker",
        }
    }

    /// Returns the owner of a worker.
    pub const fn owner(self) -> Option<WorkerOwner> {
        match self {
            Role::Engine => None,
            Role::Worker { owner } => Some(owner),
        }
    }

    /// Parses the output of [`Role::as_str`] and of [`WorkerOwner`]'s `Display`. An unknown role is read as an engine, for which
    /// no caller may act.
    pub fn of(role: &str, owner: Option<&str>) -> Role {
        if role != "worker" {
            return Role::Engine;
        }
        Role::Worker { owner: owner.map_or(WorkerOwner::Unknown, WorkerOwner::parse) }
    }
}

/// The credentials that created a worker. Later requests of the worker must use the same ones.
///
/// ```
/// use rewheel_core::{TokenId, WorkerOwner};
///
/// let owner = WorkerOwner::Token(TokenId::new(7));
/// assert_eq!(WorkerOwner::parse(&owner.to_string()), owner);
/// assert_eq!(WorkerOwner::parse("a later version's word"), WorkerOwner::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkerOwner {
    /// A server without tokens, which is reachable only from its own machine.
    NoToken,
    /// The token of the config file.
    Config,
    /// A token stored in the store.
    Token(TokenId),
    /// A worker created by an older or newer version. No caller may act for it.
    Unknown,
}

impl WorkerOwner {
    /// Parses the output of `Display`.
    pub fn parse(text: &str) -> WorkerOwner {
        match text {
            "no_token" => WorkerOwner::NoToken,
            "config" => WorkerOwner::Config,
            _ => match text.strip_prefix("token:").and_then(|id| id.parse().ok()) {
                Some(id) => WorkerOwner::Token(id),
                None => WorkerOwner::Unknown,
            },
        }
    }

    /// Returns whether a caller with these credentials may act for a worker of this owner.
    pub fn admits(self, caller: WorkerOwner) -> bool {
        self == caller && self != WorkerOwner::Unknown
    }
}

impl fmt::Display for WorkerOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerOwner::NoToken => f.write_str("no_token"),
            WorkerOwner::Config => f.write_str("config"),
            WorkerOwner::Token(id) => write!(f, "token:{id}"),
            WorkerOwner::Unknown => f.write_str("unknown"),
        }
    }
}

/// A holder to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHolder {
    /// New at each start.
    pub id: HolderId,
    /// Display name; need not be unique.
    pub name: String,
    /// Engine or worker.
    pub role: Role,
    /// Lease duration: the holder must renew its lease within this time.
    pub lease_ttl: Duration,
    /// What its release can handle: [`Format::CURRENT`], except in tests.
    pub format: Format,
}

/// A holder as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// New at each start.
    pub id: HolderId,
    /// Display name.
    pub name: String,
    /// Engine or worker.
    pub role: Role,
    /// Lease duration: the holder must renew its lease within this time.
    pub lease_ttl: Duration,
    /// What its release can handle.
    pub format: Format,
    /// Increases with every renewal.
    pub renewals: u64,
    /// When it registered.
    pub joined: Timestamp,
    /// When it last renewed.
    pub renewed: Timestamp,
    /// Whether its lease has expired. The holder loses its jobs only when another holder marks it as dead.
    pub expired: bool,
    /// When the holder died: it deregistered, or another holder marked it as dead. A dead holder cannot renew its lease again.
    pub died: Option<Timestamp>,
}

/// Finds the holders that may be marked as dead.
///
/// An expired lease alone does not prove that a holder is dead: the store may have been unavailable, or its clock may have
/// jumped. So the observer waits for one lease duration in which it renews its own lease without a failure. If the renewal
/// counter of the other holder does not change in this time, the other holder may be marked as dead.
///
/// Times are from the observer's monotonic clock, with any origin.
///
/// ```
/// use rewheel::Random;
/// use rewheel_core::{ExpiryWatch, Format, Holder, HolderId, Role, Timestamp};
/// use std::time::Duration;
///
/// let at = Timestamp::from_millis(0);
/// let silent = Holder {
///     id: HolderId::new(at, &Random::seeded(1)),
///     name: "node-2".to_owned(),
///     role: Role::Engine,
///     lease_ttl: Duration::from_secs(15),
///     format: Format::CURRENT,
///     renewals: 4,
///     joined: at,
///     renewed: at,
///     expired: true,
///     died: None,
/// };
/// let mut expiry_watch = ExpiryWatch::new(Duration::from_secs(15));
/// for seconds in [0, 5, 10] {
///     assert!(expiry_watch.renewed(Duration::from_secs(seconds), &[silent.clone()]).is_empty());
/// }
/// assert_eq!(expiry_watch.renewed(Duration::from_secs(15), &[silent.clone()]), [silent]);
/// ```
#[derive(Clone, Debug)]
pub struct ExpiryWatch {
    lease_ttl: Duration,
    renewed: Option<Duration>,
    still: HashMap<HolderId, Still>,
}

/// A renewal counter, with the time until which it may stay unchanged.
#[derive(Clone, Copy, Debug)]
struct Still {
    renewals: u64,
    until: Duration,
}

impl ExpiryWatch {
    /// Creates a watch without observations; `lease_ttl` is the observer's own lease duration.
    pub fn new(lease_ttl: Duration) -> ExpiryWatch {
        ExpiryWatch { lease_ttl, renewed: None, still: HashMap::new() }
    }

    /// Records a successful renewal at `now`, and the holders read with it. Returns the holders that may be expired.
    pub fn renewed(&mut self, now: Duration, holders: &[Holder]) -> Vec<Holder> {
        // A process that was suspended for longer than its lease has not observed the others meanwhile, so it starts over.
        if self.renewed.is_some_and(|last| now.saturating_sub(last) >= self.lease_ttl) {
            self.still.clear();
        }
        self.renewed = Some(now);
        // Count from the first observation, not from the end of the lease: one lease duration without a renewal is enough, and a
        // takeover must not wait for two.
        let living = holders.iter().filter(|holder| holder.died.is_none());
        let still = living.map(|holder| {
            let known = self.still.get(&holder.id).filter(|old| old.renewals == holder.renewals);
            let until = now.saturating_add(holder.lease_ttl.max(self.lease_ttl));
            let fresh = Still { renewals: holder.renewals, until };
            (holder.id, known.copied().unwrap_or(fresh))
        });
        self.still = still.collect();
        let gone = |holder: &&Holder| {
            holder.expired && self.still.get(&holder.id).is_some_and(|still| still.until <= now)
        };
        holders.iter().filter(gone).cloned().collect()
    }

    /// Returns the time from `now` until the next holder may be marked as dead, if no holder of the last read renews its lease before.
    ///
    /// ```
    /// use rewheel_core::ExpiryWatch;
    /// use std::time::Duration;
    ///
    /// let mut expiry_watch = ExpiryWatch::new(Duration::from_secs(15));
    /// expiry_watch.renewed(Duration::ZERO, &[]);
    /// assert_eq!(expiry_watch.patience(Duration::ZERO), None);
    /// ```
    pub fn patience(&self, now: Duration) -> Option<Duration> {
        self.still.values().map(|still| still.until.saturating_sub(now)).min()
    }

    /// Records a failed renewal, which starts the observation again: the counters of other holders
    /// may be unchanged only because the store was unavailable.
    pub fn failed(&mut self) {
        self.renewed = None;
        self.still.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{ExpiryWatch, Format, Holder, HolderId, Role, Timestamp};
    use rewheel::Random;
    use std::time::Duration;

    const TTL: Duration = Duration::from_secs(15);

    fn silent(renewals: u64) -> Holder {
        let at = Timestamp::from_millis(0);
        Holder {
            id: HolderId::new(at, &Random::seeded(7)),
            name: "other".to_owned(),
            role: Role::Engine,
            lease_ttl: TTL,
            format: Format::CURRENT,
            renewals,
            joined: at,
            renewed: at,
            expired: true,
            died: None,
        }
    }

    #[track_caller]
    fn check(expiry_watch: &mut ExpiryWatch, second: u64, holder: &Holder, expired: bool) {
        let found = expiry_watch.renewed(Duration::from_secs(second), std::slice::from_ref(holder));
        assert_eq!(!found.is_empty(), expired, "at second {second}");
    }

    #[test]
    fn a_counter_that_moves_starts_over() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        for second in [0, 5, 10] {
            check(&mut expiry_watch, second, &silent(1), false);
        }
        for second in [14, 19, 24] {
            check(&mut expiry_watch, second, &silent(2), false);
        }
        check(&mut expiry_watch, 29, &silent(2), true);
    }

    #[test]
    fn silence_counts_from_the_first_sight_not_from_the_end_of_the_lease() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        let renewed = Holder { expired: false, ..silent(1) };
        for second in [0, 5, 10] {
            check(&mut expiry_watch, second, &renewed, false);
        }
        check(&mut expiry_watch, 15, &silent(1), true);
    }

    #[test]
    fn patience_ends_when_the_first_may_be_expired() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        let patience =
            |expiry_watch: &ExpiryWatch, second| expiry_watch.patience(Duration::from_secs(second));
        check(&mut expiry_watch, 3, &silent(1), false);
        assert_eq!(patience(&expiry_watch, 3), Some(TTL));
        assert_eq!(patience(&expiry_watch, 17), Some(Duration::from_secs(1)));
        assert_eq!(patience(&expiry_watch, 40), Some(Duration::ZERO));
        check(&mut expiry_watch, 10, &silent(2), false);
        assert_eq!(patience(&expiry_watch, 10), Some(TTL));
        expiry_watch.failed();
        assert_eq!(patience(&expiry_watch, 10), None);
    }

    #[test]
    fn a_failed_renewal_starts_over() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        for second in [0, 5, 10] {
            check(&mut expiry_watch, second, &silent(1), false);
        }
        expiry_watch.failed();
        for second in [15, 20, 25] {
            check(&mut expiry_watch, second, &silent(1), false);
        }
        check(&mut expiry_watch, 30, &silent(1), true);
    }

    #[test]
    fn one_who_was_stopped_itself_starts_over() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        check(&mut expiry_watch, 0, &silent(1), false);
        check(&mut expiry_watch, 3_600, &silent(1), false);
    }

    #[test]
    fn the_longer_lease_of_the_two_counts() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        let patient = Holder { lease_ttl: TTL * 2, ..silent(1) };
        for second in [0, 10, 20] {
            check(&mut expiry_watch, second, &patient, false);
        }
        check(&mut expiry_watch, 30, &patient, true);
    }

    #[test]
    fn who_renews_in_time_or_is_dead_is_left_alone() {
        let mut expiry_watch = ExpiryWatch::new(TTL);
        let alive = Holder { expired: false, ..silent(1) };
        let dead = Holder { died: Some(Timestamp::from_millis(1)), ..silent(1) };
        for second in [0, 10, 20, 30] {
            check(&mut expiry_watch, second, &alive, false);
            check(&mut expiry_watch, second, &dead, false);
        }
    }
}
