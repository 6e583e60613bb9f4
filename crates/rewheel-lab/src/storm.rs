//! Simulates many clients that call one dependency while it fails for a time.

use crate::dependency::{Dependency, Fault, Line};
use crate::outcome::{Outcome, Second};
use futures_util::StreamExt;
use futures_util::future::{Either, FutureExt, LocalBoxFuture, ready};
use futures_util::stream::FuturesUnordered;
use rewheel::{Clock, ManualClock, Pipeline, Random};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Maximum number of calls, which are kept in memory.
const CALLS_MAX: u64 = 1_000_000;

/// Maximum number of requests: a policy that retries without delay or without end is stopped here.
const REQUESTS_MAX: u64 = 5_000_000;

const CLIENTS_MAX: u32 = 100_000;

const OUTAGE_END_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Minimum time after the outage; a shorter time cannot show a recovery.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Many clients that call one dependency, and the faults of the dependency.
#[derive(Clone, Debug)]
pub struct Storm {
    dependency: Dependency,
    rate: u32,
    clients: u32,
    lasts: Duration,
    outages: Vec<(Range<Duration>, Fault)>,
    requests_max: u64,
    seed: u64,
}

/// Error: the storm cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StormError(String);

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

    /// Returns the random source for its breakers.
    pub fn random(&self) -> &Random {
        &self.random
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
        if let Fault::Slow(times) = fault
            && !(1.0..=1_000.0).contains(&times)
        {
            return Err(StormError("the slow fault must have a factor of 1 to 1000".to_owned()));
        }
        self.outages.push((when, fault));
        self.outages.sort_by_key(|(when, _)| when.start);
        Ok(self)
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
        let end = self.outages.last().map_or(Duration::ZERO, |(when, _)| when.end);
        if !end.is_zero() && end + AFTERWARDS > self.lasts {
            let why = "the simulation must last until at least 5s after the outage ends";
            return Err(StormError(why.to_owned()));
        }
        let calls = f64::from(self.rate) * self.lasts.as_secs_f64();
        if !(1.0..=CALLS_MAX as f64).contains(&calls) {
            return Err(StormError(format!(
                "the simulation allows 1 to {CALLS_MAX} calls, not {calls:.0}: lower the rate or the duration"
            )));
        }
        Ok(())
    }

    /// Runs the simulation. Each client calls through the pipeline that `pipeline` builds for it. The pipeline runs on the
    /// simulation's clock; its breakers and budgets must use the same clock.
    ///
    /// # Panics
    /// Panics if [`Storm::check`] fails.
    pub fn run(&self, pipeline: impl Fn(&Client) -> Pipeline) -> Outcome {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        let clock = ManualClock::new();
        let random = Random::seeded(self.seed);
        let fleet: Vec<Pipeline> = (0..self.clients)
            .map(|number| {
                let (clock, random) = (clock.clone(), Random::seeded(random.next()));
                let client = Client { number, clock, random };
                let pipeline = pipeline(&client);
                pipeline.clock(&client.clock).random(&client.random)
            })
            .collect();
        let line = Line::new(&self.dependency, &self.outages, Random::seeded(random.next()));
        let sky = Rc::new(Sky {
            time: Clock::from(&clock),
            clock: clock.clone(),
            state: RefCell::new(State {
                line,
                seconds: Vec::new(),
                until: self.lasts,
                requests: 0,
                served: 0,
                wasted: 0,
                refused: 0,
                came: Vec::new(),
            }),
        });
        let mut calls: FuturesUnordered<LocalBoxFuture<'_, ()>> = FuturesUnordered::new();
        calls.push(self.arrivals(Rc::clone(&sky), random).boxed_local());
        let mut context = Context::from_waker(Waker::noop());
        let mut cut_at = None;
        while clock.elapsed() < self.lasts * 2 {
            if sky.state.borrow().requests > self.requests_max {
                cut_at = Some(clock.elapsed());
                break;
            }
            while let Poll::Ready(Some(())) = calls.poll_next_unpin(&mut context) {}
            let came = std::mem::take(&mut sky.state.borrow_mut().came);
            if came.is_empty() && !clock.advance_to_next() {
                break;
            }
            for (at, client) in came {
                calls.push(call(&fleet[client], Rc::clone(&sky), at).boxed_local());
            }
        }
        let mut state = sky.state.borrow_mut();
        let outcome = Outcome {
            seconds: std::mem::take(&mut state.seconds),
            came: self.lasts.as_secs_f64().ceil() as usize,
            served: state.served,
            wasted: state.wasted,
            refused: state.refused,
            cut_at,
            outage_end: self.outages.last().map(|(when, _)| when.end),
        };
        drop(state);
        outcome
    }

    /// Creates calls, each at a random time and a random client.
    async fn arrivals(&self, sky: Rc<Sky>, random: Random) {
        let chance = || random.next() as f64 / u64::MAX as f64;
        let average = 1.0 / f64::from(self.rate);
        loop {
            // Independent of each other, like the calls of many users.
            let gap = Duration::from_secs_f64(-average * (1.0 - chance()).max(1e-12).ln());
            sky.time.sleep(gap).await;
            let at = sky.clock.elapsed();
            if at >= self.lasts {
                return;
            }
            let client = (random.next() % u64::from(self.clients)) as usize;
            sky.second(at, |second| second.offered += 1);
            sky.state.borrow_mut().came.push((at, client));
        }
    }
}

/// State that all calls share.
struct Sky {
    clock: ManualClock,
    time: Clock,
    state: RefCell<State>,
}

struct State {
    line: Line,
    seconds: Vec<Second>,
    /// Requests completed later are not counted.
    until: Duration,
    requests: u64,
    served: u64,
    wasted: u64,
    refused: u64,
    /// Calls that arrived, with their client.
    came: Vec<(Duration, usize)>,
}

impl Sky {
    fn second(&self, at: Duration, note: impl FnOnce(&mut Second)) {
        let second = at.as_secs() as usize;
        let seconds = &mut self.state.borrow_mut().seconds;
        if seconds.len() <= second {
            seconds.resize(second + 1, Second::default());
        }
        note(&mut seconds[second]);
    }
}

/// One call, with all its attempts.
async fn call(pipeline: &Pipeline, sky: Rc<Sky>, came: Duration) {
    let result = pipeline
        .run(|_| {
            let now = sky.clock.elapsed();
            sky.second(now, |second| second.attempts += 1);
            let booked = {
                let mut state = sky.state.borrow_mut();
                state.requests += 1;
                let booked = state.line.book(now);
                let is_served = booked.refusal.is_none() && now + booked.after <= state.until;
                state.served += u64::from(is_served);
                booked
            };
            match booked.refusal {
                Some(refusal) => Either::Left(ready(Err(refusal))),
                None => Either::Right(served(&sky, booked.after)),
            }
        })
        .await;
    match result {
        Ok(()) => sky.second(came, |second| second.succeeded += 1),
        Err(error) if error.attempts() == 0 => sky.state.borrow_mut().refused += 1,
        Err(_) => {}
    }
}

/// Waits for a response. If the caller stops waiting, the response is wasted.
async fn served<E>(sky: &Rc<Sky>, after: Duration) -> Result<(), E> {
    let done = sky.clock.elapsed() + after;
    let mut awaited = Awaited { sky: Rc::clone(sky), done, is_over: false };
    sky.time.sleep(after).await;
    awaited.is_over = true;
    Ok(())
}

struct Awaited {
    sky: Rc<Sky>,
    done: Duration,
    is_over: bool,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let mut state = self.sky.state.borrow_mut();
        state.wasted += u64::from(!self.is_over && self.done <= state.until);
    }
}
