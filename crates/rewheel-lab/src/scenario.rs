//! The scenarios that have a name, with the numbers that each of them starts from.

mod findings;

use crate::contention::Contention;
use crate::dependency::{Dependency, Fault};
use crate::latency::Latency;
use crate::policy::Policy;
use crate::recovery::{Parking, Recovery};
use crate::report::{Report, Row};
use crate::storm::{Storm, StormError};
use rewheel::{Backoff, Jitter, Retry, duration, millis, seconds};
use std::ops::Range;
use std::time::Duration;

/// Clients that call a dependency, and what goes wrong.
///
/// ```
/// use rewheel_lab::Scenario;
///
/// let mut scenario = Scenario::metastable();
/// scenario.policies = vec!["none".parse()?, "10 attempts, fixed 100ms".parse()?];
/// let report = scenario.run()?;
/// assert!(report.rows[0].recovered.after().is_some(), "the trigger is gone");
/// assert!(report.rows[1].recovered.after().is_none(), "retries keep the dependency down");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Number of client processes.
    pub clients: u32,
    /// Calls per second of all clients together.
    pub rate: u32,
    /// Requests per second that the dependency can serve.
    pub capacity: u32,
    /// How long the dependency takes for a request.
    pub latency: Latency,
    /// Share of the requests that fail independently of each other, 0 to 1.
    pub failure_ratio: f64,
    /// Wait in the queue above which the dependency refuses requests.
    pub sheds_after: Option<Duration>,
    /// Timeout of an attempt.
    pub timeout: Duration,
    /// When the dependency fails, and how.
    pub outage: Option<(Range<Duration>, Fault)>,
    /// When there are more calls, and how many times as many.
    pub surge: Option<(Range<Duration>, f64)>,
    /// How long calls arrive.
    pub lasts: Duration,
    /// The seed.
    pub seed: u64,
    /// The policies to compare.
    pub policies: Vec<Policy>,
}

/// Four attempts with the delays of most examples.
const RETRY: &str = "4 attempts, exponential 100ms max 10s";
const RETRY_BUDGET: &str = "4 attempts, exponential 100ms max 10s, budget 10% floor 1";
const RETRY_BUDGET_BREAKER: &str =
    "4 attempts, exponential 100ms max 10s, budget 10% floor 1, breaker";
const RETRY_THROTTLE: &str = "4 attempts, exponential 100ms max 10s, throttle 2";
const RETRY_HEDGE: &str = "4 attempts, exponential 100ms max 10s, hedge 100ms";

/// Parses policies that are known to be valid.
fn policies(texts: &[&str]) -> Vec<Policy> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

impl Scenario {
    /// The dependency hangs for twenty seconds.
    pub fn outage() -> Scenario {
        Scenario {
            name: "outage",
            clients: 100,
            rate: 500,
            capacity: 1_000,
            latency: Latency::spread(millis(20)),
            failure_ratio: 0.0,
            sheds_after: None,
            timeout: seconds(1),
            outage: Some((seconds(20)..seconds(40), Fault::Hangs)),
            surge: None,
            lasts: seconds(120),
            seed: 0,
            policies: policies(&[
                "none",
                "10 attempts, fixed 100ms",
                RETRY,
                RETRY_BUDGET,
                RETRY_BUDGET_BREAKER,
                RETRY_THROTTLE,
            ]),
        }
    }

    /// For twenty seconds there are more calls than the dependency can serve.
    pub fn overload() -> Scenario {
        Scenario {
            name: "overload",
            clients: 20,
            rate: 800,
            outage: None,
            surge: Some((seconds(20)..seconds(40), 2.0)),
            policies: policies(&[
                "none",
                RETRY,
                RETRY_BUDGET,
                RETRY_BUDGET_BREAKER,
                "none, limit 48/s",
                "none, bulkhead 2",
                "none, adaptive 1..50",
                "none, throttle 2",
                "4 attempts, exponential 100ms max 10s, budget 10% floor 1, bulkhead 2",
            ]),
            ..Scenario::outage()
        }
    }

    /// Each request fails with the same probability, and some take long.
    pub fn flaky() -> Scenario {
        Scenario {
            name: "flaky",
            failure_ratio: 0.1,
            latency: "lognormal 20ms p99 200ms".parse().unwrap_or(Latency::spread(millis(20))),
            outage: None,
            capacity: 2_000,
            lasts: seconds(60),
            policies: policies(&[
                "none",
                "2 attempts, exponential 100ms max 10s",
                "3 attempts, exponential 100ms max 10s",
                RETRY,
                RETRY_BUDGET,
                RETRY_BUDGET_BREAKER,
                RETRY_HEDGE,
            ]),
            ..Scenario::outage()
        }
    }

    /// A short fault triggers retries that hold the dependency down after the fault is gone.
    pub fn metastable() -> Scenario {
        Scenario {
            name: "metastable",
            rate: 600,
            outage: Some((seconds(20)..seconds(25), Fault::Hangs)),
            ..Scenario::outage()
        }
    }

    /// Three services in a chain, each with retries, call a dependency that hangs for a time.
    pub fn fleet() -> Scenario {
        Scenario {
            name: "fleet",
            clients: 10,
            rate: 100,
            outage: Some((seconds(20)..seconds(30), Fault::Hangs)),
            policies: policies(&[
                "none",
                "3 attempts, exponential 100ms max 10s",
                "3 attempts, exponential 100ms max 10s, budget 10% floor 1",
            ]),
            ..Scenario::outage()
        }
    }

    /// Runs the scenario with each policy.
    ///
    /// # Errors
    /// Fails if a number is not allowed.
    pub fn run(&self) -> Result<Report, StormError> {
        let storm = self.storm()?;
        let rows: Vec<Row> = if self.name == "fleet" {
            self.policies.iter().flat_map(|policy| self.run_chain(&storm, policy)).collect()
        } else {
            let row = |policy: &Policy| {
                Row::of(
                    policy.to_string(),
                    storm.run(|client| policy.client_policies(client, self.timeout)),
                )
            };
            self.policies.iter().map(row).collect()
        };
        let outage = self.outage.as_ref().map(|(when, _)| when.clone());
        let trouble = outage.or(self.surge.as_ref().map(|(when, _)| when.clone()));
        let findings = findings::of(self, &rows);
        Ok(Report {
            scenario: self.name,
            about: self.about(),
            trouble,
            lasts: self.lasts,
            rows,
            findings,
        })
    }

    /// Runs a chain of three services with and without the guard against retries inside of retries.
    fn run_chain(&self, storm: &Storm, policy: &Policy) -> Vec<Row> {
        // Each service waits three times as long as the one behind it, so that three attempts fit.
        let timeout = |service: usize| self.timeout * 3_u32.pow(2 - service.min(2) as u32);
        let run = |policy: &Policy| {
            storm.run_chain(|client, service| policy.client_policies(client, timeout(service)))
        };
        if policy.attempts() == 1 {
            return vec![Row::of(policy.to_string(), run(policy))];
        }
        vec![
            Row::of(format!("{policy}; without guard"), run(&policy.without_guard())),
            Row::of(format!("{policy}; with guard"), run(policy)),
        ]
    }

    fn storm(&self) -> Result<Storm, StormError> {
        if !(0.0..=1.0).contains(&self.failure_ratio) {
            return Err(StormError::new("the failure ratio must be 0 to 1"));
        }
        if self.timeout.is_zero() {
            return Err(StormError::new("the timeout must be longer than 0s"));
        }
        let dependency = Dependency::new(self.capacity, self.latency.clone());
        let mut dependency = dependency.failure_ratio(self.failure_ratio);
        if let Some(wait) = self.sheds_after {
            dependency = dependency.sheds_after(wait);
        }
        let storm = Storm::new(dependency, self.rate).clients(self.clients);
        let mut storm = storm.lasts(self.lasts).seed(self.seed);
        if let Some((when, fault)) = &self.outage {
            storm = storm.outage(when.clone(), *fault)?;
        }
        if let Some((when, times)) = &self.surge {
            storm = storm.surge(when.clone(), *times)?;
        }
        storm.check()?;
        Ok(storm)
    }

    /// Says what is simulated.
    pub fn about(&self) -> String {
        let text = |time: Duration| duration::text(time).to_string();
        let Scenario { clients, rate, capacity, latency, .. } = self;
        let mut about = if self.name == "fleet" {
            format!(
                "{clients} processes of a service get {rate} calls/s together. The service calls a second one, the second one a third one, and the third one a \
                 dependency. Each of the three services retries with the same policy."
            )
        } else {
            format!("{clients} clients together make {rate} calls/s to a dependency.")
        };
        about +=
            &format!(" The dependency serves {capacity} requests/s and takes {latency} for each.");
        if self.failure_ratio > 0.0 {
            let percent = self.failure_ratio * 100.0;
            about += &format!(
                " Each request fails with a probability of {percent} %, independently of the others."
            );
        }
        if let Some(wait) = self.sheds_after {
            about += &format!(" It rejects requests that would wait longer than {}.", text(wait));
        }
        if let Some((when, fault)) = &self.outage {
            let (from, to) = (text(when.start), text(when.end));
            about += &format!(" From {from} to {to} the dependency {}.", fault.in_words());
        }
        if let Some((when, times)) = &self.surge {
            let (from, to) = (text(when.start), text(when.end));
            about += &format!(" From {from} to {to} there are {times} times as many calls.");
        }
        about + &format!(" The timeout of an attempt is {}.", text(self.timeout))
    }
}

/// The numbers of the scenario `recovery`.
pub(crate) fn recovery() -> Recovery {
    Recovery {
        dependency: Dependency::new(500, millis(20)),
        retry: Retry::exponential(seconds(1)).delay_max(seconds(30)).attempts_max(100),
        nodes: 4,
        slots: 100,
        rate: 250,
        timeout: seconds(1),
        outage: seconds(20)..seconds(50),
        fault: Fault::Hangs,
        probe_every: seconds(5),
        lasts: seconds(180),
        seed: 0,
    }
}

impl Default for Recovery {
    /// The numbers of the scenario `recovery`.
    fn default() -> Recovery {
        recovery()
    }
}

impl Recovery {
    /// Runs the scenario with each way of parking.
    ///
    /// # Errors
    /// Fails if a number is not allowed.
    pub fn report(&self) -> Result<Report, StormError> {
        self.check()?;
        let rows = vec![
            self.run("no parking", Parking::Off),
            self.run("parking, then all slots at once", Parking::AllAtOnce),
            self.run("parking and ramp", Parking::Ramp),
        ];
        let text = |time: Duration| duration::text(time).to_string();
        let about = format!(
            "{} nodes with {} slots each run the {} jobs/s of one kind, with the retry `{}`. From {} to {} the service behind the kind {}. The timeout of an attempt \
             is {}. A parked kind is probed every {}. A job succeeds in time if it is done 5s after it was submitted.",
            self.nodes,
            self.slots,
            self.rate,
            self.retry,
            text(self.outage.start),
            text(self.outage.end),
            self.fault.in_words(),
            text(self.timeout),
            text(self.probe_every),
        );
        let findings = findings::of_recovery(&rows);
        let trouble = Some(self.outage.clone());
        Ok(Report { scenario: "recovery", about, trouble, lasts: self.lasts, rows, findings })
    }
}

impl Contention {
    /// Runs the scenario `contention` with backoff and jitter of all kinds. The delay after attempt `n` is based on
    /// 5 ms · 2ⁿ, at most 2 s.
    pub fn report(&self) -> Report {
        let exponential = Backoff::exponential(millis(10)).max(seconds(2));
        let rows = [
            ("no backoff", Backoff::fixed(millis(0))),
            ("exponential without jitter", exponential.jitter(Jitter::NONE)),
            ("equal", exponential.jitter(Jitter::EQUAL)),
            ("full", exponential.jitter(Jitter::FULL)),
            ("decorrelated", Backoff::decorrelated(millis(5)).max(seconds(2))),
        ];
        let unlimited = |backoff| Retry::new(backoff).attempts_max(u32::MAX);
        let rows = rows.map(|(name, backoff)| self.run(name, &unlimited(backoff)));
        self.report_of(rows.into())
    }

    /// Creates a report of these rows.
    pub fn report_of(&self, rows: Vec<Row>) -> Report {
        let about = format!(
            "{} clients update the same row once, with optimistic locking: each reads the row, then writes it. If another client has written the row in between, \
             the write fails, and the client backs off and reads again. Each message takes |N(10, 2)| ms. Means of {} runs.",
            self.clients(),
            self.runs(),
        );
        let findings = findings::of_contention(&rows);
        let lasts = rows.iter().filter_map(|row| row.completed).max().unwrap_or_default();
        Report { scenario: "contention", about, trouble: None, lasts, rows, findings }
    }
}

/// Compares no retry, retries, and retries with a budget and a breaker: once for failures that are independent of each other, once for an
/// outage.
///
/// # Errors
/// Fails if the simulation would be too large.
pub fn compare(seed: u64) -> Result<Report, StormError> {
    let names = ["no retry", "retry", "retry + budget + breaker"];
    let compared = policies(&["none", RETRY, RETRY_BUDGET_BREAKER]);
    let independent = Scenario {
        name: "compare",
        failure_ratio: 0.05,
        outage: None,
        seed,
        policies: compared.clone(),
        ..Scenario::outage()
    };
    let outage = Scenario { name: "compare", seed, policies: compared, ..Scenario::outage() };
    let mut rows = Vec::new();
    for (failures, scenario) in [("independent failures", &independent), ("outage", &outage)] {
        let named = scenario.run()?.rows.into_iter().zip(names);
        rows.extend(named.map(|(row, name)| Row { policy: format!("{failures}: {name}"), ..row }));
    }
    let about = format!(
        "The same three policies, twice: for failures that are independent of each other, and for an outage. `retry` is `{RETRY}`; `budget` is `budget 10% floor 1`.\n\
         Independent failures: {}\nOutage: {}",
        independent.about(),
        outage.about(),
    );
    let findings = findings::of_comparison(&rows);
    let trouble = outage.outage.as_ref().map(|(when, _)| when.clone());
    Ok(Report { scenario: "compare", about, trouble, lasts: outage.lasts, rows, findings })
}

#[cfg(test)]
mod tests;
