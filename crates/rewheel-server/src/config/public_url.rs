//! The URL under which browsers reach the server.

use serde::{Deserialize, Deserializer};
use std::fmt;
use url::Url;

/// The URL under which browsers reach the server: its origin and its base path.
///
/// ```
/// use rewheel_server::config::PublicUrl;
///
/// let url = PublicUrl::parse("https://ops.example.com/rewheel/").unwrap();
/// assert_eq!((url.origin(), url.path()), ("https://ops.example.com", "/rewheel"));
/// assert!(PublicUrl::parse("ops.example.com").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    path: String,
}

/// Error: the text is not a URL that browsers can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicUrlError;

impl fmt::Display for PublicUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "must be a URL such as https://ops.example.com/rewheel: http or https, without user, query and fragment, with only letters, digits, `-`, `_`, `.` and `~` between the slashes of its path",
        )
    }
}

impl std::error::Error for PublicUrlError {}

impl PublicUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// Says which form is expected.
    pub fn parse(text: &str) -> Result<PublicUrl, PublicUrlError> {
        let url = Url::parse(text).map_err(|_| PublicUrlError)?;
        let is_fit = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let path = url.path().trim_end_matches('/');
        // The path is part of routes and of cookies: no braces, semicolons or escapes.
        let is_plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
        };
        if !is_fit || !path.split('/').skip(1).all(is_plain) {
            return Err(PublicUrlError);
        }
        Ok(PublicUrl { origin: url.origin().ascii_serialization(), path: path.to_owned() })
    }

    /// Returns scheme, host and port, as browsers write them in the header `Origin`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the base path, without a slash at its end; empty if there is none.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether browsers use TLS.
    pub fn is_https(&self) -> bool {
        self.origin.starts_with("https:")
    }
}

impl<'de> Deserialize<'de> for PublicUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PublicUrl, D::Error> {
        let text = String::deserialize(from)?;
        PublicUrl::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::PublicUrl;

    #[test]
    fn only_a_plain_url_is_accepted() {
        for text in [
            "",
            "/a",
            "ftp://a.example",
            "https://me@a.example",
            "https://a.example/?x=1",
            "https://a.example/#x",
            "https://a.example/a//b",
            "https://a.example/{x}",
            "https://a.example/a;b",
            "https://a.example/%41",
        ] {
            assert!(PublicUrl::parse(text).is_err(), "{text}");
        }
        let url = PublicUrl::parse("http://A.example:80/a/b").unwrap();
        assert_eq!((url.origin(), url.path(), url.is_https()), ("http://a.example", "/a/b", false));
        assert_eq!(PublicUrl::parse("https://a.example").unwrap().path(), "");
    }
}
