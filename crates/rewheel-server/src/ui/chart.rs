//! Charts of the history, drawn by the server as SVG with a table of the same values.

use super::documents::{History, HistoryCounts};
use super::refusal::Refusal;
use super::shown::{Number, Times, Zone, duration, segment};
use super::visitor::Visitor;
use crate::rfc3339;
use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::Uri;
use rewheel_core::{KindCounts, Timestamp};
use std::fmt::Write;
use url::form_urlencoded;

/// The height of the coordinates. Browsers stretch them to the size of the chart.
const HEIGHT: f64 = 100.0;

const MINUTE_MS: i64 = 60_000;

/// When nodes have reported a minute that is over: they report every 10 seconds.
const REPORTED_WITHIN_MS: i64 = 15_000;

/// How far back a chart looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Quarter,
    Hour,
    ThreeHours,
    Day,
}

impl Range {
    pub(super) const ALL: [Range; 4] = [Range::Quarter, Range::Hour, Range::ThreeHours, Range::Day];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Range::Quarter => "15m",
            Range::Hour => "1h",
            Range::ThreeHours => "3h",
            Range::Day => "24h",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Range> {
        Range::ALL.into_iter().find(|range| range.as_str() == text)
    }

    /// Minutes of one bucket: at most 96 buckets can be told apart on a phone.
    const fn minutes(self) -> i64 {
        match self {
            Range::Quarter | Range::Hour => 1,
            Range::ThreeHours => 2,
            Range::Day => 15,
        }
    }

    const fn buckets(self) -> i64 {
        match self {
            Range::Quarter => 15,
            Range::Hour => 60,
            Range::ThreeHours => 90,
            Range::Day => 96,
        }
    }

    /// Returns the shortest range with everything that was reported.
    fn of(history: &History) -> Range {
        let reported = history.points.iter().find(|point| point.counts.is_some());
        let Some((first, now)) = reported.and_then(|point| {
            Some((rfc3339::parse(&point.start).ok()?, rfc3339::parse(&history.as_of).ok()?))
        }) else {
            return Range::Quarter;
        };
        let age = now.as_millis().saturating_sub(first.as_millis());
        let holds = |range: &Range| age <= range.minutes() * range.buckets() * MINUTE_MS;
        Range::ALL.into_iter().find(holds).unwrap_or(Range::Day)
    }
}

/// What was counted in one bucket; no minutes if no node reported.
#[derive(Clone, Debug, Default)]
struct Bucket {
    minutes: u32,
    counts: KindCounts,
}

/// The history of a page in buckets, from which its charts are made.
pub(super) struct Timeline {
    pub(super) range: Range,
    zone: Zone,
    start: Timestamp,
    buckets: Vec<Bucket>,
    dead_in_an_hour: u64,
}

impl Timeline {
    /// Reads the history of a kind, or of all kinds together. Without a range in the address, the range is the shortest that holds what
    /// is known.
    pub(super) async fn read(
        visitor: &Visitor,
        kind: Option<&str>,
        uri: &Uri,
    ) -> Result<Timeline, Refusal> {
        let kind = kind.map_or_else(String::new, |kind| format!("?kind={}", segment(kind)));
        let history: History = visitor.get(&format!("/v1/history{kind}")).await?;
        let query = uri.query().unwrap_or_default();
        let wanted = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "range");
        let times = Times { zone: visitor.zone(), now: visitor.now };
        Ok(Timeline::new(&history, wanted.and_then(|(_, range)| Range::parse(&range)), &times))
    }

    /// Puts a history into buckets. Minutes that nodes may not have reported completely are left out.
    pub(super) fn new(history: &History, wanted: Option<Range>, times: &Times) -> Timeline {
        let range = wanted.unwrap_or_else(|| Range::of(history));
        let now = rfc3339::parse(&history.as_of).unwrap_or(times.now).as_millis();
        let complete = (now - REPORTED_WITHIN_MS).div_euclid(MINUTE_MS) * MINUTE_MS;
        let width = range.minutes() * MINUTE_MS;
        let last = (complete - 1).div_euclid(width) * width;
        let start = last - (range.buckets() - 1) * width;
        let mut buckets = vec![Bucket::default(); usize::try_from(range.buckets()).unwrap_or(0)];
        let mut dead_in_an_hour = 0;
        for point in &history.points {
            let (Ok(at), Some(counts)) = (rfc3339::parse(&point.start), &point.counts) else {
                continue;
            };
            let end = at.as_millis() + i64::from(point.minutes) * MINUTE_MS;
            if at.as_millis() >= now - 60 * MINUTE_MS {
                dead_in_an_hour += counts.dead;
            }
            let place = usize::try_from((at.as_millis() - start).div_euclid(width)).ok();
            if let Some(bucket) =
                place.and_then(|place| buckets.get_mut(place)).filter(|_| end <= complete)
            {
                bucket.minutes += point.reported;
                bucket.counts.add_after(&counts.read());
            }
        }
        let start = Timestamp::from_millis(start);
        Timeline { range, zone: times.zone.clone(), start, buckets, dead_in_an_hour }
    }

    /// Returns the chart of what happened to jobs, per minute.
    pub(super) fn settled(&self, id: &'static str, title: &str) -> Chart {
        let rate = |count: fn(&KindCounts) -> u64| {
            move |bucket: &Bucket| Some(count(&bucket.counts) as f64 / f64::from(bucket.minutes))
        };
        let series = [
            self.series("succeeded", Style::Solid, rate(|counts| counts.succeeded)),
            self.series("retried", Style::Dashed, rate(|counts| counts.retried)),
            self.series("dead letters", Style::Filled, rate(|counts| counts.dead)),
        ];
        self.chart(id, title, series.to_vec(), per_minute)
    }

    /// Returns the chart of how long attempts took.
    pub(super) fn durations(&self, id: &'static str, title: &str) -> Chart {
        self.quantiles(id, title, |counts| &counts.durations)
    }

    /// Returns the chart of how late attempts started.
    pub(super) fn lateness(&self, id: &'static str, title: &str) -> Chart {
        self.quantiles(id, title, |counts| &counts.lateness)
    }

    fn quantiles(
        &self,
        id: &'static str,
        title: &str,
        of: fn(&KindCounts) -> &[u64; KindCounts::BUCKETS],
    ) -> Chart {
        let part = |part: f64| {
            move |bucket: &Bucket| {
                KindCounts::quantile(of(&bucket.counts), part)
                    .map(|found| found.as_secs_f64() * 1e3)
            }
        };
        let series = [
            self.series("p50", Style::Solid, part(0.5)),
            self.series("p95", Style::Dashed, part(0.95)),
        ];
        self.chart(id, title, series.to_vec(), |millis| duration(millis.round() as u64))
    }

    /// Returns the number of jobs that became dead letters in the last hour.
    pub(super) fn dead_in_an_hour(&self) -> u64 {
        self.dead_in_an_hour
    }

    fn series(
        &self,
        name: &'static str,
        style: Style,
        value: impl Fn(&Bucket) -> Option<f64>,
    ) -> Series {
        let known = |bucket: &Bucket| (bucket.minutes > 0).then(|| value(bucket)).flatten();
        Series { name, style, values: self.buckets.iter().map(known).collect() }
    }

    fn chart(
        &self,
        id: &'static str,
        title: &str,
        series: Vec<Series>,
        text: impl Fn(f64) -> String,
    ) -> Chart {
        let most =
            series.iter().flat_map(|one| &one.values).flatten().fold(0.0, |a: f64, b| a.max(*b));
        let top = nice(most);
        let mut chart = Chart {
            id,
            title: title.to_owned(),
            about: self.about(&series, &text),
            width: self.buckets.len(),
            top: text(top),
            from: self.clock(0),
            until: self.clock(self.buckets.len()),
            each: self.range.minutes(),
            is_empty: self.buckets.iter().all(|bucket| bucket.minutes == 0),
            lines: series.iter().map(|one| one.line(top)).collect(),
            gaps: Vec::new(),
            hits: Vec::new(),
            rows: Vec::new(),
        };
        let mut gap: Option<usize> = None;
        for (place, bucket) in self.buckets.iter().enumerate() {
            if bucket.minutes == 0 {
                gap.get_or_insert(place);
                continue;
            }
            chart.end_gap(self, gap.take(), place);
            let shown: Vec<String> = series
                .iter()
                .map(|one| one.values[place].map_or_else(|| "–".to_owned(), &text))
                .collect();
            let named: Vec<String> = series
                .iter()
                .zip(&shown)
                .map(|(one, value)| format!("{} {value}", one.name))
                .collect();
            let time = self.clock(place);
            chart.hits.push((place, format!("{time}: {}", named.join(", "))));
            chart.rows.push((time, Some(shown)));
        }
        chart.end_gap(self, gap, self.buckets.len());
        chart
    }

    /// Says what the chart shows, for those who cannot see it.
    fn about(&self, series: &[Series], text: &impl Fn(f64) -> String) -> String {
        let most = |one: &Series| {
            let most = one.values.iter().flatten().copied().reduce(f64::max);
            most.map(|most| format!("{} at most {}", one.name, text(most)))
        };
        let named: Vec<String> = series.iter().filter_map(most).collect();
        let what = if named.is_empty() { "no values".to_owned() } else { named.join(", ") };
        format!("From {} to {}: {what}.", self.clock(0), self.clock(self.buckets.len()))
    }

    fn clock(&self, place: usize) -> String {
        let minutes = self.range.minutes() * i64::try_from(place).unwrap_or(0);
        self.zone.minute(Timestamp::from_millis(self.start.as_millis() + minutes * MINUTE_MS))
    }
}

/// How a series is drawn: never by its colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Solid,
    Dashed,
    Filled,
}

/// The values of one line; `None` where nothing is known.
#[derive(Clone, Debug)]
struct Series {
    name: &'static str,
    style: Style,
    values: Vec<Option<f64>>,
}

impl Series {
    /// Draws steps from bucket to bucket, with gaps where nothing is known.
    fn line(&self, top: f64) -> Line {
        let (mut path, mut is_open) = (String::new(), false);
        for (place, value) in self.values.iter().enumerate() {
            let Some(value) = value else {
                if is_open && self.style == Style::Filled {
                    let _ = write!(path, "V{HEIGHT}Z");
                }
                is_open = false;
                continue;
            };
            let y = ((HEIGHT - value / top * HEIGHT) * 10.0).round() / 10.0;
            let _ = match (is_open, self.style) {
                (true, _) => write!(path, "V{y}H{}", place + 1),
                (false, Style::Filled) => write!(path, "M{place} {HEIGHT}V{y}H{}", place + 1),
                (false, Style::Solid | Style::Dashed) => write!(path, "M{place} {y}H{}", place + 1),
            };
            is_open = true;
        }
        if is_open && self.style == Style::Filled {
            let _ = write!(path, "V{HEIGHT}Z");
        }
        let class = match self.style {
            Style::Solid => "c-solid",
            Style::Dashed => "c-dashed",
            Style::Filled => "c-filled",
        };
        Line { name: self.name, class, path }
    }
}

struct Line {
    name: &'static str,
    class: &'static str,
    path: String,
}

/// The charts of a page, with the links to other ranges.
#[derive(Template)]
#[template(path = "charts.html")]
pub(super) struct Charts {
    /// The address of the page.
    page: String,
    ranges: Vec<(&'static str, bool)>,
    charts: Vec<Chart>,
}

impl HtmlSafe for Charts {}

impl Charts {
    pub(super) fn new(page: String, timeline: &Timeline, charts: Vec<Chart>) -> Charts {
        let one = |range: Range| (range.as_str(), range == timeline.range);
        Charts { page, ranges: Range::ALL.map(one).to_vec(), charts }
    }
}

/// A chart with its legend and table.
#[derive(Template)]
#[template(path = "chart.html")]
pub(super) struct Chart {
    id: &'static str,
    title: String,
    about: String,
    /// Number of buckets.
    width: usize,
    top: String,
    from: String,
    until: String,
    /// Minutes of a bucket.
    each: i64,
    is_empty: bool,
    lines: Vec<Line>,
    /// Where no node reported: first bucket, and number of buckets.
    gaps: Vec<(usize, usize)>,
    /// What a pointer on a bucket reads.
    hits: Vec<(usize, String)>,
    /// The values of each bucket; none for a gap.
    rows: Vec<(String, Option<Vec<String>>)>,
}

impl HtmlSafe for Chart {}

impl Chart {
    fn end_gap(&mut self, timeline: &Timeline, from: Option<usize>, until: usize) {
        let Some(from) = from else { return };
        self.gaps.push((from, until - from));
        self.rows.push((format!("{} to {}", timeline.clock(from), timeline.clock(until)), None));
    }
}

/// Returns a round number that is not below this one: the top of an axis that begins at 0.
fn nice(most: f64) -> f64 {
    let most = if most > 0.0 { most } else { 1.0 };
    let unit = 10_f64.powf(most.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * unit)
        .find(|top| *top >= most)
        .unwrap_or(most)
}

/// Shows a rate. Below ten, one digit after the point tells 0.2 from 0.
fn per_minute(rate: f64) -> String {
    match rate {
        rate if rate >= 10.0 || rate.fract() == 0.0 => Number(rate.round() as u64).to_string(),
        rate => format!("{rate:.1}"),
    }
}

impl HistoryCounts {
    fn read(&self) -> KindCounts {
        KindCounts {
            succeeded: self.succeeded,
            retried: self.retried,
            dead: self.dead,
            durations: self.duration.buckets,
            lateness: self.lateness.buckets,
            ..KindCounts::default()
        }
    }
}

#[cfg(test)]
mod tests;
