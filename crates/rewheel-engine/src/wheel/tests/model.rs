//! Compares the wheel with a sorted map.

use super::{boundaries, ms};
use crate::wheel::{Timer, Wheel};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Small enough to be reached.
const TIMERS_MAX: u32 = 200;

#[derive(Clone, Debug)]
enum Step {
    /// This many timers at once, this long after now.
    Insert { delay: u64, count: usize },
    /// At a given tick, which may have passed.
    InsertAt(u64),
    /// The timer of any handle that ever existed.
    Cancel(prop::sample::Index),
    /// Everything that is due this much later.
    Expire(u64),
    /// Some of what is due this much later.
    ExpireSome { later: u64, count: usize },
    /// Everything that is due at a tick that may have passed.
    ExpireAt(u64),
    /// Like a loop that sleeps until the next expiry.
    ExpireNext,
}

fn delay() -> impl Strategy<Value = u64> {
    let boundaries: Vec<u64> = boundaries().collect();
    prop_oneof![
        4 => 0..4_u64,
        4 => 0..600_u64,
        2 => 0..70_000_u64,
        3 => prop::sample::select(boundaries),
        1 => any::<u64>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (delay(), 1..40_usize).prop_map(|(delay, count)| Step::Insert { delay, count }),
        1 => delay().prop_map(Step::InsertAt),
        8 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        4 => delay().prop_map(Step::Expire),
        2 => (delay(), 0..20_usize).prop_map(|(later, count)| Step::ExpireSome { later, count }),
        1 => delay().prop_map(Step::ExpireAt),
        4 => Just(Step::ExpireNext),
    ]
}

/// A slow reference of the wheel.
struct Model {
    wheel: Wheel<usize>,
    now: u64,
    /// When each timer is due, with its number.
    waiting: BTreeSet<(u64, usize)>,
    /// Of every timer that ever existed, by its number.
    handles: Vec<(u64, Timer)>,
}

impl Model {
    fn new() -> Model {
        Model {
            wheel: Wheel::new(TIMERS_MAX),
            now: 0,
            waiting: BTreeSet::new(),
            handles: Vec::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Insert { delay, count } => {
                (0..count).for_each(|_| self.insert(self.now.saturating_add(delay)));
            }
            Step::InsertAt(at) => self.insert(at),
            Step::Cancel(which) => self.cancel(which),
            Step::Expire(later) => self.expire(self.now.saturating_add(later), usize::MAX),
            Step::ExpireSome { later, count } => {
                self.expire(self.now.saturating_add(later), count);
            }
            Step::ExpireAt(at) => self.expire(at, usize::MAX),
            Step::ExpireNext => {
                if let Some(next) = self.wheel.next_expiry() {
                    self.expire(next.as_millis(), usize::MAX);
                }
            }
        }
        self.compare();
    }

    fn insert(&mut self, at: u64) {
        let number = self.handles.len();
        let inserted = self.wheel.insert(ms(at), number);
        if self.waiting.len() == TIMERS_MAX as usize {
            assert_eq!(inserted.unwrap_err().into_value(), number);
            return;
        }
        let at = at.max(self.now);
        self.waiting.insert((at, number));
        self.handles.push((at, inserted.unwrap()));
    }

    fn cancel(&mut self, which: prop::sample::Index) {
        if self.handles.is_empty() {
            return;
        }
        let number = which.index(self.handles.len());
        let (at, timer) = self.handles[number];
        let expected = self.waiting.remove(&(at, number)).then_some(number);
        assert_eq!(self.wheel.cancel(timer), expected);
    }

    fn expire(&mut self, until: u64, count: usize) {
        let until = until.max(self.now);
        let due = self.waiting.range(..=(until, usize::MAX)).count();
        let mut expired = 0;
        for number in self.wheel.expire(ms(until)).take(count) {
            // Any of those with the first tick.
            let (earliest, _) = *self.waiting.first().unwrap();
            let (at, _) = self.handles[number];
            assert_eq!(at, earliest, "timer {number} is out of order");
            assert!(self.waiting.remove(&(at, number)), "timer {number} fired twice");
            expired += 1;
        }
        assert_eq!(expired, due.min(count));
        // If not all due values are taken, the time of the wheel stops.
        let stopped = self.wheel.now.as_millis();
        assert!(if count > due { stopped == until } else { (self.now..=until).contains(&stopped) });
        self.now = stopped;
    }

    fn compare(&self) {
        assert_eq!(self.wheel.len(), self.waiting.len());
        assert_eq!(self.wheel.is_empty(), self.waiting.is_empty());
        let next = self.wheel.next_expiry().map(|next| next.as_millis());
        let Some(&(at, _)) = self.waiting.first() else {
            assert_eq!(next, None);
            return;
        };
        let next = next.unwrap();
        assert!(self.now <= next && next <= at, "now {} next {next} at {at}", self.now);
        if self.now / 256 == at / 256 {
            assert_eq!(next, at);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_wheel_does_what_a_sorted_map_would(steps in vec(step(), 1..120)) {
        let mut model = Model::new();
        let allocated = model.wheel.allocated();
        for step in &steps {
            model.take(step);
        }
        prop_assert_eq!(model.wheel.allocated(), allocated);
        model.expire(u64::MAX, usize::MAX);
        prop_assert!(model.wheel.is_empty());
    }
}
