//! A group whose first member is due in an hour, so that all others wait through every fault.

use super::ended::Ended;
use super::groups::CONTINUES;
use super::{Enough, PAUSE};
use crate::cell::Cell;
use crate::door::{Door, id_of};
use reqwest::Method;
use serde_json::{Value, json};

const GROUP: &str = "waiting";

/// The members in the order of their submits.
#[derive(Debug)]
pub(crate) struct WaitingLine {
    members: Vec<String>,
}

impl WaitingLine {
    pub(crate) async fn submit(door: &Door, enough: &Enough) -> WaitingLine {
        let mut members = Vec::new();
        for nth in 0.. {
            // At least two, so that there is a line.
            if enough.is_reached() && nth > 1 {
                break;
            }
            let mut job = json!({"kind": CONTINUES, "payload": {}, "key": format!("{GROUP}-{nth}"), "group_key": GROUP});
            if nth == 0 {
                job["delay"] = json!("1h");
            }
            members.push(id_of(&door.post("/v1/jobs", &job).await.body));
            tokio::time::sleep(4 * PAUSE).await;
        }
        WaitingLine { members }
    }

    /// Returns whether a job is of this group: it does not end before it is released.
    pub(crate) fn has(job: &Value) -> bool {
        job["group_key"] == GROUP
    }

    /// Checks that all members still wait, and that the doctor finds nothing wrong with it. Then cancels the first one.
    pub(crate) async fn release(&self, cell: &Cell, door: &Door) {
        let jobs = cell.jobs(&format!("group_key={GROUP}&")).await;
        for (nth, id) in self.members.iter().enumerate() {
            let job = jobs.get(id).unwrap_or_else(|| panic!("{id} is lost"));
            assert_eq!(
                (&job["state"], &job["blocked"]),
                (&json!("scheduled"), &json!(nth > 0)),
                "{job}"
            );
        }
        let (well, found) = cell.doctor().await;
        assert!(well, "{found}");
        let first = format!("/v1/jobs/{}/cancel", self.members[0]);
        door.send(&Method::POST, &first, || None).await;
    }

    pub(crate) fn check(&self, ended: &Ended<'_>) {
        assert_eq!(ended.job(&self.members[0])["state"], "cancelled");
        let mut before = ended.job(&self.members[0])["turn"].as_u64();
        for id in &self.members[1..] {
            let job = ended.succeeded(id);
            let turn = job["turn"].as_u64();
            assert!(turn > before, "not in the order of acceptance, after turn {before:?}: {job}");
            before = turn;
        }
        println!("waiting line: {} members", self.members.len());
    }
}
