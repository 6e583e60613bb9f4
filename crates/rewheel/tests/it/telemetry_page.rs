//! Compares the page of the telemetry with the meters of the library.

use rewheel::otel::Meter;

const PAGE: &str = include_str!("../../../../docs/telemetry.md");

/// Returns the rows of the table below a heading, without its head.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = PAGE.split_once(heading).expect("the page has the heading");
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let table = lines.take_while(|line| line.starts_with('|')).skip(2);
    table.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_page_names_every_meter_of_the_library_and_no_other() {
    let told: Vec<[String; 3]> = rows("### Names of the library's metrics")
        .into_iter()
        .map(|row| [row[0], row[1], row[2]].map(str::to_owned))
        .collect();
    let expected: Vec<[String; 3]> = Meter::ALL
        .iter()
        .map(|meter| {
            let (name, prometheus) =
                (format!("`{}`", meter.name), format!("`{}`", meter.prometheus()));
            [name, prometheus, meter.form.to_owned()]
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn every_name_that_users_expect_leads_to_a_meter() {
    let rows = rows("### Names that users of other libraries expect");
    assert!(rows.len() >= 6, "{rows:?}");
    for row in rows {
        let ours: Vec<&str> = row[1].split('`').skip(1).step_by(2).collect();
        assert!(!ours.is_empty(), "{row:?} names no metric of ours");
        for name in ours {
            let is_known = Meter::ALL.iter().any(|meter| {
                let prometheus = meter.prometheus();
                name == meter.name
                    || name
                        .split(|c: char| c != '_' && !c.is_alphanumeric())
                        .any(|word| word == prometheus)
            });
            assert!(is_known, "`{name}` is no metric of the library");
        }
    }
}

#[test]
fn the_names_that_users_expect_are_on_the_page() {
    let rows = rows("### Names that users of other libraries expect");
    for expected in [
        "retry.attempts",
        "retry.backoff_duration",
        "circuit_breaker.state",
        "rate_limit.rejected",
        "queue.wait_time",
        "success rate",
    ] {
        assert!(rows.iter().any(|row| row[0].contains(expected)), "{expected}");
    }
}
