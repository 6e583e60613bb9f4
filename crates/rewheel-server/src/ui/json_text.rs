//! Splits JSON into coloured parts without changing its numbers or the order of its keys.

/// A part of a text with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// Returns valid JSON with one value in each line, as parts.
pub(super) fn parts(json: &str) -> Vec<Part> {
    let mut writer = Writer { parts: Vec::new(), depth: 0 };
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            first if first.is_whitespace() => {
                rest = rest.trim_start();
                continue;
            }
            _ => rest.find(|char: char| ",]}: \t\r\n".contains(char)).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length.max(1).min(rest.len()));
        writer.token(token, after.trim_start());
        rest = after;
    }
    writer.parts
}

fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

struct Writer {
    parts: Vec<Part>,
    depth: usize,
}

impl Writer {
    fn token(&mut self, token: &str, after: &str) {
        match token {
            "{" | "[" => {
                self.add("", token);
                self.depth += 1;
                if !after.starts_with(['}', ']']) {
                    self.line();
                }
            }
            "}" | "]" => {
                self.depth = self.depth.saturating_sub(1);
                if !self.parts.last().is_some_and(|last| matches!(last.text.as_str(), "{" | "[")) {
                    self.line();
                }
                self.add("", token);
            }
            "," => {
                self.add("", token);
                self.line();
            }
            ":" => self.add("", ": "),
            text if text.starts_with('"') => {
                let class = if after.starts_with(':') { "j-key" } else { "j-text" };
                self.add(class, text);
            }
            text if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                self.add("j-number", text);
            }
            text => self.add("j-word", text),
        }
    }

    fn add(&mut self, class: &'static str, text: &str) {
        self.parts.push(Part { class, text: text.to_owned() });
    }

    fn line(&mut self) {
        let indent = "  ".repeat(self.depth);
        self.add("", &format!("\n{indent}"));
    }
}

/// Returns the parts as one text.
pub(super) fn text(parts: &[Part]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::{parts, text};

    #[test]
    fn numbers_and_order_stay() {
        let json = r#"{"b":12345678901234567890.10,"a":[1,true,null],"e":{},"l":[],"s":"x\"},:y"}"#;
        let shown = text(&parts(json));
        assert_eq!(
            shown,
            "{\n  \"b\": 12345678901234567890.10,\n  \"a\": [\n    1,\n    true,\n    null\n  ],\n  \"e\": {},\n  \"l\": [],\n  \"s\": \"x\\\"},:y\"\n}"
        );
        let again: String = shown.split_whitespace().collect();
        assert_eq!(again, json);
        for odd in ["", "\"open", "\"é", "7", "{\"a\"", "]]", "\u{feff}"] {
            text(&parts(odd));
        }
    }
}
