//! Draws charts as SVG, for the HTML report.

use std::fmt::Write;
use std::ops::Range;

/// Size of a chart, in units of its own.
const WIDTH: f64 = 640.0;

/// Room for the labels of the vertical axis.
const LEFT: f64 = 52.0;

/// Room for the labels of the horizontal axis.
const BOTTOM: f64 = 22.0;

const TOP: f64 = 8.0;

/// A line over time.
pub(crate) struct Line<'a> {
    /// The class of its colour.
    pub(crate) class: &'a str,
    /// One value for each point.
    pub(crate) values: &'a [f64],
}

/// A chart over time.
pub(crate) struct Chart<'a> {
    /// What is drawn, for people who cannot see it.
    pub(crate) label: &'a str,
    pub(crate) line: Line<'a>,
    /// The largest value of the vertical axis.
    pub(crate) most: f64,
    /// Formats a value of the vertical axis.
    pub(crate) unit: fn(f64) -> String,
    /// Number of points.
    pub(crate) seconds: f64,
    /// Seconds that a point stands for.
    pub(crate) scale: f64,
    /// Points of the outage.
    pub(crate) trouble: Option<Range<f64>>,
    pub(crate) height: f64,
}

/// Returns a round number that is not smaller, so that the labels of an axis are easy to read.
pub(crate) fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * unit).find(|step| *step >= value * 0.999_999).unwrap_or(value)
}

impl Chart<'_> {
    pub(crate) fn draw(&self) -> String {
        let height = self.height + TOP + BOTTOM;
        let mut svg = format!(
            r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{}">"#,
            escape(self.label)
        );
        if let Some(trouble) = &self.trouble {
            let (from, to) = (self.x(trouble.start), self.x(trouble.end));
            let wide = (to - from).max(2.0);
            // Writing to a string cannot fail.
            let _ = write!(
                svg,
                r#"<rect class="trouble" x="{from:.1}" y="{TOP}" width="{wide:.1}" height="{:.1}"/>"#,
                self.height
            );
        }
        self.draw_axes(&mut svg);
        self.draw_line(&mut svg);
        svg + "</svg>"
    }

    fn draw_axes(&self, svg: &mut String) {
        for share in [0.0, 0.5, 1.0] {
            let y = self.y(share * self.most);
            let label = (self.unit)(share * self.most);
            let _ = write!(
                svg,
                r#"<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1}" y2="{y:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                LEFT - 8.0,
                y + 4.0,
                escape(&label),
            );
        }
        let step = [
            1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 21_600.0,
            86_400.0,
        ];
        let step = step
            .into_iter()
            .find(|step| self.seconds * self.scale / step <= 7.0)
            .unwrap_or(86_400.0 * 7.0);
        let mut at = 0.0;
        let end = self.seconds * self.scale;
        while at <= end {
            let anchor = if at == 0.0 {
                "start"
            } else if at + step / 4.0 > end {
                "end"
            } else {
                "middle"
            };
            let _ = write!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
                self.x(at / self.scale),
                self.height + TOP + 17.0,
                time(at),
            );
            at += step;
        }
    }

    fn draw_line(&self, svg: &mut String) {
        let Line { class, values } = &self.line;
        let mut path = String::new();
        for (second, value) in values.iter().enumerate() {
            // A step for each second, at its whole width.
            let (from, to) = (self.x(second as f64), self.x(second as f64 + 1.0));
            let y = self.y(value.min(self.most));
            let first = if second == 0 { "M" } else { "L" };
            let _ = write!(path, "{first}{from:.1} {y:.1}L{to:.1} {y:.1}");
        }
        let (base, end) = (self.y(0.0), self.x(values.len() as f64));
        let _ = write!(
            svg,
            r#"<path class="area {class}" d="{path}L{end:.1} {base:.1}L{:.1} {base:.1}Z"/><path class="line {class}" d="{path}"/>"#,
            self.x(0.0)
        );
    }

    fn x(&self, second: f64) -> f64 {
        LEFT + (WIDTH - LEFT) * (second / self.seconds.max(1.0)).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + self.height * (1.0 - value / self.most)
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0}s"),
        seconds if seconds < 7_200.0 => format!("{:.0}m", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.0}h", seconds / 3_600.0),
        seconds => format!("{:.0}d", seconds / 86_400.0),
    }
}

/// Escapes a text for HTML and SVG.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{escape, round_up, time};

    #[test]
    fn axes_end_at_round_numbers() {
        let cases = [
            (0.0, 1.0),
            (1.0, 1.0),
            (7.0, 8.0),
            (1_501.0, 2_000.0),
            (999.0, 1_000.0),
            (0.03, 0.03),
        ];
        for (value, expected) in cases {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}: {}", round_up(value));
        }
        assert_eq!(
            (time(20.0), time(300.0), time(86_400.0), time(604_800.0)),
            ("20s".into(), "5m".into(), "24h".into(), "7d".into())
        );
    }

    #[test]
    fn text_of_users_is_no_markup() {
        assert_eq!(escape(r#"<b a="1">&"#), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
