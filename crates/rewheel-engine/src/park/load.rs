//! How much of an engine one kind takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Without a ramp.
const NO_RAMP: usize = usize::MAX;

/// What one kind has of this engine.
#[derive(Debug)]
pub(crate) struct Load {
    attempts: Mutex<Attempts>,
    queued: AtomicUsize,
    /// How many may run while it comes back from an outage.
    ramp: AtomicUsize,
}

/// Attempts that run now.
#[derive(Debug, Default)]
struct Attempts {
    running: usize,
    /// Attempts from before its dependency went down. They may hang until their timeout: they take places, but say nothing
    /// about whether it is back.
    old: usize,
    /// Grows when running attempts become old.
    outages: u64,
}

/// An attempt that runs, until it is settled.
#[derive(Debug)]
pub(crate) struct Running {
    load: Arc<Load>,
    outages: u64,
}

/// A job that is due, as long as it waits for a place.
#[derive(Debug)]
pub(crate) struct Queued(Arc<Load>);

impl Default for Load {
    fn default() -> Load {
        Load {
            attempts: Mutex::default(),
            queued: AtomicUsize::new(0),
            ramp: AtomicUsize::new(NO_RAMP),
        }
    }
}

impl Load {
    // Nothing that can panic happens under this lock.
    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt, if fewer than `most` run and the ramp allows it. Where old attempts hang in all of its places, one
    /// more may run: one attempt has to find out whether the dependency is back.
    pub(crate) fn begin(self: &Arc<Load>, most: usize) -> Option<Running> {
        let ramp = self.ramp.load(Ordering::Relaxed);
        let mut attempts = self.attempts();
        let has_place = attempts.running + attempts.old < most
            || (attempts.running == 0 && attempts.old > 0 && most > 0);
        if !has_place || attempts.running >= ramp {
            return None;
        }
        attempts.running += 1;
        let outages = attempts.outages;
        drop(attempts);
        Some(Running { load: Arc::clone(self), outages })
    }

    pub(crate) fn queue(self: &Arc<Load>) -> Queued {
        self.queued.fetch_add(1, Ordering::Relaxed);
        Queued(Arc::clone(self))
    }

    /// Notes that the dependency is down: what runs now is from before.
    pub(crate) fn set_aside(&self) {
        let mut attempts = self.attempts();
        if attempts.running > 0 {
            attempts.old += attempts.running;
            attempts.running = 0;
            attempts.outages += 1;
        }
    }

    /// Returns how many more jobs to have in hand, where up to `most` may run: nearly as many again wait, so that no
    /// place waits for the store. A fifth less, so that there is always room to claim what others have.
    pub(crate) fn room(&self, most: usize) -> usize {
        let most = most.saturating_mul(2).saturating_sub(most.div_ceil(5));
        let of_ramp = self.ramp.load(Ordering::Relaxed).saturating_sub(self.fresh());
        most.saturating_sub(self.in_hand()).min(of_ramp)
    }

    /// Returns how many run.
    pub(crate) fn running(&self) -> usize {
        let attempts = self.attempts();
        attempts.running + attempts.old
    }

    /// Returns how many run, or wait for a place.
    pub(crate) fn in_hand(&self) -> usize {
        self.running() + self.queued.load(Ordering::Relaxed)
    }

    /// Returns how many run or wait for a place, without those from before an outage.
    fn fresh(&self) -> usize {
        self.attempts().running + self.queued.load(Ordering::Relaxed)
    }

    /// Returns whether something waits for a place.
    pub(crate) fn has_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    /// Returns whether it comes back from an outage.
    pub(crate) fn is_ramping(&self) -> bool {
        self.ramp.load(Ordering::Relaxed) != NO_RAMP
    }

    /// Returns whether nothing of it runs, and nothing waits for a place.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_hand() == 0
    }

    /// Returns whether nothing of it runs or waits but what is from before an outage: a probe may begin.
    pub(crate) fn is_clear(&self) -> bool {
        self.fresh() == 0
    }

    /// Lets it come back slowly: one attempt at first.
    pub(crate) fn ramp_up(&self) {
        self.ramp.store(1, Ordering::Relaxed);
    }

    /// One more for each that succeeds, which doubles it in the time of one attempt; no ramp once there is one for each
    /// place.
    pub(crate) fn succeeded(&self, places: usize) {
        let _ = self.ramp.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |ramp| match ramp {
            NO_RAMP => None,
            ramp if ramp >= places => Some(NO_RAMP),
            ramp => Some(ramp + 1),
        });
    }

    /// One less after a failure. Half would be more careful, and for ever: where one attempt in ten fails on a good day, a ramp that is halved
    /// each time stays at some twenty. This one grows while fewer fail than succeed; if more do, the breaker knows.
    pub(crate) fn failed(&self) {
        let _ = self.ramp.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |ramp| {
            (ramp != NO_RAMP).then(|| (ramp - 1).max(1))
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut attempts = self.load.attempts();
        if attempts.outages == self.outages {
            attempts.running -= 1;
        } else {
            attempts.old -= 1;
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Load;
    use std::sync::Arc;

    #[test]
    fn a_ramp_doubles_with_each_round_of_successes_and_shrinks_with_failures() {
        let load = Arc::new(Load::default());
        load.ramp_up();
        let mut rounds = Vec::new();
        for _ in 0..4 {
            let running: Vec<_> = std::iter::from_fn(|| load.begin(100)).collect();
            rounds.push(running.len());
            running.iter().for_each(|_| load.succeeded(100));
        }
        assert_eq!(rounds, [1, 2, 4, 8]);
        (0..8).for_each(|_| load.failed());
        assert_eq!(load.room(100), 8);
        (0..20).for_each(|_| load.failed());
        assert_eq!(load.room(100), 1);
    }

    #[test]
    fn a_ramp_ends_though_some_fail_as_they_always_do() {
        let load = Arc::new(Load::default());
        load.ramp_up();
        for number in 0..1_000 {
            if number % 5 == 0 { load.failed() } else { load.succeeded(256) }
        }
        assert!(!load.is_ramping());
    }

    #[test]
    fn a_ramp_ends_when_there_is_one_for_each_place() {
        let load = Arc::new(Load::default());
        load.ramp_up();
        for _ in 0..4 {
            load.succeeded(4);
        }
        assert_eq!(load.room(10), 18);
    }

    #[test]
    fn attempts_that_hang_do_not_keep_a_probe_away() {
        let load = Arc::new(Load::default());
        let hung: Vec<_> = std::iter::from_fn(|| load.begin(4)).collect();
        assert_eq!((hung.len(), load.is_clear(), load.room(4)), (4, false, 3));
        load.set_aside();
        load.set_aside();
        assert!(load.is_clear() && load.running() == 4);
        let probe = load.begin(4);
        assert!(probe.is_some() && !load.is_clear());
        assert!(load.begin(4).is_none(), "one more than its places, not two");
        drop(hung);
        assert_eq!(load.running(), 1);
        drop(probe);
        assert_eq!((load.running(), load.is_idle()), (0, true));
        assert!(load.begin(0).is_none());
    }

    #[test]
    fn what_waits_and_what_runs_takes_room() {
        let load = Arc::new(Load::default());
        let (running, queued) = (load.begin(1), load.queue());
        assert!(running.is_some() && load.begin(1).is_none());
        assert_eq!(load.room(2), 1);
        drop((running, queued));
        assert_eq!(load.room(2), 3);
    }
}
