//! Decides which rows of a history to merge.

use super::{HistoryFold, HistoryRow};
use crate::kind_history::{HistorySlot, coarse_until, floor};
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;

impl HistoryFold {
    /// Returns the merges that are due: the rows of all nodes for a minute become one row, and the minutes before
    /// [`HistorySlot::MINUTES_KEPT`] become slots of five minutes. The rows must include all rows of each minute, ordered by start.
    pub fn due(rows: &[HistoryRow], now: Timestamp) -> Vec<HistoryFold> {
        let (coarse_until, merge_until) = (coarse_until(now), now.minus(HistoryFold::MERGE_AFTER));
        let mut slots: BTreeMap<Timestamp, Vec<&HistoryRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.start < merge_until) {
            let minutes = if row.start < coarse_until { HistorySlot::COARSE_MINUTES } else { 1 };
            slots.entry(floor(row.start, minutes)).or_default().push(row);
        }
        let is_coarse = |start: &Timestamp| *start < coarse_until;
        slots
            .into_iter()
            .filter_map(|(start, rows)| fold(start, is_coarse(&start), &rows))
            .collect()
    }
}

/// Merges the rows of a slot, unless it is already one row of the right size.
fn fold(start: Timestamp, is_coarse: bool, rows: &[&HistoryRow]) -> Option<HistoryFold> {
    let minutes = if is_coarse { HistorySlot::COARSE_MINUTES } else { 1 };
    let mut by_minute: BTreeMap<Timestamp, HistorySlot> = BTreeMap::new();
    for row in rows {
        // A row of another release is lost in the merge: no release can add it up later.
        let Some(slot) = HistorySlot::decode(&row.data) else { continue };
        by_minute.entry(row.start).and_modify(|known| known.add_beside(&slot)).or_insert(slot);
    }
    let is_done = match rows {
        [_] => by_minute.get(&start).is_none_or(|slot| slot.minutes == minutes),
        _ => false,
    };
    if is_done {
        return None;
    }
    let mut merged = HistorySlot { minutes, reported: 0, kinds: BTreeMap::new() };
    by_minute.values().for_each(|slot| merged.add_after(slot));
    merged.reported = merged.reported.min(minutes);
    let into = HistoryRow { start, reporter: HistoryRow::MERGED, data: merged.encode() };
    let until = start.plus(HistorySlot::MINUTE * minutes);
    Some(HistoryFold { from: start, until, rows: Some(rows.len()), into: Some(into) })
}
