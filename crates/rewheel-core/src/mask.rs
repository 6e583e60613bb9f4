//! Masks secrets in the settings of a kind before they are shown.

/// Shown instead of a secret. A client that sends this value back keeps the stored secret, which it has not seen.
pub const MASKED: &str = "***";

/// Words that may appear next to a variable: they name an authentication scheme and are not secrets.
const SCHEMES: [&str; 6] = ["apikey", "basic", "bearer", "digest", "key", "token"];

/// Returns the displayable value of a header or a signing secret: unchanged if it only names environment variables, otherwise
/// masked.
///
/// ```
/// use rewheel_core::masked_secret;
///
/// assert_eq!(masked_secret("Bearer ${PAY_TOKEN}"), "Bearer ${PAY_TOKEN}");
/// assert_eq!(masked_secret("hunter2${REGION}"), "***");
/// ```
pub fn masked_secret(text: &str) -> &str {
    let has_variables = text.contains("${");
    if has_variables && words_of(text).all(|word| is_scheme(&word)) { text } else { MASKED }
}

/// Returns the displayable form of a URL: user, password, fragment and query values are masked unless they only name environment
/// variables or job values. The URL may be a template.
///
/// ```
/// use rewheel_core::masked_url;
///
/// assert_eq!(masked_url("https://a:pw@pay.example/hook?key=hunter2"), "https://***@pay.example/hook?***");
/// assert_eq!(masked_url("https://pay.example/{id}?key=${PAY_KEY}"), "https://pay.example/{id}?key=${PAY_KEY}");
/// ```
pub fn masked_url(url: &str) -> String {
    let (url, fragment) = match url.split_once('#') {
        Some((url, _)) => (url, format!("#{MASKED}")),
        None => (url, String::new()),
    };
    let (place, query) = match url.split_once('?') {
        Some((place, query)) if query.is_empty() || is_names_only(query) => {
            (place, format!("?{query}"))
        }
        Some((place, _)) => (place, format!("?{MASKED}")),
        None => (url, String::new()),
    };
    let authority_at = place.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = place.split_at(authority_at);
    let authority = rest.find(['/', '\\']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}{MASKED}{}{query}{fragment}", &rest[at..]),
        None => format!("{place}{query}{fragment}"),
    }
}

/// Returns whether each value of a query is a name: `${VARIABLE}` or `{place}`.
fn is_names_only(query: &str) -> bool {
    query.split('&').all(|pair| {
        let (_, value) = pair.split_once('=').unwrap_or(("", pair));
        words_of(value).next().is_none()
    })
}

/// Returns the words of a text other than `${NAME}` and `{name}`.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, tail)) = after.split_once('}') else { break };
        literal.push_str(before.strip_suffix('$').unwrap_or(before));
        literal.push(' ');
        rest = tail;
    }
    literal.push_str(rest);
    let words: Vec<String> = literal
        .split(|c: char| c.is_whitespace() || ":=,;".contains(c))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::{masked_secret, masked_url};

    #[test]
    fn a_secret_is_shown_only_where_it_is_a_name() {
        for shown in ["${A}", "Bearer ${A}", "basic ${USER}:${PASSWORD}", "token=${A}"] {
            assert_eq!(masked_secret(shown), shown);
        }
        for hidden in ["", "hunter2", "Bearer", "Bearer x${A}", "hunter2${", "${A", "${A} s3cret"] {
            assert_eq!(masked_secret(hidden), "***", "{hidden}");
        }
    }

    #[test]
    fn user_password_query_and_fragment_of_a_url_are_masked() {
        for (url, shown) in [
            ("https://pay.example/hook/{id}", "https://pay.example/hook/{id}"),
            ("https://pay.example/hook?key=pw&a=1", "https://pay.example/hook?***"),
            ("https://pay.example/hook?pw", "https://pay.example/hook?***"),
            ("https://pay.example/hook?", "https://pay.example/hook?"),
            (
                "https://pay.example?key=${A}&o={payload.o}",
                "https://pay.example?key=${A}&o={payload.o}",
            ),
            ("https://pay.example?key=${A}pw", "https://pay.example?***"),
            ("https://pay.example?key=Bearer", "https://pay.example?***"),
            ("https://a:p@w@pay.example/x@y", "https://***@pay.example/x@y"),
            ("https://a@pay.example?b@c", "https://***@pay.example?***"),
            ("https://${A}@pay.example", "https://***@pay.example"),
            ("${PAY_URL}/hook?key=pw", "${PAY_URL}/hook?***"),
            ("https://pay.example/#pw", "https://pay.example/#***"),
            ("https://pay.example/#a?pw", "https://pay.example/#***"),
            ("", ""),
        ] {
            assert_eq!(masked_url(url), shown);
        }
    }
}
