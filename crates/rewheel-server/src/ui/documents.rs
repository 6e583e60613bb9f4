//! The documents of REST, as pages read them.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Listed<T> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) payload: Option<Box<RawValue>>,
    pub(super) key: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) shard_key: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) group_key: Option<String>,
    pub(super) instant: Option<String>,
    pub(super) blocked: bool,
    pub(super) priority: u8,
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    pub(super) takeovers: u32,
    pub(super) fence: u64,
    pub(super) holder: Option<String>,
    pub(super) wanted: Option<String>,
    pub(super) version: u64,
    pub(super) due: String,
    pub(super) deadline: Option<String>,
    pub(super) due_because: Because,
    pub(super) held_because: Option<Held>,
    pub(super) attempt_timeout: String,
    pub(super) backoff: String,
    pub(super) created: String,
    pub(super) finished: Option<String>,
    pub(super) failure: Option<Failure>,
    pub(super) incident: Option<String>,
    pub(super) result: Option<ResultHead>,
    pub(super) result_dropped: Option<String>,
    #[serde(default)]
    pub(super) attempts: Vec<Attempt>,
    #[serde(default)]
    pub(super) attempts_dropped: u64,
    #[serde(default)]
    pub(super) audit: Vec<Audit>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Because {
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Held {
    pub(super) reason: String,
    pub(super) text: String,
    pub(super) until: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) category: String,
    pub(super) code: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResultHead {
    pub(super) content_type: String,
    pub(super) bytes: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) attempt: u32,
    pub(super) holder: String,
    pub(super) started: String,
    pub(super) duration: String,
    pub(super) category: Option<String>,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) decision: String,
    pub(super) delay: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Audit {
    pub(super) at: String,
    pub(super) who: String,
    pub(super) what: String,
    pub(super) before: BTreeMap<String, Option<String>>,
    pub(super) after: BTreeMap<String, Option<String>>,
    #[serde(default)]
    pub(super) job: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Kind {
    pub(super) kind: String,
    pub(super) runner: String,
    pub(super) runnable: bool,
    pub(super) paused: bool,
    pub(super) parked: bool,
    pub(super) settings: serde_json::Map<String, serde_json::Value>,
    pub(super) breaker: Breaker,
    pub(super) jobs: Counts,
    pub(super) oldest_due: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Breaker {
    pub(super) state: String,
    pub(super) forced: bool,
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
    pub(super) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Counts {
    pub(super) scheduled: u64,
    pub(super) leased: u64,
    pub(super) paused: u64,
    pub(super) dead: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Stats {
    pub(super) jobs: Counts,
    pub(super) oldest_due: Option<String>,
    pub(super) as_of: String,
    pub(super) approximate: bool,
    pub(super) holders: Alive,
    pub(super) here: Here,
}

#[derive(Debug, Deserialize)]
pub(super) struct Alive {
    pub(super) alive: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Here {
    pub(super) lease_expired: bool,
    pub(super) concurrency: u64,
    pub(super) concurrency_free: u64,
    pub(super) waiting: u64,
    pub(super) notices: Vec<Notices>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Notices {
    pub(super) notifier: String,
    pub(super) sent: u64,
    pub(super) suppressed: u64,
    pub(super) failed: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Incident {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) category: String,
    pub(super) code: Option<String>,
    pub(super) message: String,
    pub(super) count: u64,
    pub(super) dead: u64,
    pub(super) first_seen: String,
    pub(super) last_seen: String,
    pub(super) examples: Vec<String>,
    #[serde(default)]
    pub(super) complete: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Incidents {
    pub(super) items: Vec<Incident>,
    pub(super) next: Option<String>,
    pub(super) complete: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) verb: String,
    pub(super) state: String,
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) reason: Option<String>,
    pub(super) canary: Option<Canary>,
    pub(super) incident: Option<String>,
    pub(super) by: String,
    pub(super) created: String,
    pub(super) finished: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Canary {
    /// From 1; `None` once all steps succeeded.
    pub(super) step: Option<usize>,
    pub(super) sizes: Vec<u64>,
    pub(super) redriven: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) failed_job: Option<String>,
    pub(super) rest: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Preview {
    pub(super) count: u64,
    pub(super) complete: bool,
    pub(super) sample: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Holder {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) state: String,
    pub(super) here: bool,
    pub(super) lease_ttl: String,
    pub(super) joined: String,
    pub(super) renewed: String,
    pub(super) died: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Token {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) roles: Vec<String>,
    pub(super) tenant: Option<String>,
    pub(super) state: String,
    pub(super) created: String,
    pub(super) expires: Option<String>,
    #[serde(default)]
    pub(super) token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Schedule {
    pub(super) name: String,
    pub(super) cron: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) every: Option<String>,
    pub(super) job: JobOfSchedule,
    pub(super) overlap: String,
    pub(super) catch_up: String,
    pub(super) paused: bool,
    pub(super) managed_by_config: bool,
    pub(super) next: Vec<String>,
    pub(super) last: Option<Fired>,
    pub(super) fired: u64,
    pub(super) skipped: u64,
    pub(super) missed: u64,
    pub(super) failure: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobOfSchedule {
    pub(super) kind: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Fired {
    pub(super) instant: String,
    pub(super) job: String,
}

/// The health of the server: its parts by name.
#[derive(Debug, Deserialize)]
pub(super) struct Health {
    pub(super) components: BTreeMap<String, HealthOfPart>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HealthOfPart {
    pub(super) state: String,
    #[serde(default)]
    pub(super) message: String,
}

/// What happened to jobs, minute by minute.
#[derive(Debug, Default, Deserialize)]
pub(super) struct History {
    pub(super) as_of: String,
    pub(super) points: Vec<HistoryPoint>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HistoryPoint {
    pub(super) start: String,
    pub(super) minutes: u32,
    pub(super) reported: u32,
    /// `None` if no node reported.
    pub(super) counts: Option<HistoryCounts>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HistoryCounts {
    pub(super) attempts: u64,
    pub(super) succeeded: u64,
    pub(super) retried: u64,
    pub(super) dead: u64,
    pub(super) duration: Distribution,
    pub(super) lateness: Distribution,
}

#[derive(Debug, Deserialize)]
pub(super) struct Distribution {
    pub(super) buckets: [u64; rewheel_core::KindCounts::BUCKETS],
}
