//! Prepares the text of statements: removes comments, and fills in columns and lists of parameters.

use super::job_columns::fill_in;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The texts of statements by the address of their file in this program, and the number of values in their list.
type Texts = HashMap<(usize, usize), Arc<str>>;

static TEXTS: LazyLock<RwLock<Texts>> = LazyLock::new(RwLock::default);

/// Returns the text of a statement that has a list of `listed` values, or none.
pub(super) fn text(sql: &'static str, listed: usize) -> Arc<str> {
    let place = (sql.as_ptr().addr(), listed);
    let known = TEXTS.read().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
    known.unwrap_or_else(|| {
        let text: Arc<str> = Arc::from(made(sql, listed));
        let mut texts = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(texts.entry(place).or_insert(text))
    })
}

/// `{list}` stands for as many parameters. `{rows}` stands for the rest of the file up to `{after}`, once for each row.
fn made(sql: &str, listed: usize) -> String {
    let text = fill_in(&without_comments(sql));
    if let Some((head, row)) = text.split_once("{rows}") {
        let (row, after) = row.split_once("{after}").unwrap_or((row, ""));
        return format!("{head}{}{after}", vec![row.trim(); listed].join(", "));
    }
    text.replace("{list}", &vec!["?"; listed].join(","))
}

/// Removes comments: the driver would take a question mark or a colon in them for a parameter.
pub(super) fn without_comments(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("-- ").map_or(line, |(before, _)| before));
    let lines = lines.map(str::trim_end).filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n").trim_end_matches(';').to_owned()
}

/// Returns how many values a list is filled up to: few sizes need few prepared statements.
pub(super) fn padded(count: usize) -> usize {
    match count {
        0..=1 => 1,
        2..=8 => 8,
        9..=64 => 64,
        65..=256 => 256,
        _ => count.next_multiple_of(1_000).max(1_000),
    }
}

/// Splits a number of rows into sizes for which statements are prepared: powers of two, at most `most`.
pub(super) fn chunks(count: usize, most: usize) -> Vec<usize> {
    let (mut left, mut size, mut sizes) = (count, most, Vec::new());
    while left > 0 {
        if left >= size {
            sizes.push(size);
            left -= size;
        } else {
            size /= 2;
        }
    }
    sizes
}

/// Splits rows of these sizes into parts: few different numbers of rows, and at most so many bytes, unless one row has more.
pub(super) fn parts(sizes: &[usize], rows_max: usize, bytes_max: usize) -> Vec<usize> {
    let (mut parts, mut left) = (Vec::new(), sizes);
    while !left.is_empty() {
        let mut bytes = 0;
        let fitting = left.iter().take_while(|size| {
            bytes += **size;
            bytes <= bytes_max
        });
        let count = fitting.count().max(1);
        parts.extend(chunks(count, rows_max));
        left = &left[count..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{chunks, made, padded, parts, without_comments};

    #[test]
    fn comments_and_the_last_semicolon_are_removed() {
        let text = "-- x: why?\nSELECT 1, -- what?\n       2;\n";
        assert_eq!(without_comments(text), "SELECT 1,\n       2");
    }

    #[test]
    fn lists_and_rows_are_filled_in() {
        assert_eq!(made("a IN ({list})", 3), "a IN (?,?,?)");
        assert_eq!(made("VALUES {rows}(?, 1)", 2), "VALUES (?, 1), (?, 1)");
        let tail = made("VALUES {rows}(?, 1) {after} ON DUPLICATE KEY", 2);
        assert_eq!(tail, "VALUES (?, 1), (?, 1) ON DUPLICATE KEY");
    }

    #[test]
    fn few_sizes_are_prepared() {
        assert_eq!([1, 2, 9, 65, 257, 1_001].map(padded), [1, 8, 64, 256, 1_000, 2_000]);
        assert_eq!(chunks(1_003, 512), [512, 256, 128, 64, 32, 8, 2, 1]);
        assert!(chunks(0, 512).is_empty());
    }

    #[test]
    fn rows_are_split_by_their_size() {
        assert_eq!(parts(&[1; 11], 8, 100), [8, 2, 1]);
        assert_eq!(parts(&[60, 40, 1, 200, 3], 8, 100), [2, 1, 1, 1]);
        assert!(parts(&[], 8, 100).is_empty());
    }
}
