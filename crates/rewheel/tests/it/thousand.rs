//! A thousand callers at the same time through a cache, a hedge, a breaker and a bulkhead.

use rewheel::{
    BreakerState, Bulkhead, CircuitBreaker, Clock, Freshness, Hedge, LastGood, ManualClock,
    Pipeline, Random, RetryBudget, SafeToRepeat, millis, seconds,
};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const CALLERS: u32 = 1_000;
const KEYS: u32 = 10;
const SLOTS: usize = 64;

/// The called service. It counts the calls of each key.
#[derive(Debug, Default)]
struct Service {
    calls: AtomicU32,
    running: [AtomicU32; KEYS as usize],
    running_most: AtomicU32,
}

/// Counts a call as running until it is dropped.
struct Running(Arc<Service>, usize);

impl Running {
    fn new(service: &Arc<Service>, key: usize) -> Running {
        service.calls.fetch_add(1, Ordering::Relaxed);
        let running = service.running[key].fetch_add(1, Ordering::SeqCst) + 1;
        service.running_most.fetch_max(running, Ordering::SeqCst);
        Running(Arc::clone(service), key)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running[self.1].fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service {
    fn running(&self) -> u32 {
        self.running.iter().map(|running| running.load(Ordering::SeqCst)).sum()
    }
}

/// Everything between the callers and the service.
#[derive(Clone, Debug)]
struct Client {
    service: Arc<Service>,
    bulkhead: Bulkhead,
    breaker: CircuitBreaker,
    fetch: Pipeline,
    hedge: Hedge,
    cache: LastGood<u32, u32, io::Error>,
    clock: Clock,
}

impl Client {
    fn new(clock: &Clock, hedge_after: std::time::Duration) -> Client {
        let bulkhead = Bulkhead::concurrency(SLOTS).clock(clock).build();
        let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).probes_max(SLOTS as u32);
        let breaker = breaker.clock(clock).build();
        let fetch = Pipeline::new().clock(clock).circuit_breaker(&breaker).bulkhead(&bulkhead);
        let unlimited = RetryBudget::ratio(1.0).burst(1_000_000).build();
        let hedge = Hedge::after(hedge_after).clock(clock).retry_budget(&unlimited).build();
        let cache = LastGood::ttl(seconds(60)).clock(clock).build();
        let service = Arc::default();
        Client { service, bulkhead, breaker, fetch, hedge, cache, clock: clock.clone() }
    }

    /// Gets a value; `work` is what the service does.
    async fn get<W>(&self, key: u32, work: impl Fn() -> W + Clone) -> io::Result<Freshness>
    where
        W: Future<Output = io::Result<u32>>,
    {
        let call = self.fetch.run(|_| {
            let running = Running::new(&self.service, key as usize);
            let work = work();
            async {
                let _running = running;
                work.await
            }
        });
        let call = call.hedge(&self.hedge, SafeToRepeat);
        let good = self.cache.get_or_run(&key, call).await.map_err(io::Error::other)?;
        Ok(good.freshness())
    }

    #[track_caller]
    fn assert_nothing_is_held(&self) {
        assert_eq!(self.service.running(), 0, "calls still run");
        assert_eq!(self.cache.fetches(), 0, "fetches were left behind");
        assert_eq!((self.bulkhead.free(), self.bulkhead.waiting()), (SLOTS, 0), "slots are lost");
        assert_eq!(self.breaker.snapshot().probes, 0, "permits are lost");
    }
}

#[tokio::test]
async fn a_thousand_callers_make_one_call_for_each_key_and_its_hedge() {
    let clock = ManualClock::new();
    let client = Client::new(&(&clock).into(), millis(10));
    client.assert_nothing_is_held();
    // Each attempt of the service takes 50 ms, so each call is hedged.
    let calls = (0..CALLERS).map(|caller| {
        let client = &client;
        client.get(caller % KEYS, || async {
            client.clock.sleep(millis(50)).await;
            Ok(1)
        })
    });
    let answers = clock.drive(futures_util::future::join_all(calls)).await;
    let fetched = answers.iter().filter(|answer| matches!(answer, Ok(Freshness::Fetched))).count();
    assert_eq!(fetched, KEYS as usize);
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(client.service.calls.load(Ordering::Relaxed), 2 * KEYS);
    assert_eq!(client.service.running_most.load(Ordering::Relaxed), 2);
    client.assert_nothing_is_held();
}

#[tokio::test]
async fn callers_that_are_cancelled_at_any_time_leave_nothing_behind() {
    let random = Random::seeded(11);
    let clock = ManualClock::new();
    let client = Client::new(&(&clock).into(), millis(10));
    let mut callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let client = client.clone();
            Box::pin(async move {
                let clock = client.clock.clone();
                let work = || {
                    let clock = clock.clone();
                    async move {
                        clock.sleep(millis(50)).await;
                        Ok(1)
                    }
                };
                client.get(caller % KEYS, work).await
            })
        })
        .collect();
    let mut ended = 0;
    // All of them wait. In each round a tenth is dropped, then time goes on: leaders, waiters, and both attempts of a hedge.
    while !callers.is_empty() {
        let mut still = Vec::new();
        for mut caller in callers {
            if random.next().is_multiple_of(10) {
                continue;
            }
            match futures_util::poll!(caller.as_mut()) {
                std::task::Poll::Ready(answer) => ended += u32::from(answer.is_ok()),
                std::task::Poll::Pending => still.push(caller),
            }
        }
        callers = still;
        clock.advance(millis(3));
        assert!(client.service.running_most.load(Ordering::Relaxed) <= 2, "two fetches of a key");
    }
    assert!(ended > 0);
    client.assert_nothing_is_held();
}

#[tokio::test]
async fn probes_of_a_half_open_breaker_are_given_back() {
    let clock = ManualClock::new();
    let client = Client::new(&(&clock).into(), millis(10));
    client.breaker.force_open();
    assert!(client.get(1, || async { Ok(1) }).await.is_err());
    clock.advance(seconds(1));
    let mut callers: Vec<_> = (0..CALLERS)
        .map(|caller| Box::pin(client.get(caller % KEYS, std::future::pending)))
        .collect();
    for caller in &mut callers {
        assert!(futures_util::poll!(caller.as_mut()).is_pending());
    }
    clock.advance(millis(10));
    for caller in &mut callers {
        assert!(futures_util::poll!(caller.as_mut()).is_pending());
    }
    assert_eq!(client.breaker.snapshot().probes, 2 * KEYS);
    assert_eq!(client.bulkhead.free(), SLOTS - 2 * KEYS as usize);
    drop(callers);
    client.assert_nothing_is_held();
    assert_eq!(client.breaker.state(), BreakerState::HalfOpen);
}

/// Threads, failures, and callers that are aborted wherever they are.
#[test]
fn on_many_threads_nothing_is_lost() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build().unwrap();
    let client = Client::new(&Clock::system(), std::time::Duration::from_micros(1));
    for round in 0..20 {
        let tasks: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let client = client.clone();
                runtime.spawn(async move {
                    let work = || async move {
                        for _ in 0..caller % 7 {
                            tokio::task::yield_now().await;
                        }
                        // So that every state of the breaker occurs.
                        if caller % 50 == round { Err(ErrorKind::TimedOut.into()) } else { Ok(1) }
                    };
                    let _ = client.get(caller % KEYS, work).await;
                })
            })
            .collect();
        for task in tasks.iter().step_by(3) {
            task.abort();
        }
        for task in tasks {
            let ended = runtime.block_on(task);
            assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
        }
        client.assert_nothing_is_held();
        (0..KEYS).for_each(|key| client.cache.invalidate(&key));
        client.breaker.reset();
    }
    assert!(client.service.running_most.load(Ordering::Relaxed) <= 2, "two fetches of a key");
}
