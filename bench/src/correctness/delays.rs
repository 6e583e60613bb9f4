//! Counts delays above the maximum, and delays that are exactly the maximum.

use std::time::Duration;

use backon::BackoffBuilder;
use rewheel::{Backoff, Jitter, Random};

use super::Check;

const FIRST: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(4);

/// By then every exponential schedule has reached the maximum delay.
const LATE: usize = 20;
const DRAWS: u32 = 10_000;

pub fn of_rewheel(jitter: Jitter) -> Check {
    let backoff = Backoff::exponential(FIRST).max(MAX).jitter(jitter);
    let random = Random::seeded(1);
    check(|| (1..=LATE as u32).map(|attempt| backoff.delay(attempt, &random)).collect())
}

pub fn of_backon() -> Check {
    let builder = backon::ExponentialBuilder::default()
        .with_min_delay(FIRST)
        .with_max_delay(MAX)
        .with_max_times(LATE)
        .with_jitter();
    check(|| builder.build().collect())
}

pub fn of_tokio_retry() -> Check {
    use tokio_retry::strategy::{ExponentialBackoff, jitter};
    let strategy = ExponentialBackoff::from_millis(2).factor(50).max_delay(MAX);
    check(|| strategy.clone().map(jitter).take(LATE).collect())
}

fn check(schedule: impl Fn() -> Vec<Duration>) -> Check {
    let (mut above, mut at_cap) = (0_u32, 0_u32);
    for _ in 0..DRAWS {
        let delays = schedule();
        above += u32::from(delays.iter().any(|delay| *delay > MAX));
        at_cap += u32::from(delays[LATE - 1] == MAX);
    }
    let share = |count| f64::from(count) * 100.0 / f64::from(DRAWS);
    let text = format!(
        "{:.1}% of schedules go above max, {:.1}% end exactly there",
        share(above),
        share(at_cap)
    );
    Check { text, errors: u64::from(above + at_cap) }
}
