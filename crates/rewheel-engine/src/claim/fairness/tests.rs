//! Tests of the lane order, without a store.

use super::{Candidate, Given, LONGEST_FIRST_EVERY, Turns};
use proptest::prelude::*;
use rewheel_core::{KindName, Lane, Limits, Priority, Shard, Tenant};

fn lane(tenant: usize, priority: u8) -> Lane {
    Lane {
        kind: KindName::parse("work").unwrap(),
        tenant: Some(Tenant::parse(&format!("tenant {tenant}")).unwrap()),
        priority: Priority::new(priority).unwrap(),
        shard: Shard::NONE,
    }
}

fn candidate(lane: &Lane, weight: f64) -> Candidate<'_> {
    Candidate { lane, is_closed: false, is_foreign: false, weight }
}

/// Lanes with an unlimited number of jobs, and how many each has returned.
struct Deep {
    turns: Turns,
    lanes: Vec<(Lane, u32)>,
    given: Vec<usize>,
}

impl Deep {
    fn new(lanes: impl IntoIterator<Item = (u8, u32)>) -> Deep {
        let lanes = lanes.into_iter().enumerate();
        let lanes: Vec<(Lane, u32)> =
            lanes.map(|(nth, (priority, weight))| (lane(nth, priority), weight)).collect();
        Deep { turns: Turns::default(), given: vec![0; lanes.len()], lanes }
    }

    /// One claim: visits lanes in order until the limit is reached.
    fn claim(&mut self, limit: usize) {
        let open = |(lane, weight)| candidate(lane, f64::from(weight));
        let lanes = self.lanes.iter().map(|(lane, weight)| open((lane, *weight))).collect();
        let mut rest = limit;
        let mut all = Vec::new();
        for offer in self.turns.offers(lanes, limit) {
            let given = offer.jobs.min(rest);
            rest -= given;
            let place = self.lanes.iter().position(|(lane, _)| lane == offer.lane).unwrap();
            self.given[place] += given;
            let (lane, weight) = (offer.lane.clone(), offer.weight);
            all.push(Given { lane, weight, asked: offer.jobs, given });
        }
        assert_eq!(rest, 0, "all that was asked for is given");
        self.turns.note(&all, limit);
    }
}

#[test]
fn a_lane_is_given_its_weights_share() {
    for (weights, limit, shares) in [
        (vec![1, 1], 1, vec![300, 300]),
        (vec![2, 1], 1, vec![400, 200]),
        (vec![2, 1], 7, vec![2_800, 1_400]),
        (vec![2, 1], 100, vec![40_000, 20_000]),
        (vec![5, 3, 1, 1], 2, vec![600, 360, 120, 120]),
    ] {
        let mut deep = Deep::new(weights.iter().map(|weight| (5, *weight)));
        (0..600).for_each(|_| deep.claim(limit));
        for (given, share) in deep.given.iter().zip(&shares) {
            assert!(given.abs_diff(*share) <= limit + 1, "{weights:?} {limit}: {:?}", deep.given);
        }
    }
}

#[test]
fn the_most_urgent_comes_first_and_the_last_is_not_starved() {
    let mut deep = Deep::new([(9, 1), (0, 1)]);
    (0..800).for_each(|_| deep.claim(1));
    assert_eq!(deep.given, [700, 100]);
}

#[test]
fn closed_lanes_take_no_visit_of_others() {
    let all: Vec<Lane> = (0..200).map(|nth| lane(nth, 9)).collect();
    let open = lane(999, 0);
    let mut turns = Turns::default();
    for _ in 0..50 {
        let mut lanes: Vec<Candidate<'_>> =
            all.iter().map(|lane| Candidate { is_closed: true, ..candidate(lane, 1.0) }).collect();
        lanes.push(candidate(&open, 1.0));
        let offers = turns.offers(lanes, 10);
        assert_eq!((offers.len(), offers[0].lane), (Limits::LANES_MAX, &open));
    }
}

#[test]
fn a_lane_that_was_away_is_owed_nothing() {
    let (one, other) = (lane(1, 5), lane(2, 5));
    let candidate = |lane| candidate(lane, 1.0);
    let given = |lane: &Lane, given| Given { lane: lane.clone(), weight: 1.0, asked: 5, given };
    let mut turns = Turns::default();
    turns.offers(vec![candidate(&one), candidate(&other)], 10);
    // It had less than it was asked for.
    turns.note(&[given(&one, 5), given(&other, 1)], 10);
    assert!(turns.standings[&other].owed == 0.0 && turns.standings[&one].owed < 0.0);
    for _ in 0..20 {
        turns.offers(vec![candidate(&other)], 10);
    }
    turns.offers(vec![candidate(&one)], 10);
    assert!(turns.standings[&one].owed == 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With any priorities and weights of the others, every lane with due jobs gets something.
    #[test]
    fn no_lane_is_starved(
        lanes in prop::collection::vec((0_u8..=9, 1_u32..=3), 1..70),
        limit in 1_usize..20,
    ) {
        let count = lanes.len();
        let mut deep = Deep::new(lanes);
        let rounds = 3 * usize::try_from(LONGEST_FIRST_EVERY).unwrap() * (count + 1);
        (0..rounds).for_each(|_| deep.claim(limit));
        prop_assert!(deep.given.iter().all(|given| *given > 0), "{:?}", deep.given);
    }

    /// Among lanes of one priority each gets its share, within the size of one claim.
    #[test]
    fn shares_follow_weights(
        weights in prop::collection::vec(1_u32..=20, 1..20),
        limit in 1_usize..50,
    ) {
        let all: u32 = weights.iter().sum();
        let mut deep = Deep::new(weights.iter().map(|weight| (5, *weight)));
        let rounds = 500;
        (0..rounds).for_each(|_| deep.claim(limit));
        for (given, weight) in deep.given.iter().zip(&weights) {
            let share = (rounds * limit) as f64 * f64::from(*weight) / f64::from(all);
            let most = (2 * limit + weights.len()) as f64;
            prop_assert!((*given as f64 - share).abs() <= most, "{given} of {share}");
        }
    }
}
