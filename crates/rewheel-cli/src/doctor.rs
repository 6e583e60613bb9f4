//! Checks a store for problems.

mod stuck_groups;

use crate::args::Doctor;
use crate::cli_error::{CliError, exit};
use crate::local;
use crate::output::{Output, table};
use rewheel_core::SecretUrl;
use rewheel_core::store::{Books, Capabilities, Risk, Store};
use rewheel_server::config::{Config, ConfigWarning};
use rewheel_server::disk_space;
use serde::Serialize;

/// Clocks that differ by more than this are reported.
const SKEW_MS_MAX: i64 = 1_000;

/// The result of the checks.
#[derive(Debug, Serialize)]
struct Findings {
    ok: bool,
    books: BooksDocument,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct BooksDocument {
    submitted: u64,
    live: u64,
    dead: u64,
    finished: u64,
    pruned: u64,
    missing: i64,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    message: String,
}

pub(crate) async fn run(args: Doctor, output: Output) -> Result<(), CliError> {
    let mut config = local::config(args.config.as_deref())?;
    if let Some(url) = args.store {
        config.store.url = url.expose().to_owned();
    }
    let store = local::open_to_look(&SecretUrl::new(config.store_url())).await?;
    let books = store.books().await?;
    let clock = Clock::read(store.as_ref()).await?;
    let risks = store.risks().await?;
    let groups = stuck_groups::check(store.as_ref()).await?;
    let mut findings = examine(store.capabilities(), books, clock, &risks, &config.warnings());
    findings.ok &= groups.ok;
    findings.checks.push(groups);
    if let Some(disk) = disk(&config) {
        findings.ok &= disk.ok;
        findings.checks.push(disk);
    }
    store.close().await?;
    let text =
        serde_json::to_string(&findings).map_err(|error| CliError::new(exit::FAILED, error))?;
    output.answer(text, || words(&findings));
    if findings.ok {
        return Ok(());
    }
    let found: Vec<_> =
        findings.checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    let message = format!("checks failed: {}", found.join(", "));
    Err(CliError::new(exit::FAILED, anyhow::Error::msg(message)))
}

/// Checks the free space of the disk, if the store is a file.
fn disk(config: &Config) -> Option<Check> {
    let space = disk_space(config)?;
    Some(Check { name: "disk", ok: space.is_ok(), message: space.unwrap_or_else(|little| little) })
}

/// The store's clock, compared with this machine's.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// How far the store's clock is ahead, in milliseconds.
    ahead_ms: i64,
    /// How long the query took.
    asked_ms: i64,
}

impl Clock {
    async fn read(store: &dyn Store) -> Result<Clock, CliError> {
        let before = wall_ms();
        let theirs = store.now().await?.as_millis();
        let asked_ms = wall_ms() - before;
        Ok(Clock { ahead_ms: theirs - before - asked_ms / 2, asked_ms })
    }

    fn check(self) -> Check {
        let off = self.ahead_ms.abs();
        let ok = off <= SKEW_MS_MAX + self.asked_ms;
        let side = if self.ahead_ms < 0 { "behind" } else { "ahead of" };
        let message = if ok {
            format!(
                "the store's clock is {off} ms {side} this machine's; only the store's clock is used"
            )
        } else {
            format!(
                "the store's clock is {off} ms {side} this machine's: jobs use the store's clock, so log times and `due` times from \
                 this machine are wrong by that much; synchronise both clocks with NTP"
            )
        };
        Check { name: "clock", ok, message }
    }
}

#[expect(clippy::disallowed_methods, reason = "this check compares the clock of this machine")]
fn wall_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Checks the capabilities of a store and how it is used.
fn examine(
    can: Capabilities,
    books: Books,
    clock: Clock,
    risks: &[Risk],
    warnings: &[ConfigWarning],
) -> Findings {
    let missing = books.missing();
    let mut checks = vec![Check {
        name: "books",
        ok: missing == 0,
        message: match missing {
            0 => format!("all {} jobs are accounted for", books.submitted),
            1.. => format!(
                "submitted jobs that are missing from the store: {missing}; either rows were deleted by hand, or Rewheel \
                 has a bug; in both cases restore a backup"
            ),
            _ => format!(
                "jobs in the store that were never submitted: {}; either rows were added by hand, or Rewheel has a bug",
                missing.unsigned_abs()
            ),
        },
    }];
    checks.push(clock.check());
    for risk in risks {
        checks.push(Check { name: risk.name, ok: false, message: risk.message.clone() });
    }
    if can.durable && risks.is_empty() {
        let message = "acknowledged jobs survive a crash and a power failure".to_owned();
        checks.push(Check { name: "durable", ok: true, message });
    }
    let unsafe_one = |doubt: &ConfigWarning| Check {
        name: "settings",
        ok: false,
        message: format!("{} {}; {}", doubt.key, doubt.why, doubt.advice),
    };
    checks.extend(warnings.iter().map(unsafe_one));
    if warnings.is_empty() {
        let message = "no unsafe settings".to_owned();
        checks.push(Check { name: "settings", ok: true, message });
    }
    let ok = checks.iter().all(|check| check.ok);
    let Books { submitted, live, dead, finished, pruned } = books;
    Findings {
        ok,
        books: BooksDocument { submitted, live, dead, finished, pruned, missing },
        checks,
    }
}

fn words(findings: &Findings) -> String {
    let books = &findings.books;
    let sum = [books.live, books.dead, books.finished, books.pruned].map(|count| count.to_string());
    let mut row = vec![books.submitted.to_string()];
    row.extend(sum);
    row.push(books.missing.to_string());
    let names = ["SUBMITTED", "LIVE", "DEAD", "FINISHED", "PRUNED", "MISSING"];
    let checks = findings.checks.iter().map(|check| {
        let verdict = if check.ok { "ok" } else { "WRONG" };
        vec![verdict.to_owned(), check.name.to_owned(), check.message.clone()]
    });
    format!("{}\n\n{}", table(&names, [row]), table(&[], checks))
}

#[cfg(test)]
mod tests {
    use super::{Books, Capabilities, Clock, Config, ConfigWarning, Risk, disk, examine};
    use rewheel_core::store::Wakes;

    const SQLITE: Capabilities = Capabilities {
        name: "sqlite",
        durable: true,
        shared: true,
        remote: false,
        wakes: Wakes::Process,
        groups: true,
        payload_bytes_max: 1,
    };

    const CLOCK: Clock = Clock { ahead_ms: -3, asked_ms: 1 };

    const GOOD: Books = Books { submitted: 9, live: 1, dead: 0, finished: 7, pruned: 1 };

    #[test]
    fn good_books_in_a_good_store_are_fine() {
        let found = serde_json::to_value(examine(SQLITE, GOOD, CLOCK, &[], &[])).unwrap();
        assert_eq!(found["ok"], true);
        let books = r#"{"submitted":9,"live":1,"dead":0,"finished":7,"pruned":1,"missing":0}"#;
        assert_eq!(found["books"], serde_json::from_str::<serde_json::Value>(books).unwrap());
        let names: Vec<_> =
            found["checks"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
        assert_eq!(names, ["books", "clock", "durable", "settings"]);
    }

    #[test]
    fn a_missing_job_is_found() {
        let bad = Books { finished: 6, ..GOOD };
        let found = examine(SQLITE, bad, CLOCK, &[], &[]);
        assert_eq!((found.ok, found.books.missing), (false, 1));
        let message = &found.checks[0].message;
        assert!(
            message.starts_with("submitted jobs that are missing from the store: 1;"),
            "{message}"
        );
    }

    #[test]
    fn a_weak_setting_is_found() {
        let risk = Risk { name: "fsync", message: "off".to_owned() };
        let found = examine(SQLITE, GOOD, CLOCK, &[risk], &[]);
        assert!(!found.ok && found.checks[2].name == "fsync" && !found.checks[2].ok);
    }

    #[test]
    fn clocks_that_disagree_are_found() {
        for (ahead_ms, asked_ms, ok) in [(1_000, 0, true), (-1_001, 0, false), (1_500, 600, true)] {
            let clock = Clock { ahead_ms, asked_ms };
            assert_eq!(examine(SQLITE, GOOD, clock, &[], &[]).ok, ok, "{clock:?}");
        }
    }

    #[test]
    fn an_unsafe_setting_is_found() {
        let warning = ConfigWarning {
            key: "engine.lease_ttl".to_owned(),
            why: "is too short".to_owned(),
            advice: "set it to 1s or more".to_owned(),
        };
        let found = examine(SQLITE, GOOD, CLOCK, &[], &[warning]);
        let last = found.checks.last().unwrap();
        assert_eq!(
            (found.ok, last.message.as_str()),
            (false, "engine.lease_ttl is too short; set it to 1s or more")
        );
    }

    #[test]
    fn little_space_on_the_disk_of_a_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.url = format!("sqlite://{}", folder.path().join("rewheel.db").display());
        config.server.disk_free_bytes_min = 0;
        assert!(disk(&config).unwrap().ok);
        config.server.disk_free_bytes_min = u64::MAX;
        let little = disk(&config).unwrap();
        assert!(!little.ok && little.message.contains("make space on the disk"), "{little:?}");
        config.store.url = "postgres://db/shop".to_owned();
        assert!(disk(&config).is_none());
    }
}
