//! Lists lanes with scheduled jobs.

use super::world::{Place, World};
use rewheel_core::store::LaneHead;
use rewheel_core::{JobId, KindName, Lane, Timestamp};
use std::collections::BTreeSet;
use std::ops::Bound;

impl World {
    /// Reports to watchers that a job may have become the first of its lane.
    pub(super) fn report_lane(&mut self, job: JobId) {
        let report = self.report.get_or_insert_default();
        if let Some(row) = self.jobs.get(&job) {
            report.add(&row.job.lane);
        }
    }

    pub(super) fn lane_heads(&self, lanes: &[Lane], now: Timestamp) -> Vec<LaneHead> {
        let head = |lane: &Lane| head(self.lanes.get_key_value(lane)?, now);
        lanes.iter().filter_map(head).collect()
    }

    pub(super) fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<LaneHead> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.lanes
            .range::<Lane, _>((start, Bound::Unbounded))
            .filter(|(lane, _)| kinds.contains(&lane.kind))
            .filter_map(|lane| head(lane, now))
            .take(limit)
            .collect()
    }
}

fn head((lane, places): (&Lane, &BTreeSet<Place>), now: Timestamp) -> Option<LaneHead> {
    let (due, ..) = *places.first()?;
    Some(LaneHead { lane: lane.clone(), due, due_in: due.since(now) })
}
