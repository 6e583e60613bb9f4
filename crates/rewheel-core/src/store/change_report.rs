//! What a store reports to tasks that wait for a change.

use crate::job::Lane;
use std::collections::BTreeSet;

/// A report from a [`Watch`](super::Watch). The report says which lanes an engine has to read again, so that the engine does not read all lanes.
///
/// ```
/// use rewheel_core::store::StoreChange;
/// use rewheel_core::{KindName, Lane, Priority, Shard};
///
/// let kind = KindName::parse("charge-card")?;
/// let lane = Lane { kind, tenant: None, priority: Priority::default(), shard: Shard::NONE };
/// let mut change = StoreChange::default();
/// change.add(&lane);
/// assert!(matches!(&change, StoreChange::Lanes(lanes) if lanes.contains(&lane)));
/// change.merge(StoreChange::AnyLane);
/// assert_eq!(change, StoreChange::AnyLane);
/// change.merge(StoreChange::Replaced);
/// change.merge(StoreChange::AnyLane);
/// assert_eq!(change, StoreChange::Replaced);
/// # Ok::<(), rewheel_core::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChange {
    /// Only these lanes may have a job that is due earlier than before. There may be none: for example, only a kind was changed.
    Lanes(BTreeSet<Lane>),
    /// Any lane may have changed.
    AnyLane,
    /// The store was promoted or restored. Any lane may have changed, and leases, reservations and everything else that was acknowledged
    /// before may be missing.
    Replaced,
}

impl StoreChange {
    /// Maximum number of lanes in one report; with more, it becomes [`StoreChange::AnyLane`].
    pub const LANES_MAX: usize = 1_000;

    /// Adds a lane.
    pub fn add(&mut self, lane: &Lane) {
        let StoreChange::Lanes(lanes) = self else { return };
        if lanes.contains(lane) {
            return;
        }
        if lanes.len() >= Self::LANES_MAX {
            *self = StoreChange::AnyLane;
        } else {
            lanes.insert(lane.clone());
        }
    }

    /// Returns whether it names no lane.
    pub fn is_empty(&self) -> bool {
        matches!(self, StoreChange::Lanes(lanes) if lanes.is_empty())
    }

    /// Adds the lanes of another report.
    pub fn merge(&mut self, other: StoreChange) {
        match other {
            StoreChange::Replaced => *self = StoreChange::Replaced,
            StoreChange::AnyLane if *self == StoreChange::Replaced => {}
            StoreChange::AnyLane => *self = StoreChange::AnyLane,
            StoreChange::Lanes(lanes) => lanes.iter().for_each(|lane| self.add(lane)),
        }
    }
}

impl Default for StoreChange {
    fn default() -> StoreChange {
        StoreChange::Lanes(BTreeSet::new())
    }
}

impl From<&Lane> for StoreChange {
    fn from(lane: &Lane) -> StoreChange {
        StoreChange::Lanes(BTreeSet::from([lane.clone()]))
    }
}

impl<'l> FromIterator<&'l Lane> for StoreChange {
    fn from_iter<T: IntoIterator<Item = &'l Lane>>(lanes: T) -> StoreChange {
        let mut change = StoreChange::default();
        lanes.into_iter().for_each(|lane| change.add(lane));
        change
    }
}
