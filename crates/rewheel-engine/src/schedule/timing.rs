//! When a schedule fires: a cron expression in a time zone, or a period.

use super::ScheduleError;
use super::calendar::Calendar;
use super::cron::Cron;
use rewheel::duration;
use rewheel_core::{Limits, Timestamp};
use std::time::Duration;

/// The shortest period. Each instant is a settle and an insert.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// Schedules that are due at the same instant fire within this time after it, so that ten thousand of them do not come at once.
const SPREAD_MAX: Duration = Duration::from_secs(1);

/// Counting stops here: two months of missed minutes, in some milliseconds.
const COUNT_MAX: u64 = 100_000;

/// When a schedule fires.
///
/// ```
/// use rewheel::minutes;
/// use rewheel_engine::{Timestamp, Timing};
///
/// let nightly = Timing::cron("0 3 * * *", "Europe/Berlin")?;
/// let at = |millis| Timestamp::from_millis(millis);
/// assert_eq!(nightly.next_after(at(0)), Some(at(7_200_000))); // 03:00 in Berlin is 02:00 UTC in winter
///
/// // Multiples of the period since 1970: each quarter of an hour, in UTC.
/// assert_eq!(Timing::every(minutes(15))?.next_after(at(1)), Some(at(900_000)));
///
/// let error = Timing::cron("0 3 31 2 *", "UTC").unwrap_err();
/// assert_eq!(error.to_string(), "cron never fires: no day matches `0 3 31 2 *`");
/// # Ok::<(), rewheel_engine::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing(Inner);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Inner {
    Cron(Box<Calendar>),
    Every(Duration),
}

impl Timing {
    /// Fires at the times of a cron expression ([`Cron`]) in a time zone, such as `Europe/Berlin` or `UTC`.
    ///
    /// When clocks are set back, an expression with `*` or a step in its hour field fires in both of the repeated hours, and one
    /// with fixed hours in the first. A time that does not exist, because clocks were set forward, is the end of the gap.
    ///
    /// # Errors
    /// Names the part that is invalid: `cron` or `zone`.
    pub fn cron(cron: &str, zone: &str) -> Result<Timing, ScheduleError> {
        let parsed: Cron = cron.parse().map_err(|error| ScheduleError::field("cron", error))?;
        let calendar = Calendar::new(parsed, zone).ok_or_else(|| {
            let why = format!("`{zone}` is not a time zone: use a name such as `Europe/Berlin`");
            ScheduleError::field("zone", why)
        })?;
        let timing = Timing(Inner::Cron(Box::new(calendar)));
        if timing.next_after(Timestamp::from_millis(0)).is_none() {
            let why = format!("never fires: no day matches `{cron}`");
            return Err(ScheduleError::field("cron", why));
        }
        Ok(timing)
    }

    /// Fires at each multiple of a period since 1970-01-01 UTC: `15m` is each quarter of an hour.
    ///
    /// # Errors
    /// Fails if the period is shorter than a second, or too long.
    pub fn every(period: Duration) -> Result<Timing, ScheduleError> {
        if period < PERIOD_MIN || period > Limits::DURATION_MAX {
            let (min, max) = (duration::text(PERIOD_MIN), duration::text(Limits::DURATION_MAX));
            return Err(ScheduleError::field("every", format!("must be {min} to {max}")));
        }
        // The store's clock shows milliseconds.
        let millis = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        Ok(Timing(Inner::Every(Duration::from_millis(millis))))
    }

    /// Returns the cron expression and the name of its time zone.
    pub fn as_cron(&self) -> Option<(String, &str)> {
        match &self.0 {
            Inner::Cron(calendar) => Some((calendar.cron.to_string(), calendar.zone_name())),
            Inner::Every(_) => None,
        }
    }

    /// Returns the period.
    pub fn as_period(&self) -> Option<Duration> {
        match &self.0 {
            Inner::Cron(_) => None,
            Inner::Every(period) => Some(*period),
        }
    }

    /// Returns the first instant after this one.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Inner::Cron(calendar) => calendar.next_after(after),
            Inner::Every(period) => {
                let period = millis(*period);
                let past = after.as_millis().div_euclid(period);
                past.checked_add(1)?.checked_mul(period).map(Timestamp::from_millis)
            }
        }
    }

    /// Returns the latest of the instants from `first`, which is one, until `now`, and how many they are. Stops counting at a
    /// hundred thousand; the latest is exact.
    pub(super) fn latest(&self, first: Timestamp, now: Timestamp) -> (Timestamp, u64) {
        let (mut latest, mut count) = (first, 1);
        match &self.0 {
            Inner::Every(period) => {
                let past = now.since(first).as_millis() / period.as_millis();
                let past = u64::try_from(past).unwrap_or(u64::MAX);
                let passed =
                    millis(*period).saturating_mul(i64::try_from(past).unwrap_or(i64::MAX));
                (Timestamp::from_millis(first.as_millis().saturating_add(passed)), past + 1)
            }
            Inner::Cron(calendar) => {
                while let Some(next) = calendar.next_after(latest).filter(|next| *next <= now) {
                    latest = next;
                    count += 1;
                    if count == COUNT_MAX {
                        return (self.last_before(now).unwrap_or(latest), count);
                    }
                }
                (latest, count)
            }
        }
    }

    /// Returns the last instant until now, of a schedule with so many instants that the last one is less than a year ago.
    fn last_before(&self, now: Timestamp) -> Option<Timestamp> {
        let follows =
            |from: i64| self.next_after(Timestamp::from_millis(from)).filter(|next| *next <= now);
        // An instant follows on `low`, and none on `high`. To walk from one instant to the next could take half a million steps.
        let (mut low, mut high) =
            (now.as_millis().saturating_sub(366 * 86_400_000), now.as_millis());
        let mut last = follows(low)?;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match follows(middle) {
                Some(next) => (low, last) = (middle, next),
                None => high = middle,
            }
        }
        Some(last)
    }

    /// Returns how long after its instants a schedule of this name fires: less than a second, different for each name.
    pub fn spread(&self, name: &str) -> Duration {
        let most = match &self.0 {
            Inner::Cron(_) => SPREAD_MAX,
            Inner::Every(period) => SPREAD_MAX.min(*period / 10),
        };
        // FNV-1a: the same on every node and in every release.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let most = u64::try_from(most.as_millis()).unwrap_or(1).max(1);
        Duration::from_millis((hash >> 32) % most)
    }
}

fn millis(period: Duration) -> i64 {
    i64::try_from(period.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{COUNT_MAX, Timing};
    use rewheel_core::Timestamp;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    /// The latest instant may be days before now.
    #[test]
    fn the_latest_of_very_many_instants_is_exact() {
        for (cron, now, latest) in [
            ("* * * * mon-fri", "2026-11-15T12:00:30Z", "2026-11-13T23:59:00Z"),
            ("* * 1-10 * *", "2026-11-30T12:00:00Z", "2026-11-10T23:59:00Z"),
            ("* * * 1-6 *", "2026-11-15T12:00:00Z", "2026-06-30T23:59:00Z"),
            ("* * * * *", "2026-11-15T12:00:30Z", "2026-11-15T12:00:00Z"),
        ] {
            let timing = Timing::cron(cron, "UTC").unwrap();
            let first = timing.next_after(at("2024-01-01T00:00:00Z")).unwrap();
            assert_eq!(timing.latest(first, at(now)), (at(latest), COUNT_MAX), "{cron}");
        }
    }
}
