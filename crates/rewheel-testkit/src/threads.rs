//! Runs work on several threads at once, with any runtime.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Timeout for something that should happen at once. Only a failing case waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs work on several threads, all started together. Returns the results in order.
pub(crate) async fn at_once<T, F>(count: usize, mut work: impl FnMut(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    struct Finish<T> {
        answers: Vec<Option<thread::Result<T>>>,
        waker: Option<Waker>,
    }
    let answers = (0..count).map(|_| None).collect();
    let finish = Arc::new(Mutex::new(Finish { answers, waker: None }));
    let start = Arc::new(Barrier::new(count));
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    let runtime = tokio::runtime::Handle::try_current().ok();
    for place in 0..count {
        #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
        let runtime = runtime.clone();
        let (start, finish, work) = (Arc::clone(&start), Arc::clone(&finish), work(place));
        thread::spawn(move || {
            // A store with connections opens new ones on its own runtime.
            #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
            let _inside = runtime.as_ref().map(tokio::runtime::Handle::enter);
            start.wait();
            let answer = catch_unwind(AssertUnwindSafe(|| block_on(work)));
            let mut finish = finish.lock().unwrap();
            finish.answers[place] = Some(answer);
            if let Some(waker) = finish.waker.take() {
                waker.wake();
            }
        });
    }
    // Awaited, not joined: the store may need the runtime of this thread.
    let answers: Vec<thread::Result<T>> = poll_fn(|context| {
        let mut finish = finish.lock().unwrap();
        if finish.answers.iter().all(Option::is_some) {
            return Poll::Ready(finish.answers.drain(..).flatten().collect());
        }
        finish.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
    answers.into_iter().map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

/// Awaits something that should happen at once, with a timeout, so that a case fails instead of
/// hanging.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    within(PATIENCE, what, future).await
}

async fn within<T>(patience: Duration, what: &str, future: impl Future<Output = T>) -> T {
    #[derive(Default)]
    struct Alarm {
        rang: bool,
        waker: Option<Waker>,
    }
    let alarm = Arc::new(Mutex::new(Alarm::default()));
    let (happened, until_it_happens) = mpsc::channel::<()>();
    let rings = Arc::clone(&alarm);
    thread::spawn(move || {
        if until_it_happens.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            let mut alarm = rings.lock().unwrap();
            alarm.rang = true;
            if let Some(waker) = alarm.waker.take() {
                waker.wake();
            }
        }
    });
    let mut future = pin!(future);
    let answer = poll_fn(|context| {
        if let Poll::Ready(answer) = future.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        let mut alarm = alarm.lock().unwrap();
        assert!(!alarm.rang, "{what} did not happen within {patience:?}");
        alarm.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
    drop(happened);
    answer
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Unpark>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::{at_once, block_on, in_time, within};
    use std::future::{pending, ready};
    use std::time::Duration;

    #[test]
    fn answers_come_in_order() {
        let answers = block_on(at_once(8, |place| async move { place * 2 }));
        assert_eq!(answers, [0, 2, 4, 6, 8, 10, 12, 14]);
    }

    #[test]
    #[should_panic(expected = "one of them fails")]
    fn a_panic_of_one_is_a_panic_of_all() {
        block_on(at_once(3, |place| async move { assert_ne!(place, 1, "one of them fails") }));
    }

    #[test]
    fn what_happens_at_once_is_in_time() {
        assert_eq!(block_on(in_time("it", ready(7))), 7);
    }

    #[test]
    #[should_panic(expected = "it did not happen")]
    fn what_never_happens_is_not_in_time() {
        block_on(within(Duration::ZERO, "it", pending::<()>()));
    }
}
