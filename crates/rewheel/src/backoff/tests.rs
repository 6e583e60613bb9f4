//! Tests of every backoff at the limits of its range.

#![expect(clippy::unwrap_used, reason = "test code")]

mod custom;
mod spread;
mod text;

use super::{Backoff, Jitter, Past};
use crate::duration::nanos;
use crate::setting::SettingError;
use crate::{Random, millis, seconds};
use proptest::prelude::*;
use std::time::Duration;

const NANOSECOND: Duration = Duration::from_nanos(1);

/// The longest delay that a backoff can represent.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// Durations of every magnitude, including both ends. Boxed, because the nested strategies would
/// not fit the stack of a test.
pub(super) fn any_duration() -> BoxedStrategy<Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(NANOSECOND),
        Just(seconds(30)),
        Just(LONGEST),
        Just(Duration::MAX),
        (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| Duration::from_nanos(bits >> shift)),
        (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
    .boxed()
}

fn any_attempt() -> BoxedStrategy<u32> {
    const EDGES: [u32; 12] = [0, 1, 2, 62, 63, 64, 65, 1_023, 1_024, 1_025, u32::MAX - 1, u32::MAX];
    prop_oneof![proptest::sample::select(&EDGES[..]), 0_u32..200, any::<u32>()].boxed()
}

fn any_jitter() -> BoxedStrategy<Jitter> {
    prop_oneof![
        Just(Jitter::NONE),
        Just(Jitter::FULL),
        Just(Jitter::EQUAL),
        (0_u32..=1_000_000).prop_map(|share| Jitter::proportional(f64::from(share) / 1e6)),
    ]
    .boxed()
}

/// Factors that users may write, 1.001 to 1000.
fn any_factor() -> BoxedStrategy<f64> {
    prop_oneof![
        Just(1.001),
        Just(2.0),
        Just(1_000.0),
        (1_001_u32..=1_000_000).prop_map(|thousandths| f64::from(thousandths) / 1e3),
    ]
    .boxed()
}

/// Every shape with a text form: all except custom ones.
fn any_shape() -> BoxedStrategy<Backoff> {
    let base = || any_duration().prop_map(|base| base.max(NANOSECOND));
    prop_oneof![
        any_duration().prop_map(Backoff::fixed),
        base().prop_map(Backoff::linear),
        (base(), base()).prop_map(|(base, step)| Backoff::linear(base).step(step)),
        base().prop_map(Backoff::exponential),
        (base(), any_factor()).prop_map(|(base, f)| Backoff::exponential(base).factor(f)),
        base().prop_map(Backoff::fibonacci),
        base().prop_map(Backoff::decorrelated),
        (base(), any_factor(), any_factor())
            .prop_map(|(base, f, stretch)| Backoff::adaptive(base).factor(f).stretch(stretch)),
    ]
    .boxed()
}

fn any_custom() -> BoxedStrategy<Backoff> {
    let functions: [fn(u32) -> Duration; 4] = [
        |_| Duration::ZERO,
        |_| Duration::MAX,
        |attempt| Duration::from_nanos(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        |attempt| Duration::from_secs(u64::from(u32::MAX - attempt)),
    ];
    proptest::sample::select(functions.to_vec())
        .prop_map(|delay| Backoff::custom("own", delay))
        .boxed()
}

/// Adds any limits and any jitter that a shape accepts.
fn dressed(shape: impl Strategy<Value = Backoff>) -> impl Strategy<Value = Backoff> {
    let bounds = (proptest::option::of(any_duration()), proptest::option::of(any_duration()));
    (shape, bounds, proptest::option::of(any_jitter())).prop_map(|(shape, (min, max), jitter)| {
        let mut backoff = shape;
        if let Some(max) = max {
            backoff = backoff.max(max.max(Duration::from_nanos(shape.growth.base())));
        }
        if let Some(min) = min {
            backoff = backoff.min(min.min(Duration::from_nanos(backoff.delay_max)));
        }
        match jitter {
            Some(jitter) if !is_decorrelated(&shape) => backoff.jitter(jitter),
            Some(_) | None => backoff,
        }
    })
}

/// Every valid backoff with a text form.
pub(super) fn any_plain() -> BoxedStrategy<Backoff> {
    dressed(any_shape()).boxed()
}

fn any_backoff() -> BoxedStrategy<Backoff> {
    prop_oneof![4 => any_plain(), 1 => dressed(any_custom())].boxed()
}

fn is_decorrelated(backoff: &Backoff) -> bool {
    matches!(backoff.growth, super::Growth::Decorrelated { .. })
}

proptest! {
    #[test]
    fn every_delay_lies_within_its_range_and_its_bounds(
        backoff in any_backoff(),
        attempt in any_attempt(),
        ratio in prop_oneof![Just(f64::NAN), Just(-1.0), Just(f64::INFINITY), 0.0..=1.0],
        seed in any::<u64>(),
    ) {
        let random = Random::seeded(seed);
        let range = backoff.delay_range(attempt);
        prop_assert!(range.start() <= range.end(), "{backoff}: {range:?}");
        prop_assert!(nanos(*range.start()) >= backoff.delay_min, "{backoff}: {range:?}");
        prop_assert!(nanos(*range.end()) <= backoff.delay_max, "{backoff}: {range:?}");
        for _ in 0..4 {
            let delay = backoff.delay(attempt, &random);
            prop_assert!(range.contains(&delay), "{backoff}: {delay:?} is not in {range:?}");
            let past = Past { attempt, previous: None, failure_ratio: ratio };
            let delay = backoff.delay_after(&past, &random);
            prop_assert!(range.contains(&delay), "{backoff}: {delay:?} is not in {range:?}");
        }
    }

    #[test]
    fn the_longest_delay_never_shrinks_with_the_attempt(
        backoff in any_plain(),
        (one, other) in (any_attempt(), any_attempt()),
    ) {
        let longest = |attempt| *backoff.delay_range(attempt).end();
        let (earlier, later) = (one.min(other), one.max(other));
        prop_assert!(longest(earlier) <= longest(later), "{backoff}: {earlier}, {later}");
        prop_assert!(longest(later) <= longest(later.saturating_add(1)), "{backoff}: {later}");
    }

    #[test]
    fn the_longest_time_is_the_sum_of_the_longest_delays(
        backoff in any_backoff(),
        waits in 0_u32..150,
    ) {
        let longest = |attempt| nanos(*backoff.delay_range(attempt).end());
        let sum = (1..=waits).map(longest).fold(0, u64::saturating_add);
        let time_max = nanos(backoff.time_max(waits));
        if matches!(backoff.growth, super::Growth::Custom(_)) {
            prop_assert!(time_max >= sum, "{backoff}: {time_max} is below {sum}");
        } else {
            prop_assert_eq!(time_max, sum, "{}", backoff);
        }
    }

    #[test]
    fn the_longest_time_of_more_waits_is_not_shorter(
        backoff in any_backoff(),
        waits in any_attempt(),
    ) {
        let rest = nanos(*backoff.delay_range(waits).end());
        let before = nanos(backoff.time_max(waits.saturating_sub(1)));
        let time_max = nanos(backoff.time_max(waits));
        prop_assert!(waits == 0 || time_max >= before.saturating_add(rest), "{backoff} {waits}");
    }

    #[test]
    fn a_decorrelated_delay_is_at_most_three_times_the_previous_one(
        base in any_duration(),
        max in any_duration(),
        previous in any_duration(),
        seed in any::<u64>(),
    ) {
        let base = base.max(NANOSECOND);
        let backoff = Backoff::decorrelated(base).max(max.max(base));
        let past = Past { attempt: 2, previous: Some(previous), failure_ratio: 1.0 };
        let delay = nanos(backoff.delay_after(&past, &Random::seeded(seed)));
        let high = nanos(previous).saturating_mul(3).max(nanos(base)).min(backoff.delay_max);
        prop_assert!((nanos(base)..=high).contains(&delay), "{backoff}: {delay} of {past:?}");
    }

    #[test]
    fn an_adaptive_delay_grows_with_the_failure_ratio(
        base in any_duration(),
        stretch in any_factor(),
        attempt in any_attempt(),
        (one, other) in (0.0..=1.0, 0.0..=1.0),
    ) {
        let backoff = Backoff::adaptive(base.max(NANOSECOND)).stretch(stretch).max(Duration::MAX);
        let backoff = backoff.jitter(Jitter::NONE);
        let delay = |failure_ratio: f64| {
            let past = Past { attempt, previous: None, failure_ratio };
            backoff.delay_after(&past, &Random::seeded(1))
        };
        let (low, high) = (f64::min(one, other), f64::max(one, other));
        prop_assert!(delay(0.0) <= delay(low));
        prop_assert!(delay(low) <= delay(high));
        prop_assert!(delay(high) <= delay(1.0));
        prop_assert_eq!(delay(f64::NAN), delay(1.0), "without evidence the worst is assumed");
    }
}

#[track_caller]
fn check(text: &str, expected_millis: &[u64]) {
    let backoff: Backoff = text.parse().unwrap();
    let random = Random::seeded(1);
    for (attempt, expected) in (1..).zip(expected_millis) {
        assert_eq!(backoff.delay(attempt, &random), millis(*expected), "{text}, attempt {attempt}");
    }
}

#[test]
fn delays_without_jitter_are_exact() {
    check("fixed 100ms jitter none", &[100, 100, 100]);
    check("fixed 0s jitter none", &[0, 0]);
    check("linear 100ms jitter none", &[100, 200, 300, 400, 500]);
    check("linear 100ms step 50ms jitter none", &[100, 150, 200, 250]);
    check("linear 100ms max 250ms jitter none", &[100, 200, 250, 250]);
    check("exponential 100ms jitter none", &[100, 200, 400, 800, 1_600, 3_200]);
    check("exponential 100ms x1.5 jitter none", &[100, 150, 225]);
    check("exponential 10ms x10 jitter none", &[10, 100, 1_000, 10_000, 30_000, 30_000]);
    check("exponential 100ms min 300ms jitter none", &[300, 300, 400, 800]);
    check("fibonacci 100ms jitter none", &[100, 100, 200, 300, 500, 800, 1_300, 2_100]);
    check("adaptive 100ms jitter none", &[1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
    check("adaptive 100ms stretch x3 jitter none", &[300, 600, 1_200]);
    check("exponential 1m jitter none", &[60_000, 60_000]);
}

#[test]
fn attempt_zero_is_taken_for_the_first() {
    for text in ["linear 7ms jitter none", "exponential 7ms jitter none", "fibonacci 7ms"] {
        let backoff: Backoff = text.parse().unwrap();
        assert_eq!(backoff.delay_range(0), backoff.delay_range(1), "{text}");
    }
}

#[test]
fn an_adaptive_delay_is_stretched_in_proportion() {
    let backoff = Backoff::adaptive(millis(100)).jitter(Jitter::NONE);
    for (failure_ratio, expected) in [(0.0, 100), (0.25, 325), (0.5, 550), (1.0, 1_000)] {
        let past = Past { attempt: 1, previous: None, failure_ratio };
        assert_eq!(backoff.delay_after(&past, &Random::seeded(1)), millis(expected));
    }
    let range = Backoff::adaptive(millis(100)).jitter(Jitter::EQUAL).delay_range(2);
    assert_eq!(range, millis(100)..=seconds(2), "it holds for every failure ratio");
}

#[test]
fn the_longest_time_is_known_to_the_compiler() {
    const LONGEST_WAIT: Duration = Backoff::fibonacci(millis(100)).max(millis(250)).time_max(5);
    const _: () = assert!(LONGEST_WAIT.as_millis() == 100 + 100 + 200 + 250 + 250);
    const FOREVER: Duration = Backoff::exponential(millis(1)).time_max(u32::MAX);
    const _: () = assert!(FOREVER.as_nanos() == LONGEST.as_nanos());
    let proportional = Backoff::fixed(seconds(1)).jitter(Jitter::proportional(0.5));
    assert_eq!(proportional.time_max(4), seconds(6), "jitter counts at its longest");
}

#[track_caller]
fn check_refusal(
    expected: &str,
    fallible: Result<Backoff, SettingError>,
    build: impl FnOnce() -> Backoff + std::panic::UnwindSafe,
) {
    let error = fallible.unwrap_err();
    assert_eq!(error.to_string(), expected);
    let panic = std::panic::catch_unwind(build).unwrap_err();
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
    assert_eq!(message, format!("{}: {}", error.setting(), error.allowed()));
}

/// Both forms of a setting refuse the same value for the same reason.
macro_rules! refuses {
    ($expected:literal, $from:expr, $plain:ident / $fallible:ident ($($value:expr),*)) => {
        check_refusal($expected, $from.$fallible($($value),*), || $from.$plain($($value),*))
    };
    ($expected:literal, $plain:ident / $fallible:ident ($($value:expr),*)) => {
        check_refusal(
            $expected,
            Backoff::$fallible($($value),*),
            || Backoff::$plain($($value),*),
        )
    };
}

#[test]
fn what_makes_no_sense_is_refused_at_construction() {
    const ZERO: Duration = Duration::ZERO;
    let exponential = Backoff::exponential(seconds(1));
    refuses!("invalid base `0s`: use a first delay above zero", linear / try_linear(ZERO));
    refuses!(
        "invalid base `0s`: use a first delay above zero",
        exponential / try_exponential(ZERO)
    );
    refuses!("invalid base `0s`: use a first delay above zero", fibonacci / try_fibonacci(ZERO));
    refuses!("invalid base `0s`: use a first delay above zero", adaptive / try_adaptive(ZERO));
    refuses!(
        "invalid base `0s`: use a first delay above zero",
        decorrelated / try_decorrelated(ZERO)
    );
    refuses!("invalid factor `NaN`: use 1.001 to 1000", exponential, factor / try_factor(f64::NAN));
    refuses!("invalid factor `1`: use 1.001 to 1000", exponential, factor / try_factor(1.0));
    refuses!(
        "invalid factor `2`: only exponential and adaptive backoff have a factor",
        Backoff::fixed(seconds(1)),
        factor / try_factor(2.0)
    );
    refuses!(
        "invalid step `1s`: only linear backoff has a step",
        Backoff::fibonacci(seconds(1)),
        step / try_step(seconds(1))
    );
    refuses!(
        "invalid step `0s`: use a step above zero, or a fixed backoff",
        Backoff::linear(seconds(1)),
        step / try_step(ZERO)
    );
    refuses!(
        "invalid stretch `2`: only adaptive backoff has a stretch",
        exponential,
        stretch / try_stretch(2.0)
    );
    refuses!(
        "invalid stretch `0`: use 1.001 to 1000",
        Backoff::adaptive(seconds(1)),
        stretch / try_stretch(0.0)
    );
    refuses!(
        "invalid max `500ms`: use at least the first delay",
        exponential,
        max / try_max(millis(500))
    );
    refuses!(
        "invalid min `31s`: use at most the longest delay",
        exponential,
        min / try_min(seconds(31))
    );
    refuses!(
        "invalid max `2ms`: use at least the shortest delay",
        Backoff::fixed(millis(1)).min(millis(3)),
        max / try_max(millis(2))
    );
    refuses!(
        "invalid jitter `full`: decorrelated backoff is already random: remove the jitter",
        Backoff::decorrelated(seconds(1)),
        jitter / try_jitter(Jitter::FULL)
    );
}

#[test]
fn a_bad_name_or_share_is_refused_at_construction() {
    const ZERO: Duration = Duration::ZERO;
    for name in ["", "Pay day"] {
        let error = Backoff::try_custom(name, |_| ZERO).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid name `{name}`: use 1 to 64 characters (a-z, 0-9, `_`, `-`, `.`)")
        );
        assert!(std::panic::catch_unwind(|| Backoff::custom(name, |_| ZERO)).is_err());
    }
    let share = Jitter::try_proportional(1.1).unwrap_err();
    assert_eq!(share.to_string(), "invalid share `1.1`: use 0 to 1");
    assert!(std::panic::catch_unwind(|| Jitter::proportional(1.1)).is_err());
}

#[test]
fn what_is_allowed_is_the_same_in_both_forms() {
    assert_eq!(
        Backoff::try_adaptive(seconds(1)).and_then(|backoff| {
            backoff
                .try_factor(3.0)?
                .try_stretch(4.0)?
                .try_max(seconds(20))?
                .try_min(millis(2))?
                .try_jitter(Jitter::try_proportional(0.5)?)
        }),
        Ok(Backoff::adaptive(seconds(1))
            .factor(3.0)
            .stretch(4.0)
            .max(seconds(20))
            .min(millis(2))
            .jitter(Jitter::proportional(0.5)))
    );
    let linear = Backoff::try_linear(seconds(1)).and_then(|backoff| backoff.try_step(millis(5)));
    assert_eq!(linear, Ok(Backoff::linear(seconds(1)).step(millis(5))));
    assert_eq!(Backoff::try_exponential(seconds(1)), Ok(Backoff::exponential(seconds(1))));
    assert_eq!(Backoff::try_fibonacci(seconds(1)), Ok(Backoff::fibonacci(seconds(1))));
    assert_eq!(Backoff::try_decorrelated(seconds(1)), Ok(Backoff::decorrelated(seconds(1))));
    let zero = |_| Duration::ZERO;
    assert_eq!(Backoff::try_custom("own", zero), Ok(Backoff::custom("own", zero)));
}
