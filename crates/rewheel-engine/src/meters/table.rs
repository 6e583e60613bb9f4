//! The table of all metrics.

use super::kept::{CALLED, KindMeters, MISSED, RENEWED, SUBMITTED};
use super::{Distribution, Fleet, Meter, MeterType, Sample, Source, Value};
use rewheel::Category;
use rewheel_core::store::Tally;
use rewheel_core::{Kind, State};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// States of jobs that have not ended, including dead letters.
const LIVING: [State; 4] = [State::Scheduled, State::Leased, State::Paused, State::Dead];

/// Every metric of an engine.
pub static METERS: [Meter; 32] = [
    Meter {
        name: "rewheel.jobs",
        form: MeterType::Gauge,
        unit: "{job}",
        labels: &["kind", "state"],
        help: "Live jobs and dead letters in the store.",
        read: jobs,
    },
    Meter {
        name: "rewheel.jobs.sample.age",
        form: MeterType::Gauge,
        unit: "s",
        labels: &[],
        help: "Age of the values of rewheel_jobs; zero if the jobs were counted for this scrape.",
        read: |from| {
            let age = |fleet: &Fleet| sample([], Value::Number(fleet.counts.age.as_secs_f64()));
            from.fleet.map(age).into_iter().collect()
        },
    },
    Meter {
        name: "rewheel.oldest_due_timestamp",
        form: MeterType::Gauge,
        unit: "s",
        labels: &["kind"],
        help: "Due time of the oldest scheduled job, in seconds since 1970.",
        read: oldest_due,
    },
    Meter {
        name: "rewheel.kind.parked",
        form: MeterType::Gauge,
        unit: "{kind}",
        labels: &["kind"],
        help: "1 if the kind is parked: its jobs do not start, because its circuit breaker is open.",
        read: |from| of_store_kinds(from, |kind| kind.parked.is_some()),
    },
    Meter {
        name: "rewheel.kind.paused",
        form: MeterType::Gauge,
        unit: "{kind}",
        labels: &["kind"],
        help: "1 if an operator paused the kind.",
        read: |from| of_store_kinds(from, |kind| kind.paused),
    },
    Meter {
        name: "rewheel.holders",
        form: MeterType::Gauge,
        unit: "{holder}",
        labels: &["role"],
        help: "Live holders: nodes and workers that can run jobs.",
        read: holders,
    },
    Meter {
        name: "rewheel.store.up",
        form: MeterType::Gauge,
        unit: "{store}",
        labels: &[],
        help: "1 if the store answered when this server last read the metrics of the store.",
        read: |from| one(u64::from(from.fleet.is_some())),
    },
    Meter {
        name: "rewheel.jobs.submitted",
        form: MeterType::Counter,
        unit: "{job}",
        labels: &["kind", "outcome"],
        help: "Jobs submitted to this node by outcome: created, duplicate, refused.",
        read: |from| {
            of_kinds(from, |name, meters, samples| {
                for (outcome, count) in SUBMITTED.into_iter().zip(meters.read_submitted()) {
                    samples.push(sample([owned(name), outcome.into()], Value::Count(count)));
                }
            })
        },
    },
    Meter {
        name: "rewheel.jobs.started",
        form: MeterType::Counter,
        unit: "{job}",
        labels: &["kind"],
        help: "First attempts started on this node.",
        read: |from| of_counts(from, |meters| load(&meters.started)),
    },
    Meter {
        name: "rewheel.attempts",
        form: MeterType::Counter,
        unit: "{attempt}",
        labels: &["kind"],
        help: "Attempts started on this node.",
        read: |from| of_counts(from, |meters| load(&meters.attempts)),
    },
    Meter {
        name: "rewheel.attempt.duration",
        form: MeterType::Histogram,
        unit: "s",
        labels: &["kind"],
        help: "Duration of attempts.",
        read: |from| of_distributions(from, |meters| meters.duration.read()),
    },
    Meter {
        name: "rewheel.attempt.lateness",
        form: MeterType::Histogram,
        unit: "s",
        labels: &["kind"],
        help: "Delay between the due time and the start of attempts.",
        read: |from| of_distributions(from, |meters| meters.lateness.read()),
    },
    Meter {
        name: "rewheel.jobs.settled",
        form: MeterType::Counter,
        unit: "{result}",
        labels: &["kind", "decision", "category"],
        help: "Results of attempts settled by this node, by decision (retries included) and failure category.",
        read: settled,
    },
    Meter {
        name: "rewheel.jobs.dead",
        form: MeterType::Counter,
        unit: "{job}",
        labels: &["kind", "category"],
        help: "Jobs that became dead letters on this node: after a result, a deadline or too many takeovers.",
        read: dead,
    },
    Meter {
        name: "rewheel.jobs.delayed_by_parking",
        form: MeterType::Counter,
        unit: "{job}",
        labels: &["kind"],
        help: "Attempts on this node that were delayed because their kind was parked (its circuit breaker was open).",
        read: |from| of_counts(from, KindMeters::read_delayed),
    },
    Meter {
        name: "rewheel.kind.parkings",
        form: MeterType::Counter,
        unit: "{parking}",
        labels: &["kind"],
        help: "How often this node parked the kind: its circuit breaker opened, or the called service asked to wait.",
        read: |from| of_counts(from, |meters| load(&meters.parkings)),
    },
    Meter {
        name: "rewheel.job.attempts",
        form: MeterType::Histogram,
        unit: "{attempt}",
        labels: &["kind"],
        help: "Attempts of jobs that succeeded, failed or became dead letters with a result settled by this node.",
        read: |from| of_distributions(from, |meters| meters.job_attempts.read()),
    },
    Meter {
        name: "rewheel.schedules.missed",
        form: MeterType::Counter,
        unit: "{instant}",
        labels: &["kind", "reason"],
        help: "Instants of schedules that submitted no job, by reason: late, overlap.",
        read: |from| {
            of_kinds(from, |name, meters, samples| {
                for (reason, count) in MISSED.into_iter().zip(&meters.missed) {
                    let count = Value::Count(load(count));
                    samples.push(sample([owned(name), reason.into()], count));
                }
            })
        },
    },
    Meter {
        name: "rewheel.takeovers",
        form: MeterType::Counter,
        unit: "{job}",
        labels: &["kind"],
        help: "Jobs that this node took over because their holder was dead or the jobs were overdue.",
        read: |from| of_counts(from, |meters| load(&meters.takeovers)),
    },
    Meter {
        name: "rewheel.claim.batch",
        form: MeterType::Histogram,
        unit: "{job}",
        labels: &[],
        help: "Jobs per claim.",
        read: |from| {
            let read = from.shared.reports.meters.claim_batch.read();
            vec![sample([], Value::Distribution(read))]
        },
    },
    Meter {
        name: "rewheel.concurrency.max",
        form: MeterType::Gauge,
        unit: "{slot}",
        labels: &[],
        help: "Maximum number of concurrent attempts on this node.",
        read: |from| one(from.shared.settings.concurrency as u64),
    },
    Meter {
        name: "rewheel.concurrency.free",
        form: MeterType::Gauge,
        unit: "{slot}",
        labels: &[],
        help: "Free slots for attempts on this node.",
        read: |from| one(from.shared.admission.free() as u64),
    },
    Meter {
        name: "rewheel.wheel.jobs",
        form: MeterType::Gauge,
        unit: "{job}",
        labels: &[],
        help: "Claimed jobs that wait in the memory of this node until they are due.",
        read: |from| one(from.shared.signals.waiting.load(Ordering::Relaxed) as u64),
    },
    Meter {
        name: "rewheel.ready.jobs",
        form: MeterType::Gauge,
        unit: "{job}",
        labels: &[],
        help: "Due jobs on this node that wait for a free slot.",
        read: |from| one(from.shared.signals.ready.load(Ordering::Relaxed) as u64),
    },
    Meter {
        name: "rewheel.lease.expired",
        form: MeterType::Gauge,
        unit: "{lease}",
        labels: &[],
        help: "1 if the lease of this node expired and no new attempts start.",
        read: |from| one(u64::from(from.shared.is_lease_expired())),
    },
    Meter {
        name: "rewheel.engine.failed",
        form: MeterType::Gauge,
        unit: "{engine}",
        labels: &[],
        help: "1 if the engine of this node stopped because one of its loops failed.",
        read: |from| one(u64::from(from.shared.loops.failure().is_some())),
    },
    Meter {
        name: "rewheel.engine.loop.restarts",
        form: MeterType::Counter,
        unit: "{restart}",
        labels: &["loop"],
        help: "Restarts of panicked engine loops.",
        read: |from| {
            let restarts = from.shared.loops.restarts().into_iter();
            restarts.map(|(name, count)| sample([name.into()], Value::Count(count))).collect()
        },
    },
    Meter {
        name: "rewheel.lease.renewals",
        form: MeterType::Counter,
        unit: "{renewal}",
        labels: &["outcome"],
        help: "Lease renewals of this node by outcome: renewed, failed, dead.",
        read: |from| {
            let counts = RENEWED.into_iter().zip(from.shared.reports.meters.renewals());
            counts.map(|(outcome, count)| sample([outcome.into()], Value::Count(count))).collect()
        },
    },
    Meter {
        name: "rewheel.store.calls",
        form: MeterType::Counter,
        unit: "{call}",
        labels: &["verb", "outcome"],
        help: "Store calls by outcome: ok or error.",
        read: store_calls,
    },
    Meter {
        name: "rewheel.store.call.duration",
        form: MeterType::Histogram,
        unit: "s",
        labels: &["verb"],
        help: "Duration of store calls, retries included.",
        read: |from| {
            let verbs = from.shared.reports.meters.store.verbs();
            let read = verbs.iter().map(|(verb, meters)| {
                sample([(*verb).into()], Value::Distribution(meters.duration.read()))
            });
            read.collect()
        },
    },
    Meter {
        name: "rewheel.notices",
        form: MeterType::Counter,
        unit: "{notice}",
        labels: &["notifier", "outcome"],
        help: "Notifications of this node by outcome: sent, suppressed, failed.",
        read: notices,
    },
    Meter {
        name: "rewheel.build_info",
        form: MeterType::Gauge,
        unit: "{build}",
        labels: &["version", "commit"],
        help: "Always 1; the labels are the version and the commit of this node.",
        read: |from| {
            let build = from.shared.build;
            vec![sample([build.version.into(), build.commit.into()], Value::Count(1))]
        },
    },
];

fn sample<const N: usize>(labels: [Cow<'static, str>; N], value: Value) -> Sample {
    Sample { labels: labels.into(), value }
}

fn one(count: u64) -> Vec<Sample> {
    vec![sample([], Value::Count(count))]
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Reads a value of every kind that is known here.
fn of_kinds(from: &Source<'_>, read: impl Fn(&str, &KindMeters, &mut Vec<Sample>)) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (name, meters) in from.shared.reports.meters.kinds() {
        read(name.as_str(), &meters, &mut samples);
    }
    samples
}

fn of_counts(from: &Source<'_>, read: fn(&KindMeters) -> u64) -> Vec<Sample> {
    of_kinds(from, |name, meters, samples| {
        samples.push(sample([owned(name)], Value::Count(read(meters))));
    })
}

fn of_distributions(from: &Source<'_>, read: fn(&KindMeters) -> Distribution) -> Vec<Sample> {
    of_kinds(from, |name, meters, samples| {
        samples.push(sample([owned(name)], Value::Distribution(read(meters))));
    })
}

fn of_store_kinds(from: &Source<'_>, is_so: fn(&Kind) -> bool) -> Vec<Sample> {
    let kinds = from.fleet.iter().flat_map(|fleet| &fleet.kinds);
    let read =
        |kind: &Kind| sample([owned(kind.name.as_str())], Value::Count(u64::from(is_so(kind))));
    kinds.map(read).collect()
}

fn jobs(from: &Source<'_>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for tally in from.fleet.iter().flat_map(|fleet| &fleet.counts.tallies) {
        for state in LIVING {
            let count = tally.jobs.get(&state).copied().unwrap_or_default();
            let labels = [owned(tally.kind.as_str()), state.as_str().into()];
            samples.push(sample(labels, Value::Count(count)));
        }
    }
    samples
}

fn oldest_due(from: &Source<'_>) -> Vec<Sample> {
    let tallies = from.fleet.iter().flat_map(|fleet| &fleet.counts.tallies);
    let read = |tally: &Tally| {
        let seconds = tally.oldest_due?.as_millis() as f64 / 1_000.0;
        Some(sample([owned(tally.kind.as_str())], Value::Number(seconds)))
    };
    tallies.filter_map(read).collect()
}

fn holders(from: &Source<'_>) -> Vec<Sample> {
    let Some(fleet) = from.fleet else { return Vec::new() };
    let count = |role: &'static str| {
        let alive = fleet.holders.iter().filter(|holder| {
            holder.died.is_none() && !holder.expired && holder.role.as_str() == role
        });
        sample([role.into()], Value::Count(alive.count() as u64))
    };
    ["engine", "worker"].map(count).into()
}

fn settled(from: &Source<'_>) -> Vec<Sample> {
    of_kinds(from, |name, meters, samples| {
        for one in meters.settled.read() {
            let category = one.category.map_or("none", Category::as_str);
            let labels = [owned(name), one.decision.into(), category.into()];
            samples.push(sample(labels, Value::Count(one.count)));
        }
    })
}

fn dead(from: &Source<'_>) -> Vec<Sample> {
    of_kinds(from, |name, meters, samples| {
        for (category, count) in meters.read_dead().filter(|(_, count)| *count > 0) {
            samples.push(sample([owned(name), category.as_str().into()], Value::Count(count)));
        }
    })
}

fn store_calls(from: &Source<'_>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (verb, meters) in from.shared.reports.meters.store.verbs() {
        for (outcome, count) in CALLED.into_iter().zip(meters.read_calls()) {
            samples.push(sample([verb.into(), outcome.into()], Value::Count(count)));
        }
    }
    samples
}

fn notices(from: &Source<'_>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for one in from.shared.notify_counts() {
        let outcomes = [("sent", one.sent), ("suppressed", one.suppressed), ("failed", one.failed)];
        for (outcome, count) in outcomes {
            samples.push(sample([owned(&one.name), outcome.into()], Value::Count(count)));
        }
    }
    samples
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}
