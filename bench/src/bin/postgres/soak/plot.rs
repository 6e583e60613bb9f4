//! Draws the samples of a soak as an SVG image.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Sample;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 70.0;
const GAP: f64 = 50.0;
const COLORS: [&str; 6] = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf"];
/// The statements that are drawn: those that take the most time.
const STATEMENTS: usize = 6;

/// One line of a panel: its name, and its value for each sample, if there is one.
type Line = (String, Vec<Option<f64>>);

pub fn svg(samples: &[Sample]) -> String {
    let all = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(|sample| Some(of(sample))).collect();
    let mb = |bytes: i64| bytes as f64 / f64::from(1 << 20);
    let panels: [(&str, Vec<Line>); 4] = [
        (
            "size, MB",
            vec![
                ("tables".to_owned(), all(&|sample| mb(sample.table_bytes))),
                ("indexes".to_owned(), all(&|sample| mb(sample.index_bytes))),
            ],
        ),
        (
            "dead rows, thousands",
            vec![("all tables".to_owned(), all(&|s| s.dead_rows as f64 / 1e3))],
        ),
        ("mean time of a call, ms", statements(samples)),
        (
            "submit to start, ms",
            vec![
                ("p50".to_owned(), all(&|sample| sample.p50_ms)),
                ("p99".to_owned(), all(&|sample| sample.p99_ms)),
            ],
        ),
    ];
    let height = GAP + panels.len() as f64 * (HEIGHT + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        LEFT + WIDTH + 20.0
    );
    for (nth, (title, lines)) in panels.iter().enumerate() {
        panel(&mut svg, samples, GAP + nth as f64 * (HEIGHT + GAP), (title, lines));
    }
    svg.push_str("</svg>\n");
    svg
}

fn statements(samples: &[Sample]) -> Vec<Line> {
    let mut totals: BTreeMap<&String, f64> = BTreeMap::new();
    for (name, statement) in samples.iter().flat_map(|sample| &sample.statements) {
        *totals.entry(name).or_default() += statement.ms;
    }
    let mut names: Vec<(&String, f64)> = totals.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mean = |sample: &Sample, name: &String| {
        let statement = sample.statements.get(name).filter(|statement| statement.calls > 0.0);
        statement.map(|statement| statement.mean())
    };
    let line =
        |name: &String| (name.clone(), samples.iter().map(|sample| mean(sample, name)).collect());
    names.into_iter().take(STATEMENTS).map(|(name, _)| line(name)).collect()
}

fn panel(svg: &mut String, samples: &[Sample], top: f64, (title, lines): (&str, &[Line])) {
    let end = samples.last().map_or(1.0, |sample| sample.seconds.max(1.0));
    let values = lines.iter().flat_map(|(_, values)| values.iter().flatten());
    let most = values.fold(0.0_f64, |most, value| most.max(*value)).max(1e-9);
    let bottom = top + HEIGHT;
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{title}</text>\n\
         <path d=\"M{LEFT},{top} V{bottom} H{}\" fill=\"none\" stroke=\"#888\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most:.3}</text>\n\
         <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0} min</text>",
        top - 8.0,
        LEFT + WIDTH,
        LEFT - 6.0,
        top + 8.0,
        LEFT - 6.0,
        LEFT + WIDTH,
        bottom + 16.0,
        end / 60.0
    );
    for (nth, (name, values)) in lines.iter().enumerate() {
        let color = COLORS[nth % COLORS.len()];
        let point = |(sample, value): (&Sample, &Option<f64>)| {
            let value = (*value)?;
            let (x, y) = (LEFT + WIDTH * sample.seconds / end, bottom - HEIGHT * value / most);
            Some(format!("{x:.1},{y:.1}"))
        };
        let points: Vec<String> = samples.iter().zip(values).filter_map(point).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.3\"/>\n\
             <text x=\"{}\" y=\"{}\" fill=\"{color}\">{name}</text>",
            points.join(" "),
            LEFT + 200.0 + 110.0 * nth as f64,
            top - 8.0
        );
    }
}
