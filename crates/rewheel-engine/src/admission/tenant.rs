//! Admission state of tenants.

use super::answer::{Held, HeldReason, Refused};
use super::bucket::{self, Bucket};
use super::kind::{FleetRule, refused_by_rate, set_rate};
use super::load::Load;
use crate::tenant_settings::{TenantBook, TenantSettings};
use rewheel::Moment;
use rewheel_core::Tenant;
use std::collections::HashMap;

/// Number of tenants to keep before those without jobs here are removed.
const REMEMBERED_MAX: usize = 10_000;

/// Every tenant that has jobs here.
#[derive(Debug)]
pub(super) struct Tenants {
    /// State of jobs without a tenant, which has no limits.
    none: TenantState,
    named: HashMap<Tenant, TenantState>,
    book: TenantBook,
    living: Option<usize>,
}

/// One tenant.
#[derive(Debug, Default)]
pub(super) struct TenantState {
    pub(super) load: Load,
    /// Number of its attempts that have ended.
    pub(super) ended: u64,
    concurrency_max: Option<usize>,
    pub(super) fleet: FleetRule,
    bucket: Option<Bucket>,
}

impl TenantState {
    fn new(settings: &TenantSettings, living: Option<usize>, now: Moment) -> TenantState {
        let mut bucket = None;
        let rate = settings.rate.filter(|rate| rate.interval().is_none());
        set_rate(&mut bucket, rate, living, now);
        TenantState {
            load: Load::default(),
            ended: 0,
            concurrency_max: settings.concurrency_max,
            fleet: FleetRule::new(settings.fleet_concurrency_max, settings.rate),
            bucket,
        }
    }

    /// Returns how many jobs to hold here because of its own limits.
    fn wanted(&self) -> usize {
        let ahead = self.bucket.as_ref().map(Bucket::ahead);
        ahead.into_iter().chain(self.concurrency_max).min().unwrap_or(usize::MAX)
    }

    /// Returns how many more jobs of it to claim, where one tenant may have `share` slots.
    pub(super) fn room(&mut self, (share, mine): (usize, usize), now: Moment) -> usize {
        if self.bucket.as_mut().is_some_and(|bucket| bucket::is_far(bucket.wait(now))) {
            return 0;
        }
        self.load.room(share, mine).min(self.wanted().saturating_sub(self.load.all()))
    }

    /// Returns whether so many of its jobs run or wait here that another would only block others.
    pub(super) fn has_enough(&self, share: usize) -> bool {
        self.load.all() >= self.wanted().min(share).saturating_mul(2)
    }

    /// Returns why an attempt may not begin. While old attempts hang, a probe has to test for all tenants whether the dependency
    /// is back: then only rates apply to it.
    pub(super) fn refuses(
        &mut self,
        share: usize,
        (is_beside_hung, is_within_fleet): (bool, bool),
        now: Moment,
    ) -> Option<Refused> {
        if !self.fleet.is_none() && !is_within_fleet {
            return Some(Refused::Return(Held::by(HeldReason::TenantLimit)));
        }
        let most = share.min(self.concurrency_max.unwrap_or(usize::MAX));
        if self.load.running() >= most && !is_beside_hung {
            return Some(Refused::Wait(Held::by(HeldReason::TenantLimit)));
        }
        let wait = self.bucket.as_mut()?.wait(now);
        refused_by_rate(HeldReason::TenantLimit, wait, now)
    }

    pub(super) fn take_pass(&mut self) {
        self.bucket.iter_mut().for_each(Bucket::take);
    }

    pub(super) fn refund_pass(&mut self) {
        self.bucket.iter_mut().for_each(Bucket::refund);
    }

    /// Returns how many attempts may start now by its rate.
    pub(super) fn passes(&mut self, now: Moment) -> usize {
        self.bucket.as_mut().map_or(usize::MAX, |bucket| bucket.whole(now))
    }

    pub(super) const fn concurrency_max(&self) -> Option<usize> {
        self.concurrency_max
    }

    /// Returns whether a new job would overtake one that waits here.
    pub(super) const fn is_held_up(&self) -> bool {
        self.bucket.is_some() && self.load.queued() > 0
    }
}

impl Tenants {
    pub(super) fn new(book: TenantBook) -> Tenants {
        Tenants { none: TenantState::default(), named: HashMap::new(), book, living: None }
    }

    pub(super) fn of(&mut self, tenant: Option<&Tenant>, now: Moment) -> &mut TenantState {
        let Some(tenant) = tenant else { return &mut self.none };
        if !self.named.contains_key(tenant) {
            self.make_room();
            let made = TenantState::new(self.book.of(tenant), self.living, now);
            self.named.insert(tenant.clone(), made);
        }
        match self.named.get_mut(tenant) {
            Some(state) => state,
            None => &mut self.none,
        }
    }

    /// Returns a tenant that has jobs here.
    pub(super) fn known(&mut self, tenant: Option<&Tenant>) -> Option<&mut TenantState> {
        match tenant {
            Some(tenant) => self.named.get_mut(tenant),
            None => Some(&mut self.none),
        }
    }

    pub(super) fn share(&mut self, living: usize, now: Moment) {
        self.living = Some(living);
        let buckets = self.named.values_mut().filter_map(|state| state.bucket.as_mut());
        buckets.for_each(|bucket| bucket.share(living, now));
    }

    fn make_room(&mut self) {
        if self.named.len() >= REMEMBERED_MAX {
            // Tenants with a rate last: removing one forgets how much of the rate it used.
            self.named.retain(|_, state| !state.load.is_idle() || state.bucket.is_some());
        }
        if self.named.len() >= REMEMBERED_MAX {
            self.named.retain(|_, state| !state.load.is_idle());
        }
    }

    /// Returns the weight of a tenant. Jobs without a tenant have no settings.
    pub(super) fn weight(&self, tenant: Option<&Tenant>) -> u32 {
        tenant.map_or(1, |tenant| self.book.of(tenant).weight)
    }

    #[cfg(test)]
    pub(super) fn are_idle(&self) -> bool {
        self.none.load.is_idle() && self.named.values().all(|state| state.load.is_idle())
    }
}
