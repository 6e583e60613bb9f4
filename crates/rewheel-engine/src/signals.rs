//! Wake-up signals between the loops of one engine.

use crate::shared::{Command, Finished};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, mpsc};

/// Queues, wake-ups and counters between loops.
#[derive(Debug)]
pub(crate) struct Signals {
    pub(crate) to_dispatch: mpsc::UnboundedSender<Command>,
    pub(crate) to_settle: mpsc::UnboundedSender<Finished>,
    /// Wakes the claim loop: there is free capacity, or there may be due jobs.
    pub(crate) look: Notify,
    /// Wakes the takeover loop: a holder died.
    pub(crate) sweep: Notify,
    /// Wakes housekeeping: the store was promoted or restored.
    pub(crate) replaced: Notify,
    /// Jobs that are due and wait for a slot.
    pub(crate) ready: AtomicUsize,
    /// Jobs that wait in the wheel.
    pub(crate) waiting: AtomicUsize,
    ticks: AtomicU64,
    stopping: AtomicBool,
}

impl Signals {
    pub(crate) fn new(
        to_dispatch: mpsc::UnboundedSender<Command>,
        to_settle: mpsc::UnboundedSender<Finished>,
    ) -> Signals {
        Signals {
            to_dispatch,
            to_settle,
            look: Notify::new(),
            sweep: Notify::new(),
            replaced: Notify::new(),
            ready: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            ticks: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// Returns the number of jobs that wait here to become due or for a slot.
    pub(crate) fn waiting_count(&self) -> usize {
        self.ready.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed)
    }

    /// Shows that the dispatch loop makes progress.
    pub(crate) fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    pub(crate) fn are_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.look.notify_one();
    }
}
