//! Tests of waiting for a limiter or bulkhead inside a pipeline.

use super::*;

#[test]
fn a_call_waits_for_the_limiter() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(2).burst(1).clock(&clock).build();
    let pipeline = Pipeline::new().rate_limiter(&limiter).clock(&clock);
    for number in 0..5 {
        let (result, _) = run(&pipeline, &clock, Duration::ZERO, Ok(1));
        assert_eq!((result, clock.elapsed()), (Ok(1), millis(500 * number)));
    }
}

#[test]
fn calls_are_admitted_in_the_order_in_which_they_came() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(1).clock(&clock).build();
    let pipeline = Pipeline::new().rate_limiter(&limiter).clock(&clock);
    let order = RefCell::new(Vec::new());
    let call = |number: u32| {
        let order = &order;
        Box::pin(
            pipeline
                .run(move |_| {
                    order.borrow_mut().push(number);
                    std::future::ready(Ok::<_, Failure>(number))
                })
                .into_future(),
        )
    };
    let mut calls: Vec<_> = (0..6).map(|number| Some(call(number))).collect();
    for call in calls.iter_mut().flatten() {
        let _ = poll(call.as_mut());
    }
    calls[3] = None; // One caller gives up: the others move up.
    for _ in 0..8 {
        clock.advance(seconds(1));
        // The last call is polled first, and must not overtake the others.
        for call in calls.iter_mut().rev().filter(|call| call.is_some()) {
            if call.as_mut().is_some_and(|call| poll(call.as_mut()).is_ready()) {
                *call = None;
            }
        }
    }
    assert_eq!(*order.borrow(), [0, 1, 2, 4, 5]);
}

#[test]
fn a_timeout_around_it_ends_the_wait_for_a_limiter() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, seconds(60)).clock(&clock).build();
    limiter.check().unwrap();
    let statistics = Statistics::with_clock(&clock);
    let pipeline = Pipeline::new().timeout(seconds(2)).rate_limiter(&limiter).clock(&clock);
    let (result, calls) = run(&pipeline.statistics(&statistics), &clock, Duration::ZERO, Ok(1));
    let error = result.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::Timeout, 0, 0));
    assert_eq!(error.elapsed(), seconds(2));
    let summary = statistics.summary();
    assert_eq!((summary.calls, summary.attempts), (1, 0), "nothing was attempted");
    clock.advance(seconds(58));
    limiter.check().expect("a ghost waits in the limiter's line");
}

#[test]
fn the_attempt_timeout_of_a_retry_ends_the_wait_for_a_bulkhead() {
    let clock = ManualClock::new();
    let bulkhead = Bulkhead::concurrency(1).queue_max(9).clock(&clock).build();
    let _place = bulkhead.try_acquire().unwrap();
    let policy = FIVE.attempts_max(2).attempt_timeout(seconds(3));
    let pipeline = Pipeline::new().retry(policy).bulkhead(&bulkhead).clock(&clock);
    let (result, calls) = run(&pipeline, &clock, Duration::ZERO, Ok(1));
    assert_eq!((result.unwrap_err().reason(), calls), (GiveUpReason::AttemptsExhausted, 0));
    assert_eq!((clock.elapsed(), bulkhead.waiting()), (seconds(3 + 1 + 3), 0));
}

#[test]
fn the_limits_of_a_limiter_and_of_a_bulkhead_hold() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, seconds(60)).wait_max(seconds(5)).clock(&clock).build();
    limiter.check().unwrap();
    let pipeline = Pipeline::new().rate_limiter(&limiter).clock(&clock);
    let (error, _) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), error.retry_in()), (GiveUpReason::RateLimited, Some(seconds(60))));
    assert_eq!(error.elapsed(), Duration::ZERO, "it would have been in vain");

    let bulkhead = Bulkhead::concurrency(1).queue_max(1).wait_max(seconds(5)).clock(&clock).build();
    let _place = bulkhead.try_acquire().unwrap();
    let pipeline = Pipeline::new().bulkhead(&bulkhead).clock(&clock);
    let mut first = Box::pin(pipeline.run(|_| async { Ok::<_, Failure>(1) }).into_future());
    assert!(poll(first.as_mut()).is_pending());
    let (error, _) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), error.elapsed()), (GiveUpReason::BulkheadFull, Duration::ZERO));
    clock.advance(seconds(5));
    let Poll::Ready(Err(error)) = poll(first.as_mut()) else { panic!("it still waits") };
    assert_eq!((error.reason(), error.elapsed()), (GiveUpReason::BulkheadFull, seconds(5)));
}

#[test]
fn places_go_to_those_who_wait_in_their_order() {
    let clock = ManualClock::new();
    let bulkhead = Bulkhead::concurrency(2).queue_max(9).clock(&clock).build();
    let pipeline = Pipeline::new().bulkhead(&bulkhead).clock(&clock);
    let (order, running) = (RefCell::new(Vec::new()), Cell::new(0));
    let call = |number: u32| {
        let (order, running, clock) = (&order, &running, &clock);
        Box::pin(
            pipeline
                .run(move |_| async move {
                    order.borrow_mut().push(number);
                    running.set(running.get() + 1);
                    assert!(running.get() <= 2, "more than there are places for");
                    Clock::from(clock).sleep(seconds(1)).await;
                    running.set(running.get() - 1);
                    Ok::<_, Failure>(number)
                })
                .into_future(),
        )
    };
    let mut calls: Vec<_> = (0..7).map(|number| Some(call(number))).collect();
    for round in 0..20 {
        for call in calls.iter_mut() {
            if call.as_mut().is_some_and(|call| poll(call.as_mut()).is_ready()) {
                *call = None;
            }
        }
        if round % 2 == 1 {
            clock.advance(seconds(1));
        }
    }
    assert_eq!(*order.borrow(), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((bulkhead.free(), bulkhead.waiting()), (2, 0));
}

#[test]
fn a_limiter_may_go_by_another_clock_than_the_pipeline() {
    let (own, others) = (ManualClock::new(), ManualClock::new());
    // As a coarse clock has another origin than the precise one.
    others.advance(100 * HOUR);
    let limiter = RateLimiter::per_second(10).burst(1).clock(&others).build();
    limiter.check().unwrap();
    let pipeline = Pipeline::new().timeout(seconds(5)).rate_limiter(&limiter).clock(&own);
    let mut call = pin!(pipeline.run(|_| async { Ok::<_, Failure>(1) }).into_future());
    assert!(poll(call.as_mut()).is_pending());
    others.advance(millis(100));
    assert!(own.advance_to_next());
    assert_eq!(own.elapsed(), millis(100), "it waits for a moment of the wrong clock");
    assert_eq!(poll(call.as_mut()), Poll::Ready(Ok(1)));
}

#[test]
fn a_bulkhead_may_go_by_another_clock_than_the_pipeline() {
    let (own, others) = (ManualClock::new(), ManualClock::new());
    own.advance(100 * HOUR);
    let bulkhead =
        Bulkhead::concurrency(1).queue_max(1).wait_max(seconds(3)).clock(&others).build();
    let _place = bulkhead.try_acquire().unwrap();
    let pipeline = Pipeline::new().bulkhead(&bulkhead).clock(&own);
    let mut call = pin!(pipeline.run(|_| async { Ok::<_, Failure>(1) }).into_future());
    assert!(poll(call.as_mut()).is_pending(), "it waits for a moment of the wrong clock");
    others.advance(seconds(3));
    assert!(own.advance_to_next());
    assert_eq!(own.elapsed(), 100 * HOUR + seconds(3));
    assert!(poll(call.as_mut()).is_ready());
}
