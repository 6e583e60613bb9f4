//! The demo's kinds, one for each way to fail.

use rewheel::{Backoff, Jitter, millis, minutes, seconds};
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use serde_json::json;
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
    attempts_max: u32,
    attempt_timeout: Duration,
    backoff: Backoff,
}

/// A backoff that is short enough to see a retry within a second or two.
const fn backoff(first_ms: u64, max: Duration) -> Backoff {
    Backoff::exponential(millis(first_ms)).max(max).jitter(Jitter::EQUAL)
}

/// All kinds, those without failures first.
pub(super) const ALL: [DemoKind; 5] = [
    DemoKind {
        name: "demo-fast",
        about: "always answers 200",
        path: "fast",
        share: 40,
        attempts_max: 3,
        attempt_timeout: seconds(5),
        backoff: backoff(250, seconds(2)),
    },
    DemoKind {
        name: "demo-slow",
        about: "answers 200 after 100 to 800 ms; the attempt timeout is 700 ms",
        path: "slow",
        share: 20,
        attempts_max: 5,
        attempt_timeout: millis(700),
        backoff: backoff(250, seconds(2)),
    },
    DemoKind {
        name: "demo-flaky",
        about: "fails 2 of 5 calls, sometimes with a Retry-After header",
        path: "flaky",
        share: 24,
        attempts_max: 6,
        attempt_timeout: seconds(5),
        backoff: backoff(300, seconds(4)),
    },
    DemoKind {
        name: "demo-outage",
        about: "is down for 20 s of every 60 s; its jobs wait, and no job is lost",
        path: "outage",
        share: 12,
        attempts_max: 15,
        attempt_timeout: seconds(5),
        backoff: backoff(500, seconds(6)),
    },
    DemoKind {
        name: "demo-broken",
        about: "always answers 500; its jobs become dead letters after 4 attempts",
        path: "broken",
        share: 4,
        attempts_max: 4,
        attempt_timeout: seconds(5),
        backoff: backoff(400, seconds(2)),
    },
];

impl DemoKind {
    /// Returns its name.
    pub(super) fn name(&self) -> KindName {
        KindName::parse(self.name).expect("the kind names of the demo are valid")
    }

    /// Returns its settings, with callbacks to `url`.
    pub(super) fn settings(&self, url: &str) -> KindSettings {
        KindSettings {
            runner: RunnerKind::Callback,
            attempts_max: self.attempts_max,
            attempt_timeout: self.attempt_timeout,
            backoff: self.backoff,
            // Long enough to look at, short enough that a demo left running does not grow.
            keep_succeeded: minutes(10),
            callback: Some(json!({
                "url": format!("{url}/{}/{{payload.order}}", self.path),
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
