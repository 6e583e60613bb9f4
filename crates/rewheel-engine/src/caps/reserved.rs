//! The part of a tenant's cap that this engine has reserved.

use crate::shared::Shared;
use rewheel::{Clock, Moment};
use rewheel_core::store::{Reserve, StoreResult};
use rewheel_core::{HolderId, Tenant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a tenant counts as full for this engine after the store said so: counting its jobs has
/// a cost, and many callers may ask.
const FULL_FOR: Duration = Duration::from_secs(1);

/// A reservation in the store for this engine.
///
/// The stored reservation is never less than `free`, `on_the_way` and `unsure` together, so no
/// other engine gets the same part.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// Held by the caller that asks the store; other callers wait for its result.
    turn: tokio::sync::Mutex<()>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// The holder of the reservation, which ends when the holder dies.
    holder: Option<HolderId>,
    free: u64,
    /// For jobs that are being stored.
    on_the_way: u64,
    /// For jobs whose insert has an unknown outcome, and until when.
    unsure: u64,
    unsure_until: Option<Moment>,
    full_since: Option<Moment>,
    was_used: bool,
}

impl Reserved {
    pub(super) fn is_empty(&self) -> bool {
        let counts = self.counts();
        counts.free + counts.on_the_way + counts.unsure == 0
    }

    /// Forgets the free part: the next caller asks for a new one. Parts of jobs that are being stored stay counted.
    pub(super) fn forget(&self) {
        self.counts().holder = None;
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // No code under this lock can panic.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the free part is still reserved for this engine.
    fn is_ours(&self, shared: &Shared) -> bool {
        !shared.is_lease_expired() && self.counts().holder == Some(shared.holder())
    }

    fn is_full(&self, now: Moment) -> bool {
        self.counts().full_since.is_some_and(|since| now.since(since) < FULL_FOR)
    }

    /// Takes as much as is free.
    fn take(self: &Arc<Reserved>, shared: &Shared, need: u64) -> Taken {
        let mut counts = self.counts();
        let jobs = need.min(counts.free);
        counts.free -= jobs;
        counts.on_the_way += jobs;
        counts.was_used = true;
        Taken {
            room: Arc::clone(self),
            jobs,
            is_short: jobs < need,
            clock: shared.clock.clone(),
            // A call that was given up may still be executed within this time.
            unsure_for: 2 * shared.settings.statement_timeout,
        }
    }

    /// Takes the needed part, if enough is free.
    fn take_all(self: &Arc<Reserved>, shared: &Shared, need: u64) -> Option<Taken> {
        let is_enough = self.is_ours(shared) && self.counts().free >= need;
        is_enough.then(|| self.take(shared, need))
    }

    /// Asks the store for the needed part. The caller holds the turn.
    async fn ask(&self, shared: &Shared, tenant: &Tenant, needed: u64) -> StoreResult<()> {
        let Some(jobs_max) = shared.intake.caps.jobs_max(tenant) else { return Ok(()) };
        let (holder, holders) = (shared.holder(), shared.admission.living() as u64);
        let on_the_way = self.counts().ask(holder, shared.clock.now());
        let tenant = tenant.clone();
        let reserve = Reserve { holder, tenant, jobs_max, on_the_way, needed, holders };
        let granted = shared.store.reserve(&reserve).await?;
        let mut counts = self.counts();
        counts.free += granted.saturating_sub(on_the_way);
        counts.full_since = (counts.free < needed).then(|| shared.clock.now());
        Ok(())
    }
}

impl Counts {
    /// Returns how much cannot be released. A new request releases everything that is free.
    fn ask(&mut self, holder: HolderId, now: Moment) -> u64 {
        if self.unsure_until.is_some_and(|until| until <= now) {
            (self.unsure, self.unsure_until) = (0, None);
        }
        (self.holder, self.free) = (Some(holder), 0);
        self.on_the_way + self.unsure
    }
}

/// Takes the part for this many jobs, or as much as is available.
pub(super) async fn take(
    shared: &Shared,
    room: &Arc<Reserved>,
    tenant: &Tenant,
    need: u64,
) -> StoreResult<Taken> {
    if let Some(taken) = room.take_all(shared, need) {
        return Ok(taken);
    }
    let _turn = room.turn.lock().await;
    // Another caller may have reserved more than it needed.
    if let Some(taken) = room.take_all(shared, need) {
        return Ok(taken);
    }
    if !room.is_ours(shared) || !room.is_full(shared.clock.now()) {
        room.ask(shared, tenant, need).await?;
    }
    Ok(room.take(shared, need))
}

/// Releases the free part, unless some of it was used since the last time.
pub(super) async fn give_back_unused(
    shared: &Shared,
    room: &Reserved,
    tenant: &Tenant,
) -> StoreResult<()> {
    let was_used = std::mem::take(&mut room.counts().was_used);
    if was_used || room.counts().free == 0 {
        return Ok(());
    }
    match room.turn.try_lock() {
        Ok(_turn) => room.ask(shared, tenant, 0).await,
        Err(_) => Ok(()),
    }
}

/// The part of a reservation for jobs that are being stored.
#[derive(Debug)]
pub(super) struct Taken {
    room: Arc<Reserved>,
    /// Jobs without a result yet.
    jobs: u64,
    is_short: bool,
    clock: Clock,
    unsure_for: Duration,
}

impl Taken {
    /// Returns whether it is less than needed.
    pub(super) const fn is_short(&self) -> bool {
        self.is_short
    }

    pub(super) const fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Records whether one of the jobs was stored.
    pub(super) fn note(&mut self, lives: bool) {
        if self.jobs == 0 {
            return;
        }
        self.jobs -= 1;
        let mut counts = self.room.counts();
        counts.on_the_way -= 1;
        counts.free += u64::from(!lives);
    }

    /// Records that no further job was stored.
    pub(super) fn give_back(&mut self) {
        while self.jobs > 0 {
            self.note(false);
        }
    }
}

impl Drop for Taken {
    /// The caller stopped waiting, or got no response: the jobs may be stored, or not, or soon.
    fn drop(&mut self) {
        if self.jobs == 0 {
            return;
        }
        let mut counts = self.room.counts();
        counts.on_the_way -= self.jobs;
        counts.unsure += self.jobs;
        counts.unsure_until = Some(self.clock.now().plus(self.unsure_for));
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Reserved, Taken};
    use rewheel::{ManualClock, seconds};
    use rewheel_core::HolderId;
    use std::sync::{Arc, Mutex};

    fn taken(jobs: u64, clock: &ManualClock) -> (Arc<Reserved>, Taken) {
        let counts = Mutex::new(Counts { on_the_way: jobs, ..Counts::default() });
        let room = Arc::new(Reserved { counts, ..Reserved::default() });
        let clock = clock.clone().into();
        let taken = Taken {
            room: Arc::clone(&room),
            jobs,
            is_short: false,
            clock,
            unsure_for: seconds(20),
        };
        (room, taken)
    }

    fn counted(room: &Reserved) -> [u64; 3] {
        let counts = room.counts();
        [counts.free, counts.on_the_way, counts.unsure]
    }

    #[test]
    fn only_what_is_known_not_to_be_stored_is_free() {
        let (room, mut taken) = taken(5, &ManualClock::new());
        taken.note(true);
        taken.note(false);
        assert_eq!(counted(&room), [1, 3, 0]);
        drop(taken);
        assert_eq!(counted(&room), [1, 0, 3]);
    }

    #[test]
    fn what_may_yet_be_stored_is_not_given_back() {
        let clock = ManualClock::new();
        let (room, taken) = taken(3, &clock);
        drop(taken);
        let holder = HolderId::from_bytes([1; 16]);
        let now = || rewheel::Clock::from(clock.clone()).now();
        clock.advance(seconds(19));
        assert_eq!(room.counts().ask(holder, now()), 3);
        clock.advance(seconds(1));
        assert_eq!(room.counts().ask(holder, now()), 0);
    }
}
