//! Test setup for admission: manual clock, kinds and tenants.

use crate::admission::{Admission, Admit, Ask, Fact, InHand, KindFact, Round, Setup, Suspect};
use crate::settings::KindSettings;
use crate::tenant_settings::{TenantBook, TenantSettings};
use rewheel::{Clock, ManualClock, Moment, Random, seconds};
use rewheel_core::{
    HolderId, Kind, KindName, Lane, NewJob, Parked, Priority, Shard, Tenant, Timestamp, Version,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const ME: [u8; 16] = [1; 16];
pub(super) const OTHER: [u8; 16] = [2; 16];

/// One engine's admission.
pub(super) struct World {
    pub(super) admission: Arc<Admission>,
    pub(super) clock: ManualClock,
    pub(super) kinds: BTreeMap<KindName, (Kind, KindSettings)>,
    /// The only host that a kind calls.
    pub(super) hosts: BTreeMap<KindName, String>,
}

impl World {
    pub(super) fn new(slots: usize, tenants: &[(&str, TenantSettings)]) -> World {
        let clock = ManualClock::new();
        let mut book = TenantBook::default();
        for (name, settings) in tenants {
            book.add(name, settings.clone()).unwrap();
        }
        let admission = Admission::new(Setup {
            slots,
            holder: HolderId::from_bytes(ME),
            tenants: book,
            clock: Clock::from(&clock),
            random: Random::seeded(7),
            beat: seconds(5),
        });
        admission.apply(Fact::Fleet { living: 1 });
        World { admission, clock, kinds: BTreeMap::new(), hosts: BTreeMap::new() }
    }

    pub(super) fn now(&self) -> Moment {
        Clock::from(&self.clock).now()
    }

    /// Creates a kind, or changes its settings.
    pub(super) fn put(&mut self, name: &str, settings: KindSettings) {
        let name = KindName::parse(name).unwrap();
        let fresh = Kind {
            name: name.clone(),
            settings: String::new(),
            takeovers_max: settings.takeovers_max,
            on_dead: settings.on_dead,
            paused: false,
            parked: None,
            suspects: Vec::new(),
            forced: false,
            generation: 1,
            version: Version::new(1),
        };
        let kind = self.kinds.remove(&name).map_or(fresh, |(kind, _)| kind);
        self.kinds.insert(name.clone(), (kind, settings));
        self.tell(&name);
    }

    /// Changes a kind as the store would.
    pub(super) fn change(&mut self, name: &KindName, change: impl FnOnce(&mut Kind)) {
        let (kind, _) = self.kinds.get_mut(name).unwrap();
        change(kind);
        kind.generation += 1;
        self.tell(name);
    }

    /// Changes what has no generation of its own.
    pub(super) fn set(&mut self, name: &KindName, change: impl FnOnce(&mut Kind)) {
        let (kind, _) = self.kinds.get_mut(name).unwrap();
        change(kind);
        self.tell(name);
    }

    fn tell(&self, name: &KindName) {
        let (kind, settings) = &self.kinds[name];
        let host = self.hosts.get(name).cloned();
        self.admission.learn(&KindFact { kind, settings, runs: true, host });
    }

    /// A host asks to wait, after a call of a kind.
    pub(super) fn hold(&self, host: &str, kind: &KindName, lasts: Duration) -> Moment {
        let until = self.now().plus(lasts);
        let (host, kind) = (host.to_owned(), kind.clone());
        self.admission.apply(Fact::HostHeld { host, kind, until });
        until
    }

    pub(super) fn park(&mut self, name: &KindName, prober: Option<[u8; 16]>) {
        let prober = prober.map(HolderId::from_bytes);
        let since = Timestamp::from_millis(0);
        self.change(name, |kind| {
            kind.parked = Some(Parked { since, until: None, reason: String::new(), prober });
        });
    }

    pub(super) fn admit(&self, kind: &KindName, tenant: Option<&Tenant>) -> Admit {
        let (is_retry, suspect) = (false, Suspect::No);
        self.ask(&Ask { kind, tenant, is_retry, suspect, is_within_fleet: true })
    }

    pub(super) fn ask(&self, ask: &Ask<'_>) -> Admit {
        self.admission.admit(ask, &mut Round::default())
    }

    /// Claims one job of a lane as the claim loop does, if there is capacity.
    pub(super) fn claim(&self, kind: &KindName, tenant: Option<&Tenant>) -> Option<InHand> {
        let lane = lane(kind, tenant);
        if !self.admission.rooms(&[&lane]).first().is_some_and(|room| room.is_open) {
            return None;
        }
        let mut reservation = self.admission.plan();
        if reservation.reserve(&lane, 1).jobs == 0 {
            return None;
        }
        let id = rewheel_core::JobId::from_bytes([9; 16]);
        let new = NewJob { tenant: tenant.cloned(), ..NewJob::new(id, kind.clone(), Vec::new()) };
        let job = new.to_job(Timestamp::from_millis(0));
        reservation.came([(&job, true)].into_iter()).pop().flatten()
    }
}

pub(super) fn lane(kind: &KindName, tenant: Option<&Tenant>) -> Lane {
    Lane {
        kind: kind.clone(),
        tenant: tenant.cloned(),
        priority: Priority::default(),
        shard: Shard::NONE,
    }
}
