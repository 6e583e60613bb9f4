//! A simulated dependency: limited concurrency, a queue, and faults.

use rewheel::{Category, Class, Classify, Random};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

/// Each takes a word of memory.
const SERVERS_MAX: u32 = 100_000;

/// Whoever waits longer has other problems.
const LATENCY_MAX: Duration = Duration::from_secs(3_600);

/// Something that is called.
///
/// Requests are served in the order in which they come. It does not notice who hangs up: what was asked for is done, though
/// nobody waits for it any more. That is what most servers do, and what keeps storms going.
#[derive(Clone, Debug)]
pub struct Dependency {
    capacity: u32,
    latency: Duration,
    sheds_after: Option<Duration>,
}

/// What is wrong with it for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It answers at once that it cannot.
    Fails,
    /// It begins nothing. What comes waits in line, and is done when it is over.
    Hangs,
    /// Everything takes so many times as long.
    Slow(f64),
}

impl Dependency {
    /// Serves so many requests a second, each in this time on average when there is no line.
    pub const fn new(capacity: u32, latency: Duration) -> Dependency {
        Dependency { capacity, latency, sheds_after: None }
    }

    /// Refuses at once what would wait in line for longer.
    #[must_use]
    pub const fn sheds_after(mut self, wait: Duration) -> Dependency {
        self.sheds_after = Some(wait);
        self
    }

    /// How many it serves at a time.
    fn servers(&self) -> f64 {
        (f64::from(self.capacity) * self.latency.as_secs_f64()).round().max(1.0)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.capacity == 0 || self.latency.is_zero() {
            return Err("what is called serves 1 a second or more, in more than no time".to_owned());
        }
        if self.latency > LATENCY_MAX || self.servers() > f64::from(SERVERS_MAX) {
            return Err(format!(
                "what is called serves {SERVERS_MAX} at a time at most (capacity times latency), each within an hour"
            ));
        }
        Ok(())
    }
}

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it fails")]
    Failed,
    #[error("the line is too long")]
    Shed,
}

impl Classify for Refusal {
    fn classify(&self) -> Class {
        match self {
            Refusal::Failed => Class::retry(Category::Transient),
            Refusal::Shed => Class::retry(Category::Throttled),
        }
    }
}

/// The dependency at work.
#[derive(Debug)]
pub(crate) struct Line {
    /// When each of those who serve is free. Who comes is served by the first that is: so when a request is done is known when
    /// it comes, and nothing needs to happen in between.
    free: BinaryHeap<Reverse<Duration>>,
    /// How long a request keeps one of them on average: as many at work, this long each, are the capacity.
    each: Duration,
    /// After how long it is answered.
    answers_in: Duration,
    /// When those in line will be begun.
    waiting: BinaryHeap<Reverse<Duration>>,
    sheds_after: Option<Duration>,
    outages: Vec<(Range<Duration>, Fault)>,
    random: Random,
}

/// An answer to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booked {
    pub(crate) after: Duration,
    pub(crate) refusal: Option<Refusal>,
}

impl Line {
    pub(crate) fn new(
        dependency: &Dependency,
        outages: &[(Range<Duration>, Fault)],
        random: Random,
    ) -> Line {
        let capacity = f64::from(dependency.capacity);
        let servers = dependency.servers();
        Line {
            free: (0..servers as usize).map(|_| Reverse(Duration::ZERO)).collect(),
            each: Duration::from_secs_f64(servers / capacity),
            answers_in: dependency.latency.min(Duration::from_secs_f64(servers / capacity)),
            waiting: BinaryHeap::new(),
            sheds_after: dependency.sheds_after,
            outages: outages.to_vec(),
            random,
        }
    }

    /// Takes a request.
    pub(crate) fn book(&mut self, now: Duration) -> Booked {
        if let Some(Fault::Fails) = self.fault(now) {
            return Booked { after: Duration::ZERO, refusal: Some(Refusal::Failed) };
        }
        while self.waiting.peek().is_some_and(|Reverse(begins)| *begins <= now) {
            self.waiting.pop();
        }
        // By the length of the line: it does not know when an outage will end.
        let wait = self.each.mul_f64(self.waiting.len() as f64 / self.free.len() as f64);
        if self.sheds_after.is_some_and(|most| wait > most) {
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
        // Half to one and a half of the average: nothing real goes in lockstep.
        let share = 0.5 + self.random.next() as f64 / u64::MAX as f64;
        self.free.pop();
        self.free.push(Reverse(begins + self.each.mul_f64(share * slower)));
        if begins > now {
            self.waiting.push(Reverse(begins));
        }
        let answered = begins + self.answers_in.mul_f64(share * slower);
        Booked { after: answered - now, refusal: None }
    }

    fn fault(&self, at: Duration) -> Option<Fault> {
        let outage = self.outages.iter().find(|(range, _)| range.contains(&at));
        outage.map(|(_, fault)| *fault)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dependency, Fault, Line, Refusal};
    use rewheel::{Random, millis, seconds};
    use std::time::Duration;

    /// When requests are done that come in one after the other, this far apart.
    fn done(line: &mut Line, count: u32, apart: Duration) -> Vec<Duration> {
        (0..count).map(|nth| apart * nth + line.book(apart * nth).after).collect()
    }

    #[test]
    fn serves_its_capacity_and_no_more() {
        let mut line = Line::new(&Dependency::new(100, millis(50)), &[], Random::seeded(1));
        let last = done(&mut line, 10_000, millis(1)).into_iter().max().unwrap();
        assert!((seconds(98)..seconds(102)).contains(&last), "{last:?}");
        let mut idle = Line::new(&Dependency::new(100, millis(50)), &[], Random::seeded(1));
        let waits: Duration = (0..1_000).map(|nth| idle.book(millis(20) * nth).after).sum();
        let average = waits / 1_000;
        assert!((millis(45)..millis(55)).contains(&average), "{average:?}");
    }

    #[test]
    fn what_hangs_is_done_when_it_is_over() {
        let outages = [(seconds(1)..seconds(5), Fault::Hangs)];
        let mut line = Line::new(&Dependency::new(100, millis(10)), &outages, Random::seeded(1));
        assert!(line.book(millis(900)).after < millis(20));
        assert!(line.book(seconds(2)).after >= seconds(3));
    }

    #[test]
    fn a_fault_is_told_and_a_long_line_is_cut() {
        let outages =
            [(seconds(1)..seconds(5), Fault::Fails), (seconds(5)..seconds(6), Fault::Slow(10.0))];
        let dependency = Dependency::new(10, millis(100)).sheds_after(millis(500));
        let mut line = Line::new(&dependency, &outages, Random::seeded(1));
        assert!(matches!(line.book(seconds(2)).refusal, Some(Refusal::Failed)));
        assert!(line.book(seconds(5)).after >= millis(500), "slow");
        // One at work, and half a second of them in line.
        let shed = (0..20).filter(|_| line.book(seconds(5)).refusal.is_some()).count();
        assert_eq!(shed, 20 - 6);
    }

    #[test]
    fn one_that_is_rarely_asked_answers_in_its_time() {
        let mut line = Line::new(&Dependency::new(10, millis(20)), &[], Random::seeded(1));
        assert!(line.book(seconds(1)).after <= millis(30));
        assert!(line.book(seconds(1)).after >= millis(50), "the next one waits for its turn");
    }
}
