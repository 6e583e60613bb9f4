//! Reads the `Idempotency-Key` header.

use ::axum::http::HeaderMap;
use std::fmt;

const NAME: &str = "idempotency-key";

/// Error: the `Idempotency-Key` header is present twice, badly quoted, or contains invalid characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHeaderError;

impl fmt::Display for KeyHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "must occur once and have 1 to 255 printable ASCII characters; a value with spaces, quotes, commas, semicolons or \
             backslashes must be in double quotes, with \\\" for a quote and \\\\ for a backslash",
        )
    }
}

impl std::error::Error for KeyHeaderError {}

/// Reads the `Idempotency-Key` header: a string in the syntax of structured fields (RFC 8941), or the same string without
/// quotes, as most clients send it. Both forms mean the same key.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue};
/// use rewheel::axum::idempotency_key;
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(idempotency_key(&headers), Ok(None));
/// headers.insert("idempotency-key", HeaderValue::from_static("\"order-17\""));
/// assert_eq!(idempotency_key(&headers), Ok(Some("order-17".to_owned())));
/// ```
///
/// # Errors
/// Fails if the header is present twice, or is not a valid key.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, KeyHeaderError> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(KeyHeaderError);
    }
    parse(value.as_bytes()).map(Some).ok_or(KeyHeaderError)
}

fn parse(value: &[u8]) -> Option<String> {
    let value = value.trim_ascii();
    let key = match value.strip_prefix(b"\"") {
        Some(quoted) => unquote(quoted.strip_suffix(b"\"")?)?,
        None => {
            // A comma would mean a list of keys, a semicolon a parameter.
            let bare = |byte: &u8| byte.is_ascii_graphic() && !b"\",;\\".contains(byte);
            value.iter().all(bare).then(|| value.iter().copied().map(char::from).collect())?
        }
    };
    (1..=255).contains(&key.len()).then_some(key)
}

/// Removes the backslashes before quotes and backslashes; no other backslashes and no bare quotes are allowed.
fn unquote(quoted: &[u8]) -> Option<String> {
    let mut key = String::with_capacity(quoted.len());
    let mut bytes = quoted.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => match bytes.next()? {
                escaped @ (b'"' | b'\\') => key.push(char::from(escaped)),
                _ => return None,
            },
            b' '..=b'~' => key.push(char::from(byte)),
            _ => return None,
        }
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::{KeyHeaderError, NAME, idempotency_key, parse};
    use ::axum::http::{HeaderMap, HeaderValue};

    #[track_caller]
    fn check(value: &str, expected: Option<&str>) {
        assert_eq!(parse(value.as_bytes()).as_deref(), expected, "{value}");
    }

    #[test]
    fn a_key_may_be_quoted_or_bare() {
        check("8e03978e-40d5-43dd-bc93-6894a57f9324", Some("8e03978e-40d5-43dd-bc93-6894a57f9324"));
        check("\"8e03978e\"", Some("8e03978e"));
        check("\"with a space\"", Some("with a space"));
        check(r#""say \"a\\b\"""#, Some(r#"say "a\b""#));
        check("  bare  ", Some("bare"));
        check("order/17:charge+1=x", Some("order/17:charge+1=x"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for value in [
            "",
            "\"",
            "\"\"",
            "two words",
            "one,two",
            "\"one\";a=1",
            "\"one\", \"two\"",
            "\"half",
            "half\"",
            "a;b",
            r#""bad \n escape""#,
            r#""ends in \"#,
            "a\\b",
            "caf\u{e9}",
            "\"caf\u{e9}\"",
            "tab\there",
            "\"tab\there\"",
        ] {
            check(value, None);
        }
        check(&"k".repeat(255), Some(&"k".repeat(255)));
        check(&"k".repeat(256), None);
        check(&format!("\"{}\"", "k".repeat(256)), None);
    }

    #[test]
    fn two_headers_are_no_key() {
        let mut headers = HeaderMap::new();
        assert_eq!(idempotency_key(&headers), Ok(None));
        headers.append(NAME, HeaderValue::from_static("one"));
        assert_eq!(idempotency_key(&headers), Ok(Some("one".to_owned())));
        headers.append(NAME, HeaderValue::from_static("one"));
        assert_eq!(idempotency_key(&headers), Err(KeyHeaderError));
    }
}
