//! Checks that a call releases everything it took, however it ends.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One of each resource that can be taken: a slot, a probe, a position in two queues.
struct Taken {
    clock: ManualClock,
    bulkhead: Bulkhead,
    breaker: CircuitBreaker,
    limiter: RateLimiter,
}

impl Taken {
    fn new() -> Taken {
        let clock = ManualClock::new();
        let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).clock(&clock).build();
        breaker.force_open();
        // From here on the breaker is half open: the next call is its probe.
        clock.advance(seconds(1));
        Taken {
            bulkhead: Bulkhead::concurrency(1).queue_max(5).clock(&clock).build(),
            limiter: RateLimiter::per_second(1).clock(&clock).build(),
            breaker,
            clock,
        }
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::new()
            .bulkhead(&self.bulkhead)
            .circuit_breaker(&self.breaker)
            .rate_limiter(&self.limiter)
            .clock(&self.clock)
    }

    #[track_caller]
    fn assert_given_back(&self) {
        assert_eq!((self.bulkhead.free(), self.bulkhead.waiting()), (1, 0), "bulkhead");
        assert_eq!(self.breaker.snapshot().probes, 0, "a probe is still out");
        self.clock.advance(seconds(1));
        self.limiter.check().expect("a ghost waits in the limiter's line");
    }
}

#[test]
fn after_success_failure_and_timeout() {
    for (takes, result) in [
        (Duration::ZERO, Ok(1)),
        (millis(500), Ok(1)),
        (millis(500), Err(Failure::Busy)),
        (millis(500), Err(Failure::Gone)),
        (HOUR, Ok(1)),
    ] {
        let taken = Taken::new();
        let pipeline = taken.pipeline().attempt_timeout(seconds(2));
        let _ = run(&pipeline, &taken.clock, takes, result);
        taken.assert_given_back();
        let taken = Taken::new();
        let outside = Pipeline::new().timeout(seconds(2)).bulkhead(&taken.bulkhead);
        let outside = outside.circuit_breaker(&taken.breaker).rate_limiter(&taken.limiter);
        let _ = run(&outside.clock(&taken.clock), &taken.clock, takes, result);
        taken.assert_given_back();
    }
}

#[test]
fn after_a_refusal_further_in() {
    let taken = Taken::new();
    let full = Bulkhead::concurrency(1).build();
    let _place = full.try_acquire().unwrap();
    let (error, calls) = fail(&taken.pipeline().bulkhead(&full), &taken.clock);
    assert_eq!((error.reason(), calls), (GiveUpReason::BulkheadFull, 0));
    taken.assert_given_back();

    let taken = Taken::new();
    let open = CircuitBreaker::consecutive(1).build();
    open.isolate();
    let (error, _) = fail(&taken.pipeline().circuit_breaker(&open), &taken.clock);
    assert_eq!((error.reason(), error.retry_in()), (GiveUpReason::CircuitOpen, None));
    taken.assert_given_back();
}

#[test]
fn after_being_dropped_wherever_it_waits() {
    // One poll for each: the bulkhead's queue, the limiter's queue, the call, the rest, and so on.
    for polls in 0..12 {
        let taken = Taken::new();
        taken.limiter.check().unwrap();
        let held = taken.bulkhead.try_acquire().unwrap();
        let pipeline = Pipeline::new()
            .timeout(seconds(60))
            .retry(FIVE)
            .bulkhead(&taken.bulkhead)
            .circuit_breaker(&taken.breaker)
            .rate_limiter(&taken.limiter)
            .attempt_timeout(seconds(1))
            .clock(&taken.clock);
        let mut call = Box::pin(
            pipeline
                .run(|_| async {
                    Clock::from(&taken.clock).sleep(seconds(2)).await;
                    Ok::<_, Failure>(1)
                })
                .into_future(),
        );
        let mut held = Some(held);
        for poll_number in 0..polls {
            assert!(poll(call.as_mut()).is_pending() || poll_number > 3);
            if held.take().is_none() {
                taken.clock.advance(millis(500));
            }
        }
        drop(call);
        drop(held);
        taken.assert_given_back();
    }
}

#[test]
fn after_a_panic_of_the_operation() {
    let taken = Taken::new();
    let pipeline = taken.pipeline().retry(FIVE);
    let in_the_closure = AssertUnwindSafe(|| {
        let call = pipeline.run(|_| -> std::future::Ready<Result<u32, Failure>> { panic!("now") });
        finish(call)
    });
    assert!(catch_unwind(in_the_closure).is_err());
    taken.assert_given_back();

    let taken = Taken::new();
    let pipeline = taken.pipeline().retry(FIVE);
    let in_the_future = AssertUnwindSafe(|| {
        let call = pipeline.run(|_| async {
            tokio::task::yield_now().await;
            assert!(taken.bulkhead.free() > 0, "this is the panic");
            Ok::<_, Failure>(1)
        });
        finish(call)
    });
    assert!(catch_unwind(in_the_future).is_err());
    assert_eq!(
        taken.breaker.state(),
        BreakerState::HalfOpen,
        "a panic is neither success nor failure"
    );
    taken.assert_given_back();
}

#[test]
fn not_before_the_call_itself_is_gone() {
    struct Using<'a>(&'a Taken, &'a Cell<u32>);
    impl Drop for Using<'_> {
        fn drop(&mut self) {
            assert_eq!(self.0.bulkhead.free(), 0, "the place was free while it was in use");
            assert_eq!(self.0.breaker.snapshot().probes, 1, "another probe could have begun");
            self.1.set(self.1.get() + 1);
        }
    }
    for limit in [seconds(1), HOUR] {
        let (taken, drops) = (Taken::new(), Cell::new(0));
        let pipeline = taken.pipeline().timeout(limit);
        let mut call = Box::pin(
            pipeline
                .run(|_| async {
                    let _using = Using(&taken, &drops);
                    std::future::pending::<Result<u32, Failure>>().await
                })
                .into_future(),
        );
        assert!(poll(call.as_mut()).is_pending());
        taken.clock.advance(seconds(1));
        assert_eq!(poll(call.as_mut()).is_ready(), limit == seconds(1));
        drop(call);
        assert_eq!(drops.get(), 1);
        taken.assert_given_back();
    }
}

#[test]
fn a_probe_that_is_cut_with_its_series_says_nothing_and_one_that_had_its_time_opens() {
    let taken = Taken::new();
    // The limiter refuses the first round, so the call has only the rest of the time.
    let limiter =
        RateLimiter::per_second(1).burst(1).wait_max(Duration::ZERO).clock(&taken.clock).build();
    limiter.check().unwrap();
    let retrying = Pipeline::new().timeout(seconds(5)).retry(Retry::fixed(seconds(3)));
    let pipeline = retrying.rate_limiter(&limiter).circuit_breaker(&taken.breaker);
    let (_, calls) = run(&pipeline.clock(&taken.clock), &taken.clock, HOUR, Ok(1));
    assert_eq!((calls, taken.breaker.state()), (1, BreakerState::HalfOpen));
    let pipeline = Pipeline::new().timeout(seconds(1)).retry(FIVE).circuit_breaker(&taken.breaker);
    let _ = run(&pipeline.clock(&taken.clock), &taken.clock, HOUR, Ok(1));
    assert_eq!(taken.breaker.state(), BreakerState::Open);
}

#[test]
fn a_dropped_call_counts_as_a_failure_if_the_breaker_is_told_so() {
    let clock = ManualClock::new();
    let builder = || CircuitBreaker::consecutive(9).clock(&clock);
    for (breaker, failures) in
        [(builder().build(), 0), (builder().count_dropped_calls().build(), 2)]
    {
        let pipeline = Pipeline::new().circuit_breaker(&breaker).clock(&clock);
        let never = |_: Attempt| std::future::pending::<Result<u32, Failure>>();
        let mut run = Box::pin(pipeline.run(never).into_future());
        assert!(poll(run.as_mut()).is_pending());
        drop(run);
        let mut alone = Box::pin(breaker.call(|| never(Attempt::ONLY)));
        assert!(poll(alone.as_mut()).is_pending());
        drop(alone);
        assert_eq!(breaker.snapshot().failures, failures);
        assert_eq!(run_ok(&pipeline, &clock), Ok(1));
        assert_eq!(breaker.snapshot().failures, 0, "a call that ended is not dropped");
    }
}

fn run_ok(pipeline: &Pipeline, clock: &ManualClock) -> Result {
    run(pipeline, clock, seconds(1), Ok(1)).0
}

/// Composed by hand, as without a pipeline.
#[test]
fn refusals_of_a_policy_inside_say_nothing_to_a_breaker_around_it() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(3).clock(&clock).build();
    let fail = || finish(breaker.call(|| async { Err::<(), _>(Failure::Busy) }));
    let limiter = RateLimiter::per_second(1).burst(1).clock(&clock).build();
    limiter.check().unwrap();
    let full = Bulkhead::concurrency(1).clock(&clock).build();
    let _place = full.try_acquire().unwrap();
    let refused: [Box<dyn Fn() -> crate::Refused>; 3] = [
        Box::new(|| limiter.check().unwrap_err()),
        Box::new(|| limiter.check_n(2).unwrap_err()),
        Box::new(|| full.try_acquire().unwrap_err()),
    ];
    fail().unwrap_err();
    for refusal in refused {
        for _ in 0..5 {
            let _ = finish(breaker.call(|| async { Err::<(), _>(refusal()) }));
        }
        assert_eq!(breaker.snapshot().failures, 1, "neither a failure nor a success");
    }
    let inner = Pipeline::new()
        .rate_limiter(&RateLimiter::per_second(1).wait_max(Duration::ZERO).clock(&clock).build());
    let inner = inner.retry(FIVE).clock(&clock);
    assert_eq!(finish(inner.run(|_| async { Ok::<_, Failure>(1) })), Ok(1));
    let error = finish(breaker.call(|| inner.run(|_| async { Ok::<_, Failure>(1) }).into_future()));
    assert!(error.is_err());
    assert_eq!(breaker.snapshot().failures, 1);
}
