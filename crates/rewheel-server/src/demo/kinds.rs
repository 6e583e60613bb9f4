//! The demo's kinds, one for each way to fail.

use rewheel::{Backoff, Jitter, millis, minutes, seconds};
use rewheel_core::KindName;
use rewheel_engine::{BreakerSettings, KindSettings, RunnerKind};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

/// One kind, and how its callee behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct DemoKind {
    /// Its name.
    pub(super) name: &'static str,
    /// Its description for users.
    pub(super) about: &'static str,
    /// The path of its callback.
    pub(super) path: &'static str,
    /// Its share of all jobs, in percent.
    pub(super) share: u64,
    /// Whether its jobs go to several hosts.
    pub(super) has_hosts: bool,
    /// Whether its jobs belong to groups.
    pub(super) has_groups: bool,
    attempts_max: u32,
    attempt_timeout: Duration,
    backoff: Backoff,
    breaker: Option<BreakerSettings>,
}

/// Opens after a few failures, and probes often: the demo has only some calls a second.
const BREAKER: BreakerSettings =
    BreakerSettings { window: 6, failure_ratio: 0.5, open_for: seconds(4) };

/// What most kinds of the demo have in common.
const PLAIN: DemoKind = DemoKind {
    name: "",
    about: "",
    path: "fast",
    share: 0,
    has_hosts: false,
    has_groups: false,
    attempts_max: 3,
    attempt_timeout: seconds(5),
    backoff: backoff(250, seconds(2)),
    breaker: None,
};

/// A backoff that is short enough to see a retry within a second or two.
const fn backoff(first_ms: u64, max: Duration) -> Backoff {
    Backoff::exponential(millis(first_ms)).max(max).jitter(Jitter::EQUAL)
}

/// All kinds, those without failures first.
pub(super) const ALL: [DemoKind; 8] = [
    DemoKind { name: "demo-fast", about: "always answers 200", share: 30, ..PLAIN },
    DemoKind {
        name: "demo-slow",
        about: "answers 200 after 100 to 800 ms; the attempt timeout is 700 ms",
        path: "slow",
        share: 14,
        attempts_max: 5,
        attempt_timeout: millis(700),
        ..PLAIN
    },
    DemoKind {
        name: "demo-flaky",
        about: "fails 2 of 5 calls, sometimes with a Retry-After header",
        path: "flaky",
        share: 20,
        attempts_max: 6,
        backoff: backoff(300, seconds(4)),
        ..PLAIN
    },
    DemoKind {
        name: "demo-outage",
        about: "is down for 20 s of every 60 s: its breaker parks it, probes it every 4 s, and its jobs go on when it is back",
        path: "outage",
        share: 16,
        attempts_max: 15,
        backoff: backoff(500, seconds(6)),
        breaker: Some(BREAKER),
        ..PLAIN
    },
    DemoKind {
        name: "demo-broken",
        about: "always answers 500; its jobs become dead letters after 4 attempts",
        path: "broken",
        share: 4,
        attempts_max: 4,
        backoff: backoff(400, seconds(2)),
        ..PLAIN
    },
    DemoKind {
        name: "demo-shops",
        about: "calls several hosts, of which the last is down for 20 s of every 60 s: only its jobs wait",
        path: "shop",
        share: 10,
        has_hosts: true,
        attempts_max: 15,
        backoff: backoff(500, seconds(6)),
        breaker: Some(BREAKER),
        ..PLAIN
    },
    DemoKind {
        name: "demo-group",
        about: "the jobs of a customer run one after the other, in order",
        path: "slow",
        share: 6,
        has_groups: true,
        attempts_max: 5,
        ..PLAIN
    },
    DemoKind { name: SCHEDULED, about: "a schedule submits a job every 15 s", ..PLAIN },
];

/// The kind of the schedule.
pub(super) const SCHEDULED: &str = "demo-cron";

impl DemoKind {
    /// Returns its name.
    pub(super) fn name(&self) -> KindName {
        KindName::parse(self.name).expect("the kind names of the demo are valid")
    }

    /// Returns its settings, with callbacks to this address; if its jobs go to several hosts, to this port of them.
    pub(super) fn settings(&self, address: SocketAddr) -> KindSettings {
        let host = match self.has_hosts {
            true => format!("{{payload.host}}:{}", address.port()),
            false => address.to_string(),
        };
        KindSettings {
            runner: RunnerKind::Callback,
            attempts_max: self.attempts_max,
            attempt_timeout: self.attempt_timeout,
            backoff: self.backoff,
            breaker: self.breaker,
            // Long enough to look at, short enough that a demo left running does not grow.
            keep_succeeded: minutes(10),
            callback: Some(json!({
                "url": format!("http://{host}/{}/{{payload.order}}", self.path),
                "allow": ["127.0.0.0/8"],
            })),
            ..KindSettings::default()
        }
    }
}

/// Returns the kind for a random number from 0 to 99.
pub(super) fn drawn(number: u64) -> DemoKind {
    let mut below = 0;
    let chosen = ALL.into_iter().find(|kind| {
        below += kind.share;
        number < below
    });
    chosen.unwrap_or(ALL[0])
}
