//! The housekeeping loop: deadlines, groups, leases lost with a store response, changed settings.

use crate::shared::{Shared, Waiting};
use crate::{caps, takeover};
use rewheel::{CancelToken, Moment};
use rewheel_core::store::StoreError;
use rewheel_core::{HolderId, JobId, Lease, Limits, Status};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The search for lost jobs is not urgent: it runs once in this many rounds.
const RARELY: u32 = 6;

/// How often to search for lost jobs while a call that was given up may still be executed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often to look for groups whose next job was not released, in a store that has groups.
const GROUPS_EVERY: Duration = Duration::from_secs(1);

/// How many groups to look at with one call: a few milliseconds of the store's time.
const GROUPS_AT_ONCE: usize = 1_000;

/// In how many rounds to look at all groups, however many there are.
const GROUPS_ROUNDS: usize = 30;

/// How many calls to make in one round of the first look: between two rounds, the loop ends deadlines.
const GROUPS_FIRST_CALLS: usize = 100;

pub(crate) struct Housekeeping {
    shared: Arc<Shared>,
    rounds: u32,
    /// Whether the last round failed: only the first failure is reported.
    is_failing: bool,
    /// Until when a call that was given up may still be executed.
    unsure_until: Option<Moment>,
    groups: GroupWalk,
    /// Rounds since the last look at groups, while another engine looks at them for the fleet.
    rounds_waited: usize,
}

/// How far the look at all groups is.
#[derive(Debug, Default)]
struct GroupWalk {
    /// The number of groups at the last look, if it came to the end.
    last: Option<usize>,
    seen: usize,
}

impl GroupWalk {
    /// Returns how many calls to make in one round.
    fn calls(&self) -> usize {
        let groups = self.last.map(|last| last.max(self.seen));
        let calls = |groups: usize| groups.div_ceil(GROUPS_AT_ONCE * GROUPS_ROUNDS).max(1);
        groups.map_or(GROUPS_FIRST_CALLS, calls)
    }

    /// Returns whether this is the first look, which does not rest: the process before this one may have died with groups to release.
    fn is_first(&self) -> bool {
        self.last.is_none()
    }

    /// Adds the groups of a call. Returns whether it came to the end.
    fn add(&mut self, checked: usize) -> bool {
        self.seen += checked;
        if checked >= GROUPS_AT_ONCE {
            return false;
        }
        self.last = Some(std::mem::take(&mut self.seen));
        true
    }
}

impl Housekeeping {
    pub(crate) fn new(shared: Arc<Shared>) -> Housekeeping {
        let groups = GroupWalk::default();
        let (is_failing, unsure_until) = (false, None);
        Housekeeping { shared, rounds: 0, is_failing, unsure_until, groups, rounds_waited: 0 }
    }

    pub(crate) async fn run(mut self, stop: CancelToken) {
        let mut next = self.shared.clock.now();
        let mut next_groups = next;
        while !stop.is_cancelled() {
            let now = self.shared.clock.now();
            if now >= next {
                next = now.plus(self.shared.settings.housekeeping);
                self.work().await;
            }
            if now >= next_groups {
                next_groups = now.plus(self.release_groups().await);
            }
            self.look_for_lost().await;
            let until_next = next.min(next_groups).since(self.shared.clock.now());
            let rest = self.unsure_until.map_or(until_next, |_| until_next.min(LOOK_EVERY));
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.shared.leases.calls.unsure() => {
                    let time_max = self.shared.settings.statement_timeout + LOOK_EVERY;
                    self.unsure_until = Some(self.shared.clock.now().plus(time_max));
                }
                () = self.shared.signals.replaced.notified() => self.start_over().await,
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    /// Drops what this engine knows only because the store acknowledged it before a failover or a restore. If the store does not answer,
    /// nothing is lost: a result under a forgotten lease does not count.
    async fn start_over(&mut self) {
        let shared = &self.shared;
        shared.intake.caps.forget();
        // Leases that the store has and this engine does not know.
        let time_max = shared.settings.statement_timeout + LOOK_EVERY;
        self.unsure_until = Some(shared.clock.now().plus(time_max));
        let read = shared.read_kinds().await;
        let checked = match read {
            Ok(()) => drop_forgotten(shared).await,
            Err(error) => Err(error),
        };
        if let Err(error) = checked {
            tracing::debug!(%error, "the store was promoted or restored, and the leases of waiting jobs were not checked");
        }
    }

    async fn work(&mut self) {
        if self.shared.is_lease_expired() {
            return;
        }
        let ticked = self.tick().await;
        if let Err(error) = &ticked {
            tracing::debug!(%error, "housekeeping failed: retrying");
            if !self.is_failing {
                let text = "housekeeping failed: jobs past their deadline do not end until housekeeping succeeds again";
                self.shared.notify_error("housekeeping", text, error);
            }
        }
        self.is_failing = ticked.is_err();
    }

    async fn tick(&mut self) -> Result<(), StoreError> {
        self.shared.read_kinds().await?;
        while deadlines(&self.shared).await? == Limits::BATCH_MAX {}
        caps::give_back_unused(&self.shared).await?;
        let is_rare = self.rounds.is_multiple_of(RARELY);
        self.rounds = self.rounds.wrapping_add(1);
        if is_rare && self.shared.leases.are_audited {
            // Old leases only: young ones would have to be checked one by one each time.
            self.audit(self.shared.settings.statement_timeout).await?;
        }
        Ok(())
    }

    /// Releases the next jobs of groups where no other call did. Returns when to look again.
    ///
    /// One engine looks at all groups for the fleet, so that the cost does not grow with the number of engines. The others look slowly,
    /// together as often as one call per housekeeping interval: so each group is released even if the store calls of that engine fail.
    async fn release_groups(&mut self) -> Duration {
        let usual = self.shared.settings.housekeeping;
        let is_first = self.shared.intake.shards.is_first();
        if !is_first && !self.is_turn() {
            return usual;
        }
        for _ in 0..if is_first { self.groups.calls() } else { 1 } {
            if self.shared.is_lease_expired() {
                return usual;
            }
            match self.shared.store.release_groups(GROUPS_AT_ONCE).await {
                Ok(found) if self.groups.add(found.checked) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "failed to release jobs of groups: retrying");
                    return usual;
                }
            }
        }
        match self.groups {
            _ if !is_first => usual,
            GroupWalk { last: Some(0), seen: 0 } => usual,
            GroupWalk { .. } if self.groups.is_first() => Duration::ZERO,
            GroupWalk { .. } => usual.min(GROUPS_EVERY),
        }
    }

    /// Returns true once in as many rounds as there are engines.
    fn is_turn(&mut self) -> bool {
        self.rounds_waited += 1;
        let is_turn = self.rounds_waited >= self.shared.admission.living();
        if is_turn {
            self.rounds_waited = 0;
        }
        is_turn
    }

    /// Searches for jobs whose lease was lost with a store response.
    async fn look_for_lost(&mut self) {
        let Some(until) = self.unsure_until else { return };
        if self.shared.is_lease_expired() || !self.shared.leases.are_audited {
            return;
        }
        match self.audit(Duration::ZERO).await {
            Ok(()) if self.shared.clock.now() >= until => self.unsure_until = None,
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(%error, "the response of a claim was lost, and the search for the jobs that it leased failed: retrying")
            }
        }
    }

    /// Gives back jobs that are leased to this holder but unknown here: the response of their claim
    /// was lost.
    async fn audit(&self, older_than: Duration) -> Result<(), StoreError> {
        let (store, holder) = (&self.shared.store, self.shared.holder());
        let mut after = None;
        loop {
            let held = store.held(holder, older_than, after, Limits::BATCH_MAX).await?;
            let mut lost = held.clone();
            lost.retain(|lease| !self.shared.leases.holds(*lease));
            if !lost.is_empty() {
                // Calls in progress have ended by then, so their leases are known.
                tokio::select! {
                    biased;
                    () = self.shared.leases.calls.ended() => {}
                    () = self.shared.clock.sleep(self.shared.settings.statement_timeout) => return Ok(()),
                }
                lost.retain(|lease| !self.shared.leases.holds(*lease));
            }
            if !lost.is_empty() {
                tracing::warn!(
                    jobs = lost.len(),
                    "found jobs that are leased to this node although the response of the claim was lost: releasing them"
                );
                store.give_back(holder, &lost, self.shared.retain_ended()).await?;
            }
            after = held.last().map(|lease| lease.job);
            if held.len() < Limits::BATCH_MAX {
                return Ok(());
            }
        }
    }
}

/// Forgets the leases of waiting jobs that the store has forgotten: other engines run those jobs.
async fn drop_forgotten(shared: &Shared) -> Result<(), StoreError> {
    let holder = shared.holder();
    let mut forgotten = 0;
    for leases in shared.leases.waiting().chunks(Limits::BATCH_MAX) {
        let ids: Vec<JobId> = leases.iter().map(|lease| lease.job).collect();
        let live = shared.store.live(&ids).await?;
        let held: HashSet<Lease> = live
            .iter()
            .filter(|job| matches!(job.status, Status::Leased { holder: by, .. } if by == holder))
            .map(|job| Lease { job: job.id, fence: job.fence })
            .collect();
        for lease in leases.iter().filter(|lease| !held.contains(*lease)) {
            shared.leases.forget(*lease);
            forgotten += 1;
        }
    }
    if forgotten > 0 {
        tracing::warn!(
            jobs = forgotten,
            "the store was promoted or restored and forgot leases of this node: the jobs run under new leases"
        );
    }
    Ok(())
}

async fn deadlines(shared: &Shared) -> Result<usize, StoreError> {
    // A running attempt is cut at its deadline, and its result will be settled.
    let grace = Duration::from_secs(5).min(shared.settings.overdue_grace);
    let events = shared.store.deadlines(grace, Limits::BATCH_MAX).await?;
    takeover::report(shared, &events);
    Ok(events.len())
}

/// Returns jobs to the store that were not started here, until the channel is closed.
pub(crate) async fn give_back(
    shared: Arc<Shared>,
    mut returning: mpsc::UnboundedReceiver<Vec<Waiting>>,
) {
    while let Some(jobs) = returning.recv().await {
        let mut rest = jobs;
        while let Some(first) = rest.first() {
            let holder = first.holder;
            let (these, others) = rest.into_iter().partition(|job| job.holder == holder);
            rest = others;
            return_for(&shared, holder, these).await;
        }
    }
}

/// Gives back all jobs of a holder before it deregisters: those that took too long, and those whose
/// lease was lost with a response. If the sweep freed them, it would count as a takeover.
pub(crate) async fn give_back_all(shared: &Shared, holder: HolderId) -> Result<(), StoreError> {
    let (store, mut after) = (&shared.store, None);
    loop {
        let left = store.held(holder, Duration::ZERO, after, Limits::BATCH_MAX).await?;
        let Some(last) = left.last() else { return Ok(()) };
        after = Some(last.job);
        let answers = store.give_back(holder, &left, shared.retain_ended()).await?;
        shared.leases.note_given_back(&answers);
    }
}

async fn return_for(shared: &Shared, holder: HolderId, jobs: Vec<Waiting>) {
    let leases: Vec<Lease> = jobs.iter().map(Waiting::lease).collect();
    for part in leases.chunks(Limits::BATCH_MAX) {
        // Jobs that cannot be given back now are found by the audit, become overdue, or are swept.
        match shared.store.give_back(holder, part, shared.retain_ended()).await {
            Ok(answers) => shared.leases.note_given_back(&answers),
            Err(error) => {
                tracing::debug!(%error, jobs = part.len(), "failed to release claimed jobs: they stay leased and run later, when the engine finds them or, at the latest, after the timeout of an attempt")
            }
        }
        part.iter().for_each(|lease| shared.leases.forget(*lease));
    }
    // Release their counts before others are claimed.
    drop(jobs);
    shared.signals.look.notify_one();
}

#[cfg(test)]
mod tests;
