//! Compares tower layers around a service that answers at once.

use std::future::{Ready, ready};
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll};
use std::time::Duration;

use rewheel::{Bulkhead, CircuitBreaker, Pipeline, RateLimiter};
use tower::limit::{ConcurrencyLimitLayer, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};
use tower_resilience_bulkhead::BulkheadLayer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_ratelimiter::RateLimiterLayer;

use crate::correctness::{Check, allocations};
use crate::goal::Limit::Times;
use crate::harness::{Comparison, Group, Pace, Subject};
use crate::retry::runtime;

const TOWER: &str = "tower::limit";
const RESILIENCE: &str = "tower-resilience";
const PER_SECOND: u32 = 1_000_000_000;

pub fn compare(pace: &Pace) -> Vec<Group> {
    [bulkhead(), rate_limit(), breaker()].map(|comparison| comparison.measure(pace)).into()
}

fn bulkhead() -> Comparison {
    let bulkhead = Bulkhead::concurrency(100).build();
    let peer = BulkheadLayer::builder().max_concurrent_calls(100).build();
    Comparison {
        name: "tower layer, bulkhead",
        threads: &[1],
        subjects: vec![
            ours(Pipeline::new().bulkhead(&bulkhead)),
            peer_of(TOWER, ConcurrencyLimitLayer::new(100)),
            peer_of(RESILIENCE, peer.expect("a number above zero")),
        ],
    }
}

fn rate_limit() -> Comparison {
    let limiter = RateLimiter::per_second(PER_SECOND).build();
    let peer = RateLimiterLayer::per_second(PER_SECOND as usize).build();
    Comparison {
        name: "tower layer, rate limit",
        threads: &[1],
        subjects: vec![
            ours(Pipeline::new().rate_limiter(&limiter)),
            peer_of(TOWER, RateLimitLayer::new(u64::from(PER_SECOND), Duration::from_secs(1))),
            peer_of(RESILIENCE, peer.expect("a number above zero")),
        ],
    }
}

fn breaker() -> Comparison {
    let breaker = CircuitBreaker::count_window(100).build();
    let peer = CircuitBreakerLayer::builder().sliding_window_size(100).build();
    Comparison {
        name: "tower layer, circuit breaker",
        threads: &[1],
        subjects: vec![
            ours(Pipeline::new().circuit_breaker(&breaker)),
            peer_of(RESILIENCE, peer.expect("a window above zero")),
        ],
    }
}

fn ours(pipeline: Pipeline) -> Subject {
    let check = counted(&pipeline.layer(), |call| allocations::none(call));
    subject("rewheel", pipeline.layer(), check).versus(&[TOWER, RESILIENCE], &[(1, Times(1.0))])
}

fn peer_of<L>(name: &'static str, layer: L) -> Subject
where
    L: Layer<Echo, Service: Service<u64>> + Send + Sync + 'static,
{
    let check = counted(&layer, |call| allocations::reported(call));
    subject(name, layer, check)
}

fn counted<L>(layer: &L, count: fn(&mut dyn FnMut()) -> Check) -> Check
where
    L: Layer<Echo, Service: Service<u64>>,
{
    let mut service = layer.layer(Echo);
    count(&mut || runtime().block_on(call(&mut service, 7)))
}

fn subject<L>(name: &'static str, layer: L, check: Check) -> Subject
where
    L: Layer<Echo, Service: Service<u64>> + Send + Sync + 'static,
{
    let work = move |indexes: Range<u64>| {
        let mut service = layer.layer(Echo);
        runtime().block_on(async {
            for index in indexes {
                call(&mut service, black_box(index)).await;
            }
        });
    };
    Subject::of_loop(name, work).checked(check)
}

async fn call<S: Service<u64>>(service: &mut S, request: u64) {
    let Ok(ready) = service.ready().await else { panic!("the service is always ready") };
    let answer = ready.call(request).await;
    assert!(black_box(answer).is_ok(), "no limit is reached");
}

/// A service that answers at once.
#[derive(Clone, Debug)]
struct Echo;

impl Service<u64> for Echo {
    type Response = u64;
    type Error = io::Error;
    type Future = Ready<io::Result<u64>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> Self::Future {
        ready(Ok(request))
    }
}
