//! How much of an engine each tenant takes, or may take.

use crate::park::{Load, Queued, Running};
use crate::rate::Gate;
use crate::shared::lock;
use crate::tenant_settings::{TenantBook, TenantSettings};
use rewheel::{Clock, Moment};
use rewheel_core::Tenant;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tenants that are remembered before those with nothing in hand are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// A job that has to wait longer than this for its tenant's turn is better off in the store.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// What each tenant has of this engine.
#[derive(Debug)]
pub(crate) struct Tenants {
    /// Of those who name none.
    none: Arc<TenantEntry>,
    named: Mutex<HashMap<Tenant, Arc<TenantEntry>>>,
    are_several: AtomicBool,
    book: TenantBook,
    have_caps: bool,
    clock: Clock,
    /// When the first of the attempts may pass that were refused of late.
    next_pass: Mutex<Option<Moment>>,
}

/// What one tenant has of this engine, and may have.
#[derive(Debug, Default)]
pub(crate) struct TenantEntry {
    load: Arc<Load>,
    concurrency_max: Option<usize>,
    gate: Option<Gate>,
}

impl TenantEntry {
    fn new(settings: &TenantSettings, clock: &Clock) -> TenantEntry {
        TenantEntry {
            load: Arc::default(),
            concurrency_max: settings.concurrency_max,
            gate: settings.rate.map(|rate| Gate::new(rate, clock)),
        }
    }

    pub(crate) fn queue(&self) -> Queued {
        self.load.queue()
    }

    /// Begins an attempt, if fewer than `most` run, and fewer than the tenant may have.
    pub(crate) fn begin(&self, most: usize) -> Option<Running> {
        self.load.begin(most.min(self.concurrency_max.unwrap_or(usize::MAX)))
    }

    /// Returns how many more jobs of it to claim, where up to `most` may run.
    pub(crate) fn room(&self, most: usize, living: usize, now: Moment) -> usize {
        if self.must_wait(now) {
            return 0;
        }
        let wanted = self.wanted(living).unwrap_or(usize::MAX);
        self.load.room(most).min(wanted.saturating_sub(self.load.in_hand()))
    }

    /// Returns whether so many of its jobs run or wait here that another would only be in the way.
    pub(crate) fn has_enough(&self, most: usize, living: usize) -> bool {
        let enough = self.wanted(living).unwrap_or(usize::MAX).min(most);
        self.load.in_hand() >= enough.saturating_mul(2)
    }

    /// Returns how many to have in hand because of its own limits.
    fn wanted(&self, living: usize) -> Option<usize> {
        let ahead = self.gate.as_ref().map(|gate| gate.ahead(living));
        ahead.into_iter().chain(self.concurrency_max).min()
    }

    /// Returns whether its next attempt is so far away that its jobs had better wait in the store.
    pub(crate) fn must_wait(&self, now: Moment) -> bool {
        let next = self.gate.as_ref().and_then(Gate::next);
        next.is_some_and(|next| next.since(now) > WAIT_MAX)
    }

    /// Returns whether one of its limits is reached.
    pub(crate) fn is_at_limit(&self, now: Moment) -> bool {
        let next = self.gate.as_ref().and_then(Gate::next);
        next.is_some_and(|next| next > now)
            || self.concurrency_max.is_some_and(|most| self.load.running() >= most)
    }

    /// Takes back what its rate let pass for an attempt that was not made.
    pub(crate) fn give_pass_back(&self) {
        self.gate.iter().for_each(Gate::give_back);
    }

    /// Returns whether a new job would take the turn of one that waits here.
    pub(crate) fn is_held_up(&self) -> bool {
        self.gate.is_some() && self.load.has_queued()
    }
}

impl Tenants {
    pub(crate) fn new(book: TenantBook, clock: &Clock) -> Tenants {
        Tenants {
            none: Arc::default(),
            named: Mutex::default(),
            are_several: AtomicBool::new(false),
            have_caps: book.says(|settings| settings.jobs_max.is_some()),
            book,
            clock: clock.clone(),
            next_pass: Mutex::default(),
        }
    }

    /// Returns whether any tenant has a cap.
    pub(crate) const fn have_caps(&self) -> bool {
        self.have_caps
    }

    /// Returns how many live jobs a tenant may have.
    pub(crate) fn jobs_max(&self, tenant: &Tenant) -> Option<u64> {
        self.book.of(tenant).jobs_max
    }

    /// Returns how much a tenant is given beside the others. One that is not named by a job has no settings.
    pub(crate) fn weight(&self, tenant: Option<&Tenant>) -> u32 {
        tenant.map_or(1, |tenant| self.book.of(tenant).weight)
    }

    pub(crate) fn of(&self, tenant: Option<&Tenant>) -> Arc<TenantEntry> {
        let Some(tenant) = tenant else { return Arc::clone(&self.none) };
        let mut named = lock(&self.named);
        if let Some(entry) = named.get(tenant) {
            return Arc::clone(entry);
        }
        if named.len() >= REMEMBERED_MAX {
            // One with a rate last: forgetting it forgets what it used of that.
            named.retain(|_, entry| !entry.load.is_idle() || entry.gate.is_some());
        }
        if named.len() >= REMEMBERED_MAX {
            named.retain(|_, entry| !entry.load.is_idle());
        }
        let entry = Arc::new(TenantEntry::new(self.book.of(tenant), &self.clock));
        named.insert(tenant.clone(), Arc::clone(&entry));
        entry
    }

    /// Lets an attempt pass, where the tenant has a rate.
    pub(crate) fn pass(&self, entry: &TenantEntry, living: usize) -> bool {
        let Some(gate) = &entry.gate else { return true };
        let passes = gate.pass(living);
        if let Some(next) = gate.next().filter(|_| !passes) {
            let mut first = lock(&self.next_pass);
            *first = Some(first.map_or(next, |first| first.min(next)));
        }
        passes
    }

    /// Forgets when attempts may pass that were refused.
    pub(crate) fn forget_passes(&self) {
        *lock(&self.next_pass) = None;
    }

    /// Returns when the first attempt may pass that was refused.
    pub(crate) fn next_pass(&self) -> Option<Moment> {
        *lock(&self.next_pass)
    }

    /// Notes whether more than one has something due.
    pub(crate) fn note<'t>(&self, mut due: impl Iterator<Item = Option<&'t Tenant>>) {
        let first = due.next();
        let are_several = first.is_some_and(|first| due.any(|other| other != first));
        self.are_several.store(are_several, Ordering::Relaxed);
    }

    /// Returns how many of the places one may have. The last fifth is for the others, while others have something due.
    pub(crate) fn places_of_one(&self, places: usize) -> usize {
        if self.are_several.load(Ordering::Relaxed) { places - places / 5 } else { places }
    }
}

#[cfg(test)]
mod tests {
    use super::Tenants;
    use crate::tenant_settings::{TenantBook, TenantSettings};
    use rewheel::{ManualClock, millis, seconds};
    use rewheel_core::Tenant;

    fn tenants(settings: TenantSettings, clock: &ManualClock) -> Tenants {
        let mut book = TenantBook::default();
        book.add("*", settings).unwrap();
        Tenants::new(book, &clock.clone().into())
    }

    #[test]
    fn the_last_fifth_is_for_others_while_there_are_others() {
        let tenants = tenants(TenantSettings::default(), &ManualClock::new());
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        for (due, places) in [
            (vec![], 10),
            (vec![Some(&a), Some(&a)], 10),
            (vec![None, Some(&a)], 8),
            (vec![Some(&a), Some(&b)], 8),
        ] {
            tenants.note(due.into_iter());
            assert_eq!(tenants.places_of_one(10), places);
        }
    }

    #[test]
    fn one_tenant_has_one_load() {
        let tenants = tenants(TenantSettings::default(), &ManualClock::new());
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        let _running = tenants.of(Some(&a)).begin(1);
        assert!(tenants.of(Some(&a)).begin(1).is_none());
        assert!(tenants.of(Some(&b)).begin(1).is_some() && tenants.of(None).begin(1).is_some());
    }

    #[test]
    fn a_tenant_has_no_more_than_its_concurrency() {
        let settings = TenantSettings { concurrency_max: Some(2), ..TenantSettings::default() };
        let clock = ManualClock::new();
        let tenants = tenants(settings, &clock);
        let now = rewheel::Clock::from(clock).now();
        let acme = Tenant::parse("acme").unwrap();
        let entry = tenants.of(Some(&acme));
        assert_eq!((entry.room(100, 1, now), entry.is_at_limit(now)), (2, false));
        let running = (entry.begin(100), entry.begin(100));
        assert!(running.1.is_some() && entry.begin(100).is_none());
        assert_eq!((entry.room(100, 1, now), entry.is_at_limit(now)), (0, true));
        // Those who come back from the wheel may wait here, up to as many again.
        let waiting = (entry.queue(), entry.has_enough(100, 1), entry.queue());
        assert_eq!((waiting.1, entry.has_enough(100, 1)), (false, true));
        assert!(tenants.of(None).begin(100).is_some());
    }

    #[test]
    fn a_tenant_whose_turn_is_far_away_waits_in_the_store() {
        let settings =
            TenantSettings { rate: Some("1/10s".parse().unwrap()), ..TenantSettings::default() };
        let clock = ManualClock::new();
        let tenants = tenants(settings, &clock);
        let now = || rewheel::Clock::from(clock.clone()).now();
        let entry = tenants.of(Some(&Tenant::parse("acme").unwrap()));
        assert!(entry.room(100, 1, now()) == 1 && tenants.pass(&entry, 1));
        assert!(!tenants.pass(&entry, 1) && tenants.next_pass().is_some());
        assert!(
            entry.room(100, 1, now()) == 0 && entry.must_wait(now()) && entry.is_at_limit(now())
        );
        clock.advance(millis(8_500));
        assert!(entry.room(100, 1, now()) == 1 && !entry.must_wait(now()));
        clock.advance(seconds(2));
        assert!(!entry.is_at_limit(now()) && tenants.pass(&entry, 1));
    }
}
