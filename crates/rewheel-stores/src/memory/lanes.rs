//! Shows where work waits.

use super::world::{Place, World};
use rewheel_core::store::{LaneHead, LanesDue};
use rewheel_core::{JobId, KindName, Lane, Timestamp};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

impl World {
    /// Looks at the first job of every lane: in memory that is cheap.
    pub(super) fn lanes_due(
        &self,
        kinds: &[KindName],
        horizon: Duration,
        limit: usize,
        now: Timestamp,
    ) -> LanesDue {
        let until = now.plus(horizon);
        let (mut heads, mut next) = (Vec::new(), None::<Timestamp>);
        for (lane, places) in &self.lanes {
            let Some((due, ..)) = places.first().copied() else { continue };
            let last = (until, u64::MAX, JobId::from_bytes([u8::MAX; 16]));
            let later = places.range(last..).next().map(|(due, ..)| *due);
            next = next.into_iter().chain(later).min();
            if due <= until {
                heads.push(LaneHead { lane: lane.clone(), due, due_in: due.since(now) });
            }
        }
        LanesDue::new(heads, kinds, limit, true, next.map(|next| next.since(now)))
    }

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
