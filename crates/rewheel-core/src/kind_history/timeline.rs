//! Puts the rows of a history in order: one point for each minute or five minutes, with gaps where no node reported.

use super::{HistorySlot, floor};
use crate::name::KindName;
use crate::store::HistoryRow;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The history of all kinds, the oldest point first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryTimeline {
    /// When it was read, by the store's clock.
    pub now: Timestamp,
    /// One point for each slot, without missing ones. The current minute is only there if a node has reported in it.
    pub points: Vec<HistoryPoint>,
    /// Number of rows that this release cannot read. They count as not reported.
    pub unreadable: usize,
}

/// A slot of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPoint {
    /// When it begins, by the store's clock.
    pub start: Timestamp,
    /// What was counted. If no minute was reported, nothing is known.
    pub slot: HistorySlot,
}

impl HistoryPoint {
    /// Returns whether no node reported: then the counts are unknown, not zero.
    pub const fn is_gap(&self) -> bool {
        self.slot.reported == 0
    }
}

impl HistoryTimeline {
    /// Orders rows that were read at a time, from `since` before that time. Rows in any order give the same result.
    /// With kinds, keeps the counts of each of them; without, keeps the sum of all kinds, under `None`.
    pub fn new(
        rows: &[HistoryRow],
        now: Timestamp,
        since: Duration,
        kinds: &[KindName],
    ) -> HistoryTimeline {
        let since = since.min(HistorySlot::KEPT);
        let coarse_until = coarse_until(now);
        let minutes_at = |at: Timestamp| match at < coarse_until {
            true => HistorySlot::COARSE_MINUTES,
            false => 1,
        };
        let (mut found, mut unreadable) = (BTreeMap::new(), 0);
        for row in rows {
            let Some(slot) = HistorySlot::decode(&row.data).map(|slot| slot.narrowed(kinds)) else {
                unreadable += 1;
                continue;
            };
            found
                .entry(row.start)
                .and_modify(|known: &mut HistorySlot| known.add_beside(&slot))
                .or_insert(slot);
        }
        let from = now.minus(since);
        let mut at = floor(from, minutes_at(from));
        let mut points = Vec::new();
        while at <= now {
            let minutes = minutes_at(at);
            let end = at.plus(HistorySlot::MINUTE * minutes);
            let mut slot = HistorySlot { minutes, reported: 0, kinds: BTreeMap::new() };
            found.range(at..end).for_each(|(_, part)| slot.add_after(part));
            slot.reported = slot.reported.min(minutes);
            // It is still to be reported.
            if slot.reported > 0 || end <= now {
                points.push(HistoryPoint { start: at, slot });
            }
            at = end;
        }
        HistoryTimeline { now, points, unreadable }
    }
}

/// Returns until when slots have five minutes.
pub(crate) fn coarse_until(now: Timestamp) -> Timestamp {
    floor(now.minus(HistorySlot::MINUTES_KEPT), HistorySlot::COARSE_MINUTES)
}
