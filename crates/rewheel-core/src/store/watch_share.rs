//! Which workers an engine watches.

use crate::id::HolderId;

/// The part of all workers that one of several engines watches. The stores divide workers by their numbers: each worker is in two
/// shares, so if one of the two engines dies, the other engine already watches the worker.
///
/// ```
/// use rewheel_core::store::WatchShare;
///
/// let shares: Vec<WatchShare> = (0..3).map(|index| WatchShare::new(index, 3)).collect();
/// assert_eq!(shares.iter().filter(|share| share.has(17)).count(), 2);
/// assert!(WatchShare::all().has(17));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchShare {
    index: u32,
    of: u32,
}

impl WatchShare {
    /// Returns the share of one of `of` engines, counted from zero.
    pub fn new(index: u32, of: u32) -> WatchShare {
        let of = of.max(1);
        WatchShare { index: index % of, of }
    }

    /// Returns the share that contains every worker.
    pub fn all() -> WatchShare {
        WatchShare::new(0, 1)
    }

    /// Returns the share of one of these engines. If the engine is not among them, the share contains all workers.
    pub fn of(engine: HolderId, living: &[HolderId]) -> WatchShare {
        let place = living.iter().filter(|other| **other < engine).count();
        match (u32::try_from(place), u32::try_from(living.len())) {
            (Ok(place), Ok(of)) if living.contains(&engine) => WatchShare::new(place, of),
            _ => WatchShare::all(),
        }
    }

    /// Returns the number of shares, and the two remainders of a worker's number that are in this one.
    pub fn remainders(self) -> (u32, [u32; 2]) {
        (self.of, [self.index, (self.index + 1) % self.of])
    }

    /// Returns whether a worker with this number is in the share.
    pub fn has(self, number: u64) -> bool {
        let (of, remainders) = self.remainders();
        remainders.iter().any(|remainder| number % u64::from(of) == u64::from(*remainder))
    }
}
