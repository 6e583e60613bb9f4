//! Escapes control characters in text from other systems before it is printed.
//!
//! Failure messages, keys and names come from callees, clients and servers. A control character in them could clear the
//! screen, and a bidirectional override could reorder a line. Everything that the command prints goes through one of these functions.

use rewheel_core::is_unprintable;
use serde_json::Value;

/// Escapes a text to one line.
pub(crate) fn inline(text: &str) -> String {
    escape(text, |_, _| Retain::No)
}

/// Escapes a text, but keeps its line ends and tabs.
pub(crate) fn block(text: &str) -> String {
    escape(text, |c, rest| match c {
        '\n' | '\t' => Retain::Yes,
        '\r' if rest.starts_with('\n') => Retain::Yes,
        _ => Retain::No,
    })
}

/// Escapes a JSON document without changing its value. Inside strings it uses JSON escapes; whitespace between values is kept, except
/// that a single carriage return becomes a line end.
pub(crate) fn json(text: &str) -> String {
    escape(text, |c, rest| match c {
        '\n' | '\t' => Retain::Yes,
        '\r' if rest.starts_with('\n') => Retain::Yes,
        '\r' => Retain::As('\n'),
        _ => Retain::No,
    })
}

/// Escapes styled text, such as a log line. Only colour sequences are kept.
pub(crate) fn styled(text: &str) -> String {
    escape(text, |c, rest| match c {
        '\u{1b}' if sets_colour(rest) => Retain::Yes,
        '\n' => Retain::Yes,
        _ => Retain::No,
    })
}

fn sets_colour(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix('[') else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
}

enum Retain {
    Yes,
    As(char),
    No,
}

/// Escapes each unsafe character unless `keep` accepts it; `keep` also gets the text after the character.
fn escape(text: &str, keep: impl Fn(char, &str) -> Retain) -> String {
    let mut safe = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if !is_unprintable(c) {
            safe.push(c);
            continue;
        }
        match (keep(c, &text[at + c.len_utf8()..]), c) {
            (Retain::Yes, _) => safe.push(c),
            (Retain::As(other), _) => safe.push(other),
            (Retain::No, '\n') => safe.push_str("\\n"),
            (Retain::No, '\r') => safe.push_str("\\r"),
            (Retain::No, '\t') => safe.push_str("\\t"),
            // In the form of JSON escapes.
            (Retain::No, _) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    safe
}

/// Returns a field of a document on one line; empty if it is null or missing.
pub(crate) fn text(document: &Value, name: &str) -> String {
    match &document[name] {
        Value::Null => String::new(),
        Value::String(text) => inline(text),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            inline(&other.to_string())
        }
    }
}

/// Returns the first line of a text, cut to a maximum number of characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let first = inline(text.lines().next().unwrap_or_default());
    if first.chars().count() <= most {
        return first;
    }
    let kept: String = first.chars().take(most - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::{block, cut, inline, is_unprintable, json, styled};
    use serde_json::{Value, json as value};

    #[test]
    fn no_control_character_is_left() {
        let all: String = (0..=0xe0080).filter_map(char::from_u32).collect();
        assert!(!inline(&all).chars().any(is_unprintable));
        let left: Vec<char> = block(&all).chars().filter(|c| is_unprintable(*c)).collect();
        assert_eq!(left, ['\t', '\n']);
        assert_eq!(inline("a\x1b[2J\n\u{9b}1m\u{202e}ä"), "a\\u001b[2J\\n\\u009b1m\\u202eä");
        assert_eq!(inline(&inline("a\tb")), "a\\tb");
        assert_eq!(block("a\r\nb\rc"), "a\r\nb\\rc");
    }

    #[test]
    fn a_json_document_keeps_its_value() {
        let all: String = (0..=0xe0080).filter_map(char::from_u32).collect();
        let document = value!({ "text": all }).to_string();
        assert!(document.contains('\u{9b}'), "serde_json does not escape it");
        let safe = json(&document);
        assert!(!safe.chars().any(is_unprintable));
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap()["text"], all);
        let spaced = "{ \"a\" :\t1.0,\r\n\"a\": 12345678901234567890.123 }";
        assert_eq!(json(spaced), spaced);
        assert_eq!(json("[1,\r2]"), "[1,\n2]");
    }

    #[test]
    fn a_log_line_keeps_its_colours_only() {
        assert_eq!(styled("\x1b[33mWARN\x1b[0m a\x1b[2Jb\n"), "\x1b[33mWARN\x1b[0m a\\u001b[2Jb\n");
    }

    #[test]
    fn a_long_line_is_cut_where_one_can_see_it() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut("one\ntwo", 9), "one");
        assert_eq!(cut("\x1b[0m", 9), "\\u001b[0m");
    }
}
