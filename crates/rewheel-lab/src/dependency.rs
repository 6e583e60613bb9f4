//! A simulated dependency: limited concurrency, a queue, and faults.

use crate::chance::Chance;
use crate::latency::{LATENCY_MAX, Latency};
use rewheel::{Category, Class, Classify};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

/// Limits memory: each server takes one word.
const SERVERS_MAX: u32 = 100_000;

/// A simulated service.
///
/// Serves requests in order of arrival. It does not notice clients that disconnect: it completes every request, even if the
/// client no longer waits. Most servers do this, and it keeps retry storms going.
#[derive(Clone, Debug)]
pub struct Dependency {
    capacity: u32,
    latency: Latency,
    failure_ratio: f64,
    sheds_after: Option<Duration>,
}

/// A fault of the dependency during an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Fails every request at once.
    Fails,
    /// Starts no request. Requests wait in the queue and are served when the outage is over.
    Hangs,
    /// Takes this many times as long for each request.
    Slow(f64),
}

impl Fault {
    /// Says what the dependency does.
    pub fn in_words(self) -> String {
        match self {
            Fault::Fails => "fails immediately".to_owned(),
            Fault::Hangs => "hangs".to_owned(),
            Fault::Slow(times) => format!("is {times} times as slow"),
        }
    }

    pub(crate) fn check(self) -> Result<(), String> {
        match self {
            Fault::Slow(times) if !(1.0..=1_000.0).contains(&times) => {
                Err("the slow fault must have a factor of 1 to 1000".to_owned())
            }
            Fault::Fails | Fault::Hangs | Fault::Slow(_) => Ok(()),
        }
    }
}

impl Dependency {
    /// Creates a dependency that serves `capacity` requests per second, each in `latency` on average when there is no queue.
    /// A plain duration is evenly spread between half of it and one and a half of it; see [`Latency`].
    pub fn new(capacity: u32, latency: impl Into<Latency>) -> Dependency {
        Dependency { capacity, latency: latency.into(), failure_ratio: 0.0, sheds_after: None }
    }

    /// Fails this share of the requests, 0 to 1, each independently of the others. They take as long as the others.
    ///
    /// # Panics
    /// Panics if the share is not 0 to 1.
    #[must_use]
    pub fn failure_ratio(mut self, share: f64) -> Dependency {
        assert!((0.0..=1.0).contains(&share), "the failure ratio must be 0 to 1");
        self.failure_ratio = share;
        self
    }

    /// Refuses a request at once if it would wait in the queue for longer than this.
    #[must_use]
    pub fn sheds_after(mut self, wait: Duration) -> Dependency {
        self.sheds_after = Some(wait);
        self
    }

    /// Returns how many requests it serves at the same time.
    fn servers(&self) -> f64 {
        (f64::from(self.capacity) * self.latency.mean().as_secs_f64()).round().max(1.0)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let latency = self.latency.mean();
        if self.capacity == 0 || latency.is_zero() {
            return Err("the dependency must serve 1 request per second or more, and its latency must be longer than 0s".to_owned());
        }
        if latency > LATENCY_MAX || self.servers() > f64::from(SERVERS_MAX) {
            return Err(format!(
                "the simulated dependency is too large: capacity times latency must be at most {SERVERS_MAX} requests, and the latency at most 1h"
            ));
        }
        Ok(())
    }
}

/// Why a request was not served.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the dependency failed")]
    Failed,
    #[error("the simulated request failed")]
    Flaky,
    #[error("the simulated dependency refused the call: too many calls are already waiting")]
    Shed,
}

impl Classify for Refusal {
    fn classify(&self) -> Class {
        match self {
            Refusal::Failed | Refusal::Flaky => Class::retry(Category::Transient),
            Refusal::Shed => Class::retry(Category::Throttled),
        }
    }
}

/// The running dependency with its queue.
#[derive(Debug)]
pub(crate) struct Line {
    /// When each server is free. A new request is served by the first free one, so its completion time is known on arrival and no
    /// events are needed in between.
    free: BinaryHeap<Reverse<Duration>>,
    latency: Latency,
    /// Average time that a request occupies a server: all servers busy for this time each make up the capacity.
    each: Duration,
    /// Average time to the response.
    answers_in: Duration,
    failure_ratio: f64,
    /// When the queued requests will start. Empty if the dependency does not shed load.
    waiting: BinaryHeap<Reverse<Duration>>,
    sheds_after: Option<Duration>,
    outages: Vec<(Range<Duration>, Fault)>,
    chance: Chance,
}

/// The future response of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booked {
    pub(crate) after: Duration,
    pub(crate) refusal: Option<Refusal>,
}

impl Booked {
    /// Returns whether the dependency did the work.
    pub(crate) fn is_served(self) -> bool {
        match self.refusal {
            None | Some(Refusal::Flaky) => true,
            Some(Refusal::Failed | Refusal::Shed) => false,
        }
    }
}

impl Line {
    pub(crate) fn new(
        dependency: &Dependency,
        outages: &[(Range<Duration>, Fault)],
        chance: Chance,
    ) -> Line {
        let capacity = f64::from(dependency.capacity);
        let servers = dependency.servers();
        let each = Duration::from_secs_f64(servers / capacity);
        Line {
            free: (0..servers as usize).map(|_| Reverse(Duration::ZERO)).collect(),
            answers_in: dependency.latency.mean().min(each),
            latency: dependency.latency.clone(),
            each,
            failure_ratio: dependency.failure_ratio,
            waiting: BinaryHeap::new(),
            sheds_after: dependency.sheds_after,
            outages: outages.to_vec(),
            chance,
        }
    }

    /// Accepts a request.
    pub(crate) fn book(&mut self, now: Duration) -> Booked {
        if let Some(Fault::Fails) = self.fault(now) {
            return Booked { after: Duration::ZERO, refusal: Some(Refusal::Failed) };
        }
        if self.sheds_after.is_some_and(|most| self.wait_estimate(now) > most) {
            return Booked { after: Duration::ZERO, refusal: Some(Refusal::Shed) };
        }
        let first = self.free.peek().map_or(now, |Reverse(free)| (*free).max(now));
        let begins = self.outages.iter().fold(first, |at, (range, fault)| {
            if *fault == Fault::Hangs && range.contains(&at) { range.end } else { at }
        });
        let slower = match self.fault(begins) {
            Some(Fault::Slow(times)) => times,
            Some(Fault::Fails | Fault::Hangs) | None => 1.0,
        };
        let share = self.latency.factor(&self.chance) * slower;
        if let Some(mut free) = self.free.peek_mut() {
            *free = Reverse(begins + self.each.mul_f64(share));
        }
        if begins > now && self.sheds_after.is_some() {
            self.waiting.push(Reverse(begins));
        }
        let answered = begins + self.answers_in.mul_f64(share);
        let refusal = self.chance.happens(self.failure_ratio).then_some(Refusal::Flaky);
        Booked { after: answered - now, refusal }
    }

    /// Estimates from the length of the queue how long a new request waits: the dependency does not know when an outage ends.
    fn wait_estimate(&mut self, now: Duration) -> Duration {
        while self.waiting.peek().is_some_and(|Reverse(begins)| *begins <= now) {
            self.waiting.pop();
        }
        self.each.mul_f64(self.waiting.len() as f64 / self.free.len() as f64)
    }

    fn fault(&self, at: Duration) -> Option<Fault> {
        let outage = self.outages.iter().find(|(range, _)| range.contains(&at));
        outage.map(|(_, fault)| *fault)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dependency, Fault, Line, Refusal};
    use crate::chance::Chance;
    use rewheel::{millis, seconds};
    use std::time::Duration;

    /// Returns when requests that arrive this far apart are done.
    fn done(line: &mut Line, count: u32, apart: Duration) -> Vec<Duration> {
        (0..count).map(|nth| apart * nth + line.book(apart * nth).after).collect()
    }

    #[test]
    fn serves_its_capacity_and_no_more() {
        let mut line = Line::new(&Dependency::new(100, millis(50)), &[], Chance::seeded(1));
        let last = done(&mut line, 10_000, millis(1)).into_iter().max().unwrap();
        assert!((seconds(98)..seconds(102)).contains(&last), "{last:?}");
        let mut idle = Line::new(&Dependency::new(100, millis(50)), &[], Chance::seeded(1));
        let waits: Duration = (0..1_000).map(|nth| idle.book(millis(20) * nth).after).sum();
        let average = waits / 1_000;
        assert!((millis(45)..millis(55)).contains(&average), "{average:?}");
    }

    #[test]
    fn what_hangs_is_done_when_it_is_over() {
        let outages = [(seconds(1)..seconds(5), Fault::Hangs)];
        let mut line = Line::new(&Dependency::new(100, millis(10)), &outages, Chance::seeded(1));
        assert!(line.book(millis(900)).after < millis(20));
        assert!(line.book(seconds(2)).after >= seconds(3));
    }

    #[test]
    fn a_fault_is_told_and_a_long_line_is_cut() {
        let outages =
            [(seconds(1)..seconds(5), Fault::Fails), (seconds(5)..seconds(6), Fault::Slow(10.0))];
        let dependency = Dependency::new(10, millis(100)).sheds_after(millis(500));
        let mut line = Line::new(&dependency, &outages, Chance::seeded(1));
        assert!(matches!(line.book(seconds(2)).refusal, Some(Refusal::Failed)));
        assert!(line.book(seconds(5)).after >= millis(500), "slow");
        // One in service, and half a second of requests in the queue.
        let shed = (0..20).filter(|_| line.book(seconds(5)).refusal.is_some()).count();
        assert_eq!(shed, 20 - 6);
    }

    #[test]
    fn a_share_of_the_requests_fails_after_their_normal_time() {
        let dependency = Dependency::new(1_000, millis(10)).failure_ratio(0.25);
        let mut line = Line::new(&dependency, &[], Chance::seeded(1));
        let booked: Vec<_> = (0..40_000).map(|nth| line.book(millis(10) * nth)).collect();
        let failed = booked.iter().filter(|booked| booked.refusal.is_some()).count();
        assert!((9_600..10_400).contains(&failed), "{failed}");
        assert!(booked.iter().all(|booked| booked.is_served() && booked.after >= millis(5)));
    }

    #[test]
    fn one_that_is_rarely_asked_answers_in_its_time() {
        let mut line = Line::new(&Dependency::new(10, millis(20)), &[], Chance::seeded(1));
        assert!(line.book(seconds(1)).after <= millis(30));
        assert!(line.book(seconds(1)).after >= millis(50), "the next one waits for its turn");
    }
}
