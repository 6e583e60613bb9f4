//! Parses cron expressions.

use jiff::civil::Date;
use std::fmt;
use std::str::FromStr;

/// Enough for lists of every minute; longer texts are refused before they are read.
const TEXT_BYTES_MAX: usize = 256;

/// Names of the months, in the order of their numbers, from 1.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Names of the days of the week, in the order of their numbers, from 0.
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Names for whole expressions.
const NAMED: [(&str, &str); 6] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
];

/// A cron expression: minute, hour, day of month, month, day of week.
///
/// Each field is `*`, a number, a range `1-5`, a step `*/15` or `8-18/2`, or a list of these. Months and days of the week may be
/// names (`jan`, `mon`); 0 and 7 are both Sunday. If neither day field begins with `*`, a day matches if one of them matches.
/// `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` stand for the usual expressions.
///
/// ```
/// use rewheel_engine::Cron;
///
/// assert_eq!("0 3 * * mon-fri".parse::<Cron>()?.to_string(), "0 3 * * mon-fri");
/// let error = "0 25 * * *".parse::<Cron>().unwrap_err();
/// assert_eq!(error.to_string(), "hour `25` must be 0 to 23");
/// # Ok::<(), rewheel_engine::CronError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
    /// Whether a day must match both day fields: one of them begins with `*`.
    both_days: bool,
    hour_field: HourField,
}

/// How the hour field is written. It decides what happens when clocks are set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HourField {
    /// `*`, or with a step: runs by elapsed time, so in both of the repeated hours.
    Elapsed,
    /// Names hours: runs in the first of two.
    Fixed,
}

/// Error: the text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(String);

/// The allowed numbers of a field, all below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set(u64);

/// What a field may contain.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

impl Cron {
    /// Returns whether a day matches.
    pub(super) fn matches_day(&self, date: Date) -> bool {
        let day = self.days.has(date.day().unsigned_abs().into());
        let weekday =
            self.weekdays.has(date.weekday().to_sunday_zero_offset().unsigned_abs().into());
        let is_day = if self.both_days { day && weekday } else { day || weekday };
        is_day && self.months.has(date.month().unsigned_abs().into())
    }

    /// Returns the times of a matching day, in order, from this hour and minute on.
    pub(super) fn times_from(&self, hour: i8, minute: i8) -> impl Iterator<Item = (i8, i8)> {
        let (minutes, from) = (self.minutes, (hour, minute));
        let hours = self.hours.all().filter(move |h| *h >= hour);
        hours
            .flat_map(move |hour| minutes.all().map(move |minute| (hour, minute)))
            .filter(move |time| *time >= from)
    }

    pub(super) const fn hour_field(&self) -> HourField {
        self.hour_field
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Cron, CronError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(CronError(format!("must be {TEXT_BYTES_MAX} bytes or fewer")));
        }
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let meant = NAMED.iter().find(|(name, _)| *name == lower).map(|(_, meant)| *meant);
        let fields: Vec<&str> = meant.unwrap_or(&lower).split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError(format!(
                "must have 5 fields (minute, hour, day of month, month, day of week), such as `0 3 * * *`; it has {}",
                fields.len()
            )));
        };
        let field = |name, min, max, names| Field { name, min, max, names };
        let is_elapsed = hour.starts_with('*') || hour.contains('/');
        let weekdays = field("day of week", 0, 7, &DAYS).parse(weekday)?;
        Ok(Cron {
            text: text.to_owned(),
            minutes: field("minute", 0, 59, &[]).parse(minute)?,
            hours: field("hour", 0, 23, &[]).parse(hour)?,
            days: field("day of month", 1, 31, &[]).parse(day)?,
            months: field("month", 1, 12, &MONTHS).parse(month)?,
            weekdays: if weekdays.has(7) { Set(weekdays.0 | 1) } else { weekdays },
            both_days: day.starts_with('*') || weekday.starts_with('*'),
            hour_field: if is_elapsed { HourField::Elapsed } else { HourField::Fixed },
        })
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<Set, CronError> {
        let mut set = Set(0);
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (part, None),
            };
            let (first, last) = match (range, range.split_once('-')) {
                ("*", _) => (self.min, self.max),
                (_, Some((first, last))) => (self.number(first)?, self.number(last)?),
                (one, None) if step.is_none() => {
                    let one = self.number(one)?;
                    (one, one)
                }
                (one, None) => (self.number(one)?, self.max),
            };
            if first > last {
                let name = self.name;
                return Err(CronError(format!("{name} `{range}` must not end before it begins")));
            }
            let step = step.map_or(Ok(1), |step| self.step(step))?;
            (first..=last).step_by(step).for_each(|number| set.0 |= 1 << number);
        }
        Ok(set)
    }

    fn step(&self, text: &str) -> Result<usize, CronError> {
        let step = text.parse::<usize>().ok().filter(|step| (1..=59).contains(step));
        step.ok_or_else(|| {
            CronError(format!("{} has the step `{text}`: a step must be 1 to 59", self.name))
        })
    }

    fn number(&self, text: &str) -> Result<u32, CronError> {
        let (min, max) = (self.min, self.max);
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(number) = text.parse().ok().filter(|_| is_digits)
            && (min..=max).contains(&number)
        {
            return Ok(number);
        }
        if let Some(place) = self.names.iter().position(|name| *name == text) {
            return Ok(min + u32::try_from(place).unwrap_or(0));
        }
        let names = self.names.first().zip(self.names.last());
        let or = names.map_or_else(String::new, |(first, last)| format!(", or {first} to {last}"));
        Err(CronError(format!("{} `{text}` must be {min} to {max}{or}", self.name)))
    }
}

impl Set {
    const fn has(self, number: u32) -> bool {
        self.0 & (1 << number) != 0
    }

    fn all(self) -> impl Iterator<Item = i8> {
        (0..60).filter(move |number| self.0 & (1 << number) != 0)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Cron;
    use jiff::civil::date;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(text.parse::<Cron>().unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn what_is_not_cron_names_the_field() {
        check(
            "",
            "must have 5 fields (minute, hour, day of month, month, day of week), such as `0 3 * * *`; it has 0",
        );
        check("60 * * * *", "minute `60` must be 0 to 59");
        check("-1 * * * *", "minute `` must be 0 to 59");
        check("* 24 * * *", "hour `24` must be 0 to 23");
        check("* * 0 * *", "day of month `0` must be 1 to 31");
        check("* * * 13 *", "month `13` must be 1 to 12, or jan to dec");
        check("* * * * 8", "day of week `8` must be 0 to 7, or sun to sat");
        check("* * * * mo", "day of week `mo` must be 0 to 7, or sun to sat");
        check("*/0 * * * *", "minute has the step `0`: a step must be 1 to 59");
        check("5-1 * * * *", "minute `5-1` must not end before it begins");
        check("1,,2 * * * *", "minute `` must be 0 to 59");
        check("+1 * * * *", "minute `+1` must be 0 to 59");
        check("* * L * *", "day of month `l` must be 1 to 31");
        check(&"1,".repeat(200), "must be 256 bytes or fewer");
    }

    #[test]
    fn fields_are_numbers_ranges_steps_lists_and_names() {
        let cron: Cron = "5,50-59/5 8-18/5,23 * Jan-MAR Mon-fri".parse().unwrap();
        let times: Vec<_> = cron.times_from(8, 51).collect();
        assert_eq!(times[..3], [(8, 55), (13, 5), (13, 50)]);
        assert_eq!(*times.last().unwrap(), (23, 55));
        assert!(cron.matches_day(date(2026, 1, 5)) && !cron.matches_day(date(2026, 1, 4)));
        assert!(!cron.matches_day(date(2026, 4, 6)));
        let sundays: Cron = "0 0 * * 7".parse().unwrap();
        assert!(sundays.matches_day(date(2026, 1, 4)));
        let from_ten: Cron = "10/20 0 * * *".parse().unwrap();
        assert_eq!(from_ten.times_from(0, 0).collect::<Vec<_>>(), [(0, 10), (0, 30), (0, 50)]);
    }

    /// As in every cron: Friday the 13th needs two fields that begin with `*`, so this is each Friday and each 13th.
    #[test]
    fn two_restricted_day_fields_match_either() {
        let either: Cron = "0 0 13 * fri".parse().unwrap();
        assert!(either.matches_day(date(2026, 1, 13)) && either.matches_day(date(2026, 1, 2)));
        let both: Cron = "0 0 */2 * fri".parse().unwrap();
        assert!(both.matches_day(date(2026, 1, 9)) && !both.matches_day(date(2026, 1, 2)));
    }
}
