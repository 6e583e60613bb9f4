//! The takeover loop: frees the jobs of dead holders. This loop has no other task, so that nothing delays a takeover.

mod watch;

use self::watch::{ClockWatch, Reading};
use crate::shared::Shared;
use rewheel::{CancelToken, Category};
use rewheel_core::store::{StoreError, Sweep, Watched};
use rewheel_core::{Cause, JobEvent, Limits, State};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Takeover {
    shared: Arc<Shared>,
    /// Whether the last round failed: only the first failure is reported.
    is_failing: bool,
    clock: ClockWatch,
}

impl Takeover {
    pub(crate) fn new(shared: Arc<Shared>) -> Takeover {
        Takeover { shared, is_failing: false, clock: ClockWatch::default() }
    }

    pub(crate) async fn run(mut self, stop: CancelToken) {
        while !stop.is_cancelled() {
            self.tick().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.shared.signals.sweep.notified() => {}
                () = self.shared.clock.sleep(self.shared.settings.housekeeping) => {}
            }
        }
    }

    async fn tick(&mut self) {
        if self.shared.is_lease_expired() {
            return;
        }
        let swept = self.sweep().await;
        if let Err(error) = &swept {
            tracing::debug!(%error, "takeover failed: retrying");
            if !self.is_failing {
                let text =
                    "takeover failed: jobs of dead holders do not run until a retry succeeds";
                self.shared.notify_error("takeover", text, error);
            }
        }
        self.is_failing = swept.is_err();
    }

    /// Frees the jobs of dead holders, and overdue jobs.
    async fn sweep(&mut self) -> Result<(), StoreError> {
        let watched = self.watch().await?;
        let shared = &self.shared;
        loop {
            let (by, keep) = (shared.holder(), shared.retain_ended());
            let sweep = Sweep { watched, ..Sweep::new(by, Limits::BATCH_MAX, keep) };
            let events = shared.store.sweep(&sweep).await?;
            report(shared, &events);
            if events.len() < Limits::BATCH_MAX {
                return Ok(());
            }
        }
    }
}

impl Takeover {
    /// Returns how long the store's clock can be trusted.
    async fn watch(&mut self) -> Result<Watched, StoreError> {
        let asked = self.shared.clock.now();
        let says = self.shared.store.now().await?;
        let answered = self.shared.clock.now();
        Ok(self.clock.read(Reading { asked, answered, says }))
    }
}

/// Counts, logs and publishes what a sweep or a deadline did to jobs.
pub(crate) fn report(shared: &Shared, events: &[JobEvent]) {
    events.iter().for_each(|event| count(shared, event));
    shared.notify_of(events);
    shared.reports.events.tell_of(events);
}

fn count(shared: &Shared, event: &JobEvent) {
    let is_takeover = event.cause == Cause::Takeover;
    if is_takeover || event.to == State::Dead {
        let meters = shared.reports.meters.kind(&event.kind);
        meters.takeovers.fetch_add(u64::from(is_takeover), Ordering::Relaxed);
        if event.to == State::Dead {
            meters.died(if is_takeover { Category::Unknown } else { Category::Deadline });
        }
    }
    tracing::info!(job = %event.job, kind = %event.kind, from = %event.from, to = %event.to,
        cause = ?event.cause, "job changed");
}
