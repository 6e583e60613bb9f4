//! Compares the count window with a plain list of outcomes.

use crate::window::{CountWindow, Counts, Tally};
use proptest::prelude::*;
use std::collections::VecDeque;

/// The last outcomes, oldest first: the content of the ring of bits.
struct Model {
    size: usize,
    outcomes: VecDeque<Tally>,
}

impl Model {
    fn record(&mut self, tally: Tally) {
        self.outcomes.push_back(tally);
        if self.outcomes.len() > self.size {
            self.outcomes.pop_front();
        }
    }

    fn counts(&self) -> Counts {
        let count = |counted: fn(&Tally) -> bool| {
            self.outcomes.iter().filter(|tally| counted(tally)).count() as u64
        };
        Counts { calls: count(|_| true), failures: count(|t| t.failed), slow: count(|t| t.slow) }
    }
}

fn tally() -> impl Strategy<Value = Tally> {
    (any::<bool>(), any::<bool>()).prop_map(|(failed, slow)| Tally { failed, slow })
}

proptest! {
    #[test]
    fn counts_what_a_list_of_the_last_outcomes_counts(
        size in prop_oneof![Just(1_u32), Just(63), Just(64), Just(65), 1_u32..200],
        outcomes in proptest::collection::vec((tally(), 0_u8..100), 0..600),
    ) {
        let window = CountWindow::new(size);
        let mut model = Model { size: size as usize, outcomes: VecDeque::new() };
        for (tally, action) in outcomes {
            if action == 0 {
                window.clear();
                model.outcomes.clear();
            } else {
                window.record(tally);
                model.record(tally);
            }
            prop_assert_eq!(window.counts(), model.counts());
        }
    }
}

#[test]
fn slides_so_that_old_successes_do_not_dilute_new_failures() {
    let window = CountWindow::new(100);
    for _ in 0..10_000 {
        window.record(Tally::default());
    }
    for failures in 1..=50 {
        window.record(Tally { failed: true, slow: false });
        assert_eq!(window.counts(), Counts { calls: 100, failures, slow: 0 });
    }
}

#[test]
fn holds_a_million_calls() {
    const SIZE: u32 = 1_000_000;
    let window = CountWindow::new(SIZE);
    for call in 0..SIZE {
        window.record(Tally { failed: call % 4 == 0, slow: call % 10 == 0 });
    }
    let counts = |failures, slow| Counts { calls: SIZE.into(), failures, slow };
    assert_eq!(window.counts(), counts(250_000, 100_000));
    for _ in 0..SIZE {
        window.record(Tally::default());
    }
    assert_eq!(window.counts(), counts(0, 0));
}
