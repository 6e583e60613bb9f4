//! Lists lanes with scheduled jobs.

use super::world::{Place, World};
use rewheel_core::store::LaneHead;
use rewheel_core::{KindName, Lane, Timestamp};
use std::collections::BTreeSet;
use std::ops::Bound;

impl World {
    pub(super) fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<LaneHead> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let head = |(lane, places): (&Lane, &BTreeSet<Place>)| {
            let (due, ..) = *places.first()?;
            Some(LaneHead { lane: lane.clone(), due, due_in: due.since(now) })
        };
        self.lanes
            .range::<Lane, _>((start, Bound::Unbounded))
            .filter(|(lane, _)| kinds.contains(&lane.kind))
            .filter_map(head)
            .take(limit)
            .collect()
    }
}
