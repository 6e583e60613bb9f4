//! Draws numbers as text, for a terminal.

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws values between 0 and 1 as a row of bars.
///
/// ```
/// assert_eq!(rewheel_lab::curve([0.0, 0.001, 0.5, 1.0]), " ▁▄█");
/// ```
pub fn curve(shares: impl IntoIterator<Item = f64>) -> String {
    let bar = |share: f64| {
        let step = (share * (BARS.len() - 1) as f64).round() as usize;
        // Values above zero are always visible.
        BARS[step.max(usize::from(share > 0.0)).min(BARS.len() - 1)]
    };
    shares.into_iter().map(bar).collect()
}

/// Draws a value between 0 and 1 as a bar of at most this many columns.
///
/// ```
/// assert_eq!(rewheel_lab::bar(0.5, 4), "██");
/// assert_eq!(rewheel_lab::bar(0.001, 4), "▏");
/// ```
pub fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    // Values above zero are always visible.
    let eighths = eighths.max(usize::from(share > 0.0));
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Draws a range on a line of this many columns: from the first to the third value a line, and a mark at the second. The values are
/// between 0 and 1.
///
/// ```
/// assert_eq!(rewheel_lab::range([0.0, 0.5, 1.0], 9), "├───●───┤");
/// ```
pub fn range([low, middle, high]: [f64; 3], columns: usize) -> String {
    let place = |share: f64| (share.clamp(0.0, 1.0) * (columns.max(1) - 1) as f64).round() as usize;
    let (low, middle, high) = (place(low), place(middle), place(high));
    let mark = |column: usize| match column {
        column if column == middle => '●',
        column if column == low => '├',
        column if column == high => '┤',
        column if (low..high).contains(&column) => '─',
        _ => ' ',
    };
    (0..columns).map(mark).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{bar, curve, range};

    #[test]
    fn what_is_too_large_or_no_number_is_cut() {
        assert_eq!(curve([1.2, f64::NAN]), "█ ");
        assert_eq!(
            (bar(7.0, 2), bar(-1.0, 2), bar(0.0, 2)),
            ("██".to_owned(), String::new(), String::new())
        );
        assert_eq!(range([-1.0, -1.0, 9.0], 3), "●─┤");
        assert_eq!(range([0.5, 0.5, 0.5], 3), " ●");
    }
}
