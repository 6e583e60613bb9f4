//! Tests what charts draw, and what their tables say.

use super::{History, Range, Timeline, nice, per_minute};
use crate::rfc3339;
use crate::ui::documents::HistoryPoint;
use crate::ui::shown::{Times, Zone};
use askama::Template;
use rewheel_core::Timestamp;
use serde_json::{Value, json};

/// 12:00:30 of a day.
const NOW: i64 = 1_767_268_830_000;

/// A minute that began this many minutes ago.
fn minute(ago: i64, counts: Value) -> Value {
    let start = NOW - 30_000 - ago * 60_000;
    let mut found = json!({
        "attempts": 0, "succeeded": 0, "retried": 0, "dead": 0,
        "duration": { "buckets": vec![0; 17] }, "lateness": { "buckets": vec![0; 17] },
    });
    match counts.as_object() {
        None => found = Value::Null,
        Some(counts) => counts.iter().for_each(|(name, value)| found[name] = value.clone()),
    }
    let start = rfc3339::text(Timestamp::from_millis(start));
    let reported = u32::from(!found.is_null());
    json!({ "start": start, "minutes": 1, "reported": reported, "counts": found })
}

fn timeline(points: Vec<Value>, range: Option<Range>) -> Timeline {
    let as_of = rfc3339::text(Timestamp::from_millis(NOW));
    let points: Vec<HistoryPoint> = serde_json::from_value(Value::from(points)).unwrap();
    let times = Times { zone: Zone::of(None), now: Timestamp::from_millis(NOW) };
    Timeline::new(&History { as_of, points }, range, &times)
}

#[test]
fn a_minute_without_a_report_is_a_gap_and_not_zero() {
    let points = vec![
        minute(4, json!({ "succeeded": 10 })),
        minute(3, json!({ "succeeded": 20, "dead": 5 })),
        minute(2, Value::Null),
        minute(1, json!({ "succeeded": 0 })),
        minute(0, json!({ "succeeded": 7 })),
    ];
    let chart = timeline(points, Some(Range::Hour)).settled("settled", "Settled");
    // The current minute is not complete, and not shown.
    assert_eq!(chart.lines[0].path, "M56 50H57V0H58M59 100H60");
    assert_eq!(chart.lines[2].path, "M56 100V100H57V75H58V100ZM59 100V100H60V100Z");
    assert_eq!(chart.gaps, [(0, 56), (58, 1)]);
    assert_eq!(
        (chart.top.as_str(), chart.from.as_str(), chart.until.as_str()),
        ("20", "11:00", "12:00")
    );
    assert!(
        chart.about.contains("succeeded at most 20, retried at most 0, dead letters at most 5")
    );
    let row = |place: usize| (chart.rows[place].0.as_str(), chart.rows[place].1.clone());
    assert_eq!(row(0), ("11:00 to 11:56", None));
    assert_eq!(row(2), ("11:57", Some(vec!["20".to_owned(), "0".to_owned(), "5".to_owned()])));
    let html = chart.render().unwrap();
    for part in
        ["<title id=\"settled-t\">", "<desc id=\"settled-d\">", "<details>", "no node reported"]
    {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains(" style="), "the content security policy blocks it");
}

#[test]
fn each_series_has_its_own_stroke_and_there_are_three_at_most() {
    let points = vec![minute(1, json!({ "succeeded": 1 }))];
    let timeline = timeline(points, None);
    for chart in
        [timeline.settled("a", "A"), timeline.durations("b", "B"), timeline.lateness("c", "C")]
    {
        let mut classes: Vec<_> = chart.lines.iter().map(|line| line.class).collect();
        assert!(classes.len() <= 3);
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), chart.lines.len());
    }
}

#[test]
fn several_minutes_of_a_bucket_are_a_rate_of_the_reported_ones() {
    // Of the two minutes of the bucket, one was reported.
    let points = vec![minute(4, json!({ "succeeded": 30 })), minute(3, Value::Null)];
    let chart = timeline(points, Some(Range::ThreeHours)).settled("settled", "Settled");
    assert!(chart.about.contains("succeeded at most 30"), "{}", chart.about);
}

#[test]
fn quantiles_are_of_all_attempts_of_a_bucket() {
    let mut buckets = vec![0; 17];
    buckets[7] = 90;
    buckets[9] = 10;
    let points = vec![
        minute(2, json!({ "duration": { "buckets": buckets } })),
        minute(1, json!({ "succeeded": 1 })),
    ];
    let chart = timeline(points, None).durations("d", "Durations");
    let rows: Vec<_> = chart.rows.iter().filter_map(|(_, values)| values.clone()).collect();
    // A minute without attempts has no durations.
    assert_eq!(rows, [["250 ms", "1 s"], ["–", "–"]]);
    assert_eq!(chart.top, "1 s");
}

#[test]
fn the_range_is_the_shortest_with_all_that_is_known() {
    for (ago, range) in
        [(5, Range::Quarter), (40, Range::Hour), (100, Range::ThreeHours), (500, Range::Day)]
    {
        let points = vec![minute(ago, json!({ "succeeded": 1 })), minute(1, Value::Null)];
        assert_eq!(timeline(points, None).range, range);
    }
    assert_eq!(timeline(Vec::new(), None).range, Range::Quarter);
    assert!(timeline(Vec::new(), None).settled("s", "S").is_empty);
    assert_eq!(Range::parse("3h"), Some(Range::ThreeHours));
    assert_eq!(Range::parse("<script>"), None);
}

#[test]
fn dead_letters_of_the_last_hour_are_counted() {
    let points = vec![minute(90, json!({ "dead": 7 })), minute(5, json!({ "dead": 4 }))];
    assert_eq!(timeline(points, None).dead_in_an_hour(), 4);
}

#[test]
fn axes_end_at_round_numbers() {
    for (most, top) in [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (7.0, 10.0), (412.0, 500.0)] {
        assert!((nice(most) - top).abs() < 1e-9, "{most}");
    }
    assert_eq!([0.0, 0.25, 3.0, 12.4, 12_345.0].map(per_minute), ["0", "0.2", "3", "12", "12.3k"]);
}
