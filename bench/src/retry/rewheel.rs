//! Rewheel's retry, with and without options.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rewheel::{
    Attempt, CancelToken, Event, Observer, Retry, RetryBudget, Retryable, Statistics, millis,
    seconds,
};

use super::{PEERS, answer, answer_at_once, awaited, runtime};
use crate::correctness::allocations;
use crate::goal::Limit::Times;
use crate::harness::Subject;

const PLAIN: Retry = Retry::exponential(millis(100)).attempts_max(4);

pub(super) fn plain() -> Subject {
    awaited!("rewheel", answer.retry(PLAIN)).versus(PEERS, &[(1, Times(1.0))]).checked(
        allocations::none(|| {
            let _ = black_box(runtime().block_on(answer.retry(PLAIN).into_future()));
        }),
    )
}

pub(super) fn options() -> Vec<Subject> {
    const DEADLINE: Retry = PLAIN.deadline(seconds(10));
    const ATTEMPT_TIMEOUT: Retry = PLAIN.attempt_timeout(seconds(1));
    let budget = RetryBudget::ratio(0.2).build();
    let (counted, statistics) = (budget.clone(), Statistics::new());
    let observer: Arc<dyn Observer> = Arc::new(Ignored(AtomicU64::new(0)));
    let token = CancelToken::new();
    let subjects = vec![
        awaited!("rewheel + deadline", answer.retry(DEADLINE)),
        awaited!("rewheel + attempt_timeout", answer.retry(ATTEMPT_TIMEOUT)),
        awaited!("rewheel + budget", answer.retry(PLAIN).retry_budget(&budget)),
        awaited!("rewheel + statistics", answer.retry(PLAIN).statistics(&statistics)),
        awaited!("rewheel + observer", answer.retry(PLAIN).observer("op", observer.clone())),
        awaited!("rewheel + cancel", answer.retry(PLAIN).cancel(&token)),
        awaited!("rewheel + when", answer.retry(PLAIN).when(|_| true)),
        awaited!(
            "rewheel + hooks",
            answer.retry(PLAIN).on_retry(|_| ()).on_success(|_, _| ()).on_give_up(|_| ())
        ),
        awaited!("rewheel EXTERNAL_API", answer.retry(Retry::EXTERNAL_API)),
        awaited!("rewheel EXTERNAL_API + budget", {
            answer.retry(Retry::EXTERNAL_API).retry_budget(&counted)
        }),
        failing_twice(),
    ];
    let plain = awaited!("rewheel plain", answer.retry(PLAIN));
    let compared = subjects.into_iter().map(|subject| subject.versus(&["rewheel plain"], &[]));
    std::iter::once(plain).chain(compared).collect()
}

/// Really waits, but only as long as the timer takes.
fn failing_twice() -> Subject {
    const AT_ONCE: Retry = Retry::fixed(millis(0)).attempts_max(3);
    async fn third_time(attempt: Attempt) -> io::Result<u64> {
        if attempt.is_last() { Ok(black_box(42)) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
    awaited!("rewheel, third attempt succeeds", third_time.retry(AT_ONCE)).checked(
        allocations::reported(|| {
            let _ = black_box(runtime().block_on(third_time.retry(AT_ONCE).into_future()));
        }),
    )
}

pub(super) fn blocking() -> Subject {
    Subject::new("rewheel", (), |(), _| answer_at_once.retry(PLAIN).call())
        .versus(&["backon"], &[])
        .checked(allocations::none(|| {
            let _ = black_box(answer_at_once.retry(PLAIN).call());
        }))
}

/// The cheapest observer that does something.
#[derive(Debug)]
struct Ignored(AtomicU64);

impl Observer for Ignored {
    fn observe(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
