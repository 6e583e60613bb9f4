//! A remote worker of the mixed workload: it submits jobs with its results, and sometimes sends a result too late.

use super::Enough;
use crate::door::{Door, id_of};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// One in this many claims is settled late, by a holder that the worker has given up.
const LATE_EVERY: usize = 5;

/// After so many further claims.
const LATE_BY: usize = 8;

/// What a worker sent with the success of one attempt.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) job: String,
    pub(crate) fence: u64,
    /// The `mark` in the payload of each job that it submitted, and in the result.
    pub(crate) marks: Vec<String>,
    /// Whether a response confirmed it.
    pub(crate) is_confirmed: bool,
}

/// Results that were not sent yet.
struct Unsent {
    holder: String,
    results: Vec<Value>,
    /// Their places in the list of what was given.
    given: Vec<usize>,
    /// The number of the claim after which they are sent.
    after: usize,
}

pub(crate) struct Worker<'a> {
    door: &'a Door,
    name: &'static str,
    holder: Option<String>,
    claims: usize,
    attempts: usize,
    late: Vec<Unsent>,
    given: Vec<Given>,
}

impl Worker<'_> {
    /// Works until it is over. Returns everything that was sent with a success.
    pub(crate) async fn run(name: &'static str, door: &Door, over: &Enough) -> Vec<Given> {
        let (late, given) = (Vec::new(), Vec::new());
        let mut worker = Worker { door, name, holder: None, claims: 0, attempts: 0, late, given };
        while !over.is_reached() {
            worker.tick().await;
        }
        worker.given
    }

    async fn tick(&mut self) {
        let claim = json!({"holder": self.holder, "name": self.name, "kinds": ["charge"], "max": 5, "wait": "200ms"});
        let answer = self.call("claim", &claim).await;
        if answer.0 == StatusCode::GONE {
            self.holder = None;
            return;
        }
        assert!(answer.0.is_success(), "{answer:?}");
        let (holder, jobs) = (answer.1["holder"].as_str().unwrap().to_owned(), &answer.1["jobs"]);
        self.holder = Some(holder.clone());
        let jobs = jobs.as_array().unwrap();
        // Jobs of a claim without a response are missing here, so the server takes them back.
        let ids: Vec<_> = jobs.iter().map(id_of).collect();
        self.call("heartbeat", &json!({"holder": holder, "jobs": ids})).await;
        if !jobs.is_empty() {
            self.claims += 1;
            let unsent = self.attempt(holder, jobs);
            if self.claims.is_multiple_of(LATE_EVERY) {
                self.holder = None;
                self.late.push(unsent);
            } else {
                self.settle(&unsent).await;
            }
        }
        while self.late.first().is_some_and(|first| first.after <= self.claims) {
            let unsent = self.late.remove(0);
            self.settle(&unsent).await;
        }
    }

    /// Makes an attempt of each job. Some fail.
    fn attempt(&mut self, holder: String, jobs: &[Value]) -> Unsent {
        let (mut results, mut given) = (Vec::new(), Vec::new());
        for job in jobs {
            self.attempts += 1;
            let (id, fence) = (id_of(job), job["fence"].as_u64().unwrap());
            if self.attempts % 6 == 3 {
                results.push(json!({"id": id, "fence": fence, "verdict": "retry", "category": "io", "message": "planned"}));
                continue;
            }
            let mark = |n: usize| format!("{id}-{fence}-{n}");
            let submit = follow_ups(&job["payload"], &id, mark);
            let marks: Vec<_> = (0..submit.len()).map(mark).collect();
            let body = json!({"content_type": "application/json", "body": {"mark": mark(0)}});
            results.push(json!({"id": id, "fence": fence, "verdict": "done", "submit": submit, "result": body}));
            given.push(self.given.len());
            self.given.push(Given { job: id, fence, marks, is_confirmed: false });
        }
        Unsent { holder, results, given, after: self.claims + LATE_BY }
    }

    async fn settle(&mut self, unsent: &Unsent) {
        let settle = json!({"holder": unsent.holder, "results": unsent.results});
        let (status, body) = self.call("settle", &settle).await;
        if status == StatusCode::GONE {
            return;
        }
        assert!(status.is_success(), "{status} {body}");
        let settled =
            body["results"].as_array().unwrap().iter().filter(|one| one["settled"] == true);
        let settled: Vec<String> = settled.map(id_of).collect();
        for given in &unsent.given {
            let given = &mut self.given[*given];
            given.is_confirmed = settled.contains(&given.job);
        }
    }

    async fn call(&self, verb: &str, body: &Value) -> (StatusCode, Value) {
        let path = format!("/v1/workers/{verb}");
        let answer = self.door.send(&Method::POST, &path, || Some(body.clone())).await;
        (answer.status, answer.body)
    }
}

/// Returns the jobs that a success submits: a mail, one with a group, and the next charge of a chain.
fn follow_ups(payload: &Value, id: &str, mark: impl Fn(usize) -> String) -> Vec<Value> {
    let outbox = format!("outbox-{}", &id[id.len() - 1..]);
    let mut jobs = vec![
        json!({"kind": "mail", "payload": {"mark": mark(0)}}),
        json!({"kind": "mail", "payload": {"mark": mark(1)}, "key": mark(1), "group_key": outbox}),
    ];
    if let Some(left) = payload["left"].as_u64().filter(|left| *left > 0) {
        jobs.push(
            json!({"kind": "charge", "payload": {"left": left - 1, "of": id, "mark": mark(2)}}),
        );
    }
    jobs
}
