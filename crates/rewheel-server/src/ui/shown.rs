//! How pages show numbers, times, durations and states.

use crate::rfc3339;
use askama::Template;
use askama::filters::HtmlSafe;
use rewheel_core::Timestamp;
use std::fmt;

/// The mark and the word of a state. Colour never stands alone.
#[derive(Clone, Debug, Template)]
#[template(path = "mark.html")]
pub(super) struct Mark {
    state: String,
    word: String,
}

impl HtmlSafe for Mark {}

impl Mark {
    pub(super) fn of(state: &str) -> Mark {
        Mark { state: state.to_owned(), word: state.to_owned() }
    }

    /// The mark of a state with other words.
    pub(super) fn with(state: &str, word: &str) -> Mark {
        Mark { state: state.to_owned(), word: word.to_owned() }
    }
}

/// A number, shown short, with its exact value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number(pub(super) u64);

impl fmt::Display for Number {
    /// Shows 1,204, and from 10,000 on 12.3k.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        let (unit, letter) = match number {
            0..10_000 => return f.write_str(&exact(number)),
            10_000..1_000_000 => (1_000, 'k'),
            1_000_000..1_000_000_000 => (1_000_000, 'M'),
            _ => (1_000_000_000, 'G'),
        };
        write!(f, "{}.{}{letter}", exact(number / unit), number % unit * 10 / unit)
    }
}

impl Number {
    /// Returns all digits.
    pub(super) fn exact(self) -> String {
        exact(self.0)
    }

    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }
}

fn exact(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Shows a duration with two units.
pub(super) fn duration(millis: u64) -> String {
    let (seconds, minutes, hours) = (millis / 1_000, millis / 60_000, millis / 3_600_000);
    let two = |one: u64, unit: &str, other: u64, second: &str| match other {
        0 => format!("{one} {unit}"),
        other => format!("{one} {unit} {other} {second}"),
    };
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => two(minutes, "m", seconds % 60, "s"),
        3_600_000..86_400_000 => two(hours, "h", minutes % 60, "m"),
        _ => two(hours / 24, "d", hours % 24, "h"),
    }
}

/// Shows how long an attempt took, from the text of REST: exact enough to compare attempts.
pub(super) fn took(text: &str) -> String {
    let Ok(length) = rewheel::duration::parse(text) else { return text.to_owned() };
    match u64::try_from(length.as_millis()).unwrap_or(u64::MAX) {
        0 if !length.is_zero() => "<1 ms".to_owned(),
        millis @ 1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => duration(millis),
    }
}

/// The time zone of a visitor.
#[derive(Clone, Debug)]
pub(super) struct Zone(jiff::tz::TimeZone);

impl Zone {
    pub(super) fn of(name: Option<&str>) -> Zone {
        let found = name.and_then(|name| jiff::tz::TimeZone::get(name).ok());
        Zone(found.unwrap_or(jiff::tz::TimeZone::UTC))
    }

    pub(super) fn name(&self) -> String {
        self.0.iana_name().unwrap_or("UTC").to_owned()
    }

    /// Shows date and time with milliseconds.
    pub(super) fn full(&self, at: Timestamp) -> String {
        self.text(at, "%Y-%m-%d %H:%M:%S%.3f")
    }

    /// Shows the time of a day.
    pub(super) fn clock(&self, at: Timestamp) -> String {
        self.text(at, "%H:%M:%S")
    }

    /// Shows the minute of a day.
    pub(super) fn minute(&self, at: Timestamp) -> String {
        self.text(at, "%H:%M")
    }

    fn text(&self, at: Timestamp, format: &str) -> String {
        let at = jiff::Timestamp::from_millisecond(at.as_millis());
        at.map_or_else(
            |_| "beyond the calendar".to_owned(),
            |at| at.to_zoned(self.0.clone()).strftime(format).to_string(),
        )
    }
}

/// An instant: when it is, and how long ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Instant {
    /// The time in the zone of the visitor.
    pub(super) at: String,
    /// `4 m 12 s ago`, `in 30 s`.
    pub(super) ago: String,
    /// For programs.
    pub(super) iso: String,
}

/// Shows instants to one visitor, at one time of the store.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) zone: Zone,
    pub(super) now: Timestamp,
}

impl Times {
    /// Shows a time of a document.
    pub(super) fn at(&self, text: &str) -> Instant {
        let Ok(at) = rfc3339::parse(text) else {
            return Instant { at: text.to_owned(), ago: text.to_owned(), iso: text.to_owned() };
        };
        Instant { at: self.zone.full(at), ago: self.ago(at), iso: text.to_owned() }
    }

    pub(super) fn maybe(&self, text: Option<&str>) -> Option<Instant> {
        text.map(|text| self.at(text))
    }

    /// Shows the distance to a time, or the time itself if it is more than a day away.
    fn ago(&self, at: Timestamp) -> String {
        let millis = self.now.as_millis().saturating_sub(at.as_millis());
        let distance = millis.unsigned_abs();
        match (millis, distance) {
            (_, 86_400_000..) => self.zone.text(at, "%Y-%m-%d %H:%M"),
            (_, 0..1_000) => "now".to_owned(),
            (1.., _) => format!("{} ago", duration(distance)),
            _ => format!("in {}", duration(distance)),
        }
    }
}

/// The last characters of an id, which differ between jobs of one moment.
pub(super) fn short(id: &str) -> String {
    let skip = id.chars().count().saturating_sub(8);
    id.chars().skip(skip).collect()
}

/// Encodes a text from the address of a page as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    match text {
        // Some routers normalize these.
        "." | ".." => text.replace('.', "%2E"),
        text => text.bytes().map(one).collect(),
    }
}

/// Cuts a text for a cell of a table.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, Number, Times, Zone, cut, duration, segment, short};
    use askama::Template;
    use rewheel_core::Timestamp;

    #[test]
    fn numbers_are_short_from_ten_thousand_on() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_204, "1,204"),
            (9_999, "9,999"),
            (10_000, "10.0k"),
            (12_345, "12.3k"),
            (1_000_000, "1.0M"),
            (2_500_000_000, "2.5G"),
        ] {
            assert_eq!(Number(number).to_string(), text);
        }
        assert_eq!(Number(1_234_567).exact(), "1,234,567");
    }

    #[test]
    fn durations_have_two_units() {
        for (text, shown) in [
            ("837us942ns", "<1 ms"),
            ("0ms", "0 ms"),
            ("4ms925us", "4 ms"),
            ("1s550ms", "1.5 s"),
            ("59s999ms", "59.9 s"),
            ("1m30s", "1 m 30 s"),
            ("soon", "soon"),
        ] {
            assert_eq!(super::took(text), shown, "{text}");
        }
        for (millis, text) in [
            (7, "7 ms"),
            (1_500, "1 s"),
            (252_000, "4 m 12 s"),
            (120_000, "2 m"),
            (7_260_000, "2 h 1 m"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(millis), text);
        }
    }

    #[test]
    fn times_are_relative_for_a_day_and_in_the_zone_of_the_visitor() {
        let times =
            |zone| Times { zone: Zone::of(zone), now: Timestamp::from_millis(1_700_000_000_000) };
        let shown = times(Some("Europe/Berlin")).at("2023-11-14T22:13:10.005Z");
        assert_eq!((shown.at.as_str(), shown.ago.as_str()), ("2023-11-14 23:13:10.005", "9 s ago"));
        assert_eq!(times(None).at("2023-11-14T22:13:50Z").ago, "in 30 s");
        assert_eq!(times(None).at("2023-11-10T22:13:50Z").ago, "2023-11-10 22:13");
        assert_eq!(times(Some("No/Where")).zone.name(), "UTC");
        assert_eq!(times(None).at("later").ago, "later");
    }

    #[test]
    fn a_mark_escapes_its_word() {
        let html = Mark::with("dead", "<b>").render().unwrap();
        assert!(html.contains("s-dead") && !html.contains("<b>"), "{html}");
    }

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(segment("0193-a.b_c"), "0193-a.b_c");
        assert_eq!(segment("../x?y#z é"), "..%2Fx%3Fy%23z%20%C3%A9");
        assert_eq!(segment(".."), "%2E%2E");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((cut("ééé", 2).as_str(), cut("ééé", 3).as_str()), ("éé…", "ééé"));
        assert_eq!(
            (short("0193a5f0-5f6a7b8c9d0e").as_str(), short("é").as_str()),
            ("7b8c9d0e", "é")
        );
    }
}
