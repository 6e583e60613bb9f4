//! Publishes job events, after the change is durable.

use crate::engine::Engine;
use crate::submit::IdTime;
use crate::waiters::Waiters;
use rewheel_core::{JobEvent, JobId, KindName, State, Timestamp};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Number of events to keep, for listeners that are slow or reconnect.
const KEPT_MAX: usize = 10_000;

/// Sequence numbers per millisecond. A restarted engine continues with larger ones.
const SEQ_PER_MILLI: u64 = 1_000;

/// A state change of a job by this engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStateChange {
    /// Increases from one event to the next, also over restarts.
    pub seq: u64,
    /// The job.
    pub job: JobId,
    /// Its kind.
    pub kind: KindName,
    /// The state before; `None` if the job is new, or the state was not read.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
    /// When it happened, by this machine's clock; for information only.
    pub at: Timestamp,
}

/// Receives job events. Delivery is best effort: a listener that is too slow, or reconnects too late, misses events and gets an
/// error.
///
/// ```
/// # use rewheel_engine::{Report, State};
/// # use rewheel_engine::Engine;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
///     .raw_handler("work", |_| async { Report::Done })
///     .start()
///     .await?;
/// let mut events = engine.events(None);
/// engine.submit_raw("work", Vec::new()).await?;
/// loop {
///     let event = events.next().await.expect("nothing was missed");
///     if event.to == State::Succeeded {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EventStream {
    log: Arc<Log>,
    /// The last event that was returned.
    after: u64,
}

/// Error: events were dropped before they were returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "events up to and including {up_to} were dropped before they were read: read the jobs to get their current state"
)]
pub struct EventsMissed {
    /// The last dropped event.
    pub up_to: u64,
}

/// The latest events of an engine.
#[derive(Debug)]
pub(crate) struct Log {
    /// Callers that wait for the end of jobs.
    pub(crate) waiters: Arc<Waiters>,
    /// Whether there ever was a listener: before that nothing is recorded.
    is_open: AtomicBool,
    kept: Mutex<Kept>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<JobStateChange>>,
    /// The number of the last event that is not kept, or never was.
    gone: u64,
    last: u64,
}

impl Log {
    pub(crate) fn new(waiters_max: usize) -> Arc<Log> {
        let waiters = Waiters::new(waiters_max);
        let (is_open, kept, news) = (AtomicBool::new(false), Mutex::default(), Notify::new());
        Arc::new(Log { waiters, is_open, kept, news })
    }

    /// Returns whether there may be listeners.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Records events, and ends the waits for jobs that ended. Records nothing if there never was a listener.
    pub(crate) fn tell<'k>(
        &self,
        events: impl IntoIterator<Item = (JobId, &'k KindName, Option<State>, State)>,
    ) {
        let events = events.into_iter().inspect(|(job, _, _, to)| self.waiters.tell(*job, *to));
        if !self.is_open() {
            return events.for_each(drop);
        }
        let at = IdTime::Machine.now();
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            for (job, kind, from, to) in events {
                kept.last = (kept.last + 1).max(first_seq(at));
                let seq = kept.last;
                let event = JobStateChange { seq, job, kind: kind.clone(), from, to, at };
                kept.events.push_back(Arc::new(event));
                if kept.events.len() > KEPT_MAX {
                    kept.gone = kept.events.pop_front().map_or(kept.gone, |event| event.seq);
                }
            }
        }
        self.news.notify_waiters();
    }

    pub(crate) fn tell_of(&self, events: &[JobEvent]) {
        self.tell(events.iter().map(|event| (event.job, &event.kind, Some(event.from), event.to)));
    }

    fn open(&self) -> u64 {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_open.swap(true, Ordering::Relaxed) {
            kept.last = first_seq(IdTime::Machine.now());
            kept.gone = kept.last;
        }
        kept.last
    }

    /// Returns the first event after `after`.
    fn behind(&self, after: u64) -> Result<Option<Arc<JobStateChange>>, EventsMissed> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if after < kept.gone {
            return Err(EventsMissed { up_to: kept.gone });
        }
        let place = kept.events.partition_point(|event| event.seq <= after);
        Ok(kept.events.get(place).cloned())
    }
}

fn first_seq(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or_default().saturating_mul(SEQ_PER_MILLI)
}

impl EventStream {
    /// Waits for the next event.
    ///
    /// Cancel safe: an event that was not returned is returned next time.
    ///
    /// # Errors
    /// Fails if events were missed. The next call continues after the missed events.
    pub async fn next(&mut self) -> Result<Arc<JobStateChange>, EventsMissed> {
        loop {
            // Before the check, so that an event in between wakes it.
            let news = self.log.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            match self.log.behind(self.after) {
                Ok(Some(event)) => {
                    self.after = event.seq;
                    return Ok(event);
                }
                Ok(None) => news.await,
                Err(missed) => {
                    self.after = missed.up_to;
                    return Err(missed);
                }
            }
        }
    }
}

impl Engine {
    /// Listens to this engine's job events from now on, or after an event that was received before. Other engines report their
    /// own events.
    pub fn events(&self, after: Option<u64>) -> EventStream {
        let log = Arc::clone(&self.shared().reports.events);
        let last = log.open();
        EventStream { after: after.unwrap_or(last).min(last), log }
    }
}

#[cfg(test)]
mod tests {
    use super::{EventStream, EventsMissed, KEPT_MAX, Log};
    use rewheel::Random;
    use rewheel_core::{JobId, KindName, State, Timestamp};
    use std::sync::Arc;

    fn tell(log: &Log, count: usize) {
        let kind = KindName::parse("work").unwrap();
        let job = JobId::new(Timestamp::from_millis(0), &Random::seeded(1));
        let one = (job, &kind, Some(State::Leased), State::Succeeded);
        log.tell(std::iter::repeat_n(one, count));
    }

    #[tokio::test]
    async fn what_happens_is_told_in_order_and_after_a_break() {
        let log = Log::new(10);
        tell(&log, 3);
        let mut listener = EventStream { after: log.open(), log: Arc::clone(&log) };
        tell(&log, 3);
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(listener.next().await.unwrap().seq);
        }
        assert!(seen.is_sorted() && seen[0] < seen[1] && seen[1] < seen[2]);
        let mut again = EventStream { after: seen[0], log: Arc::clone(&log) };
        assert_eq!(again.next().await.unwrap().seq, seen[1]);
    }

    #[tokio::test]
    async fn who_is_too_slow_is_told_what_was_missed() {
        let log = Log::new(10);
        let mut listener = EventStream { after: log.open(), log: Arc::clone(&log) };
        tell(&log, KEPT_MAX + 5);
        let Err(EventsMissed { up_to }) = listener.next().await else {
            panic!("nothing was missed")
        };
        let next = listener.next().await.unwrap();
        assert_eq!(next.seq, up_to + 1);
    }
}
