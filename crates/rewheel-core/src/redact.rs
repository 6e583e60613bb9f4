//! Removes secrets from untrusted text.
//!
//! Error messages often quote secrets: a URL with its password, a header with its token. Text that looks like a secret is hidden.
//! This is a safety net, not a guarantee: it does not find secrets in an unknown format.

mod url;

pub use self::url::{SecretUrl, redact_setting, redact_urls};

use crate::mask::{MASKED as HIDDEN, masked_secret, masked_url};

/// Parts of names whose values are secrets.
const NAMES: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "private_key",
    "authorization",
    "credential",
    "cookie",
    "signature",
];

/// Prefixes of the tokens of well-known services.
const PREFIXES: [&str; 16] = [
    "rw_",
    "whsec_",
    "whsk_",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "eyJ",
];

/// Headers whose whole value is a secret.
const WHOLE: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// The minimum length of a token; shorter words with such a prefix are not tokens.
const TOKEN_CHARS_MIN: usize = 12;

/// The minimum length of a credential after a scheme such as `basic`; shorter words are ordinary text.
const SCHEMED_CHARS_MIN: usize = 8;

/// Returns the text with `***` in place of everything that looks like a secret.
///
/// ```
/// use rewheel_core::redact;
///
/// assert_eq!(redact("GET https://ops:hunter2@bank.example: 401"), "GET https://***@bank.example: 401");
/// ```
pub fn redact(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let begins_word = !kept.chars().next_back().is_some_and(is_word);
        let found = if begins_word { secret(rest) } else { None }.or_else(|| userinfo(rest));
        match found {
            Some(Found { before, hidden }) => {
                kept.push_str(&rest[..before]);
                kept.push_str(HIDDEN);
                rest = &rest[before + hidden..];
            }
            None => {
                kept.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    kept
}

/// A secret in the remaining text: the number of bytes before it, and its length in bytes.
struct Found {
    before: usize,
    hidden: usize,
}

fn secret(rest: &str) -> Option<Found> {
    let word = span(rest, is_word);
    if word == 0 {
        return None;
    }
    let name = rest[..word].to_ascii_lowercase();
    if name == "bearer" || name == "basic" {
        return after_scheme(rest, word);
    }
    if NAMES.iter().any(|secret| name.contains(secret)) {
        return named(rest, word);
    }
    let is_token = PREFIXES.iter().any(|prefix| rest.starts_with(prefix));
    let length = span(rest, |c| is_word(c) || ".+/=".contains(c));
    (is_token && length >= TOKEN_CHARS_MIN).then_some(Found { before: 0, hidden: length })
}

/// Finds the credential in `Bearer abc`, if the word could be one.
fn after_scheme(rest: &str, word: usize) -> Option<Found> {
    let before = word + span(&rest[word..], |c| c == ' ');
    let hidden = span(&rest[before..], |c| is_word(c) || "+/=.~".contains(c));
    (before > word && hidden >= SCHEMED_CHARS_MIN).then_some(Found { before, hidden })
}

/// Finds the value in `name=value`, `"name": "value"` and `name: value`.
fn named(rest: &str, word: usize) -> Option<Found> {
    let mut at = word + span(&rest[word..], |c| "\"'\\ ".contains(c));
    let separator = rest[at..].chars().next().filter(|c| "=:".contains(*c))?;
    at += separator.len_utf8();
    at += span(&rest[at..], |c| c == ' ');
    at += span(&rest[at..], |c| c == '\\');
    let quote = rest[at..].chars().next().filter(|c| "\"'".contains(*c));
    at += quote.map_or(0, char::len_utf8);
    // `Authorization: Bearer abc` has two words; the first is not secret.
    let scheme = ["bearer ", "basic ", "token "].into_iter().find(|scheme| {
        rest[at..].get(..scheme.len()).is_some_and(|text| text.eq_ignore_ascii_case(scheme))
    });
    at += scheme.map_or(0, str::len);
    let is_whole = WHOLE.iter().any(|name| rest[..word].eq_ignore_ascii_case(name));
    let hidden = match quote {
        // A quote inside a quoted text is escaped, so there only an escaped quote ends the value.
        Some(quote) if rest[..at].ends_with(&format!("\\{quote}")) => {
            span(&rest[at..], |c| c != quote && c != '\\' && c != '\n')
        }
        Some(quote) => quoted(&rest[at..], quote),
        // The whole line is the secret.
        None if is_whole => span(&rest[at..], |c| c != '\n'),
        None => span(&rest[at..], |c| !c.is_whitespace() && !",;&\"'<>()[]{}".contains(c)),
    };
    (hidden > 0).then_some(Found { before: at, hidden })
}

/// Returns the length of a quoted text, including escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = (c == quote || c == '\n') && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// Finds the password in `scheme://user:password@host`.
fn userinfo(rest: &str) -> Option<Found> {
    let inside = rest.strip_prefix("://")?;
    let authority = span(inside, |c| !c.is_whitespace() && !"/?#\"'<>".contains(c));
    let hidden = inside[..authority].rfind('@')?;
    (hidden > 0).then_some(Found { before: 3, hidden })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns the number of bytes at the start whose characters all match.
fn span(text: &str, like: impl Fn(char) -> bool) -> usize {
    text.find(|c| !like(c)).unwrap_or(text.len())
}

/// Returns the settings of a kind, as JSON, without credentials: the values of `headers` and `secrets` and the queries of URLs
/// are masked unless they only name environment variables.
pub(crate) fn without_proofs(settings: &str) -> String {
    without_queries(&without_headers(settings))
}

/// Masks every string that is a URL.
fn without_queries(settings: &str) -> String {
    let mut kept = String::with_capacity(settings.len());
    let mut rest = settings;
    while let Some(at) = rest.find('"') {
        let length = quoted(&rest[at + 1..], '"');
        let (before, text) = (&rest[..=at], &rest[at + 1..=at + length]);
        kept.push_str(before);
        let is_url = text.contains("://") || text.starts_with("${");
        kept.push_str(&if is_url { masked_url(text) } else { text.to_owned() });
        rest = &rest[at + 1 + length..];
        if let Some(after) = rest.strip_prefix('"') {
            kept.push('"');
            rest = after;
        }
    }
    kept.push_str(rest);
    kept
}

fn without_headers(settings: &str) -> String {
    let mut kept = String::with_capacity(settings.len());
    let mut rest = settings;
    while let Some((at, close)) = proofs(rest) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut is_value = close == ']';
        // A list contains only values; an object has a name before each value.
        while let Some(next) = rest.find(['"', close]) {
            kept.push_str(&rest[..next]);
            rest = &rest[next..];
            if !rest.starts_with('"') {
                break;
            }
            let length = quoted(&rest[1..], '"');
            let text = &rest[1..=length];
            kept.push('"');
            kept.push_str(if is_value { masked_secret(text) } else { text });
            rest = &rest[length + 1..];
            if let Some(after) = rest.strip_prefix('"') {
                kept.push('"');
                rest = after;
            }
            is_value = close == ']' || !is_value;
        }
    }
    kept.push_str(rest);
    kept
}

/// Finds a field that holds credentials: where its value begins, and the character that ends it.
fn proofs(text: &str) -> Option<(usize, char)> {
    let find = |name: &str, close| text.find(name).map(|at| (at + name.len(), close));
    let found = [find("\"headers\":{", '}'), find("\"secrets\":[", ']')];
    found.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::{redact, without_proofs};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    #[test]
    fn what_is_called_a_secret_is_hidden() {
        check("password=hunter2", "password=***");
        check("PGPASSWORD: hunter2, next", "PGPASSWORD: ***, next");
        check("?user=a&api_key=k-1&page=2", "?user=a&api_key=***&page=2");
        check(r#"{"client_secret": "a b", "id": 7}"#, r#"{"client_secret": "***", "id": 7}"#);
        check(r#"{\"token\":\"abc\"}"#, r#"{\"token\":\"***\"}"#);
        check("x-auth-token: abc\nage: 7", "x-auth-token: ***\nage: 7");
        check("cookie='a=b; c=d'", "cookie='***'");
        check("Cookie: a=b; session=xyz\nage: 7", "Cookie: ***\nage: 7");
        check("authorization: ApiKey abc123", "authorization: ***");
        check(r#"{"password":"ab\"cd","id":7}"#, r#"{"password":"***","id":7}"#);
    }

    #[test]
    fn what_follows_a_scheme_is_hidden() {
        check("Authorization: Bearer abc.def", "Authorization: Bearer ***");
        check("sent Bearer abcdef== to it", "sent Bearer *** to it");
        check("sent basic dXNlcg== to it", "sent basic *** to it");
    }

    #[test]
    fn a_password_inside_a_url_is_hidden() {
        check("postgres://shop:pw@db:5432/x?a=1", "postgres://***@db:5432/x?a=1");
        check("https://a:b@c@host/", "https://***@host/");
        check("see https://host/path?mail=a@b", "see https://host/path?mail=a@b");
    }

    #[test]
    fn tokens_of_known_services_are_hidden() {
        check("key rw_0123456789abcdef failed", "key *** failed");
        check("eyJhbGciOiJI.eyJzdWIi.c2ln: expired", "***: expired");
        check("AKIAIOSFODNN7EXAMPLE", "***");
        check(r#"{"a":["whsec_MfKQ9r8G+/KYqrTwjUPD8I==","b"]}"#, r#"{"a":["***","b"]}"#);
    }

    #[test]
    fn what_proves_who_sends_is_not_in_settings() {
        let settings = r#"{"a":1,"callback":{"headers":{"x-key":"hunt\"er2","auth":"Bearer ${T}"},"secrets":["s1","${S}"],"url":"https://x"}}"#;
        let hidden = r#"{"a":1,"callback":{"headers":{"x-key":"***","auth":"Bearer ${T}"},"secrets":["***","${S}"],"url":"https://x"}}"#;
        assert_eq!(without_proofs(settings), hidden);
        let settings = r#"{"callback":{"failover":["https://b/?k=pw",{"region":"eu","url":"${C}?k=pw"}],"url":"https://a/?k=\"pw"}}"#;
        let hidden = r#"{"callback":{"failover":["https://b/?***",{"region":"eu","url":"${C}?***"}],"url":"https://a/?***"}}"#;
        assert_eq!(without_proofs(settings), hidden);
        for odd in ["", "{}", r#"{"headers":{}}"#, r#"{"secrets":["#, r#"{"headers":{"a"#] {
            assert!(without_proofs(odd).len() >= odd.len().min(3), "{odd}");
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for text in [
            "",
            "connection reset by peer",
            "no token was sent",
            "the password is wrong",
            "tokens: ",
            "rw_short",
            "basic auth",
            "a=b&c=d",
            "größer als 7: ß=ä",
            "https://example.org/a@b",
        ] {
            check(text, text);
        }
    }
}
