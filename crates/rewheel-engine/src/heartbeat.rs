//! The heartbeat loop: renews this holder's lease and expires dead holders.

use crate::follow_ups;
use crate::meters::Renewal;
use crate::notify::Severity;
use crate::shared::{Command, Shared};
use rewheel::{CancelToken, Moment};
use rewheel_core::store::{HolderExpiry, StoreChange, StoreError, WatchShare};
use rewheel_core::{ExpiryWatch, Format, Holder, HolderId, NewHolder, Role};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of renewals per lease duration, if the store reports changes all the time.
const HASTE: u32 = 15;

pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    expiry_watch: ExpiryWatch,
    /// The living engines, as last read.
    living: Vec<HolderId>,
    origin: Moment,
    /// When the last successful renewal was sent.
    renewed: Moment,
    ticks: u64,
    /// When the dispatch loop was last seen making progress.
    ticked: Moment,
    /// Whether the last renewal failed: only the first failure is reported.
    is_failing: bool,
}

impl Heartbeat {
    pub(crate) fn new(shared: Arc<Shared>) -> Heartbeat {
        let now = shared.clock.now();
        let expiry_watch = ExpiryWatch::new(shared.settings.lease_ttl);
        Heartbeat {
            expiry_watch,
            living: Vec::new(),
            origin: now,
            // A restarted loop continues from the last renewal.
            renewed: shared.leases.renewed(),
            ticks: 0,
            ticked: now,
            is_failing: false,
            shared,
        }
    }

    pub(crate) async fn run(mut self, stop: CancelToken) {
        let mut watch = self.shared.store.watch();
        while !stop.is_cancelled() {
            let rest = self.tick().await;
            // A change may be a user's request for a job here, which should not wait for a third of the lease duration. But not
            // every change of a busy store should cause a renewal.
            let hasty = rest.min(self.shared.settings.lease_ttl / HASTE);
            let hastened = async {
                self.shared.clock.sleep(hasty).await;
                watch.changed().await
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                change = hastened => if change == StoreChange::Replaced {
                    self.shared.signals.replaced.notify_one();
                },
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    /// Renews once. Returns how long to rest: a third of the lease duration, less after a failure.
    async fn tick(&mut self) -> Duration {
        let third = self.shared.settings.lease_ttl / 3;
        if self.shared.loops.failure().is_some() {
            // The engine has deregistered, or its lease must expire.
            return third;
        }
        let (ticks, now) = (self.shared.signals.ticks(), self.shared.clock.now());
        if ticks != self.ticks || ticks == 0 {
            (self.ticks, self.ticked) = (ticks, now);
        } else if now.since(self.ticked) >= third {
            // Not earlier: an early renewal may come between two ticks of an idle dispatch loop. A holder whose dispatch loop has
            // stalled must not keep its jobs from others.
            tracing::error!(
                "lease not renewed because the dispatch loop stalled; if the lease expires, other nodes take over the jobs of this node"
            );
            self.note_failure("dispatch_stalled", &"dispatch loop stalled");
            return third / 3;
        }
        let sent = self.shared.clock.now();
        let holder = self.shared.holder();
        match self.shared.store.renew(holder).await {
            Ok(renewed) => {
                self.shared.reports.meters.renewal(Renewal::Renewed);
                self.shared.reports.meters.store_time(renewed.at, self.shared.clock.now());
                self.renewed = sent;
                self.shared.leases.set_renewed(sent);
                self.is_failing = false;
                if self.shared.leases.set_lease_expired(false) {
                    tracing::info!(%holder, "lease renewed: this node can start attempts");
                    self.shared.signals.look.notify_one();
                }
                for wish in renewed.wanted {
                    let command = Command::Wanted(wish.lease, wish.wanted);
                    let _ = self.shared.signals.to_dispatch.send(command);
                }
                let shared = Arc::clone(&self.shared);
                // Concurrently: neither may delay the next renewal.
                tokio::join!(self.watch_others(holder), shared.ask_for_grants());
                let now = self.shared.clock.now();
                let rest = third.saturating_sub(now.since(sent));
                // Check again when the next holder may be expired: takeovers wait for it.
                let patience = self.expiry_watch.patience(now.since(self.origin)).unwrap_or(rest);
                rest.min(patience.max(self.shared.settings.lease_ttl / HASTE))
            }
            Err(StoreError::HolderDead(_)) => {
                self.shared.reports.meters.renewal(Renewal::Dead);
                self.join_again(holder).await;
                third / 3
            }
            Err(error) => {
                self.shared.reports.meters.renewal(Renewal::Failed);
                tracing::debug!(%error, "lease renewal failed");
                self.note_failure("renewal_failed", &error);
                third / 3
            }
        }
    }

    fn note_failure(&mut self, reason: &'static str, error: &dyn Display) {
        self.expiry_watch.failed();
        if !std::mem::replace(&mut self.is_failing, true) {
            let text = "lease renewal failed: retrying; if the lease expires, other nodes take over the jobs of this node";
            self.shared.notify_lease(Severity::Warning, reason, text, error);
        }
        let silent = self.shared.clock.now().since(self.renewed);
        if silent >= self.shared.settings.lease_ttl && self.shared.leases.set_lease_expired(true) {
            tracing::error!(
                "lease expired: this node cancels its attempts, and starts new ones when the lease is renewed"
            );
            let text = "lease expired: this node cancels its attempts, and starts new ones when the lease is renewed";
            self.shared.notify_lease(Severity::Error, "lease_ran_out", text, error);
            self.shared.leases.cancel_all();
        }
    }

    /// Other holders have expired this holder. Its jobs may belong to others by now: only fences can tell.
    async fn join_again(&mut self, dead: HolderId) {
        let _ = self.shared.signals.to_dispatch.send(Command::Drop);
        let fresh = self.shared.new_holder_id();
        let joining = new_holder(fresh, &self.shared);
        match self.shared.store.join(&joining).await {
            Ok(_) if self.shared.loops.failure().is_some() => {
                // The engine failed meanwhile, and deregistered under the old id.
                let _ = self.shared.store.leave(fresh).await;
            }
            Ok(_) => {
                tracing::warn!(%dead, %fresh, "another node marked this node as dead: this node has registered again under a new id");
                self.shared.set_holder(fresh);
                let text =
                    "holder expired and registered again under a new id: other nodes run its jobs";
                self.shared.notify_lease(Severity::Error, "taken_for_dead", text, &dead);
                self.is_failing = false;
                self.renewed = self.shared.clock.now();
                self.shared.leases.set_renewed(self.renewed);
                self.expiry_watch = ExpiryWatch::new(self.shared.settings.lease_ttl);
                self.shared.leases.set_lease_expired(false);
                self.shared.signals.look.notify_one();
            }
            Err(error) => {
                tracing::debug!(%error, "this node failed to register under a new id: retrying");
                self.note_failure("joining_failed", &error);
            }
        }
    }

    async fn watch_others(&mut self, by: HolderId) {
        // The engines of the last heartbeat: until all know of a new one, some workers are watched by three engines or by one.
        let share = WatchShare::of(by, &self.living);
        let holders = match self.shared.store.watched_holders(share).await {
            Ok(holders) => holders,
            Err(error) => {
                tracing::debug!(%error, "failed to read holders: retrying at the next lease renewal");
                self.expiry_watch.failed();
                return;
            }
        };
        self.shared.leases.set_oldest_holder(follow_ups::oldest(&holders));
        let is_engine = |holder: &&Holder| holder.role == Role::Engine;
        self.living = holders.iter().filter(is_engine).map(|holder| holder.id).collect();
        self.shared.set_living(self.living.clone());
        let others: Vec<_> = holders.into_iter().filter(|holder| holder.id != by).collect();
        let now = self.shared.clock.now().since(self.origin);
        for silent in self.expiry_watch.renewed(now, &others) {
            match self.shared.store.expire_holder(by, silent.id, silent.renewals).await {
                Ok(HolderExpiry::Expired) => {
                    tracing::warn!(holder = %silent.id, name = silent.name, "holder has expired: its jobs are taken over");
                    // The dead holder may have had many jobs, and this loop has no time to sweep them.
                    self.shared.signals.sweep.notify_one();
                }
                Ok(HolderExpiry::Alive | HolderExpiry::Dead) => {}
                Err(error) => {
                    tracing::debug!(%error, "failed to mark a holder as dead: retrying at the next lease renewal");
                    return;
                }
            }
        }
    }
}

pub(crate) fn new_holder(id: HolderId, shared: &Shared) -> NewHolder {
    let lease_ttl = shared.settings.lease_ttl;
    NewHolder {
        id,
        name: shared.settings.name.clone(),
        role: Role::Engine,
        lease_ttl,
        format: Format::CURRENT,
    }
}
