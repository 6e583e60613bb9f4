//! Tests instants around changes of the clocks, in zones that change them in different ways.

use super::Calendar;
use jiff::Timestamp as Instant;
use rewheel_core::Timestamp;

fn calendar(cron: &str, zone: &str) -> Calendar {
    Calendar::new(cron.parse().unwrap(), zone).unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<Instant>().unwrap().as_millisecond())
}

/// Checks the instants after one, all in UTC.
#[track_caller]
fn check(zone: &str, cron: &str, from: &str, expected: &[&str]) {
    let calendar = calendar(cron, zone);
    let mut now = at(from);
    let mut found = Vec::new();
    for _ in expected {
        now = calendar.next_after(now).unwrap();
        found.push(Instant::from_millisecond(now.as_millis()).unwrap().to_string());
    }
    assert_eq!(found, expected, "{cron} in {zone}");
}

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";
const LORD_HOWE: &str = "Australia/Lord_Howe";
const HAVANA: &str = "America/Havana";
const KOLKATA: &str = "Asia/Kolkata";

/// 2026-03-29: 02:00 becomes 03:00, at 01:00 UTC. 2026-10-25: 03:00 becomes 02:00, at 01:00 UTC.
#[test]
fn berlin_has_an_hour_too_few_and_one_twice() {
    let gap = "2026-03-28T12:00:00Z";
    check(BERLIN, "30 2 * * *", gap, &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    check(BERLIN, "0 3 * * *", gap, &["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"]);
    check(BERLIN, "0 2,3 * * *", gap, &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
    let hourly = ["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
    check(BERLIN, "0 * * * *", "2026-03-28T23:00:00Z", &hourly);
    let fold = "2026-10-24T12:00:00Z";
    check(BERLIN, "30 2 * * *", fold, &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    check(
        BERLIN,
        "30 1-3 * * *",
        "2026-10-25T00:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z"],
    );
    let twice = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"];
    check(BERLIN, "30 * * * *", "2026-10-25T00:00:00Z", &twice);
    let halves = ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"];
    check(BERLIN, "*/30 * * * *", "2026-10-25T00:00:00Z", &halves);
    // A step: 00:00, 02:00, 02:00 again, 04:00.
    let steps = [
        "2026-10-24T22:00:00Z",
        "2026-10-25T00:00:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T03:00:00Z",
    ];
    check(BERLIN, "0 */2 * * *", "2026-10-24T21:00:00Z", &steps);
}

/// 2026-03-08: 02:00 becomes 03:00, at 07:00 UTC. 2026-11-01: 02:00 becomes 01:00, at 06:00 UTC.
#[test]
fn new_york_changes_on_other_days() {
    check(
        NEW_YORK,
        "15 2 * * *",
        "2026-03-07T12:00:00Z",
        &["2026-03-08T07:00:00Z", "2026-03-09T06:15:00Z"],
    );
    check(
        NEW_YORK,
        "15 1 * * *",
        "2026-10-31T12:00:00Z",
        &["2026-11-01T05:15:00Z", "2026-11-02T06:15:00Z"],
    );
    let twice = ["2026-11-01T05:15:00Z", "2026-11-01T06:15:00Z", "2026-11-01T07:15:00Z"];
    check(NEW_YORK, "15 * * * *", "2026-11-01T05:00:00Z", &twice);
    // Within the second of two hours, the fixed hour is over.
    check(NEW_YORK, "15 1 * * *", "2026-11-01T06:05:00Z", &["2026-11-02T06:15:00Z"]);
}

/// 2026-04-05: 02:00 becomes 01:30, at 15:00 UTC the day before. 2026-10-04: 02:00 becomes 02:30, at 15:30 UTC.
#[test]
fn lord_howe_changes_by_half_an_hour() {
    check(
        LORD_HOWE,
        "45 1 * * *",
        "2026-04-04T12:00:00Z",
        &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
    );
    let twice = ["2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z", "2026-04-04T16:15:00Z"];
    check(LORD_HOWE, "45 * * * *", "2026-04-04T14:00:00Z", &twice);
    check(
        LORD_HOWE,
        "15 2 * * *",
        "2026-10-03T12:00:00Z",
        &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
    );
}

/// 2026-03-08: midnight does not exist. 2026-11-01: 01:00 becomes 00:00, at 05:00 UTC.
#[test]
fn havana_has_no_midnight_and_one_twice() {
    check(
        HAVANA,
        "0 0 * * *",
        "2026-03-07T12:00:00Z",
        &["2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"],
    );
    check(
        HAVANA,
        "0 0 * * *",
        "2026-10-31T12:00:00Z",
        &["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"],
    );
    check(
        HAVANA,
        "30 * * * *",
        "2026-11-01T04:00:00Z",
        &["2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z"],
    );
}

#[test]
fn kolkata_never_changes_and_is_half_an_hour_off() {
    check(
        KOLKATA,
        "0 3 * * *",
        "2026-03-28T22:00:00Z",
        &["2026-03-29T21:30:00Z", "2026-03-30T21:30:00Z"],
    );
    check(
        KOLKATA,
        "*/30 * * * *",
        "2026-10-25T00:10:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"],
    );
}

/// Samoa had no 2011-12-30.
#[test]
fn a_day_that_does_not_exist_is_its_end() {
    check(
        "Pacific/Apia",
        "0 12 30 12 *",
        "2011-12-29T12:00:00Z",
        &["2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"],
    );
}

#[test]
fn leap_days_are_found_and_impossible_days_are_not() {
    check(
        "UTC",
        "0 0 29 2 *",
        "2026-01-01T00:00:00Z",
        &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
    );
    check("UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
    assert_eq!(calendar("0 0 31 2 *", BERLIN).next_after(at("2026-01-01T00:00:00Z")), None);
}

/// The quick way and the thorough way agree, and each instant is after the one before.
#[test]
fn both_ways_find_the_same_instants() {
    for zone in [BERLIN, NEW_YORK, LORD_HOWE, HAVANA, KOLKATA, "Africa/Casablanca"] {
        for cron in ["17 * * * *", "0 2 * * *", "*/20 1-3 * * *", "0 0 1 * *"] {
            let calendar = calendar(cron, zone);
            let (mut now, mut plain) = (Instant::from_second(1_767_225_600).unwrap(), 0);
            for _ in 0..400 {
                let thorough = calendar.next_around_changes(now).unwrap();
                assert!(thorough > now);
                if let Some(quick) = calendar.next_plain(now) {
                    assert_eq!(quick, thorough, "{cron} in {zone} after {now}");
                    plain += 1;
                }
                now = thorough;
            }
            assert!(plain > 300 || cron == "0 0 1 * *", "{cron} in {zone}: {plain}");
        }
    }
}

#[test]
fn an_unknown_zone_is_none() {
    assert!(Calendar::new("0 3 * * *".parse().unwrap(), "Europe/Berln").is_none());
    assert_eq!(calendar("0 3 * * *", "europe/berlin").zone_name(), BERLIN);
}
