//! Checks that each hook runs exactly once per event.

use super::*;
use crate::{Event, Observer};
use std::sync::{Arc, Mutex};

type Log = RefCell<Vec<String>>;

fn log_of(log: &Log) -> Vec<String> {
    log.take()
}

/// Runs a script with every hook set, async and blocking; returns the recorded events.
#[track_caller]
fn heard(policy: Retry, turns: &[Turn]) -> Vec<String> {
    let log = Log::default();
    let say = |text: String| log.borrow_mut().push(text);
    macro_rules! hooked {
        ($operation:expr, $script:expr) => {
            $operation
                .retry(policy)
                .clock(&$script.clock)
                .on_retry(|r| {
                    let millis = r.delay.as_millis();
                    let error = r.error.map_or("nothing".to_owned(), Failure::to_string);
                    say(format!("retry {} in {millis}: {} {error}", r.attempt, r.category));
                })
                .on_success(|value, attempts| say(format!("success {value} after {attempts}")))
                .on_give_up(|error| say(format!("give up: {error}")))
        };
    }
    let script = Script::new(turns);
    let call = hooked!(|attempt| script.patient(attempt), script);
    let _ = finish(script.clock.drive(call));
    let patient = log_of(&log);
    if turns.iter().all(|turn| turn.takes.is_zero()) {
        let script = Script::new(turns);
        let _ = hooked!(|attempt| script.blocking(attempt), script).call();
        assert_eq!(patient, log_of(&log), "async and blocking differ");
    }
    patient
}

#[test]
fn hooks_hear_of_retries_and_of_the_end() {
    let policy = Retry::fixed(millis(500));
    assert_eq!(heard(policy, &[DONE]), ["success 7 after 1"]);
    assert_eq!(
        heard(policy, &[BUSY, busy_for(seconds(2)), DONE]),
        [
            "retry 1 in 500: transient busy",
            "retry 2 in 2000: throttled busy for a while",
            "success 7 after 3",
        ],
    );
    assert_eq!(
        heard(policy, &[BUSY]),
        [
            "retry 1 in 500: transient busy",
            "retry 2 in 500: transient busy",
            "give up: gave up after 3 attempts in 1s: no attempts are left: busy",
        ],
    );
    assert_eq!(heard(policy, &[GONE]), ["give up: failed: gone"],);
    assert_eq!(
        heard(policy.deadline(millis(300)), &[BUSY]),
        ["give up: gave up after 1 attempt in 0s: no time is left before the deadline: busy"],
    );
}

#[test]
fn an_attempt_that_timed_out_is_not_blamed_for_an_earlier_error() {
    let policy = Retry::fixed(seconds(1)).attempt_timeout(seconds(1));
    assert_eq!(
        heard(policy, &[BUSY, DONE.taking(seconds(9)), DONE]),
        [
            "retry 1 in 1000: transient busy",
            "retry 2 in 1000: timeout nothing",
            "success 7 after 3",
        ],
    );
}

#[test]
fn a_result_that_is_not_good_enough_comes_without_an_error() {
    let errors = Log::default();
    let mut results = [Err(Failure::Busy), Ok(0), Ok(1)].into_iter();
    let value = (|| results.next().unwrap())
        .retry(Retry::fixed(seconds(1)))
        .clock(ManualClock::new())
        .when_ok(|value| *value == 0)
        .on_retry(|retrying| errors.borrow_mut().push(format!("{:?}", retrying.error)))
        .call();
    assert_eq!(value, Ok(1));
    assert_eq!(log_of(&errors), ["Some(Busy)", "None"]);
}

#[test]
fn hooks_of_one_kind_are_all_called_in_the_order_in_which_they_were_set() {
    let log = Log::default();
    let say = |text: &str| log.borrow_mut().push(text.to_owned());
    let mut results = [Err(Failure::Busy), Ok(1)].into_iter();
    let _ = (|| results.next().unwrap())
        .retry(Retry::fixed(seconds(1)))
        .clock(ManualClock::new())
        .on_retry(|_| say("first"))
        .on_success(|_, _| say("done"))
        .on_retry(|_| say("second"))
        .call();
    assert_eq!(log_of(&log), ["first", "second", "done"]);
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::AttemptFailed { name, attempt, class } => {
                format!("{name}: attempt {attempt} failed, {}", class.category)
            }
            Event::Retrying { name, attempt, delay } => {
                format!("{name}: retrying {attempt} in {}s", delay.as_secs())
            }
            Event::Succeeded { name, attempts, elapsed } => {
                format!("{name}: succeeded after {attempts} in {}s", elapsed.as_secs())
            }
            Event::GaveUp { name, why, attempts, elapsed } => {
                let why = why.as_str();
                format!("{name}: gave up after {attempts} in {}s, {why}", elapsed.as_secs())
            }
            Event::RetrySuppressed { name } => format!("{name}: suppressed"),
            Event::Refused { name, .. } => format!("{name}: refused"),
            Event::Admitted { name, .. } => format!("{name}: admitted"),
            Event::BreakerBuilt { name, .. } => format!("{name}: built"),
            Event::BreakerChanged { name, .. } => format!("{name}: changed"),
            Event::HedgeStarted { .. }
            | Event::HedgeWon { .. }
            | Event::FallbackUsed { .. }
            | Event::FallbackFailed { .. }
            | Event::LastGoodServed { .. }
            | Event::FailedOver { .. }
            | Event::TargetEjected { .. } => format!("{event:?}"),
            Event::LimitChanged { name, .. } => format!("{name}: limit"),
            Event::ChaosInjected { name, .. } => format!("{name}: chaos"),
        };
        self.0.lock().unwrap().push(line);
    }
}

#[track_caller]
fn observed(policy: Retry, turns: &[Turn]) -> Vec<String> {
    let (script, recorder) = (Script::new(turns), Arc::new(Recorder::default()));
    let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
    let _ = finish(script.clock.drive(call.observer("fetch", recorder.clone())));
    recorder.0.lock().unwrap().clone()
}

#[test]
fn an_observer_hears_of_every_attempt() {
    let policy = Retry::fixed(seconds(1)).attempts_max(2);
    assert_eq!(
        observed(policy, &[BUSY, DONE]),
        [
            "fetch: attempt 1 failed, transient",
            "fetch: retrying 1 in 1s",
            "fetch: succeeded after 2 in 1s",
        ],
    );
    assert_eq!(
        observed(policy.deadline(seconds(3)), &[BUSY, DONE.taking(seconds(9))]),
        [
            "fetch: attempt 1 failed, transient",
            "fetch: retrying 1 in 1s",
            "fetch: attempt 2 failed, timeout",
            "fetch: gave up after 2 in 3s, deadline",
        ],
    );
}

#[test]
fn a_panic_in_a_hook_leaves_everything_usable() {
    let statistics = crate::Statistics::new();
    let budget = crate::RetryBudget::ratio(0.5).build();
    let token = crate::CancelToken::new();
    let call = || {
        (|| Err::<(), _>(Failure::Busy))
            .retry(Retry::fixed(Duration::ZERO))
            .statistics(&statistics)
            .retry_budget(&budget)
            .cancel(&token)
    };
    let panicking = std::panic::AssertUnwindSafe(|| {
        let _ = call().on_retry(|_| panic!("a hook")).call();
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(call().call().unwrap_err().attempts(), 3);
    assert_eq!(statistics.summary().calls, 1, "only the second call came to an end");
}
