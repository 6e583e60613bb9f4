//! Times in headers: RFC 3339, in UTC, with milliseconds.

use std::time::{Duration, SystemTime};

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// The last second of the year 9999: later times have no form of fixed length.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Formats a time of the years 1970 to 9999.
pub(super) fn format(at: SystemTime) -> Option<String> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let seconds = since.as_secs();
    if seconds > SECONDS_MAX {
        return None;
    }
    let (year, month, day) = civil(seconds / DAY_SECONDS);
    let second = seconds % DAY_SECONDS;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let millis = since.subsec_millis();
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

/// Parses such a time, also without or with more than three digits after the second.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    let body = bytes.strip_suffix(b"Z")?;
    let (seconds, fraction) = match body.get(19) {
        None => (body, &[][..]),
        Some(b'.') => (&body[..19], &body[20..]),
        Some(_) => return None,
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if seconds.len() != 19 || marks.iter().any(|(at, mark)| seconds[*at] != *mark) {
        return None;
    }
    let (year, month, day) =
        (number(&seconds[..4])?, number(&seconds[5..7])?, number(&seconds[8..10])?);
    let (hour, minute, second) =
        (number(&seconds[11..13])?, number(&seconds[14..16])?, number(&seconds[17..])?);
    // A leap second becomes the second after it.
    let is_valid = year >= 1970
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let seconds = days(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos(body.len() > 19, fraction)?))
}

/// Reads up to nine digits of a fraction of a second; more are cut.
fn nanos(has_fraction: bool, digits: &[u8]) -> Option<u32> {
    if !has_fraction {
        return Some(0);
    }
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let padded = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    Some(padded.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |value: u64, digit: &u8| {
        digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
    };
    digits.iter().try_fold(0, digit)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970 to this date. Years begin in March, so that the leap day is the last one.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_BEFORE_1970
}

/// From the first of March of the year 0 to 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

/// Returns year, month and day of a day after 1970.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}
