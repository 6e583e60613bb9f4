//! Computes the instants of cron expressions in time zones, through changes of the clocks.

use super::cron::{Cron, HourField};
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp as Instant};
use rewheel_core::Timestamp;
use std::sync::LazyLock;

/// After this many days without a match there is none: February 29 is at most 8 years away.
const DAYS_MAX: u32 = 9 * 366;

/// The rules of all zones, as compiled into this program. Nodes of one release agree on them, whatever is installed on their
/// machines.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A cron expression in a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) cron: Cron,
    zone: TimeZone,
    zone_name: String,
}

impl Calendar {
    /// Creates a calendar; `None` if there is no such zone.
    pub(super) fn new(cron: Cron, zone: &str) -> Option<Calendar> {
        let found = ZONES.get(zone).ok()?;
        let zone_name = found.iana_name().unwrap_or(zone).to_owned();
        Some(Calendar { cron, zone: found, zone_name })
    }

    pub(super) fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// Returns the first instant after this one; `None` if there is none within nine years.
    pub(super) fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = Instant::from_millisecond(after.as_millis()).ok()?;
        let found = self.next_plain(after).or_else(|| self.next_around_changes(after));
        found.map(|at| Timestamp::from_millis(at.as_millisecond()))
    }

    /// Returns the next instant if no clock changes between: then one look at the offset is enough.
    fn next_plain(&self, after: Instant) -> Option<Instant> {
        let offset = self.zone.to_offset(after);
        let local = offset.to_datetime(after);
        let found = self.times_after(local).next()?;
        let at = offset.to_timestamp(found).ok()?;
        let is_plain = matches!(
            self.zone.to_ambiguous_timestamp(found).offset(),
            AmbiguousOffset::Unambiguous { offset: then } if then == offset
        );
        let change = self.zone.following(after).next();
        (is_plain && change.is_none_or(|change| at < change.timestamp())).then_some(at)
    }

    /// Returns the next instant by looking at all instants of the days around it.
    fn next_around_changes(&self, after: Instant) -> Option<Instant> {
        let today = self.zone.to_datetime(after).date();
        // A clock may be set back over midnight.
        let from = today.yesterday().ok()?;
        for day in self.days_from(from) {
            let Some(found) = self.first_of(day, after) else { continue };
            let of_next = day.tomorrow().ok().filter(|next| self.cron.matches_day(*next));
            let later = of_next.and_then(|next| self.first_of(next, after));
            return Some(later.map_or(found, |later| later.min(found)));
        }
        None
    }

    /// Returns the first instant of a day after this one.
    fn first_of(&self, day: Date, after: Instant) -> Option<Instant> {
        let instants = self
            .cron
            .times_from(0, 0)
            .flat_map(|(hour, minute)| self.instants(day.at(hour, minute, 0, 0)));
        instants.filter(|at| *at > after).min()
    }

    /// Returns when a clock shows this time: once, or never, or twice.
    fn instants(&self, local: DateTime) -> impl Iterator<Item = Instant> {
        let of = |offset: jiff::tz::Offset| offset.to_timestamp(local).ok();
        let (first, second) = match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => (of(offset), None),
            AmbiguousOffset::Fold { before, after } => match self.cron.hour_field() {
                HourField::Elapsed => (of(before), of(after)),
                HourField::Fixed => (of(before), None),
            },
            // By the later offset this time is before the gap, whose end is the next change.
            AmbiguousOffset::Gap { after, .. } => {
                let before_gap = of(after);
                let end = before_gap.and_then(|at| self.zone.following(at).next());
                (end.map(|change| change.timestamp()), None)
            }
        };
        first.into_iter().chain(second)
    }

    /// Returns the local times after this one, in order.
    fn times_after(&self, local: DateTime) -> impl Iterator<Item = DateTime> {
        let today = local.date();
        self.days_from(today).flat_map(move |day| {
            let (hour, minute) = if day == today { (local.hour(), local.minute()) } else { (0, 0) };
            let times = self.cron.times_from(hour, minute);
            times
                .map(move |(hour, minute)| day.at(hour, minute, 0, 0))
                .filter(move |at| *at > local)
        })
    }

    /// Returns the matching days, in order.
    fn days_from(&self, first: Date) -> impl Iterator<Item = Date> {
        let days =
            (0..DAYS_MAX).map_while(move |day| first.checked_add(Span::new().days(day)).ok());
        days.filter(|day| self.cron.matches_day(*day))
    }
}

#[cfg(test)]
mod tests;
