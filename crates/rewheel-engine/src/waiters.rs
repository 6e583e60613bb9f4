//! Callers that wait for the end of jobs: all of them share one query.

use crate::shared::{Shared, lock};
use rewheel::CancelToken;
use rewheel_core::{JobId, Limits, State};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Time between two queries. Jobs that end in this engine are noticed at once, without a query.
const LOOK: Duration = Duration::from_millis(250);

/// Jobs that one query asks for. With more, they take turns: the load of the store does not grow with the number of waiters.
const JOBS_PER_LOOK: usize = Limits::BATCH_MAX;

/// The waiters of one engine.
#[derive(Debug)]
pub(crate) struct Waiters {
    max: usize,
    /// The number of callers, to be read without the lock: every job that ends asks for it.
    count: AtomicUsize,
    state: Mutex<Waiting>,
    /// Wakes the loop for the first waiter.
    first: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: HashMap<JobId, WaitedFor>,
    /// Whose turn it is, the next one first.
    turns: BTreeMap<u64, JobId>,
    /// The number of the latest waiter or turn.
    serial: u64,
    /// Whether the engine stops: nothing waits any more.
    is_over: bool,
}

/// A job that callers wait for.
#[derive(Debug)]
struct WaitedFor {
    turn: u64,
    callers: Vec<(u64, oneshot::Sender<()>)>,
}

impl Waiting {
    fn number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Removes a job that no caller waits for any more.
    fn remove(&mut self, job: JobId) -> Option<WaitedFor> {
        let removed = self.jobs.remove(&job)?;
        self.turns.remove(&removed.turn);
        Some(removed)
    }
}

/// Why a caller cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are as many waiters as the engine allows.
    Full,
    /// The engine stops.
    Stopping,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The job is no longer live.
    Ended,
    /// The engine stops.
    Stopping,
}

/// One caller that waits for a job. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Waiter {
    waiters: Arc<Waiters>,
    job: JobId,
    serial: u64,
    ended: oneshot::Receiver<()>,
}

impl Waiters {
    pub(crate) fn new(max: usize) -> Arc<Waiters> {
        let (count, state) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Waiters { max, count, state, first: Notify::new() })
    }

    /// Begins to wait. Read the job after this: then its end is not missed.
    pub(crate) fn begin(self: &Arc<Waiters>, job: JobId) -> Result<Waiter, Refused> {
        let mut state = lock(&self.state);
        if state.is_over {
            return Err(Refused::Stopping);
        }
        if self.count() >= self.max {
            return Err(Refused::Full);
        }
        let (end, ended) = oneshot::channel();
        self.count.fetch_add(1, Ordering::SeqCst);
        let serial = state.number();
        match state.jobs.get_mut(&job) {
            Some(waited_for) => waited_for.callers.push((serial, end)),
            None => {
                let turn = state.number();
                state.turns.insert(turn, job);
                state.jobs.insert(job, WaitedFor { turn, callers: vec![(serial, end)] });
            }
        }
        drop(state);
        self.first.notify_one();
        Ok(Waiter { waiters: Arc::clone(self), job, serial, ended })
    }

    /// Returns how many callers wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Ends the waits for a job that this engine brought into a state.
    pub(crate) fn tell(&self, job: JobId, to: State) {
        if !to.is_live() && self.count() > 0 {
            self.ended(&[job]);
        }
    }

    fn ended(&self, jobs: &[JobId]) {
        let mut state = lock(&self.state);
        for job in jobs {
            let Some(waited_for) = state.remove(*job) else { continue };
            self.count.fetch_sub(waited_for.callers.len(), Ordering::SeqCst);
            for (_, end) in waited_for.callers {
                // The caller may be gone.
                let _ = end.send(());
            }
        }
    }

    /// Ends all waits, and allows no more.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        self.count.store(0, Ordering::SeqCst);
        state.turns.clear();
        // Dropped without a message.
        state.jobs.clear();
    }

    /// Returns the jobs whose turn it is. They are asked for again after the others.
    fn next(&self) -> Vec<JobId> {
        let mut state = lock(&self.state);
        let asked = state.turns.len().min(JOBS_PER_LOOK);
        let mut jobs = Vec::with_capacity(asked);
        for _ in 0..asked {
            let Some((_, job)) = state.turns.pop_first() else { break };
            let turn = state.number();
            if let Some(waited_for) = state.jobs.get_mut(&job) {
                waited_for.turn = turn;
                state.turns.insert(turn, job);
                jobs.push(job);
            }
        }
        jobs
    }
}

impl Waiter {
    /// Returns once the job has ended, or the engine stops.
    pub(crate) async fn end(&mut self) -> WaitEnd {
        match (&mut self.ended).await {
            Ok(()) => WaitEnd::Ended,
            Err(_) => WaitEnd::Stopping,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = lock(&self.waiters.state);
        let Some(waited_for) = state.jobs.get_mut(&self.job) else { return };
        let before = waited_for.callers.len();
        waited_for.callers.retain(|(serial, _)| *serial != self.serial);
        let (after, is_last) = (waited_for.callers.len(), waited_for.callers.is_empty());
        self.waiters.count.fetch_sub(before - after, Ordering::SeqCst);
        if is_last {
            state.remove(self.job);
        }
    }
}

/// Asks the store which of the jobs have ended, for all waiters together.
pub(crate) async fn look(shared: Arc<Shared>, stop: CancelToken) {
    let waiters = &shared.reports.waiters;
    while !stop.is_cancelled() {
        let rest = async {
            if waiters.count() == 0 {
                waiters.first.notified().await;
            }
            shared.clock.sleep(LOOK).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = rest => {}
        }
        tick(&shared).await;
    }
}

async fn tick(shared: &Shared) {
    let jobs = shared.reports.waiters.next();
    if jobs.is_empty() {
        return;
    }
    match shared.store.ended(&jobs).await {
        Ok(ended) => shared.reports.waiters.ended(&ended),
        Err(error) => {
            tracing::debug!(%error, jobs = jobs.len(), "failed to read which jobs have ended: their callers continue to wait");
        }
    }
}
