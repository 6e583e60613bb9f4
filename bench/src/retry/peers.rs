//! The retry implementations of other libraries.

use std::future::{Ready, ready};
use std::hint::black_box;
use std::io;

use backon::{BlockingRetryable, ExponentialBuilder, Retryable};
use tokio_retry::strategy::{ExponentialBackoff, jitter};
use tower::retry::{Policy, Retry};
use tower::{Service, ServiceExt, service_fn};

use super::{answer, answer_at_once, awaited, runtime};
use crate::harness::Subject;

pub(super) fn tower() -> Subject {
    Subject::of_loop("tower::retry", |indexes| {
        let mut service = Retry::new(ThreeTimes(3), service_fn(|_: u64| answer()));
        runtime().block_on(async {
            for index in indexes {
                let result = match service.ready().await {
                    Ok(service) => service.call(index).await,
                    Err(error) => Err(error),
                };
                let _ = black_box(result);
            }
        });
    })
}

/// Retries without a delay: the cost of a delay does not matter if the first attempt succeeds.
#[derive(Clone, Debug)]
struct ThreeTimes(u32);

impl Policy<u64, u64, io::Error> for ThreeTimes {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut io::Result<u64>) -> Option<Ready<()>> {
        if result.is_ok() {
            return None;
        }
        self.0 = self.0.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &u64) -> Option<u64> {
        Some(*request)
    }
}

pub(super) fn tokio_retry() -> Subject {
    let strategy = ExponentialBackoff::from_millis(10);
    awaited!("tokio-retry", tokio_retry::Retry::start(strategy.clone().map(jitter).take(3), answer))
}

pub(super) fn backon() -> Subject {
    let builder = ExponentialBuilder::default().with_jitter();
    awaited!("backon", Retryable::retry(answer, builder))
}

pub(super) fn backon_blocking() -> Subject {
    let builder = ExponentialBuilder::default().with_jitter();
    Subject::new("backon", builder, |builder, _| {
        BlockingRetryable::retry(answer_at_once, *builder).call()
    })
}
