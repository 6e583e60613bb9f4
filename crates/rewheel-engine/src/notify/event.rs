//! Notification events, in order of urgency.

use std::fmt;
use std::str::FromStr;

/// What a notice is about.
///
/// ```
/// use rewheel_engine::notify::Event;
///
/// assert_eq!("dead_letter".parse(), Ok(Event::DeadLetter));
/// assert_eq!(Event::KindParked.to_string(), "kind_parked");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A job asks for a person.
    DeadLetter,
    /// The reason of a dead letter: no attempt was left. For routes; its notice is a dead letter's.
    AttemptsExhausted,
    /// The reason of a dead letter: another attempt could not have helped. For routes, as well.
    NotRetryable,
    /// Jobs of a dead holder passed to others.
    Takeover,
    /// A holder could not keep its lease alive.
    LeaseRenewalFailed,
    /// The store refused what became of an attempt.
    PersistFailed,
    /// A part of the engine does not work.
    EngineError,
    /// Nobody claims this kind until a probe succeeds.
    KindParked,
    /// It is claimed again.
    KindUnparked,
    /// How much more there was than a notifier was told.
    Summary,
    /// Somebody tries out a notifier.
    Test,
}

impl Event {
    /// Those that a route may name.
    pub const ROUTED: [Event; 9] = [
        Event::DeadLetter,
        Event::AttemptsExhausted,
        Event::NotRetryable,
        Event::Takeover,
        Event::LeaseRenewalFailed,
        Event::PersistFailed,
        Event::EngineError,
        Event::KindParked,
        Event::KindUnparked,
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
            Event::Summary => "summary",
            Event::Test => "test",
        }
    }

    /// Returns how urgent it is where nobody knows better.
    pub const fn severity(self) -> Severity {
        match self {
            Event::KindUnparked | Event::Test => Severity::Info,
            Event::Takeover | Event::LeaseRenewalFailed | Event::KindParked | Event::Summary => {
                Severity::Warning
            }
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

/// The text is not the name of an [`Event`] that a route may name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an event: use dead_letter, attempts_exhausted, not_retryable, takeover, \
     lease_renewal_failed, persist_failed, engine_error, kind_parked or kind_unparked"
)]
pub struct UnknownEvent(String);

/// How urgent a notice is.
///
/// ```
/// use rewheel_engine::notify::Severity;
///
/// assert!(Severity::Critical > Severity::Warning);
/// assert_eq!("error".parse(), Ok(Severity::Error));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know.
    #[default]
    Info,
    /// The engine deals with it; look if it goes on.
    Warning,
    /// A person must look.
    Error,
    /// A person must look now.
    Critical,
}

impl Severity {
    /// Every severity, the least urgent first.
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

/// The text is not the name of a [`Severity`].
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
