//! Groups with many members, some of which fail, die, or are redriven by an operator.

use super::ended::Ended;
use super::service::Service;
use super::{Enough, PAUSE};
use crate::door::{Door, id_of, ids_of};
use reqwest::Method;
use serde_json::json;

/// The kind whose dead letters let the next member run.
pub(crate) const CONTINUES: &str = "invoice";

/// The kind whose dead letters hold up their group until an operator redrives them.
pub(crate) const BLOCKS: &str = "entry";

/// Groups of each kind.
const GROUPS: usize = 8;

/// The acknowledged members of each group of one kind, in the order of their submits: each was acknowledged before the next one
/// was sent.
#[derive(Debug)]
pub(crate) struct Groups {
    kind: &'static str,
    members: Vec<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    id: String,
    /// Whether the service rejects it, until it is repaired.
    dies: bool,
}

impl Groups {
    pub(crate) async fn submit(kind: &'static str, door: &Door, enough: &Enough) -> Groups {
        let mut members: Vec<Vec<Member>> = (0..GROUPS).map(|_| Vec::new()).collect();
        for nth in 0.. {
            if enough.is_reached() {
                break;
            }
            let dies = |group: usize| (nth + group) % 9 == 4;
            let job = |group: usize| {
                let mut job = json!({
                    "kind": kind,
                    "payload": {"dies": dies(group)},
                    "key": format!("{group}-{nth}"),
                    "group_key": format!("customer-{}", group / 2),
                });
                // The same key of another tenant is another group.
                if group % 2 == 1 {
                    job["tenant"] = json!("acme");
                }
                job
            };
            let jobs: Vec<_> = (0..GROUPS).map(job).collect();
            let batch = door.post("/v1/jobs/batch", &json!({ "jobs": jobs })).await;
            for (group, id) in ids_of(&batch).into_iter().enumerate() {
                members[group].push(Member { id, dies: dies(group) });
            }
            tokio::time::sleep(2 * PAUSE).await;
        }
        Groups { kind, members }
    }

    /// Checks how each member ended, and that they ran in the order of their submits. [`super::lines`] checks that they ran one
    /// at a time.
    pub(crate) fn check(&self, ended: &Ended<'_>) {
        let mut dead = 0;
        for members in &self.members {
            let mut before = None;
            for Member { id, dies } in members {
                let job = ended.job(id);
                let stays_dead = *dies && self.kind == CONTINUES;
                dead += usize::from(*dies);
                let expected = if stays_dead { "dead" } else { "succeeded" };
                assert_eq!(job["state"], expected, "{job}");
                ended.settled_by_newest(id);
                let turn = job["turn"].as_u64();
                assert!(
                    turn > before,
                    "not in the order of acceptance, after turn {before:?}: {job}"
                );
                before = turn;
            }
        }
        let count: usize = self.members.iter().map(Vec::len).sum();
        assert!(dead > 0, "no member of {count} died");
        println!("{}: {count} members of {GROUPS} groups, {dead} died", self.kind);
    }
}

/// Redrives the dead letters that hold up their groups, again and again.
pub(crate) async fn redrive(door: &Door, service: &Service, over: &Enough) {
    while !over.is_reached() {
        let dead = door.get(&format!("/v1/jobs?state=dead&kind={BLOCKS}&limit=1000")).await;
        for id in dead["items"].as_array().unwrap().iter().map(id_of) {
            service.repair(&id);
            // A repeated request may find that the job runs already.
            door.send(&Method::POST, &format!("/v1/jobs/{id}/retry"), || None).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
