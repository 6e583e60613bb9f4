//! Chooses the lanes to claim from next.

use rewheel_core::{Lane, Limits, Priority};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Number of visited lanes that are not chosen by priority.
const LANES_IN_TURN: usize = Limits::LANES_MAX / 5;

/// Every n-th claim begins with a lane below the highest priority: the one that got nothing for the longest time.
const LONGEST_FIRST_EVERY: u64 = 8;

/// Every n-th claim ignores the owners of shards: an owner may be too busy.
const EVERYBODYS_EVERY: u64 = 8;

/// A lane without due jobs for this many claims starts over: it has not waited.
const ABSENT_MAX: u64 = 16;

/// Number of lanes to keep before those without recent due jobs are removed.
const REMEMBERED_MAX: usize = 20_000;

/// Maximum credit or debt of a lane: one batch. A larger one would be outdated.
const OWED_MAX: f64 = Limits::BATCH_MAX as f64;

/// The order of lanes: by priority, then by credit.
///
/// Deficit round robin: among lanes of one priority each is entitled to its weight's share of all claimed jobs, and the lane with
/// the largest credit is visited first. With few slots, the highest priority would take all of them, so from time to time another
/// lane goes first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    round: u64,
    /// Number of claims that returned jobs.
    served: u64,
    /// Number of claims that returned jobs since one began with a lane below the highest priority.
    urgent: u64,
    standings: HashMap<Lane, Standing>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// In jobs.
    owed: f64,
    /// The round in which it last got something, or was added.
    served: u64,
    /// The round in which it last had a due job.
    seen: u64,
}

/// A lane that has due jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'l> {
    pub(super) lane: &'l Lane,
    /// Whether visiting it would return nothing.
    pub(super) is_closed: bool,
    /// Whether another holder owns its shard and has precedence.
    pub(super) is_foreign: bool,
    /// The weight of its tenant. Lanes that differ only in their shard share it.
    pub(super) weight: f64,
}

/// A lane to visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer<'l> {
    pub(super) lane: &'l Lane,
    pub(super) weight: f64,
    /// Whether it was worth a visit, before other lanes took the capacity of its kind and tenant.
    pub(super) is_open: bool,
    /// Maximum number of jobs to take from it.
    pub(super) jobs: usize,
}

/// What a lane was asked for, and returned.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) lane: Lane,
    pub(super) weight: f64,
    pub(super) asked: usize,
    pub(super) given: usize,
}

impl Given {
    pub(super) fn nothing_yet(offer: &Offer<'_>, asked: usize) -> Given {
        Given { lane: offer.lane.clone(), weight: offer.weight, asked, given: 0 }
    }
}

impl Turns {
    /// Orders the lanes to visit, with lanes that will return nothing last. The unused part of an offer passes to the next lane.
    pub(super) fn offers<'l>(
        &mut self,
        mut lanes: Vec<Candidate<'l>>,
        limit: usize,
    ) -> Vec<Offer<'l>> {
        if lanes.is_empty() || limit == 0 {
            return Vec::new();
        }
        self.round += 1;
        self.see(&lanes);
        if self.served % EVERYBODYS_EVERY == EVERYBODYS_EVERY - 1 {
            lanes.iter_mut().for_each(|lane| lane.is_foreign = false);
        }
        let start = turn(self.round, lanes.len());
        lanes.rotate_left(start);
        let owed = |lane: &Candidate<'_>| self.standings.get(lane.lane).map_or(0.0, |s| s.owed);
        lanes.sort_by(|one, other| {
            let urgency = |lane: &Candidate<'_>| {
                (lane.is_closed, Reverse(lane.lane.priority), lane.is_foreign)
            };
            urgency(one).cmp(&urgency(other)).then_with(|| owed(other).total_cmp(&owed(one)))
        });
        if lanes.len() > Limits::LANES_MAX {
            // With any number of lanes that have a higher priority, or are closed without our knowledge, each lane has its turn.
            let others = &mut lanes[Limits::LANES_MAX - LANES_IN_TURN..];
            let start = turn(self.round.wrapping_mul(LANES_IN_TURN as u64), others.len());
            others.rotate_left(start);
        }
        if self.urgent + 1 >= LONGEST_FIRST_EVERY
            && let Some(longest) = self.longest(&lanes)
        {
            lanes[..=longest].rotate_right(1);
        }
        lanes.truncate(Limits::LANES_MAX);
        let mut weights: BTreeMap<(Priority, bool), f64> = BTreeMap::new();
        for lane in lanes.iter().filter(|lane| !lane.is_closed) {
            *weights.entry((lane.lane.priority, lane.is_foreign)).or_default() += lane.weight;
        }
        let offer = |lane: Candidate<'l>| {
            let Candidate { lane, weight, is_foreign, is_closed } = lane;
            // Shared by lanes of the same priority and the same ownership. The rest is offered to the others.
            let all = weights.get(&(lane.priority, is_foreign)).copied().unwrap_or(0.0);
            let share = limit as f64 * weight / all.max(weight);
            Offer { lane, weight, is_open: !is_closed, jobs: (share.ceil() as usize).max(1) }
        };
        lanes.into_iter().map(offer).collect()
    }

    /// Records what lanes returned that were visited together, for up to `limit` jobs.
    pub(super) fn note(&mut self, all: &[Given], limit: usize) {
        let mut sums: BTreeMap<Priority, (f64, f64)> = BTreeMap::new();
        for one in all {
            let (given, weight) = sums.entry(one.lane.priority).or_default();
            *given += one.given as f64;
            *weight += one.weight;
        }
        let first = all.iter().map(|one| one.lane.priority).max();
        let gave = |one: &Given| one.given > 0;
        self.served += u64::from(all.iter().any(gave));
        if all.iter().any(|one| gave(one) && Some(one.lane.priority) < first) {
            self.urgent = 0;
        } else if all.iter().any(gave) {
            self.urgent += 1;
        }
        // Otherwise the last lanes may not have been visited.
        let were_all_asked = all.iter().map(|one| one.given).sum::<usize>() < limit;
        for one in all {
            let Some(standing) = self.standings.get_mut(&one.lane) else { continue };
            if one.given > 0 {
                standing.served = self.round;
            }
            if were_all_asked && one.given < one.asked {
                // It has no more: an empty lane has no credit.
                standing.owed = 0.0;
                continue;
            }
            let (given, weight) = sums[&one.lane.priority];
            let due = given * one.weight / weight;
            standing.owed = (standing.owed + due - one.given as f64).clamp(-OWED_MAX, OWED_MAX);
        }
    }

    fn see(&mut self, lanes: &[Candidate<'_>]) {
        let round = self.round;
        for lane in lanes {
            let fresh = Standing { owed: 0.0, served: round, seen: round };
            match self.standings.get_mut(lane.lane) {
                Some(known) if round - known.seen <= ABSENT_MAX => known.seen = round,
                Some(known) => *known = fresh,
                None => drop(self.standings.insert(lane.lane.clone(), fresh)),
            }
        }
        if self.standings.len() > REMEMBERED_MAX {
            self.standings.retain(|_, known| round - known.seen <= ABSENT_MAX);
        }
        if self.standings.len() > REMEMBERED_MAX {
            self.standings.retain(|_, known| known.seen == round);
        }
    }

    /// Returns the open lane below the highest priority that got nothing for the longest time.
    fn longest(&self, lanes: &[Candidate<'_>]) -> Option<usize> {
        let served = |lane: &Candidate<'_>| self.standings.get(lane.lane).map_or(0, |s| s.served);
        let first = lanes.iter().find(|lane| !lane.is_closed)?.lane.priority;
        let is_behind = |lane: &Candidate<'_>| !lane.is_closed && lane.lane.priority < first;
        let behind = lanes.iter().enumerate().filter(|(_, lane)| is_behind(lane));
        behind.min_by_key(|(_, lane)| served(lane)).map(|(place, _)| place)
    }
}

/// Divides the weight of a tenant among lanes that differ only in their shards: more shards give no more credit.
pub(super) fn share_weights<'l>(lanes: &mut [Candidate<'l>]) {
    // They are adjacent in the order of the store.
    let is_one = |one: &Candidate<'l>, other: &Candidate<'l>| {
        let name = |lane: &'l Lane| (&lane.kind, &lane.tenant, lane.priority);
        name(one.lane) == name(other.lane)
    };
    for shards in lanes.chunk_by_mut(is_one) {
        let count = shards.len() as f64;
        shards.iter_mut().for_each(|lane| lane.weight /= count);
    }
}

fn turn(round: u64, of: usize) -> usize {
    usize::try_from(round % of as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
