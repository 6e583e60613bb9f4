//! The dispatch loop: holds jobs until they are due, then starts them in free slots.

mod ready;

use self::ready::{Ready, Turn};
use crate::admission::{Admit, Ask, Fact, Round, Suspect, Ticket};
use crate::attempt;
use crate::budget;
use crate::kinds::KindEntry;
use crate::shared::{Command, Shared, Waiting};
use crate::wheel::{Tick, Timer, Wheel};
use rewheel::Moment;
use rewheel_core::{JobId, KindName, Lease, Wanted};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Maximum time between two signs of life of the loop.
const REST_MAX: Duration = Duration::from_secs(1);

/// What happens to a due job.
enum Next {
    Start(Box<Ticket>, Arc<KindEntry>),
    /// It may run elsewhere, or later.
    Return,
    /// Its retry has no grant.
    PutOff,
}

pub(crate) struct Dispatch {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    wheel: Wheel<Waiting>,
    timers: BTreeMap<JobId, Timer>,
    /// Jobs whose tick has come, but not their exact time within it.
    soon: BTreeMap<(Moment, u64), Waiting>,
    ready: Ready,
    /// Due jobs of kinds that already have enough waiting jobs here.
    surplus: Vec<Waiting>,
    count: u64,
    attempts: JoinSet<()>,
    /// When the first job that a rate holds back may start.
    next_start: Option<Moment>,
    origin: Moment,
    /// Jobs that go back to the store without being started.
    returning: mpsc::UnboundedSender<Vec<Waiting>>,
}

impl Dispatch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        commands: mpsc::UnboundedReceiver<Command>,
        returning: mpsc::UnboundedSender<Vec<Waiting>>,
    ) -> Dispatch {
        let origin = shared.clock.now();
        Dispatch {
            wheel: Wheel::new(shared.settings.wheel_max),
            shared,
            commands,
            timers: BTreeMap::new(),
            soon: BTreeMap::new(),
            ready: Ready::default(),
            surplus: Vec::new(),
            count: 0,
            attempts: JoinSet::new(),
            next_start: None,
            origin,
            returning,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            let rest = self.tick();
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    /// Does everything that can be done now. Returns how long to rest.
    fn tick(&mut self) -> Duration {
        self.shared.signals.tick();
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command);
        }
        while self.attempts.try_join_next().is_some() {}
        let now = self.shared.clock.now();
        let due: Vec<Waiting> = self.wheel.expire(Tick::floor(now.since(self.origin))).collect();
        for waiting in due {
            self.timers.remove(&waiting.job.id);
            self.count += 1;
            self.soon.insert((waiting.due, self.count), waiting);
        }
        while let Some(first) = self.soon.first_entry().filter(|first| first.key().0 <= now) {
            let waiting = first.remove();
            self.queue(waiting);
        }
        if !self.surplus.is_empty() {
            let _ = self.returning.send(std::mem::take(&mut self.surplus));
        }
        self.start_ready();
        self.give_back_late(now);
        self.shared.signals.ready.store(self.ready.len(), Ordering::Relaxed);
        self.shared.signals.waiting.store(self.wheel.len() + self.soon.len(), Ordering::Relaxed);
        // More often than the heartbeat checks it.
        let rest_max = REST_MAX.min(self.shared.settings.lease_ttl / 6);
        let next = self.wheel.next_expiry().map(|tick| self.moment_of(tick));
        let soonest = self.soon.first_key_value().map(|((due, _), _)| *due);
        match next.into_iter().chain(soonest).chain(self.next_start).min() {
            Some(next) => nap(next.since(self.shared.clock.now())).min(rest_max),
            None => rest_max,
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Leased(jobs) => self.wait_for_all(jobs),
            Command::Direct(waiting, _) if self.shared.is_stopping() => {
                let _ = self.returning.send(vec![*waiting]);
            }
            Command::Direct(waiting, ticket) => match self.shared.kind(&waiting.job.lane.kind) {
                Some(kind) => self.start(*waiting, kind, ticket),
                None => {
                    ticket.unused();
                    let _ = self.returning.send(vec![*waiting]);
                }
            },
            Command::Wanted(lease, wanted) => self.want(lease, wanted),
            Command::Place => {}
            Command::Drop => self.drop_all(),
            Command::Stop => self.return_all(),
        }
    }

    fn wait_for_all(&mut self, jobs: Vec<Waiting>) {
        if self.shared.is_stopping() {
            let _ = self.returning.send(jobs);
            return;
        }
        let now = self.shared.clock.now();
        let mut late = Vec::new();
        for waiting in jobs {
            if waiting.due.since(now).is_zero() {
                self.queue(waiting);
                continue;
            }
            let id = waiting.job.id;
            match self.wheel.insert(Tick::floor(waiting.due.since(self.origin)), waiting) {
                Ok(timer) => {
                    let superseded = self.timers.insert(id, timer);
                    superseded.map(|timer| self.wheel.cancel(timer));
                }
                Err(full) => late.push(full.into_value()),
            }
        }
        if !late.is_empty() {
            let _ = self.returning.send(late);
        }
    }

    fn queue(&mut self, mut waiting: Waiting) {
        self.count += 1;
        let turn = (Reverse(waiting.job.lane.priority), waiting.due, self.count);
        if waiting.in_hand.is_none() {
            let lane = &waiting.job.lane;
            waiting.in_hand = self.shared.admission.hold(&lane.kind, lane.tenant.as_ref());
        }
        match waiting.in_hand {
            Some(_) => self.ready.insert(turn, waiting),
            None => self.surplus.push(waiting),
        }
    }

    /// Gives slots to waiting jobs, in their order. A kind without a slot does not block other kinds.
    fn start_ready(&mut self) {
        self.next_start = None;
        if self.shared.is_lease_expired() || self.shared.is_stopping() {
            return;
        }
        let (mut decided, mut round) = (Vec::new(), Round::default());
        // Most waiting jobs have the same kind as the previous one.
        let mut last: Option<(&KindName, Option<Arc<KindEntry>>)> = None;
        let now = self.shared.clock.now();
        let mut order = self.ready.order();
        while self.shared.admission.may_start()
            && let Some((turn, waiting)) = order.next()
        {
            let name = &waiting.job.lane.kind;
            let known = match last.take() {
                Some((before, known)) if before == name => known,
                Some(_) | None => self.shared.kind(name),
            };
            last = Some((name, known.clone()));
            let Some(kind) = known else {
                decided.push((turn, Next::Return));
                continue;
            };
            match self.shared.admission.admit(&ask(waiting, &kind, now), &mut round) {
                Admit::Run(ticket) => {
                    order.started(&turn);
                    decided.push((turn, Next::Start(ticket, kind)));
                }
                Admit::Wait(held) => {
                    self.next_start = self.next_start.into_iter().chain(held.until).min();
                }
                Admit::Return(held) => {
                    tracing::trace!(job = %waiting.job.id, because = held.because.as_str(), "given back");
                    decided.push((turn, Next::Return));
                }
                Admit::PutOff(held) => {
                    tracing::trace!(job = %waiting.job.id, because = held.because.as_str(), "job delayed");
                    decided.push((turn, Next::PutOff));
                }
            }
        }
        let urgent = order.urgent();
        self.ready.note(urgent);
        for (turn, next) in decided {
            let Some(waiting) = self.ready.remove(&turn) else { continue };
            match next {
                Next::Start(ticket, kind) => self.start(waiting, kind, ticket),
                Next::Return => drop(self.returning.send(vec![waiting])),
                Next::PutOff => self.shared.put_off(waiting),
            }
        }
    }

    fn start(&mut self, mut waiting: Waiting, kind: Arc<KindEntry>, ticket: Box<Ticket>) {
        waiting.in_hand = None;
        if waiting.holder != self.shared.holder() {
            // Its lease ended with the engine's previous holder id, although the response arrived later.
            self.shared.leases.forget(waiting.lease());
            return ticket.unused();
        }
        // A job that was swept and claimed again is here twice: only its newer lease counts.
        let Some(cancel) = self.shared.leases.begin(waiting.lease()) else {
            return ticket.unused();
        };
        let run = attempt::run(Arc::clone(&self.shared), waiting, kind, ticket, cancel);
        // Boxed: tokio copies the future of a task when the task starts and when it ends, and this one has kilobytes.
        self.attempts.spawn(Box::pin(run));
    }

    /// Returns jobs that waited so long for a slot that their lease is at risk: they can run elsewhere.
    fn give_back_late(&mut self, now: Moment) {
        let patience = self.shared.settings.overdue_grace / 2;
        let late: Vec<Turn> = self
            .ready
            .iter()
            .filter(|(_, waiting)| now.since(waiting.due) > patience)
            .map(|(turn, _)| *turn)
            .collect();
        // A job that was already late when it arrived is not late because of this node.
        let jobs: Vec<Waiting> = late.iter().filter_map(|turn| self.ready.remove(turn)).collect();
        let kinds: BTreeSet<&KindName> =
            jobs.iter().map(|waiting| &waiting.job.lane.kind).collect();
        for kind in kinds {
            let (kind, until) = (kind.clone(), now.plus(patience));
            self.shared.admission.apply(Fact::ReturnedLate { kind, until });
        }
        if !jobs.is_empty() {
            let _ = self.returning.send(jobs);
        }
    }

    fn want(&mut self, lease: Lease, wanted: Wanted) {
        let waiting = self.timers.remove(&lease.job).and_then(|timer| self.wheel.cancel(timer));
        let waiting = waiting.or_else(|| {
            let place = self.soon.iter().find(|(_, w)| w.lease() == lease).map(|(place, _)| *place);
            place.and_then(|place| self.soon.remove(&place))
        });
        let waiting = waiting.or_else(|| {
            let turn = self.ready.iter().find(|(_, w)| w.lease() == lease).map(|(turn, _)| *turn);
            turn.and_then(|turn| self.ready.remove(&turn))
        });
        match (waiting, wanted) {
            // Giving it back applies the request.
            (Some(waiting), _) => drop(self.returning.send(vec![waiting])),
            (None, Wanted::Cancel) => self.shared.leases.cancel(lease),
            // A running attempt may finish; the job is paused when it is settled.
            (None, Wanted::Pause) => {}
        }
    }

    fn take_all(&mut self) -> Vec<Waiting> {
        let timers = std::mem::take(&mut self.timers);
        let mut all: Vec<Waiting> =
            timers.into_values().filter_map(|timer| self.wheel.cancel(timer)).collect();
        all.extend(std::mem::take(&mut self.soon).into_values());
        all.extend(self.ready.take());
        all.append(&mut self.surplus);
        all
    }

    fn drop_all(&mut self) {
        for waiting in self.take_all() {
            self.shared.leases.forget(waiting.lease());
        }
        self.shared.leases.cancel_all();
    }

    fn return_all(&mut self) {
        let all = self.take_all();
        let _ = self.returning.send(all);
    }

    fn moment_of(&self, tick: Tick) -> Moment {
        self.origin.plus(tick.since_start())
    }
}

/// Builds the admission request of a due job.
fn ask<'a>(waiting: &'a Waiting, kind: &KindEntry, now: Moment) -> Ask<'a> {
    let job = &waiting.job;
    // An attempt whose deadline has passed is not made: it only reports that, and needs no budget.
    let is_late = waiting.deadline.is_some_and(|deadline| deadline <= now);
    let is_last = job.takeovers_counted + 1 >= kind.settings.takeovers_max;
    Ask {
        kind: &job.lane.kind,
        tenant: job.lane.tenant.as_ref(),
        is_retry: budget::is_retry(job) && !is_late,
        suspect: match (job.is_suspect(), is_last) {
            (false, _) => Suspect::No,
            (true, false) => Suspect::Together,
            (true, true) => Suspect::Alone,
        },
        is_within_fleet: waiting.is_within_fleet,
    }
}

/// Returns how long to sleep for something that is due in `rest`. Timers end up to a millisecond late, and never early: sleeping
/// one millisecond less is more precise, and the rest is slept afterwards if necessary.
fn nap(rest: Duration) -> Duration {
    const LATE: Duration = Duration::from_millis(1);
    if rest > 2 * LATE { rest - LATE } else { rest }
}

#[cfg(test)]
mod tests;
