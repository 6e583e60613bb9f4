//! Simulates how an engine works off a backlog of jobs after the service behind them was down.

mod jobs;
mod nodes;

use self::jobs::Jobs;
use self::nodes::{Fleet, Ticket};
use crate::chance::Chance;
use crate::dependency::{Dependency, Fault, Line};
use crate::outcome::{Outcome, Second};
use crate::report::Row;
use crate::storm::{AFTERWARDS, StormError};
use rewheel::{ManualClock, Retry};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::time::Duration;

/// Maximum number of jobs, which are kept in memory.
const JOBS_MAX: f64 = 1_000_000.0;

/// A job has succeeded in time if it is done this long after it was submitted.
const IN_TIME: Duration = Duration::from_secs(5);

/// Attempts after which the simulation stops.
const ATTEMPTS_MAX: u64 = 5_000_000;

/// What the nodes do while the service behind a kind of jobs is down, and afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parking {
    /// Each job is retried with its backoff.
    Off,
    /// Nodes whose breaker opens report it, and two of them park the kind. A probe ends this, and then all slots are used at once.
    AllAtOnce,
    /// The same, but each node starts with one attempt at a time: the ramp of the engine.
    Ramp,
}

/// Nodes of an engine that run jobs of one kind, and an outage of the service that the jobs call.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The service that the jobs call.
    pub dependency: Dependency,
    /// The retry of the jobs.
    pub retry: Retry,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of concurrent attempts of each node.
    pub slots: usize,
    /// Submitted jobs per second.
    pub rate: u32,
    /// Timeout of an attempt.
    pub timeout: Duration,
    /// When the service is down.
    pub outage: Range<Duration>,
    /// What it does then.
    pub fault: Fault,
    /// Time between two probes of a parked kind.
    pub probe_every: Duration,
    /// How long jobs are submitted. The simulation ends when all jobs have ended, or after twice this time.
    pub lasts: Duration,
    /// The seed.
    pub seed: u64,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job is submitted.
    Submit,
    /// A job waits no longer for its next attempt.
    Due(usize),
    /// An attempt ends.
    End { attempt: u64, succeeded: bool },
    /// A parked kind may be probed, or a breaker may be half open.
    Probe,
}

impl Recovery {
    /// Checks the settings.
    ///
    /// # Errors
    /// Fails if a number is zero, if the simulation is too large, or if it ends too soon after the outage.
    pub fn check(&self) -> Result<(), StormError> {
        self.dependency.check().map_err(StormError::new)?;
        self.fault.check().map_err(StormError::new)?;
        if !(1..=1_000).contains(&self.nodes) || !(1..=10_000).contains(&self.slots) {
            return Err(StormError::new("nodes must be 1 to 1000, and slots 1 to 10000"));
        }
        let jobs = f64::from(self.rate) * self.lasts.as_secs_f64();
        if !(1.0..=JOBS_MAX).contains(&jobs) {
            let why = format!("the simulation allows 1 to {JOBS_MAX} jobs, not {jobs:.0}");
            return Err(StormError::new(why));
        }
        if self.timeout.is_zero() || self.probe_every.is_zero() || self.outage.is_empty() {
            return Err(StormError::new(
                "timeout, outage and time between probes must be longer than 0s",
            ));
        }
        if self.outage.end.saturating_add(AFTERWARDS) > self.lasts {
            let why = "the simulation must last until at least 5s after the outage ends";
            return Err(StormError::new(why));
        }
        Ok(())
    }

    /// Runs the simulation.
    ///
    /// # Panics
    /// Panics if [`Recovery::check`] fails.
    pub fn run(&self, name: &str, parking: Parking) -> Row {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        let chance = Chance::seeded(self.seed);
        let clock = ManualClock::new();
        let outages = [(self.outage.clone(), self.fault)];
        let mut engine = Engine {
            settings: self,
            line: Line::new(&self.dependency, &outages, Chance::new(chance.fork())),
            fleet: Fleet::new(self, parking, &clock, &chance),
            jobs: Jobs::new(self.retry, chance.fork()),
            running: BTreeMap::new(),
            chance,
            clock,
            events: BinaryHeap::new(),
            seconds: Vec::new(),
            served: 0,
            wasted: 0,
            attempts: 0,
        };
        let completed = engine.run();
        engine.into_row(name, completed)
    }
}

struct Engine<'a> {
    settings: &'a Recovery,
    line: Line,
    fleet: Fleet,
    jobs: Jobs,
    /// Running attempts by number.
    running: BTreeMap<u64, (usize, Ticket)>,
    chance: Chance,
    clock: ManualClock,
    events: BinaryHeap<Reverse<(Duration, Event)>>,
    seconds: Vec<Second>,
    served: u64,
    wasted: u64,
    attempts: u64,
}

impl Engine<'_> {
    /// Returns when the last job ended; `None` if jobs were left.
    fn run(&mut self) -> Option<Duration> {
        self.submit_next(Duration::ZERO);
        let mut last_end = Duration::ZERO;
        while let Some(Reverse((at, event))) = self.events.pop() {
            if at >= self.settings.lasts * 2 || self.attempts > ATTEMPTS_MAX {
                break;
            }
            self.clock.advance(at.saturating_sub(self.clock.elapsed()));
            match event {
                Event::Submit => {
                    self.second(at).offered += 1;
                    let job = self.jobs.submit(at);
                    self.jobs.due.push_back(job);
                    self.submit_next(at);
                }
                Event::Due(job) => self.jobs.due.push_back(job),
                Event::End { attempt, succeeded } => {
                    self.end(at, attempt, succeeded);
                    last_end = at;
                }
                Event::Probe => {}
            }
            self.fill(at);
        }
        (self.jobs.unfinished() == 0).then_some(last_end)
    }

    fn submit_next(&mut self, now: Duration) {
        let gap = self.chance.exponential() / f64::from(self.settings.rate);
        let at = now + Duration::from_secs_f64(gap);
        if at < self.settings.lasts {
            self.events.push(Reverse((at, Event::Submit)));
        }
    }

    /// Starts attempts while a node may run one.
    fn fill(&mut self, now: Duration) {
        while !self.jobs.due.is_empty() {
            let Some(ticket) = self.fleet.begin(now) else { break };
            let Some(job) = self.jobs.due.pop_front() else { break };
            self.attempts += 1;
            self.running.insert(self.attempts, (job, ticket));
            self.second(now).attempts += 1;
            let booked = self.line.book(now);
            let timeout = self.settings.timeout;
            let is_late = booked.after > timeout;
            let is_counted = booked.is_served() && now + booked.after <= self.settings.lasts;
            self.served += u64::from(is_counted);
            self.wasted += u64::from(is_counted && is_late);
            let succeeded = !is_late && booked.refusal.is_none();
            let end = now + booked.after.min(timeout);
            self.events.push(Reverse((end, Event::End { attempt: self.attempts, succeeded })));
        }
        if let Some(at) = self.fleet.next_probe(now) {
            self.events.push(Reverse((at, Event::Probe)));
        }
    }

    fn end(&mut self, now: Duration, attempt: u64, succeeded: bool) {
        let Some((job, ticket)) = self.running.remove(&attempt) else { return };
        self.fleet.end(now, ticket, succeeded);
        if succeeded {
            let submitted = self.jobs.succeed(job, now);
            let is_in_time = now - submitted <= IN_TIME;
            self.second(submitted).succeeded += u64::from(is_in_time);
        } else if let Some(delay) = self.jobs.fail(job, now) {
            self.events.push(Reverse((now + delay, Event::Due(job))));
        }
    }

    fn second(&mut self, at: Duration) -> &mut Second {
        let second = at.as_secs() as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Second::default());
        }
        &mut self.seconds[second]
    }

    fn into_row(self, name: &str, completed: Option<Duration>) -> Row {
        let (latencies, success) = self.jobs.into_latencies();
        let outcome = Outcome {
            seconds: self.seconds,
            served: self.served,
            wasted: self.wasted,
            came: self.settings.lasts.as_secs_f64().ceil() as usize,
            outage_end: Some(self.settings.outage.end),
            refused: 0,
            cut_at: (self.attempts > ATTEMPTS_MAX).then(|| self.clock.elapsed()),
            latencies,
        };
        Row { success, completed, ..Row::of(name, outcome) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Parking, Recovery};
    use crate::dependency::Fault;
    use crate::scenario;
    use rewheel::seconds;
    use std::time::Duration;

    fn recovery() -> Recovery {
        Recovery { lasts: seconds(120), ..scenario::recovery() }
    }

    #[test]
    fn parking_spares_the_service_and_ends_the_backlog_sooner() {
        let settings = recovery();
        let run = |parking| settings.run("", parking);
        let (off, at_once, ramp) = (run(Parking::Off), run(Parking::AllAtOnce), run(Parking::Ramp));
        assert!(ramp.recovered.after() < off.recovered.after() || off.recovered.after().is_none());
        assert!(ramp.recovered.after().is_some(), "{:?}", ramp.recovered);
        assert!(
            ramp.wasted <= at_once.wasted && ramp.wasted < off.wasted / 5.0,
            "{} and {}",
            ramp.wasted,
            at_once.wasted
        );
        assert!(ramp.amplification < off.amplification, "{}", off.amplification);
    }

    #[test]
    fn without_an_outage_each_job_is_one_attempt() {
        // Over before the first job is submitted.
        let calm = Recovery { outage: seconds(0)..Duration::from_nanos(1), ..recovery() };
        let row = calm.run("", Parking::Ramp);
        assert_eq!((row.success, row.amplification, row.wasted), (1.0, 1.0, 0.0));
    }

    #[test]
    fn the_same_seed_is_the_same_recovery() {
        let run = |seed| Recovery { seed, ..recovery() }.run("", Parking::Ramp);
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (wrong, why) in [
            (Recovery { nodes: 0, ..recovery() }, "nodes must be 1 to 1000"),
            (Recovery { slots: 20_000, ..recovery() }, "slots 1 to 10000"),
            (Recovery { rate: u32::MAX, ..recovery() }, "the simulation allows"),
            (Recovery { timeout: seconds(0), ..recovery() }, "longer than 0s"),
            (Recovery { fault: Fault::Slow(f64::NAN), ..recovery() }, "a factor of 1 to 1000"),
            (Recovery { fault: Fault::Slow(-1.0), ..recovery() }, "a factor of 1 to 1000"),
            (Recovery { outage: seconds(90)..seconds(116), ..recovery() }, "at least 5s after"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
