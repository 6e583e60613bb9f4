//! Checks that presets behave under load as their numbers say.

#![expect(clippy::unwrap_used, reason = "test code")]

use super::{RETRIES, ServiceClass};
use crate::pipeline::Pipeline;
use crate::{
    Category, Class, Classify, Clock, Error, GiveUpReason, ManualClock, Random, Retry, millis,
    seconds,
};
use std::cell::Cell;
use std::future::{Future, IntoFuture, pending};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy;

impl Classify for Busy {
    fn classify(&self) -> Class {
        Class::retry(Category::Transient)
    }
}

fn finish<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    for _ in 0..1_000_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
    panic!("a future never ends");
}

fn pipeline(class: &ServiceClass, clock: &ManualClock) -> Pipeline {
    class.pipeline_on("test", &Clock::from(clock), &Random::seeded(7))
}

/// Makes a call to a dependency that never answers; returns the number of attempts with the error.
fn hang(pipeline: &Pipeline, clock: &ManualClock) -> (Error<Busy>, u32) {
    let attempts = Cell::new(0);
    let call = pipeline.run(|_| {
        attempts.set(attempts.get() + 1);
        pending::<Result<(), Busy>>()
    });
    (finish(clock.drive(call)).unwrap_err(), attempts.get())
}

fn call(
    pipeline: &Pipeline,
    clock: &ManualClock,
    result: Result<(), Busy>,
) -> Result<(), Error<Busy>> {
    finish(clock.drive(pipeline.run(|_| std::future::ready(result))))
}

#[test]
fn no_preset_has_a_known_trap() {
    for (name, retry) in RETRIES.into_iter().chain([("default", Retry::DEFAULT)]) {
        let explanation = Pipeline::new().retry(retry).explain();
        assert_eq!(explanation.warnings, [], "{name}: {explanation}");
        assert!(explanation.time_max.is_some(), "{name} has no total limit");
    }
    for class in ServiceClass::ALL {
        let explanation = class.pipeline("test").explain();
        assert_eq!(explanation.warnings, [], "{explanation}");
        assert_eq!(explanation.time_max, Some(class.total_timeout), "{explanation}");
        assert!(explanation.retry_budget.is_some(), "{} has no budget", class.name);
    }
}

#[test]
fn a_retry_preset_repeats_an_attempt_that_hangs() {
    for (name, retry) in RETRIES.into_iter().chain([("default", Retry::DEFAULT)]) {
        let clock = ManualClock::new();
        let (error, attempts) = hang(&Pipeline::new().retry(retry).clock(&clock), &clock);
        assert_eq!(
            (error.reason(), attempts),
            (GiveUpReason::AttemptsExhausted, retry.attempts()),
            "{name}"
        );
    }
}

#[test]
fn one_bad_request_does_not_stop_the_others() {
    for class in ServiceClass::ALL {
        let clock = ManualClock::new();
        let pipeline = pipeline(class, &clock);
        // Low traffic: a call every two seconds, and every tenth always fails.
        for request in 0..200_u32 {
            clock.advance(seconds(2));
            let result = if request % 10 == 5 { Err(Busy) } else { Ok(()) };
            let answer = call(&pipeline, &clock, result);
            let reason = answer.as_ref().map_err(Error::reason);
            assert_ne!(reason, Err(GiveUpReason::CircuitOpen), "{}: call {request}", class.name);
            assert_eq!(answer.is_ok(), result.is_ok(), "{}: call {request}", class.name);
        }
    }
}

#[test]
fn hanging_calls_open_the_breaker_and_hanging_probes_open_it_again() {
    for class in ServiceClass::ALL {
        let clock = ManualClock::new();
        let pipeline = pipeline(class, &clock);
        // Twenty at once, as under load: one after the other they would leave the window.
        let mut calls: Vec<_> = (0..class.calls_min)
            .map(|_| Box::pin(pipeline.run(|_| pending::<Result<(), Busy>>()).into_future()))
            .collect();
        finish(clock.drive(std::future::poll_fn(|cx| {
            calls.retain_mut(|call| call.as_mut().poll(cx).is_pending());
            if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })));
        assert_eq!(
            call(&pipeline, &clock, Ok(())).unwrap_err().reason(),
            GiveUpReason::CircuitOpen,
            "{}",
            class.name
        );
        for _ in 0..3 {
            clock.advance(class.open_for.mul_f64(1.1));
            let (error, attempts) = hang(&pipeline, &clock);
            assert_eq!(attempts, 1, "{}: {error:?}", class.name);
            let refused = call(&pipeline, &clock, Ok(())).unwrap_err();
            assert_eq!(refused.reason(), GiveUpReason::CircuitOpen, "{}", class.name);
        }
        clock.advance(class.open_for.mul_f64(1.1));
        assert_eq!(call(&pipeline, &clock, Ok(())), Ok(()), "{} does not recover", class.name);
        assert_eq!(call(&pipeline, &clock, Ok(())), Ok(()));
    }
}

#[test]
fn the_breakers_of_many_instances_do_not_probe_at_the_same_time() {
    for class in ServiceClass::ALL {
        let clock = ManualClock::new();
        let mut waits: Vec<_> = (0..100)
            .map(|seed| {
                let random = Random::seeded(seed);
                let breaker = class.circuit_breaker().clock(&clock).random(&random).build();
                breaker.force_open();
                breaker.snapshot().retry_in.unwrap()
            })
            .collect();
        waits.sort_unstable();
        let (first, last) = (waits[0], waits[99]);
        assert!(first >= class.open_for.mul_f64(0.9) && last <= class.open_for.mul_f64(1.1));
        assert!(
            last - first > class.open_for.mul_f64(0.15),
            "{}: {first:?} to {last:?}",
            class.name
        );
        waits.dedup();
        assert_eq!(waits.len(), 100, "{}", class.name);
    }
}

#[test]
fn an_outage_under_load_costs_no_more_than_the_budget() {
    for class in ServiceClass::ALL {
        let clock = ManualClock::new();
        let pipeline = pipeline(class, &clock);
        let attempts = Cell::new(0_u64);
        // Too few calls fail for the breaker, so only the budget limits retries.
        let fails_every = 3 * (u64::from(class.retries) + 1);
        let calls = 3_000_u64;
        for number in 0..calls {
            clock.advance(millis(20));
            let _ = finish(clock.drive(pipeline.run(|_| {
                attempts.set(attempts.get() + 1);
                std::future::ready(if number % fails_every == 0 { Err(Busy) } else { Ok(()) })
            })));
        }
        let retries = attempts.get() - calls;
        let elapsed = clock.elapsed().as_secs() + 1;
        let share = calls * u64::from(class.budget_percent) / 100;
        let most =
            share + elapsed * u64::from(class.budget_floor) + 100 + u64::from(class.budget_floor);
        assert!(retries <= most, "{}: {retries} retries, {most} allowed", class.name);
        assert!(retries > share / 2, "{}: only {retries} retries", class.name);
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_class_is_read_from_a_config_file_by_its_name() {
    #[derive(serde::Deserialize)]
    struct Config {
        class: ServiceClass,
    }
    for class in ServiceClass::ALL {
        let text = format!("{{\"class\": \"{}\"}}", class.name);
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap().class, *class);
    }
    let error = serde_json::from_str::<Config>("{\"class\": \"gold\"}").err().unwrap();
    let expected = "`gold` is not a service class: use one of `critical`, `standard`, `batch`";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn the_page_of_the_library_has_the_numbers_of_every_class() {
    let page = include_str!("../../../../docs/library.md");
    for class in ServiceClass::ALL {
        let name = format!("| `ServiceClass::{}` |", class.name.to_uppercase());
        let row = page.lines().find(|line| line.starts_with(&name)).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let total = class.total_timeout.as_secs();
        let total =
            if total % 60 == 0 { format!("{} min", total / 60) } else { format!("{total} s") };
        let thousands = |n: u32| {
            if n < 1_000 { n.to_string() } else { format!("{},{:03}", n / 1_000, n % 1_000) }
        };
        let expected = [
            (class.retries + 1).to_string(),
            format!("{} s", class.attempt_timeout.as_secs()),
            total,
            format!("{} %, at least {} per second", class.budget_percent, class.budget_floor),
            format!("half of {} or more calls in {} s", class.calls_min, class.window.as_secs()),
            format!("{} s", class.open_for.as_secs()),
            thousands(class.rate),
        ];
        assert_eq!(cells[2..9], expected);
        assert_eq!(class.failure_percent, 50, "the page says half");
    }
}
