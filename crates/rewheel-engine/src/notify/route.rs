//! Selects the notices that a notifier receives.

use super::event::{Event, Severity};
use super::notice::Notice;
use rewheel_core::{KindName, Tenant};

/// The notices that a notifier receives. An empty list matches everything.
///
/// ```
/// use rewheel_engine::Timestamp;
/// use rewheel_engine::notify::{Event, Notice, Route, Severity};
///
/// let urgent = Route { severity: Severity::Error, ..Route::default() };
/// let at = Timestamp::from_millis(0);
/// assert!(urgent.takes(&Notice::new(Event::DeadLetter, at, "a job is dead")));
/// assert!(!urgent.takes(&Notice::new(Event::Takeover, at, "jobs passed on")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Notices of these events. The name of a dead letter's reason matches dead letters with that
    /// reason.
    pub events: Vec<Event>,
    /// Notices of these kinds. If the list is not empty, notices without a kind do not match.
    pub kinds: Vec<KindName>,
    /// Notices of these tenants. If the list is not empty, notices without a tenant do not match.
    pub tenants: Vec<Tenant>,
    /// Notices of at least this severity.
    pub severity: Severity,
}

impl Route {
    /// Returns whether it matches this notice.
    pub fn takes(&self, notice: &Notice) -> bool {
        let event = self.events.is_empty() || self.events.iter().any(|event| named(*event, notice));
        event
            && among(&self.kinds, notice.kind.as_ref())
            && among(&self.tenants, notice.tenant.as_ref())
            && notice.severity >= self.severity
    }

    /// Returns whether it depends on the reason of a dead letter.
    pub(super) fn asks_why(&self) -> bool {
        self.events.iter().any(|event| is_reason(*event))
    }
}

fn named(event: Event, notice: &Notice) -> bool {
    event == notice.event || is_reason(event) && notice.reason.as_deref() == Some(event.as_str())
}

fn is_reason(event: Event) -> bool {
    matches!(event, Event::AttemptsExhausted | Event::NotRetryable)
}

fn among<T: PartialEq>(wanted: &[T], there: Option<&T>) -> bool {
    wanted.is_empty() || there.is_some_and(|there| wanted.contains(there))
}

#[cfg(test)]
mod tests {
    use super::{Event, Notice, Route, Severity};
    use rewheel_core::{KindName, Tenant, Timestamp};

    fn kind(name: &str) -> KindName {
        KindName::parse(name).unwrap()
    }

    fn tenant(name: &str) -> Tenant {
        Tenant::parse(name).unwrap()
    }

    fn died_of(reason: &'static str) -> Notice {
        Notice {
            kind: Some(kind("mail")),
            tenant: Some(tenant("shop")),
            reason: Some(reason.into()),
            ..Notice::new(Event::DeadLetter, Timestamp::from_millis(0), "dead")
        }
    }

    #[track_caller]
    fn check(route: &Route, notice: &Notice, expected: bool) {
        assert_eq!(route.takes(notice), expected, "{route:?} {notice:?}");
    }

    fn by_events(events: &[Event]) -> Route {
        Route { events: events.to_vec(), ..Route::default() }
    }

    #[test]
    fn a_route_that_asks_for_nothing_takes_everything() {
        check(&Route::default(), &died_of("deadline"), true);
        let at = Timestamp::from_millis(0);
        check(&Route::default(), &Notice::new(Event::KindUnparked, at, ""), true);
    }

    #[test]
    fn a_dead_letter_goes_to_who_asks_for_dead_letters_or_for_its_reason() {
        let exhausted = died_of("attempts_exhausted");
        check(&by_events(&[Event::DeadLetter]), &exhausted, true);
        check(&by_events(&[Event::AttemptsExhausted]), &exhausted, true);
        check(&by_events(&[Event::NotRetryable]), &exhausted, false);
        check(&by_events(&[Event::NotRetryable, Event::Takeover]), &died_of("not_retryable"), true);
        check(&by_events(&[Event::Takeover]), &exhausted, false);
    }

    /// A reason of another event does not match.
    #[test]
    fn the_reason_of_an_event_is_not_an_event() {
        let at = Timestamp::from_millis(0);
        let notice =
            Notice { reason: Some("takeover".into()), ..Notice::new(Event::EngineError, at, "") };
        check(&by_events(&[Event::Takeover]), &notice, false);
    }

    #[test]
    fn kinds_and_tenants_are_asked_for_by_name() {
        let notice = died_of("deadline");
        let kinds = |names: &[&str]| Route {
            kinds: names.iter().map(|name| kind(name)).collect(),
            ..Route::default()
        };
        check(&kinds(&["charge", "mail"]), &notice, true);
        check(&kinds(&["charge"]), &notice, false);
        let tenants = Route { tenants: vec![tenant("shop")], ..Route::default() };
        check(&tenants, &notice, true);
        check(&tenants, &Notice { tenant: None, ..notice.clone() }, false);
        check(&kinds(&["mail"]), &Notice { kind: None, ..notice }, false);
    }

    #[test]
    fn a_severity_takes_what_is_as_urgent_or_more() {
        let at_least = |severity| Route { severity, ..Route::default() };
        let notice = Notice { severity: Severity::Error, ..died_of("deadline") };
        check(&at_least(Severity::Warning), &notice, true);
        check(&at_least(Severity::Error), &notice, true);
        check(&at_least(Severity::Critical), &notice, false);
    }
}
