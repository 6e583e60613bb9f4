//! Claims due jobs within fleet-wide limits.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{instant, millis, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::{
    CLAIM_LIMITED_LOCK, CLAIM_LIMITED_MAKE, CLAIM_LIMITED_START, LIMIT_WAITS,
};
use super::claim::{Listing, Taken, Wish, look};
use rewheel_core::store::{
    Claim, FleetLimit, FleetSlots, Leased, LimitOf, LimitUse, LimitWait, LimitedClaim,
    LimitedClaimed, StoreError, StoreResult, Visit,
};
use rewheel_core::{Job, Limits, Timestamp};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// Maximum number of times that a claim creates the rows of its limits. Only pruning removes them, and only after a day without use.
const MADE_MAX: usize = 3;

impl PostgresStore {
    pub(in super::super) async fn claim_limited_batch(
        &self,
        claim: &LimitedClaim<'_>,
    ) -> StoreResult<LimitedClaimed> {
        let names = Names::of(claim.limits.iter().map(|limit| &limit.of).collect());
        for _ in 0..MADE_MAX {
            let session = self.transaction().await?;
            let claimed = claim_limited(self, &session, claim, &names).await;
            match claimed {
                // The transaction only took locks: a rollback releases them without waiting for the disk.
                Ok(Some((claimed, Wrote::Nothing))) => return session.undo(claimed).await,
                claimed => {
                    if let Some((claimed, _)) = session.end(claimed).await? {
                        return Ok(claimed);
                    }
                }
            }
            // Not in the claim's transaction: it could deadlock, because it would lock rows out of order.
            let session = self.write().await?;
            let made = make(&session, &names).await;
            session.end(made).await?;
        }
        let why = "the rows of the table `limits` were deleted again and again while this claim created them";
        Err(StoreError::Unavailable(why.into()))
    }
}

/// Limits as one array per column, in locking order.
struct Names<'l> {
    scopes: Vec<&'l str>,
    names: Vec<&'l str>,
}

impl<'l> Names<'l> {
    fn of(limits: BTreeSet<&'l LimitOf>) -> Names<'l> {
        let (scopes, names) = limits.into_iter().map(|of| (of.scope(), of.name())).unzip();
        Names { scopes, names }
    }
}

async fn make(session: &Session<'_>, names: &Names<'_>) -> Result<(), VerbError> {
    let age = millis(Limits::FLEET_INTERVAL_MAX);
    let params: [Param<'_>; 4] = [&session.offset(), &names.scopes, &names.names, &age];
    session.execute(&CLAIM_LIMITED_MAKE, &params).await.map(drop)
}

/// Claims under the locks of all limits; returns `None` if one of them has no row to lock.
async fn claim_limited(
    store: &PostgresStore,
    session: &Session<'_>,
    claim: &LimitedClaim<'_>,
    names: &Names<'_>,
) -> Result<Option<(LimitedClaimed, Wrote)>, VerbError> {
    if !names.names.is_empty() {
        let params: [Param<'_>; 2] = [&names.scopes, &names.names];
        if session.query(&CLAIM_LIMITED_LOCK, &params).await?.len() < names.names.len() {
            return Ok(None);
        }
    }
    let (used, now) = limit_uses(session, claim.limits).await?;
    let slots = FleetSlots::new(claim, used, now);
    let (jobs, has_set_aside) = (Vec::new(), false);
    let mut rounds = Rounds { store, session, claim, slots, now, jobs, has_set_aside };
    rounds.claim().await?;
    rounds.probe().await?;
    let Rounds { slots, now, mut jobs, has_set_aside, .. } = rounds;
    let (starts, at) = slots.starts();
    let is_nothing = jobs.is_empty() && starts.is_empty() && !has_set_aside;
    let wrote = if is_nothing { Wrote::Nothing } else { Wrote::Something };
    if !starts.is_empty() {
        let names = Names::of(starts);
        let params: [Param<'_>; 3] = [&at.as_millis(), &names.scopes, &names.names];
        session.execute(&CLAIM_LIMITED_START, &params).await?;
    }
    // Jobs of one visit are already in order.
    jobs.sort_by_key(|(nth, _)| *nth);
    let left = |until: Timestamp| until.since(now);
    let leased = jobs.into_iter().map(|(_, job)| Leased {
        due_in: left(job.due),
        deadline_in: job.deadline.map(left),
        job,
    });
    let claimed = LimitedClaimed { leased: leased.collect(), waits: slots.waits() };
    Ok(Some((claimed, wrote)))
}

/// Whether there is something to commit.
enum Wrote {
    Nothing,
    Something,
}

/// A limited claim in progress.
struct Rounds<'r> {
    store: &'r PostgresStore,
    session: &'r Session<'r>,
    claim: &'r LimitedClaim<'r>,
    slots: FleetSlots<'r>,
    now: Timestamp,
    /// The leased jobs, each with the number of its visit.
    jobs: Vec<(usize, Job)>,
    /// Whether unreadable jobs were set aside.
    has_set_aside: bool,
}

impl<'r> Rounds<'r> {
    /// Claims for all lanes that have slots, then for those that can use slots that other lanes left.
    async fn claim(&mut self) -> Result<(), VerbError> {
        let visits = self.claim.visits.iter().take(Limits::LANES_MAX).enumerate();
        // What each visit still asks for.
        let mut open: Vec<(usize, Visit)> = visits.map(|(nth, one)| (nth, one.clone())).collect();
        loop {
            let mut taken: Vec<usize> =
                open.iter().map(|(_, one)| self.slots.take(&one.lane, one.limit)).collect();
            if taken.iter().all(|count| *count == 0) {
                break;
            }
            let gave = self.round(&open, &taken).await?;
            let mut next = Vec::new();
            for (((nth, one), taken), gave) in open.into_iter().zip(taken.drain(..)).zip(gave) {
                self.slots.give_back(&one.lane, taken, gave);
                // A lane that did not use its slots is empty.
                if gave == taken {
                    next.push((nth, Visit { limit: one.limit - gave, ..one }));
                }
            }
            open = next;
        }
        open.iter().for_each(|(_, one)| self.slots.has_more(&one.lane));
        Ok(())
    }

    /// Claims as many jobs of each visit as it has slots. Returns how many jobs each visit gave.
    async fn round(
        &mut self,
        open: &[(usize, Visit)],
        taken: &[usize],
    ) -> Result<Vec<usize>, VerbError> {
        let with_slots = open.iter().zip(taken).enumerate().filter(|(_, (_, taken))| **taken > 0);
        let (places, visits): (Vec<usize>, Vec<Visit>) = with_slots
            .map(|(place, ((_, one), taken))| (place, Visit { limit: *taken, ..one.clone() }))
            .unzip();
        let limit = taken.iter().sum();
        let claim = self.plain(&visits, limit);
        let wish = Wish::new(self.store, self.session, &claim).await?;
        let Taken { jobs, at, unreadable } = wish.take(self.session, Listing::Never).await?;
        self.has_set_aside |= !unreadable.is_empty();
        unreadable.set_aside(self.session).await?;
        if let Some(now) = at {
            self.now = now;
            self.slots.leased_at(now);
        }
        let mut gave = vec![0; open.len()];
        for (_, _, job) in jobs {
            let place = visits.iter().position(|one| one.lane == job.lane);
            if let Some(place) = place.map(|at| places[at]) {
                gave[place] += 1;
                self.jobs.push((open[place].0, job));
            }
        }
        Ok(gave)
    }

    /// Claims the probe job of each parked kind that the holder may probe. If nothing was claimed, checks whether the holder is alive.
    async fn probe(&mut self) -> Result<(), VerbError> {
        let gave: HashSet<&str> = self.jobs.iter().map(|(_, job)| job.lane.kind.as_str()).collect();
        let visits = self.claim.visits.iter().take(Limits::LANES_MAX);
        let kinds: Vec<&str> = visits.map(|one| one.lane.kind.as_str()).collect();
        let closed: Vec<&str> = kinds.into_iter().filter(|kind| !gave.contains(kind)).collect();
        if closed.is_empty() && !self.jobs.is_empty() {
            return Ok(());
        }
        let (_, may_probe) = look(self.session, self.claim.holder, &closed).await?;
        if !may_probe {
            return Ok(());
        }
        for (nth, one) in self.claim.visits.iter().take(Limits::LANES_MAX).enumerate() {
            let taken = self.slots.take(&one.lane, one.limit.min(1));
            if taken == 0 {
                continue;
            }
            let claim = self.plain(std::slice::from_ref(one), 1);
            let wish = Wish::new(self.store, self.session, &claim).await?;
            let probes = wish.probe(self.session, 1).await?;
            if !probes.is_empty() {
                // Not earlier than their lease: the next start is one interval after it.
                self.now = self.session.now().await?;
                self.slots.leased_at(self.now);
            }
            self.slots.give_back(&one.lane, taken, probes.len());
            self.jobs.extend(probes.into_iter().map(|job| (nth, job)));
        }
        Ok(())
    }

    fn plain<'v>(&self, visits: &'v [Visit], limit: usize) -> Claim<'v> {
        Claim { holder: self.claim.holder, visits, horizon: Duration::ZERO, limit }
    }
}

pub(in super::super) async fn limit_waits(
    session: &Session<'_>,
    limits: &[FleetLimit],
) -> Result<Vec<Option<LimitWait>>, VerbError> {
    let (uses, now) = limit_uses(session, limits).await?;
    Ok(limits.iter().zip(uses).map(|(limit, used)| limit.wait(used, now)).collect())
}

/// Returns how much of each limit is in use, and the time.
async fn limit_uses(
    session: &Session<'_>,
    limits: &[FleetLimit],
) -> Result<(Vec<LimitUse>, Timestamp), VerbError> {
    if limits.is_empty() {
        return Ok((Vec::new(), session.now().await?));
    }
    let scopes: Vec<&str> = limits.iter().map(|limit| limit.of.scope()).collect();
    let names: Vec<&str> = limits.iter().map(|limit| limit.of.name()).collect();
    let most: Vec<Option<i64>> =
        limits.iter().map(|limit| limit.concurrency_max.map(i64::from)).collect();
    let from = session.shared.overdue.peek();
    let params: [Param<'_>; 6] = [&session.offset(), &scopes, &names, &most, &from.at, &from.list];
    let mut now = Timestamp::from_millis(i64::MIN);
    let mut uses = Vec::with_capacity(limits.len());
    for row in session.query(&LIMIT_WAITS, &params).await? {
        now = now.max(instant(row.try_get(0)?));
        let last: Option<i64> = row.try_get(1)?;
        let leased = usize::try_from(unsigned(row.try_get(2)?)).unwrap_or(usize::MAX);
        uses.push(LimitUse { leased, last: last.map(instant) });
    }
    Ok((uses, now))
}
