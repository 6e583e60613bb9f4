//! The queue of verbs for a thread that owns a connection.

use super::error::VerbError;
use super::transaction::Transaction;
use rewheel_core::store::{StoreError, StoreResult};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum length of the queue. Further callers wait until there is room.
const WAITING_MAX: usize = 1_024;

/// The priority of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Served in order.
    Work,
    /// Served first: a holder's lease or work depends on it.
    Life,
}

/// A verb in the queue.
pub(super) trait Request: Send {
    /// Runs the verb inside a transaction. It runs again if the transaction is rolled back because
    /// of another verb.
    fn run(&mut self, tx: &mut Transaction<'_, '_>) -> Result<(), VerbError>;

    /// Sends the result, once the transaction is durable or has failed.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);

    /// Returns the approximate number of rows it touches.
    fn weight(&self) -> usize;
}

struct Ask<F, T> {
    work: F,
    weight: usize,
    result: Option<T>,
    reply: oneshot::Sender<StoreResult<T>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl<F, T> Request for Ask<F, T>
where
    F: FnMut(&mut Transaction<'_, '_>) -> Result<T, VerbError> + Send,
    T: Send,
{
    fn run(&mut self, tx: &mut Transaction<'_, '_>) -> Result<(), VerbError> {
        // A bug in one verb must not end the thread that all others depend on.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(tx))).unwrap_or_else(|_| {
            Err(VerbError::Said(StoreError::Broken {
                what: "bug in the store: the call panicked and was rolled back".to_owned(),
                source: None,
            }))
        })?;
        self.result = Some(result);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let result = self.result;
        let answer = outcome.and_then(|()| result.ok_or(StoreError::Closed));
        // The receiver may be gone: for that caller it is the same as a lost response.
        let _ = self.reply.send(answer);
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

#[derive(Clone)]
pub(super) struct Queue(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Waiting {
    life: VecDeque<Box<dyn Request>>,
    work: VecDeque<Box<dyn Request>>,
    closed: bool,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue(Arc::new(Shared {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            places: Arc::new(Semaphore::new(WAITING_MAX)),
        }))
    }

    /// Queues a verb and waits for its result.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        urgency: Urgency,
        weight: usize,
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, VerbError> + Send + 'static,
    ) -> StoreResult<T> {
        let place = match urgency {
            Urgency::Life => None,
            Urgency::Work => {
                let places = Arc::clone(&self.0.places);
                Some(places.acquire_owned().await.map_err(|_| StoreError::Closed)?)
            }
        };
        let (reply, answer) = oneshot::channel();
        let ask = Ask { work, weight, result: None, reply, _place: place };
        self.push(urgency, Box::new(ask))?;
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::Ambiguous("the database thread has ended: restart the process".into()))
        })
    }

    fn push(&self, urgency: Urgency, request: Box<dyn Request>) -> StoreResult<()> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(StoreError::Closed);
        }
        match urgency {
            Urgency::Life => waiting.life.push_back(request),
            Urgency::Work => waiting.work.push_back(request),
        }
        drop(waiting);
        self.0.arrived.notify_one();
        Ok(())
    }

    /// Takes waiting verbs up to a total weight, and blocks until there is one. Returns `None` once
    /// the queue is closed and empty.
    pub(super) fn take(&self, weight_max: usize) -> Option<Vec<Box<dyn Request>>> {
        let mut waiting = self.lock();
        while waiting.life.is_empty() && waiting.work.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting = self.0.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let mut group: Vec<_> = waiting.life.drain(..).collect();
        let mut weight: usize = 0;
        while let Some(next) = waiting.work.front() {
            let heavier = weight.saturating_add(next.weight());
            // Take at least one ordinary verb, whatever its weight. In a large fleet urgent verbs
            // never run out, and it would wait behind them for ever, and all others behind it.
            if heavier > weight_max && weight > 0 {
                break;
            }
            weight = heavier;
            group.extend(waiting.work.pop_front());
        }
        Some(group)
    }

    /// Accepts no more verbs. Waiting ones are still served.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.0.places.close();
        self.0.arrived.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        // Nothing that can panic runs under this lock.
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, Transaction, Urgency, VerbError};
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    fn nothing(_: &mut Transaction<'_, '_>) -> Result<(), VerbError> {
        Ok(())
    }

    /// Queues a verb whose result is not awaited.
    fn push(queue: &Queue, urgency: Urgency, weight: usize) {
        let ask: Pin<&mut _> = pin!(queue.ask(urgency, weight, nothing));
        assert!(ask.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    #[test]
    fn the_heaviest_is_served_beside_those_whose_life_depends_on_it() {
        let queue = Queue::new();
        for weight in [usize::MAX, 1, usize::MAX] {
            push(&queue, Urgency::Work, weight);
        }
        for served in [2, 2, 2] {
            push(&queue, Urgency::Life, 1);
            assert_eq!(queue.take(10).map(|group| group.len()), Some(served));
        }
    }

    #[test]
    fn those_that_are_light_enough_are_served_together() {
        let queue = Queue::new();
        for weight in [0, 4, 4, 4, 1] {
            push(&queue, Urgency::Work, weight);
        }
        for served in [3, 2] {
            assert_eq!(queue.take(10).map(|group| group.len()), Some(served));
        }
    }
}
