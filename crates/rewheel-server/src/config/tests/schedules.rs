//! Tests the section `schedules`.

use super::{check, load};
use rewheel_engine::Overlap;

#[test]
fn a_schedule_of_the_file_is_read_like_a_request() {
    let text = r#"
        [schedules.nightly-report]
        cron = "0 3 * * *"
        zone = "Europe/Berlin"
        overlap = "allow"
        job = { kind = "report", payload = { of = "sales" }, priority = 7 }
    "#;
    let schedules = load(text, &[]).unwrap().schedules;
    let (name, schedule) = schedules.iter().next().unwrap();
    assert_eq!((name.as_str(), schedule.overlap), ("nightly-report", Overlap::Allow));
    assert_eq!(schedule.timing.as_cron().unwrap().1, "Europe/Berlin");
    assert_eq!(schedule.job.payload, br#"{"of":"sales"}"#);
    assert_eq!(schedule.job.priority.get(), 7);
}

#[test]
fn a_wrong_schedule_is_named_with_its_line() {
    let of = |lines: &str| format!("[schedules.x]\njob = {{ kind = \"a\", payload = 1 }}\n{lines}");
    check(&of("cron = \"0 3 31 2 *\""), &[], "rewheel.toml:3: schedules.x.cron: never fires");
    check(
        &of("cron = \"0 3 * * *\"\nzone = \"Mars\""),
        &[],
        "rewheel.toml:4: schedules.x.zone: `Mars` is not",
    );
    check(&of("every = \"0s\""), &[], "rewheel.toml:3: schedules.x.every: must be");
    check(&of("evry = \"1m\""), &[], "rewheel.toml:3: schedules.x.evry: unknown key `evry`");
    check("[schedules.x]\nevery = \"1m\"", &[], "rewheel.toml:1: schedules.x.job: is required");
    check(
        "[schedules.X]\nevery = \"1m\"",
        &[],
        "rewheel.toml:1: schedules.X: `X` is not a valid name",
    );
    let key = "[schedules.x]\nevery = \"1m\"\njob = { kind = \"a\", payload = 1, key = \"k\" }";
    check(key, &[], "rewheel.toml:3: schedules.x.job.key: does not apply to a schedule");
}
