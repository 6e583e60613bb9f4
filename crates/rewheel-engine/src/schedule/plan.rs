//! Decides what a schedule does when it is due.

use super::CatchUp;
use super::timing::Timing;
use rewheel_core::Timestamp;
use std::time::Duration;

/// How late an instant may be to be fired without `catch_up`: the time of a restart, or of a takeover.
pub(super) const LATE_MAX: Duration = Duration::from_secs(60);

/// What a schedule does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The instant whose job is submitted.
    pub(super) fire: Option<Timestamp>,
    /// How many instants passed without a job.
    pub(super) missed: u64,
    /// The next instant.
    pub(super) next: Timestamp,
}

/// Decides, where `next` is the first instant that has not been handled. Returns `None` if the schedule has no further instant.
pub(super) fn plan(
    timing: &Timing,
    catch_up: CatchUp,
    next: Timestamp,
    now: Timestamp,
) -> Option<Plan> {
    if now < next {
        return Some(Plan { fire: None, missed: 0, next });
    }
    let (latest, count) = timing.latest(next, now);
    let fires = match catch_up {
        CatchUp::One => true,
        CatchUp::None => now.since(latest) <= LATE_MAX,
    };
    let fire = fires.then_some(latest);
    Some(Plan { fire, missed: count - u64::from(fires), next: timing.next_after(now)? })
}

#[cfg(test)]
mod tests {
    use super::{CatchUp, Plan, plan};
    use crate::schedule::timing::Timing;
    use rewheel::{minutes, seconds};
    use rewheel_core::Timestamp;

    fn minute(number: i64) -> Timestamp {
        Timestamp::from_millis(number * 60_000)
    }

    /// A schedule of every ten minutes, next due at minute 10.
    #[track_caller]
    fn check(catch_up: CatchUp, now: Timestamp, fire: Option<i64>, missed: u64, next: i64) {
        let expected = Plan { fire: fire.map(minute), missed, next: minute(next) };
        for timing in [Timing::every(minutes(10)), Timing::cron("*/10 * * * *", "UTC")] {
            let plan = plan(&timing.unwrap(), catch_up, minute(10), now);
            assert_eq!(plan, Some(expected), "{catch_up:?} {now:?}");
        }
    }

    #[test]
    fn an_instant_fires_when_it_has_come() {
        check(CatchUp::None, minute(9), None, 0, 10);
        check(CatchUp::None, minute(10), Some(10), 0, 20);
        check(CatchUp::One, minute(10).plus(seconds(59)), Some(10), 0, 20);
    }

    #[test]
    fn a_late_instant_fires_if_the_schedule_catches_up() {
        check(CatchUp::None, minute(11).plus(seconds(1)), None, 1, 20);
        check(CatchUp::One, minute(11).plus(seconds(1)), Some(10), 0, 20);
    }

    #[test]
    fn of_several_instants_at_most_the_latest_fires() {
        check(CatchUp::None, minute(45), None, 4, 50);
        check(CatchUp::One, minute(45), Some(40), 3, 50);
        // The latest is not late.
        check(CatchUp::None, minute(40), Some(40), 3, 50);
    }

    /// A node that was off for years must not count for minutes.
    #[test]
    fn counting_ends() {
        let timing = Timing::cron("* * * * *", "Europe/Berlin").unwrap();
        let now = minute(20_000_000).plus(seconds(30));
        let plan = plan(&timing, CatchUp::One, minute(10), now).unwrap();
        assert_eq!((plan.fire, plan.missed), (Some(minute(20_000_000)), 99_999));
        assert_eq!(plan.next, minute(20_000_001));
    }
}
