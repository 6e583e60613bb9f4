//! Chains of jobs that a remote worker runs: each success has a result, and submits further jobs.

use super::ended::Ended;
use super::worker::Given;
use super::{Enough, PAUSE};
use crate::door::{Door, ids_of};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The acknowledged first jobs of the chains.
#[derive(Debug)]
pub(crate) struct Charges {
    ids: Vec<String>,
}

impl Charges {
    pub(crate) async fn submit(door: &Door, enough: &Enough) -> Charges {
        let mut ids = Vec::new();
        for round in 0.. {
            if enough.is_reached() {
                break;
            }
            let job = |n| json!({"kind": "charge", "payload": {"left": n}, "key": format!("{round}-{n}")});
            let jobs: Vec<_> = (0..3).map(job).collect();
            ids.extend(ids_of(&door.post("/v1/jobs/batch", &json!({ "jobs": jobs })).await));
            tokio::time::sleep(3 * PAUSE).await;
        }
        Charges { ids }
    }

    /// Checks that the jobs which a success submitted, and its result, exist exactly if that success counted: the job has
    /// succeeded under its fence.
    pub(crate) async fn check(&self, ended: &Ended<'_>, given: &[Given]) {
        for id in &self.ids {
            ended.succeeded(id);
        }
        for one in given.iter().filter(|one| one.is_confirmed) {
            let job = ended.job(&one.job);
            assert_eq!(
                job["fence"].as_u64(),
                Some(one.fence),
                "confirmed, and did not count: {job}"
            );
        }
        let by_fence: BTreeMap<_, _> =
            given.iter().map(|one| ((one.job.as_str(), one.fence), one)).collect();
        assert_eq!(by_fence.len(), given.len(), "two attempts with one fence");
        let (mut charges, mut follow_ups) = (0, 0);
        for (id, _) in ended.of_kind("charge") {
            let job = ended.succeeded(id);
            let counted = by_fence.get(&(id.as_str(), job["fence"].as_u64().unwrap()));
            let counted = counted.unwrap_or_else(|| panic!("no worker settled {job}"));
            let mut marks = Vec::new();
            for (child, _) in ended.children_of(id) {
                ended.succeeded(child);
                let mark = &ended.whole(child).await["payload"]["mark"];
                marks.push(mark.as_str().unwrap().to_owned());
            }
            marks.sort();
            assert_eq!(marks, counted.marks, "follow-ups of {job}");
            let (content_type, result) = ended.result(id).await;
            assert_eq!(
                (content_type.as_str(), &result["mark"]),
                ("application/json", &json!(counted.marks[0])),
                "result of {job}"
            );
            charges += 1;
            follow_ups += marks.len();
        }
        let lost = given.len() - charges;
        let parents: BTreeSet<_> = ended.of_kind("charge").map(|(id, _)| id.as_str()).collect();
        assert!(given.iter().all(|one| parents.contains(one.job.as_str())), "a charge is lost");
        println!(
            "charges: {charges} settled with {follow_ups} follow-ups, {lost} results came too late"
        );
    }
}
