//! Checks that the metrics table is consistent.

use super::{METERS, MeterType};
use std::collections::BTreeSet;

#[test]
fn names_are_what_both_worlds_ask_for() {
    let mut names = BTreeSet::new();
    for meter in &METERS {
        assert!(names.insert(meter.prometheus_name()), "{} twice", meter.name);
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        assert!(meter.name.starts_with("rewheel.") && meter.name.chars().all(is_plain));
        assert!(meter.unit == "s" || meter.unit.starts_with('{'), "{}", meter.name);
        assert!(meter.help.ends_with('.') && !meter.help.contains('\n'), "{}", meter.name);
        assert!(!meter.labels.contains(&"tenant"), "the number of tenants is not limited");
        let is_total = meter.prometheus_name().ends_with("_total");
        assert_eq!(is_total, meter.form == MeterType::Counter, "{}", meter.name);
    }
}
