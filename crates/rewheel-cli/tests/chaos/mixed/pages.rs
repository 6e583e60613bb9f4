//! Submits that replace each other: `debounce`, `on_duplicate`, `unique_until`.

use super::ended::Ended;
use super::{Enough, PAUSE};
use crate::door::{Door, id_of};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const PAGES: u64 = 6;

/// What was submitted with one key.
#[derive(Debug, Default)]
struct Page {
    /// The acknowledged versions with their jobs, the last one at the end.
    accepted: Vec<(u64, String)>,
    /// Versions with a try that had no response. Such a try may arrive late, and the last arrival wins.
    unanswered: BTreeSet<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: BTreeMap<u64, Page>,
    replaced: usize,
}

impl Pages {
    pub(crate) async fn submit(door: &Door, enough: &Enough) -> Pages {
        let mut pages = Pages::default();
        for version in 0.. {
            // Each page at least twice.
            if enough.is_reached() && version >= 2 * PAGES {
                break;
            }
            // Each page twice in a row, so that there is something to replace.
            let number = version / 2 % PAGES;
            let answer = door.post("/v1/jobs", &job(number, version)).await;
            let page = pages.pages.entry(number).or_default();
            page.accepted.push((version, id_of(&answer.body)));
            if answer.is_repeated {
                page.unanswered.insert(version);
            }
            pages.replaced += usize::from(answer.body["replaced"] == true);
            tokio::time::sleep(PAUSE / 2).await;
        }
        pages
    }

    pub(crate) async fn check(&self, ended: &Ended<'_>) {
        let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, id) in self.pages.values().flat_map(|page| &page.accepted) {
            if !versions.contains_key(id.as_str()) {
                versions.insert(id, version_of(ended, id).await);
            }
        }
        for (number, page) in &self.pages {
            let is_allowed =
                |least: u64, version: u64| version >= least || page.unanswered.contains(&version);
            for (version, id) in &page.accepted {
                let ran = versions[id.as_str()];
                assert!(
                    is_allowed(*version, ran),
                    "version {version} of page {number} ran as {ran}: {page:?}"
                );
            }
            let jobs = ended.cell.jobs(&format!("kind=page&key=page-{number}&")).await;
            let [last] = jobs.keys().collect::<Vec<_>>()[..] else { panic!("{jobs:?}") };
            let (wanted, ran) = (page.accepted.last().unwrap().0, version_of(ended, last).await);
            assert!(
                is_allowed(wanted, ran),
                "page {number} ended with version {ran}, not {wanted}: {page:?}"
            );
        }
        println!(
            "pages: {} jobs of {PAGES} keys, {} submits replaced one",
            versions.len(),
            self.replaced
        );
        assert!(self.replaced > 0, "no submit replaced a job");
    }
}

fn job(number: u64, version: u64) -> Value {
    let mut job =
        json!({"kind": "page", "payload": {"version": version}, "key": format!("page-{number}")});
    let more = match number % 3 {
        0 => json!({"debounce": {"delay": "400ms", "max": "2s"}}),
        1 => json!({"on_duplicate": "replace", "unique_until": "claimed", "delay": "1s"}),
        _ => json!({"on_duplicate": "replace", "unique_until": "claimed"}),
    };
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}

/// Returns the version that a job ran. A job that a node has claimed is not replaced any more, so all its calls have the same.
async fn version_of(ended: &Ended<'_>, id: &str) -> u64 {
    ended.succeeded(id);
    ended.settled_by_newest(id);
    let version = ended.whole(id).await["payload"]["version"].as_u64().unwrap();
    for call in ended.service.calls_of(id) {
        assert_eq!(
            call.payload["version"].as_u64(),
            Some(version),
            "{id} was replaced while it ran"
        );
    }
    version
}
