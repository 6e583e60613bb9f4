//! Runs random pipelines around random calls and checks that everything is released.

use super::*;
use crate::{AdaptiveLimit, CallContext, ClientThrottle, Jitter, Random, Retries, RetryBudget};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A random pipeline with its shared state.
struct Stack {
    pipeline: Pipeline,
    bulkheads: Vec<(Bulkhead, usize)>,
    breakers: Vec<CircuitBreaker>,
    limiters: Vec<RateLimiter>,
    adaptive: Vec<(AdaptiveLimit, usize)>,
}

/// Random choices for a case.
struct Dice<'a>(&'a Random);

impl Dice<'_> {
    fn below(&self, count: u64) -> u64 {
        self.0.between(0, count - 1)
    }

    fn time(&self) -> Duration {
        millis(1 + self.below(5_000))
    }

    fn one_in(&self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn small(&self, max: u32) -> u32 {
        1 + u32::try_from(self.below(u64::from(max))).unwrap()
    }

    fn retry(&self) -> Retry {
        let mut retry = if self.one_in(2) {
            Retry::exponential(self.time()).jitter(Jitter::EQUAL)
        } else {
            Retry::fixed(self.time())
        };
        retry = retry.attempts_max(self.small(4)).retry_after_max(self.time());
        if self.one_in(3) {
            retry = retry.deadline(self.time() * 4);
        }
        if self.one_in(3) {
            retry = retry.attempt_timeout(self.time());
        }
        if self.one_in(4) { retry.nested(crate::Nested::Retry) } else { retry }
    }

    fn stack(&self, clock: &ManualClock) -> Stack {
        let mut pipeline = Pipeline::new().clock(clock).random(self.0);
        if self.one_in(3) {
            let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(self.small(5));
            pipeline = pipeline.retry_budget(&budget.clock(clock).build());
        }
        let mut stack = Stack {
            pipeline,
            bulkheads: Vec::new(),
            breakers: Vec::new(),
            limiters: Vec::new(),
            adaptive: Vec::new(),
        };
        for _ in 0..self.below(Pipeline::STEPS_MAX as u64 + 1) {
            let pipeline = stack.pipeline.clone();
            stack.pipeline = match self.below(8) {
                0 => pipeline.timeout(self.time() * 2),
                1 => pipeline.attempt_timeout(self.time()),
                2 => pipeline.retry(self.retry()),
                3 => pipeline.circuit_breaker(&self.breaker(&mut stack, clock)),
                4 => pipeline.rate_limiter(&self.limiter(&mut stack, clock)),
                5 => pipeline.adaptive_limit(&self.adaptive_limit(&mut stack, clock)),
                6 => pipeline.client_throttle(&self.throttle(clock)),
                _ => pipeline.bulkhead(&self.bulkhead(&mut stack, clock)),
            };
        }
        stack
    }

    fn breaker(&self, stack: &mut Stack, clock: &ManualClock) -> CircuitBreaker {
        let breaker = CircuitBreaker::consecutive(self.small(3))
            .open_for(self.time())
            .probes_max(self.small(2))
            .successes_to_close(self.small(2))
            .probe_timeout(self.time())
            .clock(clock)
            .build();
        if self.one_in(3) {
            breaker.force_open();
        }
        stack.breakers.push(breaker.clone());
        breaker
    }

    fn limiter(&self, stack: &mut Stack, clock: &ManualClock) -> RateLimiter {
        let builder = if self.one_in(2) {
            RateLimiter::per(self.small(3), self.time())
        } else {
            RateLimiter::sliding_window(self.small(3), self.time())
        };
        let builder = if self.one_in(2) { builder.wait_max(self.time()) } else { builder };
        let limiter = builder.queue_max(3).clock(clock).build();
        stack.limiters.push(limiter.clone());
        limiter
    }

    fn adaptive_limit(&self, stack: &mut Stack, clock: &ManualClock) -> AdaptiveLimit {
        let ceiling = usize::try_from(self.small(2)).unwrap();
        let builder = AdaptiveLimit::between(1, ceiling)
            .initial(ceiling)
            .queue_max(usize::try_from(self.below(3)).unwrap());
        let builder = if self.one_in(2) { builder.wait_max(self.time()) } else { builder };
        let limit = builder.clock(clock).random(self.0).build();
        stack.adaptive.push((limit.clone(), ceiling));
        limit
    }

    fn throttle(&self, clock: &ManualClock) -> ClientThrottle {
        let throttle = ClientThrottle::accepts_times(1.0).floor_per_second(self.small(2) - 1);
        throttle.window(seconds(1) + self.time()).clock(clock).random(self.0).build()
    }

    fn bulkhead(&self, stack: &mut Stack, clock: &ManualClock) -> Bulkhead {
        let places = usize::try_from(self.small(2)).unwrap();
        let builder =
            Bulkhead::concurrency(places).queue_max(usize::try_from(self.below(3)).unwrap());
        let builder = if self.one_in(2) { builder.wait_max(self.time()) } else { builder };
        let bulkhead = builder.clock(clock).build();
        stack.bulkheads.push((bulkhead.clone(), places));
        bulkhead
    }
}

/// Counts the calls in progress.
struct Live<'a>(&'a Cell<usize>);

impl<'a> Live<'a> {
    fn begin(count: &'a Cell<usize>) -> Live<'a> {
        count.set(count.get() + 1);
        Live(count)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Whether a task was woken. An executor polls no other.
#[derive(Debug)]
struct Woken(AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A run in progress: its start, its number of calls, and after how many polls it is dropped.
struct Running<'a> {
    woken: Arc<Woken>,
    call: Pin<Box<dyn Future<Output = Result> + 'a>>,
    began: Duration,
    calls: &'a Cell<u64>,
    polls_left: u64,
}

fn start<'a>(
    stack: &'a Stack,
    clock: &'a ManualClock,
    dice: &'a Dice<'a>,
    calls: &'a Cell<u64>,
    live: &'a Cell<usize>,
) -> Running<'a> {
    let places = stack.bulkheads.iter().map(|(_, places)| *places);
    let ceilings = stack.adaptive.iter().map(|(_, ceiling)| *ceiling);
    let places = places.chain(ceilings).min().unwrap_or(usize::MAX);
    let run = stack
        .pipeline
        .run(move |_| {
            calls.set(calls.get() + 1);
            async move {
                let _live = Live::begin(live);
                assert!(live.get() <= places, "more calls at once than there are places");
                if dice.one_in(2) {
                    let takes = if dice.one_in(4) { HOUR } else { dice.time() };
                    Clock::from(clock).sleep(takes).await;
                }
                if dice.one_in(20) {
                    std::future::pending::<()>().await;
                }
                match dice.below(40) {
                    // Without the message of a panic.
                    0 => resume_unwind(Box::new("on purpose")),
                    1..=8 => Ok(1),
                    9..=12 => Ok(BAD),
                    13..=20 => Err(Failure::Gone),
                    _ => Err(Failure::Busy),
                }
            }
        })
        .judge(|result: &Result<u32, Failure>| match result {
            Ok(BAD) => Class::retry(Category::Transient),
            Ok(_) => Class::DONE,
            Err(failure) => failure.classify(),
        })
        .into_future();
    // As inside an attempt of a retry, here or in the calling service.
    let call: Pin<Box<dyn Future<Output = Result> + 'a>> = if dice.one_in(4) {
        Box::pin(CallContext::new(1, Retries::Caller).scope(run))
    } else {
        Box::pin(run)
    };
    let polls_left = if dice.one_in(3) { dice.below(8) } else { 400 };
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    Running { woken, call, began: clock.elapsed(), calls, polls_left }
}

/// A value that is judged a failure.
const BAD: u32 = 0;

impl Running<'_> {
    /// Polls it as an executor does; `None` if the operation panicked.
    fn poll(&mut self) -> Option<Poll<Result>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let call = &mut self.call;
        catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut Context::from_waker(&waker)))).ok()
    }
}

fn run_case(seed: u64, ends: &mut HashSet<Option<GiveUpReason>>) {
    let (clock, random, live) = (ManualClock::new(), Random::seeded(seed), Cell::new(0));
    let dice = Dice(&random);
    clock.advance(dice.time());
    let stack = dice.stack(&clock);
    let explanation = stack.pipeline.explain();
    let counts: Vec<_> = (0..dice.small(4)).map(|_| Cell::new(0)).collect();
    let mut running: Vec<_> =
        counts.iter().map(|calls| start(&stack, &clock, &dice, calls, &live)).collect();
    let check = |run: &Running<'_>| {
        let (elapsed, calls) = (clock.elapsed() - run.began, run.calls.get());
        assert!(
            calls <= explanation.amplification_max,
            "seed {seed}: {calls} calls\n{explanation}"
        );
        let longest = explanation.time_max.unwrap_or(Duration::MAX);
        assert!(elapsed <= longest, "seed {seed}: took {elapsed:?}\n{explanation}");
    };
    while !running.is_empty() {
        let is_woken = |run: &Running<'_>| run.woken.0.load(Ordering::Relaxed);
        while running.iter().any(is_woken) {
            running.retain_mut(|run| {
                check(run);
                if run.polls_left == 0 {
                    return false;
                }
                if !run.woken.0.swap(false, Ordering::Relaxed) {
                    return true;
                }
                run.polls_left -= 1;
                let result = match run.poll() {
                    Some(Poll::Pending) => return true,
                    Some(Poll::Ready(result)) => result,
                    None => return false,
                };
                check(run);
                let (why, attempts) = match result {
                    Ok(_) => (None, run.calls.get()),
                    Err(error) => (Some(error.reason()), u64::from(error.attempts())),
                };
                assert_eq!(attempts, run.calls.get(), "seed {seed}");
                ends.insert(why);
                false
            });
        }
        if !clock.advance_to_next() {
            break;
        }
    }
    // Nothing will wake these: they wait for a call that never ends.
    for run in &mut running {
        let polled = run.poll();
        assert!(
            matches!(polled, Some(Poll::Pending)),
            "seed {seed}: a wake-up was lost\n{explanation}"
        );
    }
    drop(running);
    assert_eq!(live.get(), 0, "seed {seed}");
    assert_idle(&stack, &clock, seed);
}

fn assert_idle(stack: &Stack, clock: &ManualClock, seed: u64) {
    for (bulkhead, places) in &stack.bulkheads {
        let seen = (bulkhead.free(), bulkhead.waiting());
        assert_eq!(seen, (*places, 0), "seed {seed}: {}", stack.pipeline.explain());
    }
    for (limit, _) in &stack.adaptive {
        let seen = (limit.in_use(), limit.waiting());
        assert_eq!(seen, (0, 0), "seed {seed}: {}", stack.pipeline.explain());
    }
    for breaker in &stack.breakers {
        let probes = breaker.snapshot().probes;
        assert_eq!(probes, 0, "seed {seed}: a probe is out\n{}", stack.pipeline.explain());
    }
    clock.advance(HOUR);
    for limiter in &stack.limiters {
        let free = limiter.check();
        assert!(free.is_ok(), "seed {seed}: {free:?}, a call still waits");
    }
    assert!(!clock.advance_to_next(), "seed {seed}: a timer was left behind");
}

#[test]
fn nothing_is_left_behind_by_any_stack() {
    let mut ends = HashSet::new();
    for seed in 0..3_000 {
        run_case(seed, &mut ends);
    }
    // Success, and every reason to give up that a pipeline has by itself, so that the cases cover
    // all of them.
    for why in [
        None,
        Some(GiveUpReason::Stopped),
        Some(GiveUpReason::AttemptsExhausted),
        Some(GiveUpReason::Deadline),
        Some(GiveUpReason::Timeout),
        Some(GiveUpReason::CircuitOpen),
        Some(GiveUpReason::RateLimited),
        Some(GiveUpReason::BulkheadFull),
        Some(GiveUpReason::ConcurrencyLimited),
        Some(GiveUpReason::ClientThrottled),
        Some(GiveUpReason::Nested),
        Some(GiveUpReason::BudgetExhausted),
    ] {
        assert!(ends.contains(&why), "no case ended with {why:?}");
    }
}
