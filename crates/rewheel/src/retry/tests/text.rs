//! Checks that a policy written as text reads back unchanged.

use super::*;
use crate::retry::Nested;
use crate::{Backoff, Jitter};
use proptest::prelude::*;

fn any_policy() -> BoxedStrategy<Retry> {
    let backoffs = [
        Backoff::fixed(Duration::ZERO),
        Backoff::fixed(Duration::MAX).jitter(Jitter::proportional(0.3)),
        Backoff::linear(seconds(1)).step(millis(3)),
        Backoff::exponential(millis(100)).factor(1.5).max(Duration::MAX),
        Backoff::decorrelated(seconds(99)),
        Backoff::adaptive(millis(1)).min(millis(1)),
    ];
    let time =
        || prop_oneof![1_u64..1_000, any::<u64>()].prop_map(|n| Duration::from_nanos(n.max(1)));
    let limits = (proptest::option::of(time()), proptest::option::of(time()));
    let asked = proptest::option::of(prop_oneof![Just(Duration::ZERO), time()]);
    (proptest::sample::select(backoffs.to_vec()), 1_u32.., limits, asked, any::<bool>())
        .prop_map(|(backoff, attempts_max, (deadline, timeout), asked, insists)| {
            let mut policy = Retry::new(backoff).attempts_max(attempts_max);
            if let Some(deadline) = deadline {
                policy = policy.deadline(deadline);
            }
            if let Some(timeout) = timeout {
                policy = policy.attempt_timeout(timeout);
            }
            if let Some(asked) = asked {
                policy = policy.retry_after_max(asked);
            }
            policy.nested(if insists { Nested::Retry } else { Nested::Once })
        })
        .boxed()
}

proptest! {
    #[test]
    fn reads_back_what_it_prints(policy in any_policy()) {
        prop_assert_eq!(policy.to_string().parse(), Ok(policy), "{}", policy);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ ,0-9a-zé%_]{0,40}") {
        let _ = text.parse::<Retry>();
    }
}

#[test]
fn prints_only_what_differs_from_the_default() {
    let policy = Retry::fixed(seconds(1)).attempts_max(1);
    assert_eq!(policy.to_string(), "1 attempt, fixed 1s jitter none");
    let policy = policy
        .attempts_max(2)
        .deadline(seconds(9))
        .attempt_timeout(seconds(3))
        .retry_after_max(seconds(5))
        .nested(Nested::Retry);
    let text = "2 attempts, fixed 1s jitter none, deadline 9s, attempt_timeout 3s, \
                retry_after_max 5s, nested retry";
    assert_eq!(policy.to_string(), text);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let message = text.parse::<Retry>().unwrap_err().to_string();
    assert!(message.contains(expected), "`{message}` does not say `{expected}`");
}

#[test]
fn errors_name_the_problem() {
    check_error("", "it is empty");
    check_error("3 attempts", "the backoff is missing");
    check_error("0 attempts, fixed 1s", "use 1 or more");
    check_error("many attempts, fixed 1s", "`many` is not a number of attempts");
    check_error("fixed 1s, deadline", "deadline: ");
    check_error("fixed 1s, deadline 0s", "must be longer than 0s");
    check_error("fixed 1s, attempt_timeout 0s", "must be longer than 0s");
    check_error("fixed 1s, retry_after_max soon", "retry_after_max: `soon`");
    check_error("fixed 1s, nested twice", "`retry` or `once`");
    check_error("external-api", "external_api");
}

#[cfg(feature = "serde")]
#[test]
fn serde_writes_the_short_form() {
    let policy = Retry::fixed(seconds(1)).deadline(seconds(9));
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(json, r#""3 attempts, fixed 1s jitter none, deadline 9s""#);
    assert_eq!(serde_json::from_str::<Retry>(&json).unwrap(), policy);
    assert_eq!(serde_json::from_str::<Retry>(r#""database""#).unwrap(), Retry::DATABASE);
}

#[test]
fn what_is_given_twice_is_an_error() {
    for (text, what) in [
        ("3 attempts, fixed 1s, fixed 2s", "the backoff is given twice"),
        ("3 attempts, 4 attempts, fixed 1s", "the number of attempts is given twice"),
        ("3 attempts, fixed 1s, deadline 1s, deadline 2s", "deadline is given twice"),
        ("3 attempts, fixed 1s jitter full jitter none", "jitter is given twice"),
        ("3 attempts, linear 1s max 2s max 3s", "max is given twice"),
    ] {
        let error = text.parse::<Retry>().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
