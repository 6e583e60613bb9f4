//! Simulates many clients that call one dependency while it fails for a time.

mod client_policies;
mod run;

pub use self::client_policies::ClientPolicies;

use crate::chance::Chance;
use crate::dependency::{Dependency, Fault};
use crate::outcome::Outcome;
use rewheel::{ManualClock, Random};
use std::ops::Range;
use std::time::Duration;

/// Maximum number of calls, which are kept in memory.
const CALLS_MAX: u64 = 1_000_000;

/// Maximum number of requests: a policy that retries without delay or without end is stopped here.
const REQUESTS_MAX: u64 = 5_000_000;

const CLIENTS_MAX: u32 = 100_000;

const OUTAGE_END_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Minimum time after the outage; a shorter time cannot show a recovery.
pub(crate) const AFTERWARDS: Duration = Duration::from_secs(5);

/// Many clients that call one dependency, and the faults of the dependency.
#[derive(Clone, Debug)]
pub struct Storm {
    dependency: Dependency,
    rate: u32,
    clients: u32,
    lasts: Duration,
    outages: Vec<(Range<Duration>, Fault)>,
    surge: Option<(Range<Duration>, f64)>,
    requests_max: u64,
    seed: u64,
}

/// Error: the storm cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StormError(String);

impl StormError {
    pub(crate) fn new(why: impl Into<String>) -> StormError {
        StormError(why.into())
    }
}

/// One client process. It knows the dependency only from its own calls.
#[derive(Debug)]
pub struct Client {
    number: u32,
    clock: ManualClock,
    random: Random,
}

impl Client {
    /// Returns the number of the client, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the clock for its breakers, budgets and limiters.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    pub(crate) fn new(number: u32, clock: &ManualClock, random: Random) -> Client {
        Client { number, clock: clock.clone(), random }
    }

    /// Returns the random source for its breakers.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// Lets a pipeline use the time and the random source of the simulation.
    fn simulated(&self, policies: ClientPolicies) -> ClientPolicies {
        let pipeline = policies.pipeline.clock(&self.clock).random(&self.random);
        ClientPolicies { pipeline, ..policies }
    }
}

impl Storm {
    /// Creates a storm of clients that together call a dependency `rate` times per second. Defaults: 100 clients, two minutes, no
    /// faults.
    pub const fn new(dependency: Dependency, rate: u32) -> Storm {
        Storm {
            dependency,
            rate,
            clients: 100,
            lasts: Duration::from_secs(120),
            outages: Vec::new(),
            surge: None,
            requests_max: REQUESTS_MAX,
            seed: 0,
        }
    }

    /// Sets the number of client processes. Each has its own breakers and budgets.
    #[must_use]
    pub const fn clients(mut self, clients: u32) -> Storm {
        self.clients = clients;
        self
    }

    /// Sets how long calls arrive. Calls in progress then have the same time again to end.
    #[must_use]
    pub const fn lasts(mut self, lasts: Duration) -> Storm {
        self.lasts = lasts;
        self
    }

    /// Sets the number of requests after which the simulation stops. The default is five million.
    #[must_use]
    pub const fn requests_max(mut self, requests: u64) -> Storm {
        self.requests_max = requests;
        self
    }

    /// Sets the seed. The same seed gives the same result.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Storm {
        self.seed = seed;
        self
    }

    /// Adds an outage of the dependency.
    ///
    /// # Errors
    /// Fails if the time range is empty or overlaps another outage, or if a slowdown factor is invalid.
    pub fn outage(mut self, when: Range<Duration>, fault: Fault) -> Result<Storm, StormError> {
        if when.is_empty() {
            return Err(StormError("the outage must end after it starts".to_owned()));
        }
        let meets = |(other, _): &(Range<Duration>, Fault)| {
            when.start < other.end && other.start < when.end
        };
        if when.end > OUTAGE_END_MAX {
            return Err(StormError("the outage must end within 24h".to_owned()));
        }
        if self.outages.iter().any(meets) {
            return Err(StormError("two outages overlap: combine them into one".to_owned()));
        }
        fault.check().map_err(StormError)?;
        self.outages.push((when, fault));
        self.outages.sort_by_key(|(when, _)| when.start);
        Ok(self)
    }

    /// Multiplies the number of calls by `times` for a while.
    ///
    /// # Errors
    /// Fails if the time range is empty or ends after 24 hours, or if the factor is not 0 to 1000.
    pub fn surge(mut self, when: Range<Duration>, times: f64) -> Result<Storm, StormError> {
        if when.is_empty() || when.end > OUTAGE_END_MAX {
            let why = "the surge must end after it starts, within 24h";
            return Err(StormError(why.to_owned()));
        }
        if !(0.0..=1_000.0).contains(&times) {
            return Err(StormError("the surge must have a factor of 0 to 1000".to_owned()));
        }
        self.surge = Some((when, times));
        Ok(self)
    }

    /// Returns the end of the last outage or surge.
    fn trouble_end(&self) -> Option<Duration> {
        let outage = self.outages.last().map(|(when, _)| when.end);
        outage.max(self.surge.as_ref().map(|(when, _)| when.end))
    }

    /// Returns the number of calls to expect.
    fn calls(&self) -> f64 {
        let extra = self
            .surge
            .as_ref()
            .map_or(0.0, |(when, times)| (when.end - when.start).as_secs_f64() * (times - 1.0));
        f64::from(self.rate) * (self.lasts.as_secs_f64() + extra)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Fails if the storm is empty, or larger than a million calls, a hundred thousand clients or a hundred thousand concurrently
    /// served requests.
    pub fn check(&self) -> Result<(), StormError> {
        if self.rate == 0 || !(1..=CLIENTS_MAX).contains(&self.clients) {
            return Err(StormError(format!(
                "the number of clients must be 1 to {CLIENTS_MAX}, and the rate 1 or more"
            )));
        }
        self.dependency.check().map_err(StormError)?;
        let end = self.trouble_end().unwrap_or_default();
        if !end.is_zero() && end + AFTERWARDS > self.lasts {
            let why = "the simulation must last until at least 5s after the outage ends";
            return Err(StormError(why.to_owned()));
        }
        let calls = self.calls();
        if !(1.0..=CALLS_MAX as f64).contains(&calls) {
            return Err(StormError(format!(
                "the simulation allows 1 to {CALLS_MAX} calls, not {calls:.0}: lower the rate or the duration"
            )));
        }
        Ok(())
    }

    /// Runs the simulation. Each client calls through the policies that `policies` builds for it: a [`Pipeline`](rewheel::Pipeline), or a pipeline with a
    /// hedge. The pipeline runs on the simulation's clock; its breakers and budgets, and the hedge, must use the same clock.
    ///
    /// # Panics
    /// Panics if [`Storm::check`] fails.
    pub fn run<P: Into<ClientPolicies>>(&self, policies: impl Fn(&Client) -> P) -> Outcome {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        let clock = ManualClock::new();
        let chance = Chance::seeded(self.seed);
        let fleet: Vec<ClientPolicies> = (0..self.clients)
            .map(|number| {
                let client = Client::new(number, &clock, chance.fork());
                client.simulated(policies(&client).into())
            })
            .collect();
        run::run(self, clock, &fleet, chance)
    }

    /// Runs the simulation with three services in a chain: each call goes to the first service, which calls the second, which calls
    /// the third, which calls the dependency. `policies` builds the policies with which each process of each service, numbered from 0,
    /// calls the next one. Each service has as many processes as there are clients.
    ///
    /// If a caller stops waiting, the services behind it stop too; only the dependency does not notice.
    ///
    /// # Panics
    /// Panics if [`Storm::check`] fails.
    pub fn run_chain<P: Into<ClientPolicies>>(
        &self,
        policies: impl Fn(&Client, usize) -> P,
    ) -> Outcome {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        let clock = ManualClock::new();
        let chance = Chance::seeded(self.seed);
        let services = [0, 1, 2].map(|service| {
            let processes = (0..self.clients).map(|number| {
                let client = Client::new(number, &clock, chance.fork());
                client.simulated(policies(&client, service).into())
            });
            processes.collect::<Vec<ClientPolicies>>()
        });
        run::run_chain(self, clock, &services, chance)
    }
}
