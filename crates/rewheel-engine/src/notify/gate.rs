//! Limits the notices per window, and counts the others for a summary.

use super::event::{Event, Severity};
use super::notice::Notice;
use rewheel::{Moment, duration};
use rewheel_core::{KindName, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of groups in a summary.
const GROUPS_MAX: usize = 8;

/// Limits the number of notices within a window. Pure: the time is an argument.
#[derive(Debug)]
pub(super) struct Gate {
    window: Duration,
    window_max: u32,
    started: Option<Moment>,
    taken: u32,
    tally: Tally,
    /// When the suppressed notices must be summed up.
    due: Option<Moment>,
    /// Number of the next summary.
    number: u64,
}

/// The result for a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is delivered.
    Taken,
    /// It is part of the summary with this number.
    Suppressed(u64),
    /// It is neither: the queue is full. Offer it again.
    Full,
}

impl Gate {
    pub(super) fn new(window: Duration, window_max: u32) -> Gate {
        let tally = Tally::default();
        Gate { window, window_max, started: None, taken: 0, tally, due: None, number: 0 }
    }

    /// Admits a notice, or counts it for the summary. A window begins with its first notice.
    pub(super) fn admit(&mut self, notice: &Notice, now: Moment) -> Admission {
        if self.has_room(now) {
            if self.is_over(now) {
                self.started = Some(now);
                self.taken = 0;
            }
            self.taken += 1;
            return Admission::Taken;
        }
        self.suppress(notice, now)
    }

    /// Counts a notice for the summary, even if the window is not full.
    pub(super) fn suppress(&mut self, notice: &Notice, now: Moment) -> Admission {
        self.tally.add(notice);
        let ends = self.started.unwrap_or(now).plus(self.window);
        self.due.get_or_insert(ends);
        Admission::Suppressed(self.number)
    }

    /// Returns whether the window allows another notice.
    pub(super) fn has_room(&self, now: Moment) -> bool {
        self.is_over(now) || self.taken < self.window_max
    }

    /// Returns when a summary is due, if there is one.
    pub(super) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// Returns the suppressed notices if the summary is due, with its number.
    pub(super) fn summary(&mut self, now: Moment) -> Option<(u64, Tally)> {
        self.due.filter(|due| *due <= now)?;
        self.due = None;
        self.number += 1;
        Some((self.number - 1, std::mem::take(&mut self.tally)))
    }

    /// Makes a pending summary due now: the engine is about to stop.
    pub(super) fn hurry(&mut self, now: Moment) {
        self.due = self.due.map(|due| due.min(now));
    }

    fn is_over(&self, now: Moment) -> bool {
        self.started.is_none_or(|started| now >= started.plus(self.window))
    }
}

/// Counts suppressed notices.
#[derive(Debug, Default)]
pub(super) struct Tally {
    groups: BTreeMap<(Event, Option<KindName>), u64>,
    /// Notices beyond the maximum number of groups.
    others: u64,
    severity: Severity,
}

impl Tally {
    fn add(&mut self, notice: &Notice) {
        self.severity = self.severity.max(notice.severity);
        let group = (notice.event, notice.kind.clone());
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group) {
            self.others += 1;
        } else {
            *self.groups.entry(group).or_default() += 1;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.groups.values().sum::<u64>() + self.others
    }

    /// Returns the summary as a notice.
    pub(super) fn notice(&self, window: Duration, at: Timestamp) -> Notice {
        let mut groups: Vec<(u64, String)> = self
            .groups
            .iter()
            .map(|((event, kind), count)| {
                let events = if *count == 1 { "event" } else { "events" };
                let of = kind.as_ref().map_or(String::new(), |kind| format!(" of kind {kind}"));
                (*count, format!("{count} {event} {events}{of}"))
            })
            .collect();
        groups.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let mut parts: Vec<String> = groups.into_iter().map(|(_, text)| text).collect();
        if self.others > 0 {
            parts.push(format!("{} others", self.others));
        }
        let more = self.count();
        let window = duration::text(window);
        let text = format!(
            "{more} more notifications in the last {window}, not sent one by one: {}",
            parts.join(", ")
        );
        let summary = Notice::new(Event::Summary, at, text);
        Notice { severity: self.severity, more: Some(more), ..summary }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Event, Gate, Notice, Severity};
    use rewheel::{Clock, Moment, seconds};
    use rewheel_core::{KindName, Timestamp};

    const AT: Timestamp = Timestamp::from_millis(0);

    fn parked(kind: &str) -> Notice {
        Notice::kind_parked(&KindName::parse(kind).unwrap(), AT, "it fails")
    }

    fn start() -> Moment {
        Clock::system().now()
    }

    #[test]
    fn a_window_lets_as_many_through_as_it_may_and_the_next_one_again() {
        let (mut gate, start) = (Gate::new(seconds(30), 2), start());
        let notice = parked("mail");
        let admitted: Vec<_> = [0, 29, 29, 30, 59, 59, 60]
            .into_iter()
            .map(|at| gate.admit(&notice, start.plus(seconds(at))) == Admission::Taken)
            .collect();
        assert_eq!(admitted, [true, true, false, true, true, false, true]);
    }

    #[test]
    fn the_summary_is_due_at_the_end_of_the_window_and_counts_what_was_kept_back() {
        let (mut gate, start) = (Gate::new(seconds(30), 1), start());
        assert_eq!(gate.admit(&parked("mail"), start), Admission::Taken);
        assert_eq!(gate.due(), None);
        for _ in 0..37 {
            let later = start.plus(seconds(3));
            assert_eq!(gate.admit(&parked("mail"), later), Admission::Suppressed(0));
        }
        assert_eq!(gate.due(), Some(start.plus(seconds(30))));
        assert!(gate.summary(start.plus(seconds(29))).is_none());
        let (number, tally) = gate.summary(start.plus(seconds(30))).unwrap();
        assert_eq!((number, tally.count(), gate.due()), (0, 37, None));
        let notice = tally.notice(seconds(30), AT);
        assert_eq!(
            notice.text,
            "37 more notifications in the last 30s, not sent one by one: 37 kind_parked events of kind mail"
        );
        assert_eq!((notice.more, notice.severity), (Some(37), Severity::Warning));
    }

    /// Nothing is lost or counted twice if a new window begins before the summary was fetched.
    #[test]
    fn a_summary_that_comes_late_has_everything_and_the_next_one_a_new_number() {
        let (mut gate, start) = (Gate::new(seconds(30), 1), start());
        for at in [0, 1, 31, 32] {
            gate.admit(&parked("mail"), start.plus(seconds(at)));
        }
        let (number, tally) = gate.summary(start.plus(seconds(40))).unwrap();
        assert_eq!((number, tally.count()), (0, 2));
        assert_eq!(gate.admit(&parked("mail"), start.plus(seconds(41))), Admission::Suppressed(1));
        assert!(gate.summary(start.plus(seconds(60))).is_none());
        assert_eq!(gate.summary(start.plus(seconds(61))).unwrap().0, 1);
    }

    #[test]
    fn who_is_in_a_hurry_gets_the_summary_now_if_one_is_owed() {
        let (mut gate, start) = (Gate::new(seconds(30), 1), start());
        gate.hurry(start);
        assert_eq!(gate.due(), None);
        gate.admit(&parked("mail"), start);
        gate.admit(&parked("mail"), start);
        gate.hurry(start);
        assert_eq!(gate.summary(start).unwrap().1.count(), 1);
    }

    #[test]
    fn a_summary_names_the_most_frequent_first_and_only_so_many() {
        let (mut gate, start) = (Gate::new(seconds(30), 1), start());
        gate.admit(&parked("first"), start);
        for index in 0..10 {
            for _ in 0..=index {
                gate.suppress(&parked(&format!("kind-{index}")), start);
            }
        }
        gate.suppress(&Notice::new(Event::PersistFailed, AT, ""), start);
        let (_, tally) = gate.summary(start.plus(seconds(30))).unwrap();
        assert_eq!(tally.count(), 56);
        let notice = tally.notice(seconds(30), AT);
        let begins = "56 more notifications in the last 30s, not sent one by one: 8 kind_parked events of kind kind-7, 7 kind_parked events of kind kind-6";
        assert!(notice.text.starts_with(begins), "{}", notice.text);
        assert!(
            notice.text.ends_with("1 kind_parked event of kind kind-0, 20 others"),
            "{}",
            notice.text
        );
        assert_eq!(notice.severity, Severity::Critical);
    }
}
