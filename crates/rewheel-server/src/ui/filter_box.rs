//! The filter box of the job list: words such as `state:dead` become parameters with the names of REST.

use crate::rfc3339;
use rewheel::duration;
use rewheel_core::Timestamp;
use url::form_urlencoded;

/// A word, the parameter that it becomes, and an example.
struct Word {
    word: &'static str,
    parameter: &'static str,
    example: &'static str,
}

const fn word(word: &'static str, parameter: &'static str, example: &'static str) -> Word {
    Word { word, parameter, example }
}

/// Every word of the filter box. `created` and `due` compare with a time.
const WORDS: [Word; 19] = [
    word("state", "state", "state:dead"),
    word("kind", "kind", "kind:charge-card"),
    word("tenant", "tenant", "tenant:acme"),
    word("category", "category", "category:timeout"),
    word("code", "code", "code:504"),
    word("incident", "incident", "incident:ID"),
    word("reason", "reason", "reason:retry_budget"),
    word("attempt", "attempt", "attempt:>3"),
    word("holder", "holder", "holder:node-2"),
    word("key", "key", "key:order-17"),
    word("group", "group_key", "group:customer-7"),
    word("parent", "parent", "parent:ID"),
    word("schedule", "schedule", "schedule:nightly"),
    word("created", "", "created:<1h"),
    word("due", "", "due:<now"),
    word("created_after", "created_after", ""),
    word("created_before", "created_before", ""),
    word("due_after", "due_after", ""),
    word("due_before", "due_before", ""),
];

/// Returns examples for the suggestions of the browser.
pub(super) fn examples() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.example).filter(|example| !example.is_empty())
}

/// Returns the parameters that the text of the box means at this time of the store.
///
/// # Errors
/// Names the first word that is wrong.
pub(super) fn parameters(text: &str, now: Timestamp) -> Result<Vec<(String, String)>, String> {
    let (mut found, mut free) = (Vec::new(), Vec::new());
    for (name, value) in split(text)? {
        let Some(name) = name else {
            free.push(value);
            continue;
        };
        let Some(word) = WORDS.iter().find(|word| word.word == name) else {
            return Err(unknown(&name));
        };
        if value.is_empty() {
            return Err(format!("`{name}:` needs a value, such as `{}`", word.example));
        }
        match word.parameter {
            "" => found.push(compared(&name, &value, now)?),
            // Several values of one word: one of them.
            parameter @ ("state" | "kind") => {
                let values = value.split(',').filter(|value| !value.is_empty());
                found.extend(values.map(|value| (parameter.to_owned(), value.to_owned())));
            }
            parameter => found.push((parameter.to_owned(), value)),
        }
    }
    if !free.is_empty() {
        found.push(("q".to_owned(), free.join(" ")));
    }
    Ok(found)
}

fn unknown(name: &str) -> String {
    let known: Vec<_> =
        WORDS.iter().filter(|word| !word.example.is_empty()).map(|word| word.word).collect();
    format!(
        "`{name}:` is unknown: the known words are {}; put a text with a colon in quotes",
        known.join(", ")
    )
}

/// Reads `created:<1h` (younger than an hour), `due:<now`, `due:>30m`, `due:<2026-01-31T12:00:00Z`.
fn compared(name: &str, value: &str, now: Timestamp) -> Result<(String, String), String> {
    let wrong = || {
        format!(
            "`{name}:{value}` is not valid: write `{name}:<1h`, `{name}:>1h`, `{name}:<now` or `{name}:>2026-01-31T12:00:00Z`"
        )
    };
    let is_less = value.starts_with('<');
    let amount = value.strip_prefix(['<', '>']).ok_or_else(wrong)?;
    if let Ok(at) = rfc3339::parse(amount) {
        let side = if is_less { "before" } else { "after" };
        return Ok((format!("{name}_{side}"), rfc3339::text(at)));
    }
    let length = match amount {
        "now" => std::time::Duration::ZERO,
        amount => duration::parse(amount).map_err(|_| wrong())?,
    };
    let millis = i64::try_from(length.as_millis()).map_err(|_| wrong())?;
    // The age of a job counts back from now, the wait until it is due counts ahead.
    let (at, side) = match (name, is_less) {
        ("created", true) => (now.as_millis().saturating_sub(millis), "after"),
        ("created", false) => (now.as_millis().saturating_sub(millis), "before"),
        (_, true) => (now.as_millis().saturating_add(millis), "before"),
        (_, false) => (now.as_millis().saturating_add(millis), "after"),
    };
    // A time before 1970 is older than every job, and REST reads no years below zero.
    Ok((format!("{name}_{side}"), rfc3339::text(Timestamp::from_millis(at.max(0)))))
}

/// Splits a text into words, each with its name if it has one. Quotes hold a value together.
fn split(text: &str) -> Result<Vec<(Option<String>, String)>, String> {
    let (mut words, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(first) = chars.peek().copied() {
        if first.is_whitespace() {
            chars.next();
            continue;
        }
        let (mut name, mut value, mut is_quoted) = (None, String::new(), false);
        while let Some(char) = chars.next_if(|char| is_quoted || !char.is_whitespace()) {
            match char {
                '"' => is_quoted = !is_quoted,
                '\\' if is_quoted && chars.peek().is_some_and(|next| "\"\\".contains(*next)) => {
                    value.extend(chars.next());
                }
                ':' if !is_quoted && name.is_none() && is_name(&value) => {
                    name = Some(std::mem::take(&mut value));
                }
                char => value.push(char),
            }
        }
        if is_quoted {
            return Err("a quote `\"` is not closed".to_owned());
        }
        words.push((name, value));
    }
    Ok(words)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.')
}

/// Returns the text of the box for the parameters of a list.
pub(super) fn text(parameters: &[(String, String)]) -> String {
    let mut words: Vec<String> = Vec::new();
    for (name, value) in parameters {
        let word = WORDS.iter().find(|word| word.parameter == name).map(|word| word.word);
        match (name.as_str(), word) {
            ("q", _) => words.push(free(value)),
            (_, Some(word)) => words.push(format!("{word}:{}", quoted(value))),
            // `limit` and `cursor` are no words; REST reports unknown parameters.
            _ => {}
        }
    }
    words.join(" ")
}

fn free(value: &str) -> String {
    if value.contains([':', '"']) { in_quotes(value) } else { value.to_owned() }
}

fn quoted(value: &str) -> String {
    let is_plain = !value.chars().any(|char| char.is_whitespace() || char == '"' || char == '\\');
    if is_plain { value.to_owned() } else { in_quotes(value) }
}

fn in_quotes(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns parameters as a query.
pub(super) fn query(parameters: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

#[cfg(test)]
mod tests {
    use super::{parameters, query, text};
    use rewheel_core::Timestamp;

    #[track_caller]
    fn check(box_text: &str, expected: &str) {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let shown = match parameters(box_text, now) {
            Ok(found) => found
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join("&"),
            Err(why) => why,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn words_become_parameters_of_rest() {
        check("", "");
        check("state:dead kind:a,b", "state=dead&kind=a&kind=b");
        check("tenant:\"a b\" order no", "tenant=a b&q=order no");
        check("group:g key:k:1", "group_key=g&key=k:1");
        check("code:504 incident:4f1c reason:backoff", "code=504&incident=4f1c&reason=backoff");
        check("attempt:>3 holder:node-2", "attempt=>3&holder=node-2");
        check("created:<1h", "created_after=2023-11-14T21:13:20.000Z");
        check("created:>1h", "created_before=2023-11-14T21:13:20.000Z");
        check("due:<now", "due_before=2023-11-14T22:13:20.000Z");
        check("due:>30m", "due_after=2023-11-14T22:43:20.000Z");
        check("due:<2026-01-01T00:00:00Z", "due_before=2026-01-01T00:00:00.000Z");
        check("\"state:dead\" \"https://x\"", "q=state:dead https://x");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_no_panic() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        for word in
            ["due:>9223372036854775s", "due:<9223372036854775s", "created:>9223372036854775s"]
        {
            let shown = parameters(word, now).map_or_else(|why| why, |found| query(&found));
            let is_end = shown.contains("=9999-12-3") || shown.contains("=1970-01-01");
            assert!(is_end || shown.contains("is not valid"), "{word}: {shown}");
        }
    }

    #[test]
    fn a_mistake_is_named() {
        let now = Timestamp::from_millis(0);
        for (wrong, named) in [
            ("status:dead", "`status:` is unknown"),
            ("state:", "`state:` needs a value"),
            ("created:1h", "`created:1h` is not valid"),
            ("due:<soon", "`due:<soon` is not valid"),
            ("key:\"x", "is not closed"),
        ] {
            let why = parameters(wrong, now).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
    }

    #[test]
    fn parameters_are_shown_as_the_words_that_mean_them() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        for box_text in [
            "state:dead state:paused kind:a",
            "tenant:\"a \\\"b\\\\\" x",
            "due_before:2026-01-01T00:00:00.000Z",
            "\"a:b\"",
            "code:504 incident:4f1c reason:backoff attempt:>3 holder:node-2",
        ] {
            let found = parameters(box_text, now).unwrap();
            assert_eq!(text(&found), box_text);
            assert_eq!(parameters(&text(&found), now).unwrap(), found);
        }
        assert_eq!(query(&[("q".to_owned(), "a&b".to_owned())]), "q=a%26b");
    }
}
