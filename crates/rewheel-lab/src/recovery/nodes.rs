//! The nodes of a simulated engine, which park a kind and unpark it.

use super::{Parking, Recovery};
use crate::chance::Chance;
use rewheel::{BreakerState, CircuitBreaker, ManualClock, OwnedPermit};
use rewheel_core::Ramp;
use std::time::Duration;

/// The latest attempts that the breaker of a node counts, and the share of failures that opens it: the defaults of a kind.
const BREAKER_CALLS: u32 = 20;
const BREAKER_RATIO: f64 = 0.5;

/// Nodes that must report a kind before it is parked.
const SUSPECTS_MIN: usize = 2;

/// The nodes, and what they agree on in the store.
pub(super) struct Fleet {
    nodes: Vec<Node>,
    /// The node that is asked first, so that all nodes get the same number of jobs.
    first: usize,
    slots: usize,
    probe_every: Duration,
    parking: Parking,
    parked: Option<Parked>,
    /// How often the kind was parked.
    parkings: u64,
    /// The latest time that [`Fleet::next_probe`] returned.
    announced: Option<Duration>,
}

/// A parked kind.
struct Parked {
    probe_at: Duration,
    is_probed: bool,
}

struct Node {
    breaker: CircuitBreaker,
    /// Running attempts that began since the kind was last parked.
    running: usize,
    /// Running attempts from before: they take slots, but say nothing about the present.
    old: usize,
    ramp: Option<Ramp>,
    is_suspicious: bool,
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Ticket {
    node: usize,
    /// How often the kind had been parked when it began.
    parkings: u64,
    is_probe: bool,
    permit: Option<OwnedPermit>,
}

impl Fleet {
    pub(super) fn new(
        settings: &Recovery,
        parking: Parking,
        clock: &ManualClock,
        chance: &Chance,
    ) -> Fleet {
        let node = |_| {
            let breaker = CircuitBreaker::count_window(BREAKER_CALLS).failure_ratio(BREAKER_RATIO);
            let breaker = breaker.open_for(settings.probe_every).clock(clock);
            Node {
                breaker: breaker.random(&chance.fork()).build(),
                running: 0,
                old: 0,
                ramp: None,
                is_suspicious: false,
            }
        };
        Fleet {
            nodes: (0..settings.nodes).map(node).collect(),
            first: 0,
            slots: settings.slots,
            probe_every: settings.probe_every,
            parking,
            parked: None,
            parkings: 0,
            announced: None,
        }
    }

    /// Begins an attempt on a node that may run one.
    pub(super) fn begin(&mut self, now: Duration) -> Option<Ticket> {
        let count = self.nodes.len();
        let ticket = (0..count).find_map(|nth| self.begin_on((self.first + nth) % count, now))?;
        self.first = (ticket.node + 1) % count;
        self.nodes[ticket.node].running += 1;
        Some(ticket)
    }

    fn begin_on(&mut self, number: usize, now: Duration) -> Option<Ticket> {
        let node = &self.nodes[number];
        let mut ticket =
            Ticket { node: number, parkings: self.parkings, is_probe: false, permit: None };
        if let Some(parked) = &mut self.parked {
            // A probe needs no free slot: attempts from before the outage may hang in all of them.
            let is_due = !parked.is_probed && now >= parked.probe_at;
            parked.is_probed |= is_due;
            ticket.is_probe = true;
            return is_due.then_some(ticket);
        }
        let is_full = node.running + node.old >= self.slots;
        if is_full || !node.ramp.is_none_or(|ramp| ramp.allows(node.running)) {
            return None;
        }
        match self.parking {
            Parking::Off => {}
            Parking::AllAtOnce | Parking::Ramp => {
                ticket.permit = Some(node.breaker.acquire_owned().ok()?);
            }
        }
        Some(ticket)
    }

    /// Records the result of an attempt.
    pub(super) fn end(&mut self, now: Duration, ticket: Ticket, succeeded: bool) {
        let slots = self.slots;
        let node = &mut self.nodes[ticket.node];
        if ticket.parkings != self.parkings {
            node.old -= 1;
            return;
        }
        node.running -= 1;
        if ticket.is_probe {
            self.end_probe(now, succeeded);
            return;
        }
        node.ramp = match (node.ramp, succeeded) {
            (Some(ramp), true) => ramp.succeeded(slots),
            (Some(ramp), false) => Some(ramp.failed()),
            (None, _) => None,
        };
        match (ticket.permit, succeeded) {
            (Some(permit), true) => permit.success(),
            (Some(permit), false) => permit.failure(),
            (None, _) => {}
        }
        let is_open = node.breaker.state() == BreakerState::Open;
        node.is_suspicious = is_open;
        if is_open {
            self.park_if_suspected(now);
        }
    }

    /// Parks the kind if the breakers of two nodes are open.
    fn park_if_suspected(&mut self, now: Duration) {
        let suspects = self.nodes.iter().filter(|node| node.is_suspicious).count();
        if suspects < SUSPECTS_MIN.min(self.nodes.len()) {
            return;
        }
        self.parked = Some(Parked { probe_at: now + self.probe_every, is_probed: false });
        self.parkings += 1;
        for node in &mut self.nodes {
            node.old += std::mem::take(&mut node.running);
            node.ramp = None;
        }
    }

    /// A probe that succeeds unparks the kind for all nodes.
    fn end_probe(&mut self, now: Duration, succeeded: bool) {
        if !succeeded {
            self.parked = Some(Parked { probe_at: now + self.probe_every, is_probed: false });
            return;
        }
        self.parked = None;
        for node in &mut self.nodes {
            node.breaker.reset();
            node.is_suspicious = false;
            node.ramp = (self.parking == Parking::Ramp).then_some(Ramp::START);
        }
    }

    /// Returns when the fleet must be asked again although no attempt ends, once for each such time.
    pub(super) fn next_probe(&mut self, now: Duration) -> Option<Duration> {
        let next = match &self.parked {
            Some(parked) => (!parked.is_probed).then_some(parked.probe_at),
            None => {
                let waits = self.nodes.iter().filter(|node| node.is_suspicious);
                waits
                    .filter_map(|node| node.breaker.snapshot().retry_in)
                    .min()
                    .map(|wait| now + wait)
            }
        };
        let next = next.filter(|next| *next > now && self.announced != Some(*next))?;
        self.announced = Some(next);
        Some(next)
    }
}
