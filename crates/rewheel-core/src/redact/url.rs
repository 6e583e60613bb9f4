//! Prints URLs without the password that they may contain.

use super::{HIDDEN, NAMES, span};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Settings of a URL whose values may be printed. Every other value is hidden.
const SHOWN: [&str; 15] = [
    "application_name",
    "connect_timeout",
    "dbname",
    "host",
    "pool_max",
    "pooler",
    "port",
    "prefix",
    "schema",
    "sslmode",
    "sslrootcert",
    "statement_timeout",
    "synchronous",
    "target_session_attrs",
    "timeout",
];

/// Schemes whose URL names a file or nothing, and so has no port.
const WITHOUT_HOST: [&str; 3] = ["file", "memory", "sqlite"];

/// The URL of a store or a server. Printing it hides user, password and unknown settings.
///
/// Only [`expose`](SecretUrl::expose) returns the text with its password.
///
/// ```
/// use rewheel_core::SecretUrl;
///
/// let url = SecretUrl::new("postgres://ops:hunter2@db/shop?password=hunter2&schema=retries");
/// assert_eq!(url.to_string(), "postgres://***@db/shop?password=***&schema=retries");
/// assert!(!format!("{url:?}").contains("hunter2"));
/// assert!(url.expose().contains("hunter2"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Accepts any text. The code that uses the value checks whether it is a URL.
    pub fn new(text: impl Into<String>) -> SecretUrl {
        SecretUrl(text.into())
    }

    /// Returns the whole text, to connect with it. Never print it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<SecretUrl, Infallible> {
        Ok(SecretUrl::new(text))
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", masked(&self.0))
    }
}

fn masked(text: &str) -> String {
    let is_scheme = |scheme: &str| scheme.chars().all(|c| c.is_alphanumeric() || "+.-".contains(c));
    let parts = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
    let Some((scheme, rest)) = parts else {
        // Some clients use the form `host=db password=…`.
        return match text.rsplit_once('@') {
            _ if text.contains('=') => HIDDEN.to_owned(),
            Some((_, place)) => format!("{HIDDEN}@{place}"),
            None => text.to_owned(),
        };
    };
    // A password may contain any character, including `/`, `?` and `@`: everything before the last `@` is hidden.
    let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("***@", rest));
    let (place, settings) = rest.split_at(span(rest, |c| c != '?' && c != '#'));
    let place = if WITHOUT_HOST.contains(&scheme) { place.to_owned() } else { without_port(place) };
    format!("{scheme}://{user}{place}{}", without_values(settings))
}

/// Hides a port that is not a number: it is the password of a URL whose `@` is missing.
fn without_port(place: &str) -> String {
    let (hosts, path) = place.split_at(span(place, |c| c != '/'));
    let host = |host: &str| {
        let after = host.rfind(']').map_or(0, |at| at + 1);
        match host[after..].find(':').map(|at| after + at + 1) {
            Some(port) if &host[port..] == HIDDEN => host.to_owned(),
            Some(port) if !host[port..].bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{}{HIDDEN}", &host[..port])
            }
            Some(_) | None => host.to_owned(),
        }
    };
    format!("{}{path}", hosts.split(',').map(host).collect::<Vec<_>>().join(","))
}

/// Takes `?name=value&…`, and hides the values of names that are not known to be harmless.
fn without_values(settings: &str) -> String {
    let Some(pairs) = settings.strip_prefix('?') else {
        return if settings.is_empty() { String::new() } else { format!("#{HIDDEN}") };
    };
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) if SHOWN.contains(&name) => format!("{name}={}", harmless(value)),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None if pair.is_empty() => String::new(),
        None => HIDDEN.to_owned(),
    };
    format!("?{}", pairs.split('&').map(pair).collect::<Vec<_>>().join("&"))
}

/// A value that contains another setting, such as `schema=a;password=b`, is hidden as well.
fn harmless(value: &str) -> &str {
    if value.contains(['=', ':', ';', '#']) { HIDDEN } else { value }
}

/// Returns one setting of a URL, such as `schema=retries`, for an error message: the value is hidden unless the name is
/// known to be harmless.
pub fn redact_setting(setting: &str) -> String {
    without_values(&format!("?{setting}")).split_off(1)
}

/// Returns the text with `***` in place of the passwords of the URLs in it.
///
/// Unlike [`redact`](crate::redact) it leaves everything else as it is, so that error messages stay readable.
///
/// ```
/// use rewheel_core::redact_urls;
///
/// let text = "unexpected argument 'postgres://ops:hunter2@db/shop' found";
/// assert_eq!(redact_urls(text), "unexpected argument 'postgres://***@db/shop' found");
/// ```
pub fn redact_urls(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme_at = rest[..at].rfind(|c: char| !c.is_alphanumeric() && !"+.-".contains(c));
        let scheme = &rest[scheme_at.map_or(0, |at| at + 1).min(at)..at];
        let (before, after) = rest.split_at(at + 3);
        kept.push_str(before);
        let (url, after) =
            after.split_at(span(after, |c| !c.is_whitespace() && !"\"'`<>".contains(c)));
        // Punctuation at the end of a sentence is not part of the URL.
        let (url, end) = url.split_at(url.trim_end_matches([':', ',', '.', ';', ')']).len());
        kept.push_str(&without_secrets(scheme, url));
        kept.push_str(end);
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Hides the secrets in the part after `scheme://`.
fn without_secrets(scheme: &str, url: &str) -> String {
    let authority = &url[..span(url, |c| !"/?#".contains(c))];
    let is_web = scheme.starts_with("http");
    let end = match authority.rfind('@') {
        // A user name without a password may be shown, unless it is a token.
        Some(at) if is_web || authority[..at].contains(':') => Some(at),
        Some(_) => None,
        // A port that is not a number is a password that contains `/`, `?` or `#`.
        None if without_port(authority) != authority => url.rfind('@').or(Some(authority.len())),
        None => None,
    };
    let (user, rest) = end.map_or(("", url), |end| (HIDDEN, &url[end..]));
    let Some((place, settings)) = rest.split_once('?') else { return format!("{user}{rest}") };
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if NAMES.iter().any(|one| name.to_ascii_lowercase().contains(one)) => {
            format!("{name}={HIDDEN}")
        }
        Some(_) | None => pair.to_owned(),
    };
    let settings: Vec<_> = settings.split('&').map(pair).collect();
    format!("{user}{place}?{}", settings.join("&"))
}

#[cfg(test)]
mod tests {
    use super::{SecretUrl, redact_setting, redact_urls};

    #[test]
    fn a_url_is_printed_without_its_password() {
        for (url, shown) in [
            ("postgres://shop:pw@db:5432/x?schema=a", "postgres://***@db:5432/x?schema=a"),
            ("posgres://shop:pw@db/x", "posgres://***@db/x"),
            ("http://a:pw@127.0.0.1:1", "http://***@127.0.0.1:1"),
            ("postgres://shop:p/w@db/x", "postgres://***@db/x"),
            ("postgres://shop:p@w?@db/x", "postgres://***@db/x"),
            ("postgres://shop:pw", "postgres://shop:***"),
            ("postgres://a:1,b:2/x", "postgres://a:1,b:2/x"),
            (
                "postgres://shop:pw@a:1,b,[::1]:3/x?target_session_attrs=read-write",
                "postgres://***@a:1,b,[::1]:3/x?target_session_attrs=read-write",
            ),
            ("postgres://a:1,b:pw/x", "postgres://a:1,b:***/x"),
            ("postgres://shop:pw@a,shop:pw@b/x", "postgres://***@b/x"),
            ("postgres://[::1]:5432/x", "postgres://[::1]:5432/x"),
            ("postgres://[::1]:pw/x", "postgres://[::1]:***/x"),
            ("postgres://h/d?password=pw&user=a", "postgres://h/d?password=***&user=***"),
            ("postgres://h/d?pass%77ord=pw", "postgres://h/d?pass%77ord=***"),
            ("postgres://h/d?schema=a;password=pw", "postgres://h/d?schema=***"),
            ("postgres://h/d?pw", "postgres://h/d?***"),
            ("postgres://h/d#pw", "postgres://h/d#***"),
            ("sqlite://rewheel.db?synchronous=full", "sqlite://rewheel.db?synchronous=full"),
            ("sqlite:///a:b/rewheel.db", "sqlite:///a:b/rewheel.db"),
            ("rewheel.db", "rewheel.db"),
            ("shop:pw@db", "***@db"),
            ("postgres:/shop:pw@db", "***@db"),
            ("host=db password=pw", "***"),
            ("a@b pw=x://y", "***"),
            ("", ""),
        ] {
            let url = SecretUrl::new(url);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("{shown:?}"));
        }
    }

    #[test]
    fn a_setting_is_printed_without_its_secret() {
        assert_eq!(redact_setting("password=pw"), "password=***");
        assert_eq!(redact_setting("synchronous=half"), "synchronous=half");
        assert_eq!(redact_setting("pw"), "***");
        assert_eq!(redact_setting(""), "");
    }

    #[test]
    fn urls_inside_of_a_text_lose_their_passwords() {
        for (text, shown) in [
            ("no `x://a:pw@h/d`: gone", "no `x://***@h/d`: gone"),
            ("'x://a:p/w@h/d' and y://b:pw@i", "'x://***@h/d' and y://***@i"),
            ("https://token@host/ fails", "https://***@host/ fails"),
            ("https://h/d?api_token=pw&page=2 fails", "https://h/d?api_token=***&page=2 fails"),
            ("x://a:pw", "x://***"),
            ("no `x://a:pw@h:1,i:2/d?k=1`", "no `x://***@h:1,i:2/d?k=1`"),
            ("", ""),
        ] {
            assert_eq!(redact_urls(text), shown);
        }
        for text in [
            "use postgres://USER@HOST/DATABASE for a server, or memory:// for none",
            "secrets: expected a list",
            "listening on http://127.0.0.1:7420",
            "http://127.0.0.1:7420: refused, (see http://h:1).",
            "--server http://u:***: invalid port number",
            "sqlite:///var/lib/rewheel.db: disk full",
            "see http://[::1]:7420/docs#a@b.",
        ] {
            assert_eq!(redact_urls(text), text);
        }
    }
}
