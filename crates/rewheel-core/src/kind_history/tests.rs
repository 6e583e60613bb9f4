//! Tests of counts, their encoding, timelines and merges.

use super::{HistorySlot, HistoryTimeline, KindCounts, floor};
use crate::id::HolderId;
use crate::name::KindName;
use crate::store::{HistoryFold, HistoryRow};
use crate::timestamp::Timestamp;
use std::time::Duration;

const HOUR: u64 = 3_600;

fn at(minutes: i64) -> Timestamp {
    // A multiple of five minutes.
    Timestamp::from_millis(1_800_000_000_000 + minutes * 60_000)
}

fn kind(name: &str) -> KindName {
    KindName::parse(name).unwrap()
}

fn kinds() -> [KindName; 1] {
    [kind("mail")]
}

fn slot(attempts: u64) -> HistorySlot {
    let mut slot = HistorySlot::minute();
    let counts = slot.of(Some(&kind("mail")));
    *counts = KindCounts { attempts, concurrency_max: attempts, ..KindCounts::default() };
    counts.durations[3] = attempts;
    slot
}

fn row(minute: i64, reporter: u8, attempts: u64) -> HistoryRow {
    let reporter = HolderId::from_bytes([reporter; 16]);
    HistoryRow { start: at(minute), reporter, data: slot(attempts).encode() }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_slot_is_read_as_it_was_written() {
    let mut full = slot(300);
    full.of(None).lateness[16] = u64::MAX;
    full.of(Some(&kind("a.b"))).submitted = 1;
    (full.minutes, full.reported) = (5, 3);
    for slot in [HistorySlot::minute(), slot(7), full] {
        let bytes = slot.encode();
        assert_eq!(HistorySlot::decode(&bytes), Some(slot));
        for cut in 0..bytes.len() {
            assert_eq!(HistorySlot::decode(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(HistorySlot::decode(&[&bytes[..], &[0]].concat()), None);
    }
    assert_eq!(HistorySlot::decode(&[2, 1, 1, 0]), None, "an unknown layout");
    assert_eq!(HistorySlot::decode(&[1, 1, 1, 0xff, 0xff, 0xff]), None);
}

#[test]
fn kinds_beyond_the_limit_are_counted_together() {
    let mut slot = HistorySlot::minute();
    for number in 0..HistorySlot::KINDS_MAX + 5 {
        slot.of(Some(&kind(&format!("k{number}")))).attempts += 1;
    }
    assert_eq!(slot.kinds.len(), HistorySlot::KINDS_MAX + 1);
    assert_eq!(slot.kinds[&None].attempts, 5);
    slot.of(Some(&kind("k7"))).attempts += 1;
    assert_eq!(slot.kinds[&Some(kind("k7"))].attempts, 2, "a known kind stays on its own");
    assert_eq!(slot.total(&[]).attempts, 1_006);
    assert_eq!(slot.total(&[kind("k7")]).attempts, 2);
}

#[test]
fn peaks_of_nodes_add_up_and_peaks_of_minutes_do_not() {
    let (mut beside, mut after) = (slot(3), slot(3));
    beside.add_beside(&slot(4));
    after.add_after(&slot(4));
    let read = |slot: &HistorySlot| {
        let counts = slot.total(&[kind("mail")]);
        (counts.attempts, counts.durations[3], counts.concurrency_max, slot.reported)
    };
    assert_eq!(read(&beside), (7, 7, 7, 1));
    assert_eq!(read(&after), (7, 7, 4, 2));
}

#[test]
fn quantiles_are_bounds_of_buckets() {
    let mut buckets = [0; KindCounts::BUCKETS];
    assert_eq!(KindCounts::quantile(&buckets, 0.5), None);
    for millis in [1, 2, 2, 400_000] {
        buckets[KindCounts::bucket(Duration::from_millis(millis))] += 1;
    }
    assert_eq!(buckets[0..2], [1, 2]);
    let quantile = |part| KindCounts::quantile(&buckets, part).unwrap();
    assert_eq!(quantile(0.25), Duration::from_millis(1));
    assert_eq!(quantile(0.5), Duration::from_micros(2_500));
    assert_eq!(quantile(1.0), seconds(300), "the last bucket has only a lower bound");
}

#[test]
fn a_minute_without_a_report_is_a_gap_and_not_zero() {
    let idle = HistorySlot::minute().encode();
    let rows = [
        row(0, 1, 5),
        row(0, 2, 6),
        HistoryRow { data: idle, ..row(2, 1, 0) },
        HistoryRow { data: vec![9], ..row(3, 1, 0) },
    ];
    let now = at(4).plus(seconds(30));
    let timeline = HistoryTimeline::new(&rows, now, seconds(4 * 60 + 30), &[]);
    let seen: Vec<(u32, u64)> = timeline
        .points
        .iter()
        .map(|point| (point.slot.reported, point.slot.total(&[]).attempts))
        .collect();
    assert_eq!(seen, [(1, 11), (0, 0), (1, 0), (0, 0)], "the current minute is not known yet");
    assert!(timeline.points[1].is_gap() && !timeline.points[2].is_gap());
    assert_eq!(timeline.unreadable, 1);
    let reported = [row(4, 1, 9)];
    let timeline = HistoryTimeline::new(&reported, now, seconds(30), &[]);
    assert_eq!(timeline.points.len(), 1);
    assert_eq!(timeline.points[0].start, at(4));
}

#[test]
fn a_day_has_a_limited_number_of_points() {
    let timeline = HistoryTimeline::new(&[], at(24 * 60), seconds(240 * HOUR), &[]);
    let coarse = timeline.points.iter().filter(|point| point.slot.minutes == 5).count();
    assert_eq!((coarse, timeline.points.len()), (21 * 12, 21 * 12 + 180));
    assert_eq!(timeline.points[0].start, at(0));
}

/// Applies merges as a store does.
fn apply(rows: &mut Vec<HistoryRow>, now: Timestamp) -> usize {
    let folds = HistoryFold::due(rows, now);
    for fold in &folds {
        let is_inside = |row: &HistoryRow| row.start >= fold.from && row.start < fold.until;
        assert_eq!(Some(rows.iter().filter(|row| is_inside(row)).count()), fold.rows);
        rows.retain(|row| !is_inside(row));
        rows.extend(fold.into.clone());
    }
    rows.sort_by_key(HistoryRow::position);
    folds.len()
}

#[test]
fn merging_changes_no_timeline() {
    let mut rows: Vec<HistoryRow> = (0..10 * 60)
        .filter(|minute| minute % 7 != 3 && *minute != 60)
        .flat_map(|minute| [row(minute, 1, 2), row(minute, 2, minute as u64)])
        .collect();
    rows.sort_by_key(HistoryRow::position);
    for hours in [1, 3, 4, 8] {
        let now = at(hours * 60 + 7);
        let mut known: Vec<HistoryRow> =
            rows.iter().filter(|row| row.start <= now).cloned().collect();
        let before = HistoryTimeline::new(&known, now, HistorySlot::KEPT, &kinds());
        assert!(apply(&mut known, now) > 0);
        assert_eq!(
            HistoryTimeline::new(&known, now, HistorySlot::KEPT, &kinds()),
            before,
            "{hours}"
        );
        assert_eq!(apply(&mut known, now), 0, "nothing is left to merge");
        let later = now.plus(seconds(HOUR));
        let later_before = HistoryTimeline::new(&known, later, HistorySlot::KEPT, &kinds());
        apply(&mut known, later);
        assert_eq!(HistoryTimeline::new(&known, later, HistorySlot::KEPT, &kinds()), later_before);
    }
}

#[test]
fn minutes_that_nodes_may_still_report_are_not_merged() {
    let rows = [row(0, 1, 1), row(0, 2, 1)];
    let merged_at = at(0).plus(HistoryFold::MERGE_AFTER);
    assert_eq!(HistoryFold::due(&rows, merged_at), []);
    assert_eq!(HistoryFold::due(&rows, merged_at.plus(seconds(1))).len(), 1);
    assert!(!rows[0].is_accepted(merged_at) && rows[0].is_accepted(at(10)));
    assert!(rows[0].is_accepted(at(-1)) && !rows[0].is_accepted(at(-2)));
    assert_eq!(HistoryFold::due(&rows[..1], at(60)), [], "one row is a merged row");
    assert_eq!(HistoryFold::due(&rows[..1], at(60 * 4)).len(), 1);
}

#[test]
fn times_are_rounded_down_to_slots() {
    assert_eq!(floor(at(7).plus(seconds(59)), 5), at(5));
    assert_eq!(HistorySlot::start_of(at(7).plus(seconds(59))), at(7));
    assert_eq!(floor(Timestamp::from_millis(-1), 1), Timestamp::from_millis(-60_000));
}
