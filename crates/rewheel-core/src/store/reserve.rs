//! Reserves part of a tenant's limit of live jobs for one node.

use crate::id::HolderId;
use crate::name::Tenant;

/// The most that a holder reserves beyond its current need: enough for a burst, and a small loss to
/// other holders while unused.
const AHEAD_MAX: u64 = 1_000;

/// A request to reserve part of a tenant's limit of live jobs.
///
/// A holder's reservation counts as live jobs until the holder reduces it. So the fleet never
/// exceeds the limit, and a holder needs only one request for many jobs.
///
/// ```
/// use rewheel_core::store::Reserve;
/// use rewheel_core::{HolderId, Tenant};
///
/// let reserve = Reserve {
///     holder: HolderId::from_bytes([7; 16]),
///     tenant: Tenant::parse("acme")?,
///     jobs_max: 100,
///     on_the_way: 0,
///     needed: 1,
///     holders: 2,
/// };
/// // The one that is needed, plus half of this holder's half of the rest.
/// assert_eq!(reserve.granted(59, 20), 1 + 5);
/// assert_eq!(reserve.granted(80, 20), 0);
/// # Ok::<(), rewheel_core::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The requesting holder; must be alive.
    pub holder: HolderId,
    /// The tenant.
    pub tenant: Tenant,
    /// The tenant's limit of live jobs.
    pub jobs_max: u64,
    /// Number of jobs that the holder has sent to the store, and for which it has no response yet.
    /// Their reservation cannot be released.
    pub on_the_way: u64,
    /// Number of further jobs that the holder needs to store. Zero releases the whole reservation
    /// except for jobs that are on the way.
    pub needed: u64,
    /// Number of holders that share the remaining capacity.
    pub holders: u64,
}

impl Reserve {
    /// Returns the holder's new reservation, including jobs on the way, given the number of live
    /// jobs and the reservations of other holders.
    pub fn granted(&self, live: u64, others: u64) -> u64 {
        let left = self.jobs_max.saturating_sub(live).saturating_sub(others);
        let wanted = self.on_the_way.saturating_add(self.needed);
        let ahead = left.saturating_sub(wanted) / (2 * self.holders.clamp(1, u64::MAX / 2));
        let ahead = if self.needed == 0 { 0 } else { ahead.min(AHEAD_MAX) };
        wanted.saturating_add(ahead).min(left).max(self.on_the_way)
    }
}

#[cfg(test)]
mod tests {
    use super::Reserve;
    use crate::id::HolderId;
    use crate::name::Tenant;

    fn reserve(on_the_way: u64, needed: u64) -> Reserve {
        Reserve {
            holder: HolderId::from_bytes([1; 16]),
            tenant: Tenant::parse("acme").unwrap(),
            jobs_max: 100,
            on_the_way,
            needed,
            holders: 1,
        }
    }

    #[test]
    fn what_is_granted_fits() {
        for (on_the_way, needed, live, others, granted) in [
            (0, 1, 0, 0, 1 + 49),
            (0, 1, 99, 0, 1),
            (0, 1, 100, 0, 0),
            (0, 1, 0, 100, 0),
            (0, 1, 200, 0, 0),
            (0, 50, 60, 10, 30),
            (0, 200, 0, 0, 100),
            // Jobs on the way cannot be taken back, and may be counted already.
            (10, 0, 100, 0, 10),
            (10, 5, 100, 0, 10),
            (10, 5, 80, 0, 15 + 2),
            (0, 0, 0, 0, 0),
            (3, 0, 0, 0, 3),
        ] {
            let asked = reserve(on_the_way, needed);
            assert_eq!(asked.granted(live, others), granted, "{asked:?} {live} {others}");
        }
        let all = Reserve { jobs_max: u64::MAX, holders: 0, ..reserve(0, 1) };
        assert_eq!(all.granted(0, 0), 1_001);
        let extreme = Reserve { holders: u64::MAX, ..reserve(u64::MAX, u64::MAX) };
        assert_eq!(extreme.granted(u64::MAX, u64::MAX), u64::MAX);
    }
}
