//! Runs the calls of a storm: each goes through the policies of its client to the dependency.

use super::{ClientPolicies, Storm};
use crate::chance::Chance;
use crate::dependency::{Line, Refusal};
use crate::outcome::{Outcome, Second};
use crate::world::{Calls, Source, World};
use rewheel::{ManualClock, SafeToRepeat};
use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::time::Duration;

/// Runs clients that call the dependency.
pub(super) fn run(
    storm: &Storm,
    clock: ManualClock,
    fleet: &[ClientPolicies],
    chance: Chance,
) -> Outcome {
    let sky = Sky::new(storm, clock, &chance);
    let call = |client: usize| call(&fleet[client], &sky, sky.world.now());
    let cut_at = drive(storm, &sky, chance, call);
    outcome(storm, sky, cut_at)
}

/// Runs clients that call a chain of three services.
pub(super) fn run_chain(
    storm: &Storm,
    clock: ManualClock,
    services: &[Vec<ClientPolicies>; 3],
    chance: Chance,
) -> Outcome {
    let sky = Sky::new(storm, clock, &chance);
    let paths = Chance::new(chance.fork());
    let call = |client: usize| {
        let process = |service: usize| &services[service][paths.below(storm.clients) as usize];
        let path = [&services[0][client], process(1), process(2)];
        call_chain(path, &sky, sky.world.now())
    };
    let cut_at = drive(storm, &sky, chance, call);
    outcome(storm, sky, cut_at)
}

/// Runs the simulation to its end. Returns when it was stopped, if it was.
fn drive<F: Future<Output = ()>>(
    storm: &Storm,
    sky: &Sky,
    chance: Chance,
    call: impl Fn(usize) -> F,
) -> Option<Duration> {
    let mut arrivals = Arrivals { storm, sky, chance, next: None, call };
    arrivals.next = arrivals.after(Duration::ZERO);
    Calls::new().run(&sky.world, &mut arrivals);
    (sky.state.borrow().requests > storm.requests_max).then(|| sky.world.now())
}

fn outcome(storm: &Storm, sky: Sky, cut_at: Option<Duration>) -> Outcome {
    let mut state = sky.state.into_inner();
    state.latencies.sort_unstable();
    Outcome {
        seconds: state.seconds,
        came: storm.lasts.as_secs_f64().ceil() as usize,
        served: state.served,
        wasted: state.wasted,
        refused: state.refused,
        cut_at,
        latencies: state.latencies,
        outage_end: storm.trouble_end(),
    }
}

/// Calls at random times, each of a random client.
struct Arrivals<'a, C> {
    storm: &'a Storm,
    sky: &'a Sky,
    chance: Chance,
    next: Option<Duration>,
    call: C,
}

impl<C> Arrivals<'_, C> {
    /// Returns when the first call after this time arrives. Calls are independent of each other, like those of many users.
    fn after(&self, now: Duration) -> Option<Duration> {
        let Storm { rate, lasts, surge, .. } = self.storm;
        let mut at = now;
        loop {
            let (rate, until) = rate_at(f64::from(*rate), surge.as_ref(), at);
            let gap = self.chance.exponential() / rate;
            let next = if gap < 1e9 { at + Duration::from_secs_f64(gap) } else { Duration::MAX };
            match until {
                // The rate changes before: draw again from there.
                Some(until) if next >= until => at = until,
                Some(_) | None => return (next < *lasts).then_some(next),
            }
        }
    }
}

/// Returns the number of calls per second at this time, and until when, if it changes.
fn rate_at(
    rate: f64,
    surge: Option<&(Range<Duration>, f64)>,
    at: Duration,
) -> (f64, Option<Duration>) {
    match surge {
        Some((when, _)) if at < when.start => (rate, Some(when.start)),
        Some((when, times)) if at < when.end => (rate * times, Some(when.end)),
        Some(_) | None => (rate, None),
    }
}

impl<F, C: Fn(usize) -> F> Source<F> for Arrivals<'_, C> {
    fn next_at(&self) -> Option<Duration> {
        self.next
    }

    fn begin(&mut self) -> F {
        let now = self.sky.world.now();
        self.next = self.after(now);
        let client = self.chance.below(self.storm.clients) as usize;
        self.sky.second(now, |second| second.offered += 1);
        (self.call)(client)
    }

    fn is_over(&self) -> bool {
        let is_long_ago = self.sky.world.now() >= self.storm.lasts * 2;
        is_long_ago || self.sky.state.borrow().requests > self.storm.requests_max
    }
}

/// State that all calls share.
struct Sky {
    world: World,
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
    latencies: Vec<Duration>,
}

impl Sky {
    fn new(storm: &Storm, clock: ManualClock, chance: &Chance) -> Sky {
        Sky {
            world: World::new(clock),
            state: RefCell::new(State {
                line: Line::new(&storm.dependency, &storm.outages, Chance::new(chance.fork())),
                seconds: Vec::new(),
                until: storm.lasts,
                requests: 0,
                served: 0,
                wasted: 0,
                refused: 0,
                latencies: Vec::with_capacity(storm.calls() as usize),
            }),
        }
    }

    fn second(&self, at: Duration, note: impl FnOnce(&mut Second)) {
        let second = at.as_secs() as usize;
        let seconds = &mut self.state.borrow_mut().seconds;
        if seconds.len() <= second {
            seconds.resize(second + 1, Second::default());
        }
        note(&mut seconds[second]);
    }

    /// Records how a call ended: the error is the number of its attempts.
    fn note_end(&self, came: Duration, result: Result<(), u32>) {
        let took = self.world.now() - came;
        self.state.borrow_mut().latencies.push(took);
        match result {
            Ok(()) => self.second(came, |second| second.succeeded += 1),
            Err(0) => self.state.borrow_mut().refused += 1,
            Err(_) => {}
        }
    }
}

/// One call, with all its attempts.
async fn call(policies: &ClientPolicies, sky: &Sky, came: Duration) {
    let result = through(policies, || request(sky)).await;
    sky.note_end(came, result.map_err(|error| error.attempts()));
}

/// One call that goes through three services.
async fn call_chain([first, second, third]: [&ClientPolicies; 3], sky: &Sky, came: Duration) {
    let by_third = || async { answer(through(third, || request(sky)).await) };
    let by_second = || async { answer(through(second, by_third).await) };
    let result = through(first, by_second).await;
    sky.note_end(came, result.map_err(|error| error.attempts()));
}

/// Makes an operation under the policies of a client.
async fn through<F: Future<Output = Result<(), Refusal>>>(
    policies: &ClientPolicies,
    operation: impl Fn() -> F + Clone,
) -> Result<(), rewheel::Error<Refusal>> {
    let run = policies.pipeline.run(|_| operation());
    match &policies.hedge {
        None => run.await,
        // Two calls in one are large, and most clients have no hedge.
        Some(hedge) => Box::pin(run.hedge(hedge, SafeToRepeat)).await,
    }
}

/// Returns what a caller in another process learns: only that the call failed, not that it was repeated already.
fn answer(result: Result<(), rewheel::Error<Refusal>>) -> Result<(), Refusal> {
    result.map_err(|_| Refusal::Failed)
}

/// One request to the dependency. If the caller stops waiting, the work of the dependency is wasted.
async fn request(sky: &Sky) -> Result<(), Refusal> {
    let now = sky.world.now();
    sky.second(now, |second| second.attempts += 1);
    let booked = {
        let mut state = sky.state.borrow_mut();
        state.requests += 1;
        let booked = state.line.book(now);
        let is_counted = booked.is_served() && now + booked.after <= state.until;
        state.served += u64::from(is_counted);
        booked
    };
    if !booked.after.is_zero() {
        let mut awaited = Awaited { sky, done: now + booked.after, is_over: false };
        sky.world.sleep(booked.after).await;
        awaited.is_over = true;
    }
    booked.refusal.map_or(Ok(()), Err)
}

struct Awaited<'a> {
    sky: &'a Sky,
    done: Duration,
    is_over: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        // Calls that run when the simulation ends are dropped too.
        let mut state = self.sky.state.borrow_mut();
        state.wasted += u64::from(!self.is_over && self.done <= state.until);
    }
}
