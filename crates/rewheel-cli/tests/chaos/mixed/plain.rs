//! Jobs that only have to run: with and without a key, with retries, with results, and of a service that asks to wait.

use super::ended::Ended;
use super::{Enough, PAUSE};
use crate::door::{Door, id_of, ids_of};
use serde_json::json;
use std::collections::BTreeSet;

/// The kinds of a round.
const KINDS: [&str; 5] = ["report", "report", "mail", "metered", "polite"];

/// One in this many rounds is submitted twice, although it was acknowledged.
const REPEATED_EVERY: usize = 5;

/// The acknowledged jobs.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    keyed: Vec<String>,
    /// Without a key, a repeated submit may create a second job.
    others: Vec<String>,
}

impl Plain {
    pub(crate) async fn submit(door: &Door, enough: &Enough) -> Plain {
        let mut plain = Plain::default();
        for round in 0.. {
            if enough.is_reached() {
                break;
            }
            let job = |(n, kind): (usize, &&str)| json!({"kind": kind, "payload": {}, "key": format!("plain-{round}-{n}")});
            let jobs: Vec<_> = KINDS.iter().enumerate().map(job).collect();
            let batch = json!({ "jobs": jobs });
            let ids = ids_of(&door.post("/v1/jobs/batch", &batch).await);
            if round % REPEATED_EVERY == 0 {
                let again = ids_of(&door.post("/v1/jobs/batch", &batch).await);
                assert_eq!(ids, again, "a repeated submit has another answer");
            }
            plain.keyed.extend(ids);
            let job = json!({"kind": "mail", "payload": {}});
            plain.others.push(id_of(&door.post("/v1/jobs", &job).await.body));
            tokio::time::sleep(PAUSE).await;
        }
        plain
    }

    pub(crate) async fn check(&self, ended: &Ended<'_>) {
        let ids: BTreeSet<_> = self.keyed.iter().collect();
        assert_eq!(ids.len(), self.keyed.len(), "two keys are one job");
        for id in self.keyed.iter().chain(&self.others) {
            let job = ended.succeeded(id);
            ended.settled_by_newest(id);
            if job["kind"] == "report" {
                let (content_type, result) = ended.result(id).await;
                assert_eq!(content_type, "application/json");
                assert_eq!(result["fence"], job["fence"], "the result of another attempt: {job}");
            }
        }
        let throttled = ended.service.throttled();
        assert_eq!(throttled.len(), 2, "a service never asked to wait: {throttled:?}");
        println!(
            "plain: {} jobs with a key, {} without; told to wait: {throttled:?}",
            self.keyed.len(),
            self.others.len()
        );
    }
}
