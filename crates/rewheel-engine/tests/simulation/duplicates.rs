//! Submits with the same key that replace each other, and what must become of their payloads.

use crate::model::Model;
use rewheel::Random;
use rewheel_core::store::{Filter, PageRequest, ReadStore};
use rewheel_core::{Job, JobId, State, Waits};
use rewheel_engine::{Engine, OnDuplicate, Receipt, Submit, UniqueUntil};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The keys of these jobs begin with it.
const KEY: &str = "page-";

/// Number of keys: few, so that submits meet.
const KEYS: u64 = 3;

/// What was submitted, and what ran. Each payload is the number of its submit.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    sent: u64,
    /// The submits without an answer: each may have replaced a job or not, also later.
    open: BTreeSet<u64>,
    /// The job that each answered submit is in.
    accepted: BTreeMap<u64, JobId>,
    /// The payloads that the attempts of each job got.
    ran: BTreeMap<JobId, BTreeSet<u64>>,
}

impl Payloads {
    /// Notes a submit before it is sent.
    pub(crate) fn send(&mut self) -> u64 {
        self.sent += 1;
        self.open.insert(self.sent);
        self.sent
    }

    /// Notes the answer.
    pub(crate) fn accept(&mut self, number: u64, receipt: &Receipt) {
        self.open.remove(&number);
        self.accepted.insert(number, receipt.id);
    }

    /// Notes what an attempt got.
    pub(crate) fn run(&mut self, job: &Job) {
        if let Some(number) = number(job) {
            self.ran.entry(job.id).or_default().insert(number);
        }
    }

    /// Returns which accepted submits were lost, given the jobs at the end.
    pub(crate) fn lost(&self, jobs: &BTreeMap<JobId, Job>) -> Vec<String> {
        let mut lost = Vec::new();
        for (number, id) in &self.accepted {
            let Some(job) = jobs.get(id) else {
                lost.push(format!("submit {number} is in job {id}, which does not exist"));
                continue;
            };
            let last = self::number(job).unwrap_or_default();
            if last < *number && !self.open.contains(&last) {
                lost.push(format!("submit {number} is not in job {id}, which has {last}"));
            }
            let has_run = self.ran.get(id).is_some_and(|ran| ran.contains(&last));
            if job.state() == State::Succeeded && !has_run {
                let ran = self.ran.get(id);
                lost.push(format!("job {id} succeeded with {ran:?}, and its submit is {last}"));
            }
        }
        lost
    }
}

/// Returns the number of the submit that a job has.
fn number(job: &Job) -> Option<u64> {
    job.key.as_ref().filter(|key| key.as_str().starts_with(KEY))?;
    std::str::from_utf8(job.payload.as_deref()?).ok()?.parse().ok()
}

/// Builds a submit that replaces a waiting job, or takes the key of a claimed one; some are debounced.
pub(crate) fn submit<'a>(engine: &'a Engine, random: &Random, number: u64) -> Submit<'a> {
    let submit = engine.submit_raw("work", number.to_string().into_bytes());
    let submit = submit.key(&format!("{KEY}{}", random.next() % KEYS));
    if random.next().is_multiple_of(2) {
        return submit.debounce_up_to(Duration::from_secs(2), Duration::from_secs(6));
    }
    let delay = Duration::from_millis([0, 1_000, 8_000][(random.next() % 3) as usize]);
    let submit = submit.unique_until(UniqueUntil::Claimed).on_duplicate(OnDuplicate::Replace);
    submit.priority(4 + (random.next() % 2) as u8).delay(delay)
}

impl Model {
    /// Checks that of all jobs with the same key at most one waits.
    pub(crate) async fn check_waiting(&self) {
        let states = vec![State::Scheduled, State::Paused];
        let filter = Filter { states, ..Filter::default() };
        let page = self.store.list(&filter, &PageRequest::first(1_000)).await;
        let jobs = page.expect("the store itself never fails").items;
        let mut keys = BTreeSet::new();
        for job in jobs.iter().filter(|job| job.waits() == Waits::Yes) {
            let Some(key) = job.key.as_ref().filter(|key| key.as_str().starts_with(KEY)) else {
                continue;
            };
            self.count("looks at waiting jobs with a key");
            if !keys.insert(key.as_str()) {
                self.complain(format!("two jobs with the key {key} wait: one is {}", job.id));
            }
        }
    }

    /// Checks that the last submit of each job is what it ran.
    pub(crate) async fn check_payloads(&self) {
        let accepted: BTreeSet<JobId> = self.payloads().accepted.values().copied().collect();
        let mut jobs = BTreeMap::new();
        for id in accepted {
            let job = self.store.get(id).await.expect("the store itself never fails");
            jobs.extend(job.map(|job| (id, job)));
        }
        let lost = self.payloads().lost(&jobs);
        lost.into_iter().for_each(|what| self.complain(what));
    }
}
