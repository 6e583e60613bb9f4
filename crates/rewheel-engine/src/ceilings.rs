//! Limits that a kind sets on the settings of a submitted job.

use crate::settings::{KindSettings, SettingError};
use rewheel::{Backoff, duration};
use rewheel_core::{Decision, Job, Limits, NewJob};
use std::time::Duration;

/// Minimum delay of a snooze, also without a floor: it uses up no attempt, so a job that snoozes for no time would run without
/// a pause, for ever.
const SNOOZE_MIN: Duration = Duration::from_millis(1);

/// The limits of a kind for the settings of its jobs. The kind's own settings are always allowed.
///
/// ```
/// use rewheel_engine::{JobId, KindName, NewJob, Timestamp};
/// use rewheel_engine::KindSettings;
///
/// let kind: KindSettings = serde_json::from_str(r#"{"attempts_ceiling":20}"#)?;
/// let id = JobId::new(Timestamp::from_millis(0), &rewheel::Random::seeded(1));
/// let mut job = NewJob::new(id, KindName::parse("charge-card")?, b"{}".to_vec());
/// job.attempts_max = Some(21);
/// let error = kind.ceilings().check(&job).unwrap_err();
/// assert_eq!(error.to_string(), "attempts_max must be 20 or fewer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceilings {
    attempts: u32,
    attempt_timeout: Duration,
    delay_floor: Duration,
}

/// Error: a job asks for more than its kind allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct OverCeiling {
    /// The field of the job.
    pub field: &'static str,
    /// The allowed value.
    pub why: String,
    /// The setting of the kind that sets this limit.
    pub setting: &'static str,
}

impl Ceilings {
    /// Checks the settings of a job.
    ///
    /// # Errors
    /// Fails with the first field that exceeds its limit.
    pub fn check(&self, job: &NewJob) -> Result<(), OverCeiling> {
        if let Some(attempts) = job.attempts_max {
            self.check_attempts(attempts)?;
        }
        if job.attempt_timeout.is_some_and(|timeout| timeout > self.attempt_timeout) {
            return Err(OverCeiling {
                field: "attempt_timeout",
                why: format!("must be {} or shorter", duration::text(self.attempt_timeout)),
                setting: "attempt_timeout_ceiling",
            });
        }
        if job.backoff.is_some_and(|backoff| longest_first_delay(&backoff) < self.delay_floor) {
            return Err(OverCeiling {
                field: "backoff",
                why: format!("must wait {} or longer", duration::text(self.delay_floor)),
                setting: "delay_floor",
            });
        }
        Ok(())
    }

    /// Checks the number of attempts of a job.
    ///
    /// # Errors
    /// Fails with the allowed number.
    pub fn check_attempts(&self, attempts: u32) -> Result<(), OverCeiling> {
        if attempts <= self.attempts {
            return Ok(());
        }
        Err(OverCeiling {
            field: "attempts_max",
            why: format!("must be {} or fewer", self.attempts),
            setting: "attempts_ceiling",
        })
    }

    /// Returns the maximum total time of an attempt, including all extensions.
    pub fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    fn clamp_attempts(&self, attempts: u32) -> u32 {
        attempts.min(self.attempts)
    }

    fn clamp_timeout(&self, timeout: Duration) -> Duration {
        timeout.min(self.attempt_timeout)
    }

    /// Limits the delay of a decision to the minimum and maximum: jitter, handlers, callees and workers may ask for any delay. A
    /// retry that becomes longer than `sticky_max` goes back to the store.
    pub(crate) fn clamp_delay(&self, decision: &mut Decision, sticky_max: Duration) {
        match decision {
            Decision::Retry { after, sticky, .. } => {
                if *after < self.delay_floor && self.delay_floor > sticky_max {
                    *sticky = false;
                }
                *after = self.clamp(*after);
            }
            Decision::Snooze { after, .. } => *after = self.clamp(*after).max(SNOOZE_MIN),
            Decision::Succeed
            | Decision::Dead { .. }
            | Decision::Fail { .. }
            | Decision::Pause
            | Decision::Cancel => {}
        }
    }
}

impl Ceilings {
    fn clamp(&self, delay: Duration) -> Duration {
        delay.max(self.delay_floor).min(Limits::DURATION_MAX)
    }
}

impl KindSettings {
    /// Returns the limits for jobs of this kind.
    pub fn ceilings(&self) -> Ceilings {
        let attempts = self
            .attempts_ceiling
            .unwrap_or(Limits::ATTEMPTS_CEILING_DEFAULT.max(self.attempts_max));
        let attempt_timeout = self
            .attempt_timeout_ceiling
            .unwrap_or(Limits::ATTEMPT_TIMEOUT_CEILING_DEFAULT.max(self.attempt_timeout));
        let own = longest_first_delay(&self.backoff);
        let delay_floor = self.delay_floor.unwrap_or(Limits::DELAY_FLOOR_DEFAULT.min(own));
        Ceilings { attempts, attempt_timeout, delay_floor }
    }

    /// Returns the maximum number of attempts of a job: its own number within the limits of the
    /// kind, or the number of the kind.
    ///
    /// A job that was inserted by SQL may contain any number, because inserts by SQL are not checked.
    pub fn attempts_max_of(&self, job: &Job) -> u32 {
        job.attempts_max.map_or(self.attempts_max, |own| self.ceilings().clamp_attempts(own))
    }

    /// Returns the timeout of one attempt of a job: its own timeout within the limits of the kind, or the timeout of the kind.
    pub fn attempt_timeout_of(&self, job: &Job) -> Duration {
        job.attempt_timeout.map_or(self.attempt_timeout, |own| self.ceilings().clamp_timeout(own))
    }

    /// Checks that the kind's own settings are within its limits.
    pub(crate) fn check_ceilings(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        let Ceilings { attempts, attempt_timeout, delay_floor } = self.ceilings();
        if attempts < self.attempts_max {
            return wrong("attempts_ceiling", "must not be lower than attempts_max");
        }
        if attempt_timeout < self.attempt_timeout {
            return wrong("attempt_timeout_ceiling", "must not be shorter than attempt_timeout");
        }
        if delay_floor > longest_first_delay(&self.backoff) {
            return wrong("delay_floor", "must not be longer than the first delay of backoff");
        }
        Ok(())
    }
}

/// Returns the first delay with the longest jitter: later ones are longer.
fn longest_first_delay(backoff: &Backoff) -> Duration {
    *backoff.delay_range(1).end()
}

#[cfg(test)]
mod tests {
    use super::{Decision, Duration, KindSettings, Limits};
    use rewheel::{Random, millis, seconds};
    use rewheel_core::{DueReason, JobId, KindName, NewJob, Timestamp};

    fn kind(settings: &str) -> KindSettings {
        serde_json::from_str(settings).unwrap()
    }

    #[track_caller]
    fn check(settings: &str, field: &str, set: impl FnOnce(&mut NewJob)) {
        let id = JobId::new(Timestamp::from_millis(0), &Random::seeded(1));
        let mut job = NewJob::new(id, KindName::parse("mail").unwrap(), b"1".to_vec());
        set(&mut job);
        let checked = kind(settings).ceilings().check(&job);
        assert_eq!(
            checked.as_ref().map_or_else(|error| error.field, |()| ""),
            field,
            "{checked:?}"
        );
    }

    #[test]
    fn a_job_asks_for_as_much_as_its_kind_allows() {
        check("{}", "", |job| job.attempts_max = Some(1_000));
        check("{}", "attempts_max", |job| job.attempts_max = Some(u32::MAX));
        check(r#"{"attempts_max":5000}"#, "", |job| job.attempts_max = Some(5_000));
        check(r#"{"attempts_ceiling":9}"#, "attempts_max", |job| job.attempts_max = Some(10));
        check("{}", "", |job| job.attempt_timeout = Some(seconds(3_600)));
        check("{}", "attempt_timeout", |job| job.attempt_timeout = Some(seconds(3_601)));
        check(r#"{"attempt_timeout":"2h"}"#, "", |job| job.attempt_timeout = Some(seconds(7_200)));
        check("{}", "backoff", |job| job.backoff = Some("fixed 0ms".parse().unwrap()));
        check("{}", "", |job| job.backoff = Some("fixed 10ms".parse().unwrap()));
        check(r#"{"backoff":"fixed 0ms"}"#, "", |job| {
            job.backoff = Some("fixed 0ms".parse().unwrap());
        });
        check(r#"{"delay_floor":"50ms"}"#, "backoff", |job| {
            job.backoff = Some("fixed 10ms".parse().unwrap());
        });
    }

    #[test]
    fn a_kind_keeps_its_own_limits() {
        for wrong in [
            r#"{"attempts_max":9,"attempts_ceiling":8}"#,
            r#"{"attempt_timeout":"2h","attempt_timeout_ceiling":"1h"}"#,
            r#"{"backoff":"fixed 1s","delay_floor":"2s"}"#,
        ] {
            assert!(kind(wrong).check().is_err(), "{wrong}");
        }
        assert!(kind(r#"{"attempts_max":4000000000,"backoff":"fixed 0ms"}"#).check().is_ok());
    }

    #[test]
    fn a_wait_is_never_shorter_than_the_floor() {
        let retry = |after| Decision::Retry { after, sticky: true, because: DueReason::Backoff };
        let mut decision = retry(millis(0));
        kind("{}").ceilings().clamp_delay(&mut decision, seconds(10));
        assert_eq!(decision, retry(millis(10)));
        let mut longer = retry(millis(11));
        kind("{}").ceilings().clamp_delay(&mut longer, seconds(10));
        assert_eq!(longer, retry(millis(11)));
        let slow = kind(r#"{"backoff":"fixed 1h","delay_floor":"1m"}"#);
        let mut raised = retry(millis(5));
        slow.ceilings().clamp_delay(&mut raised, seconds(10));
        let because = DueReason::Backoff;
        let expected = Decision::Retry { after: seconds(60), sticky: false, because };
        assert_eq!(raised, expected, "it does not wait in the wheel for longer than sticky_max");
        let mut endless = retry(Duration::MAX);
        kind("{}").ceilings().clamp_delay(&mut endless, seconds(10));
        assert_eq!(endless, retry(Limits::DURATION_MAX));
        let snooze = |after| Decision::Snooze { after, because: DueReason::Snooze };
        let mut spinning = snooze(Duration::ZERO);
        let without_floor = kind(r#"{"delay_floor":"0s"}"#).ceilings();
        without_floor.clamp_delay(&mut spinning, seconds(10));
        assert_eq!(spinning, snooze(millis(1)), "it uses up no attempt, so it would never end");
    }
}
