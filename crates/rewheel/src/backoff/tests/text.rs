//! Checks that a backoff written as text reads back unchanged.

use super::any_plain;
use crate::backoff::{Backoff, Backoffs, Jitter, NameError};
use crate::{millis, seconds};
use proptest::prelude::*;
use std::time::Duration;

proptest! {
    #[test]
    fn reads_back_what_it_prints(backoff in any_plain()) {
        prop_assert_eq!(backoff.to_string().parse(), Ok(backoff), "{}", backoff);
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = text.parse::<Backoff>();
        let _ = text.parse::<Jitter>();
    }

    #[test]
    fn no_text_of_its_own_words_makes_it_panic(
        words in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(&[
                    "fixed", "linear", "exponential", "fibonacci", "decorrelated", "adaptive",
                    "external_api", "min", "max", "jitter", "step", "stretch", "none", "full",
                    "equal", "x", "x2", "xNaN", "xinf", "x-1", "x1e300", "%", "30%", "±30%", "1e9%",
                    "0s", "1ns", "100ms", "99999999999999999999d", "18446744073709551615d", "1é",
                ][..]).prop_map(str::to_owned),
                "[0-9a-zµ%.±-]{0,6}",
            ],
            0..8,
        ),
    ) {
        let text = words.join(" ");
        if let Ok(backoff) = text.parse::<Backoff>() {
            prop_assert_eq!(backoff.to_string().parse(), Ok(backoff), "{} of {}", backoff, text);
        }
    }
}

#[track_caller]
fn check_text(backoff: Backoff, text: &str) {
    assert_eq!(backoff.to_string(), text);
    assert_eq!(text.parse(), Ok(backoff));
}

#[test]
fn prints_the_short_form() {
    check_text(Backoff::fixed(millis(250)), "fixed 250ms jitter none");
    check_text(Backoff::fixed(Duration::ZERO), "fixed 0s jitter none");
    check_text(Backoff::linear(seconds(1)), "linear 1s max 30s jitter full");
    check_text(
        Backoff::linear(seconds(1)).step(millis(500)).min(millis(10)),
        "linear 1s step 500ms min 10ms max 30s jitter full",
    );
    check_text(
        Backoff::exponential(millis(100)).jitter(Jitter::proportional(0.125)),
        "exponential 100ms x2 max 30s jitter 12.5%",
    );
    check_text(Backoff::decorrelated(seconds(90)), "decorrelated 1m30s max 1m30s");
    check_text(
        Backoff::adaptive(millis(1)).factor(1.5).stretch(4.25).jitter(Jitter::EQUAL),
        "adaptive 1ms x1.5 stretch x4.25 max 30s jitter equal",
    );
}

#[test]
fn an_unbounded_growing_shape_says_so() {
    for shape in [Backoff::exponential(seconds(1)), Backoff::fibonacci(seconds(1))] {
        let unbounded = shape.max(Duration::MAX);
        assert_eq!(unbounded.to_string().parse(), Ok(unbounded), "{unbounded}");
    }
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let message = text.parse::<Backoff>().unwrap_err().to_string();
    assert!(message.contains(expected), "`{message}` does not say `{expected}`");
    assert!(message.contains(&format!("`{text}`")), "`{message}` does not show the text");
}

#[test]
fn errors_name_the_problem() {
    check_error("", "it is empty");
    check_error("  ", "it is empty");
    check_error("cubic 1s", "starts with `cubic`");
    check_error("cubic 1s", "exponential, fibonacci");
    check_error("cubic 1s", "external_api");
    check_error("fixed", "fixed needs a duration");
    check_error("fixed 100", "a number needs a unit");
    check_error("fixed -1s", "each part must be a whole number");
    check_error("exponential 0s", "needs a first delay above zero");
    check_error("exponential 100ms x0.5", "`x0.5` is not a factor");
    check_error("exponential 100ms xNaN", "`xNaN` is not a factor");
    check_error("linear 100ms x2", "only exponential and adaptive have a factor");
    check_error("exponential 100ms step 1s", "`step` has no meaning here");
    check_error("linear 100ms step 0s", "never grows");
    check_error("adaptive 100ms stretch 10", "needs a factor such as x10");
    check_error("adaptive 100ms stretch x1001", "`x1001` is not a factor");
    check_error("exponential 100ms max", "max needs a duration");
    check_error("exponential 10s max 1s", "max is below the first delay");
    check_error("exponential 1s max 10s min 20s", "max is below min");
    check_error("fixed 1s jitter", "jitter needs one of none, full, equal");
    check_error("fixed 1s jitter some", "`some` is not a jitter");
    check_error("fixed 1s jitter 101%", "`101%` is not a jitter");
    check_error("fixed 1s jitter NaN%", "`NaN%` is not a jitter");
    check_error("decorrelated 1s jitter full", "random already");
    check_error("fixed 1s please", "`please` has no meaning here");
    check_error("external_api x3", "`x3` has no meaning here");
}

fn payday(attempt: u32) -> Duration {
    seconds(u64::from(attempt))
}

#[test]
fn a_registry_reads_custom_backoffs_with_options_of_their_own() {
    const PAYDAY: Backoff = Backoff::custom("payday", payday);
    let mut backoffs = Backoffs::new();
    backoffs.register("payday", PAYDAY).unwrap();

    let dressed = PAYDAY.min(seconds(2)).max(seconds(5)).jitter(Jitter::NONE);
    for backoff in [PAYDAY, dressed, PAYDAY.max(Duration::MAX)] {
        assert_eq!(backoffs.parse(&backoff.to_string()), Ok(backoff), "{backoff}");
    }
    let read = backoffs.parse("payday min 2s max 5s jitter none").unwrap();
    let random = crate::Random::seeded(1);
    assert_eq!([1, 3, 9].map(|attempt| read.delay(attempt, &random)), [2, 3, 5].map(seconds));

    let message = backoffs.parse("payday max 1s min 2s").unwrap_err().to_string();
    assert!(message.contains("max is below min"), "{message}");
}

#[test]
fn a_registry_knows_the_presets_and_takes_only_proper_names() {
    let mut backoffs = Backoffs::default();
    assert_eq!(backoffs.get("database"), Some(crate::Retry::DATABASE.backoff()));
    assert_eq!(backoffs.get("payday"), None);
    for name in ["", "Upper", "with space", "exponential", "fixed", "né", &"a".repeat(65)] {
        let refused = backoffs.register(name, Backoff::fixed(seconds(1)));
        assert_eq!(refused, Err(NameError::Invalid(name.to_owned())));
    }
    backoffs.register(&"a".repeat(64), Backoff::fixed(seconds(1))).unwrap();
    backoffs.register("database", Backoff::fixed(seconds(9))).unwrap();
    assert_eq!(backoffs.parse("database"), Ok(Backoff::fixed(seconds(9))), "the later one counts");
}

#[cfg(feature = "serde")]
#[test]
fn serde_writes_the_short_form() {
    let backoff = Backoff::exponential(millis(100)).factor(1.5).jitter(Jitter::EQUAL);
    let json = serde_json::to_string(&backoff).unwrap();
    assert_eq!(json, r#""exponential 100ms x1.5 max 30s jitter equal""#);
    assert_eq!(serde_json::from_str::<Backoff>(&json).unwrap(), backoff);
    let error = serde_json::from_str::<Backoff>(r#""exponential 0s""#).unwrap_err().to_string();
    assert!(error.contains("above zero"), "{error}");
    assert!(serde_json::from_str::<Backoff>("7").is_err());
}

#[test]
fn a_custom_backoff_is_registered_under_the_name_it_is_printed_by() {
    let payday = Backoff::custom("payday", |_| Duration::ZERO);
    let error = Backoffs::new().register("pay-day", payday).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a custom backoff is registered under its own name, `payday`, not `pay-day`"
    );
}
