//! Notification events, in order of urgency.

use std::fmt;
use std::str::FromStr;

/// The event of a notice.
///
/// ```
/// use rewheel_engine::notify::Event;
///
/// assert_eq!("dead_letter".parse(), Ok(Event::DeadLetter));
/// assert_eq!(Event::KindParked.to_string(), "kind_parked");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A job became a dead letter.
    DeadLetter,
    /// The reason of a dead letter: all attempts were used. Only for routes; the notice has the
    /// event `dead_letter`.
    AttemptsExhausted,
    /// The reason of a dead letter: the failure was not retryable. Only for routes; the notice has the event `dead_letter`.
    NotRetryable,
    /// Other holders took over the jobs of a dead holder.
    Takeover,
    /// A holder could not renew its lease.
    LeaseRenewalFailed,
    /// The store refused the result of an attempt.
    PersistFailed,
    /// A part of the engine does not work.
    EngineError,
    /// A kind was parked: its jobs are not claimed until a probe succeeds.
    KindParked,
    /// A kind was unparked: its jobs are claimed again.
    KindUnparked,
    /// Instants of a schedule submitted no job: they were too late, or an earlier job had not ended.
    ScheduleMissed,
    /// Summary of notices beyond the limit of a notifier.
    Summary,
    /// A test notification.
    Test,
}

impl Event {
    /// The events that a route may name.
    pub const ROUTED: [Event; 10] = [
        Event::DeadLetter,
        Event::AttemptsExhausted,
        Event::NotRetryable,
        Event::Takeover,
        Event::LeaseRenewalFailed,
        Event::PersistFailed,
        Event::EngineError,
        Event::KindParked,
        Event::KindUnparked,
        Event::ScheduleMissed,
    ];

    /// Returns the name used in JSON, config, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Event::DeadLetter => "dead_letter",
            Event::AttemptsExhausted => "attempts_exhausted",
            Event::NotRetryable => "not_retryable",
            Event::Takeover => "takeover",
            Event::LeaseRenewalFailed => "lease_renewal_failed",
            Event::PersistFailed => "persist_failed",
            Event::EngineError => "engine_error",
            Event::KindParked => "kind_parked",
            Event::KindUnparked => "kind_unparked",
            Event::ScheduleMissed => "schedule_missed",
            Event::Summary => "summary",
            Event::Test => "test",
        }
    }

    /// Returns the default severity.
    pub const fn severity(self) -> Severity {
        match self {
            Event::KindUnparked | Event::Test => Severity::Info,
            Event::Takeover
            | Event::LeaseRenewalFailed
            | Event::KindParked
            | Event::ScheduleMissed
            | Event::Summary => Severity::Warning,
            Event::DeadLetter
            | Event::AttemptsExhausted
            | Event::NotRetryable
            | Event::EngineError => Severity::Error,
            Event::PersistFailed => Severity::Critical,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Event, UnknownEvent> {
        let named = Event::ROUTED.into_iter().find(|event| event.as_str() == text);
        named.ok_or_else(|| UnknownEvent(text.to_owned()))
    }
}

/// Error: the text is not the name of an [`Event`] that a route may name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an event: use dead_letter, attempts_exhausted, not_retryable, takeover, \
     lease_renewal_failed, persist_failed, engine_error, kind_parked, kind_unparked or schedule_missed"
)]
pub struct UnknownEvent(String);

/// Severity of a notice.
///
/// ```
/// use rewheel_engine::notify::Severity;
///
/// assert!(Severity::Critical > Severity::Warning);
/// assert_eq!("error".parse(), Ok(Severity::Error));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For information.
    #[default]
    Info,
    /// The engine handles the problem by itself; check it if it continues.
    Warning,
    /// An operator must check.
    Error,
    /// An operator must check now.
    Critical,
}

impl Severity {
    /// Every severity, the lowest first.
    pub const ALL: [Severity; 4] =
        [Severity::Info, Severity::Warning, Severity::Error, Severity::Critical];

    /// Returns the name used in JSON, config and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
            Severity::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(text: &str) -> Result<Severity, UnknownSeverity> {
        let named = Severity::ALL.into_iter().find(|severity| severity.as_str() == text);
        named.ok_or_else(|| UnknownSeverity(text.to_owned()))
    }
}

/// Error: the text is not the name of a [`Severity`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a severity: use info, warning, error or critical")]
pub struct UnknownSeverity(String);

#[cfg(test)]
mod tests {
    use super::{Event, Severity};

    #[test]
    fn every_name_leads_back_to_what_it_names() {
        for event in Event::ROUTED {
            assert_eq!(event.as_str().parse(), Ok(event));
        }
        for severity in Severity::ALL {
            assert_eq!(severity.as_str().parse(), Ok(severity));
        }
    }

    #[test]
    fn what_no_route_may_name_is_refused_with_what_it_may() {
        for bad in ["summary", "test", "Dead_Letter", ""] {
            let error = bad.parse::<Event>().unwrap_err().to_string();
            assert!(error.contains("use dead_letter, attempts_exhausted"), "{error}");
            for event in Event::ROUTED {
                assert!(error.contains(event.as_str()), "{error} leaves out {event}");
            }
        }
        assert!("fatal".parse::<Severity>().is_err());
    }
}
