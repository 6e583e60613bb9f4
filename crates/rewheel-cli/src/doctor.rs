//! Checks a store.

use crate::args::Doctor;
use crate::local;
use crate::output::{Output, table};
use crate::trouble::{Trouble, exit};
use rewheel_core::store::{Books, Capabilities, Risk};
use serde::Serialize;

/// What the doctor found.
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

pub(crate) async fn run(args: Doctor, output: Output) -> Result<(), Trouble> {
    let url = match args.store {
        Some(url) => url,
        None => local::config(args.config.as_deref())?.store.url,
    };
    let store = local::open(&url).await?;
    let books = store.books().await?;
    let findings = examine(store.capabilities(), books, &store.risks().await?);
    store.close().await?;
    let text =
        serde_json::to_string(&findings).map_err(|error| Trouble::new(exit::FAILED, error))?;
    output.answer(text, || words(&findings));
    if findings.ok {
        return Ok(());
    }
    let found: Vec<_> =
        findings.checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    let message = format!("the doctor found something: {}", found.join(", "));
    Err(Trouble::new(exit::FAILED, anyhow::Error::msg(message)))
}

/// Judges what a store says of itself.
fn examine(can: Capabilities, books: Books, risks: &[Risk]) -> Findings {
    let missing = books.missing();
    let mut checks = vec![Check {
        name: "books",
        ok: missing == 0,
        message: match missing {
            0 => format!("all {} jobs are accounted for", books.submitted),
            1.. => format!("{missing} jobs were submitted and are nowhere"),
            _ => format!("{} more jobs are there than were submitted", missing.unsigned_abs()),
        },
    }];
    for risk in risks {
        checks.push(Check { name: risk.name, ok: false, message: risk.message.clone() });
    }
    if can.durable && risks.is_empty() {
        let message = "what was acknowledged survives a crash and a power cut".to_owned();
        checks.push(Check { name: "durable", ok: true, message });
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
    use super::{Books, Capabilities, Risk, examine};
    use rewheel_core::store::Wakes;

    const SQLITE: Capabilities = Capabilities {
        name: "sqlite",
        durable: true,
        shared: true,
        wakes: Wakes::Process,
        payload_bytes_max: 1,
    };

    const GOOD: Books = Books { submitted: 9, live: 1, dead: 0, finished: 7, pruned: 1 };

    #[test]
    fn good_books_in_a_good_store_are_fine() {
        let found = serde_json::to_value(examine(SQLITE, GOOD, &[])).unwrap();
        assert_eq!(found["ok"], true);
        let books = r#"{"submitted":9,"live":1,"dead":0,"finished":7,"pruned":1,"missing":0}"#;
        assert_eq!(found["books"], serde_json::from_str::<serde_json::Value>(books).unwrap());
        let names: Vec<_> =
            found["checks"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
        assert_eq!(names, ["books", "durable"]);
    }

    #[test]
    fn a_missing_job_is_found() {
        let bad = Books { finished: 6, ..GOOD };
        let found = examine(SQLITE, bad, &[]);
        assert_eq!((found.ok, found.books.missing), (false, 1));
        assert_eq!(found.checks[0].message, "1 jobs were submitted and are nowhere");
    }

    #[test]
    fn a_weak_setting_is_found() {
        let risk = Risk { name: "fsync", message: "off".to_owned() };
        let found = examine(SQLITE, GOOD, &[risk]);
        assert!(!found.ok && found.checks[1].name == "fsync" && !found.checks[1].ok);
    }
}
