//! The URL of a callback, printed without its secrets.

use super::address;
use super::template::parse_url;
use hyper::Uri;
use hyper::http::uri::InvalidUri;
use rewheel_core::MASKED;
use std::fmt;
use std::net::IpAddr;
use url::Url;

/// A callback URL. Debug and Display mask its secret parts; only a request uses the whole URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CalleeUrl {
    url: Url,
    path: Path,
}

/// Whether the path of a URL may be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// It may be printed.
    Shown,
    /// It contains an environment variable, or is the secret of a chat webhook.
    Secret,
}

impl CalleeUrl {
    /// Parses a URL; errors do not quote it.
    pub(crate) fn parse(text: &str, path: Path) -> Result<CalleeUrl, String> {
        Ok(CalleeUrl { url: parse_url(text)?, path })
    }

    /// Returns the URI to send a request to.
    pub(crate) fn to_uri(&self) -> Result<Uri, InvalidUri> {
        Uri::try_from(self.url.as_str())
    }

    /// Returns scheme, host and port, which are never secret.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the port, if it is not the scheme's default.
    pub(crate) fn port(&self) -> Option<u16> {
        self.url.port()
    }

    pub(crate) fn port_or_default(&self) -> Option<u16> {
        self.url.port_or_known_default()
    }

    /// Returns the IP address in the URL, if it has one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        address::of_host(&self.url)
    }

    /// Resolves the target of a redirect.
    pub(crate) fn join(&self, location: &str) -> Option<CalleeUrl> {
        Some(CalleeUrl { url: self.url.join(location).ok()?, path: self.path })
    }

    /// Adds parameters to the query.
    pub(crate) fn with_query(mut self, pairs: &[(&str, &str)]) -> CalleeUrl {
        self.url.query_pairs_mut().extend_pairs(pairs);
        self
    }

    /// Returns the secret parts: the values of the query, and the parts of a secret path.
    pub(crate) fn words(&self) -> Vec<String> {
        let query = self.url.query().unwrap_or_default();
        let mut words: Vec<String> = query.split('&').map(str::to_owned).collect();
        words.extend(query.split('&').filter_map(|pair| Some(pair.split_once('=')?.1.to_owned())));
        words.extend(self.url.query_pairs().map(|(_, value)| value.into_owned()));
        if self.path == Path::Secret {
            words.extend(self.url.path().split('/').map(str::to_owned));
        }
        words
    }

    /// Returns the URL with a mask in place of its secrets, without user and password.
    pub(crate) fn shown(&self, mask: &str) -> String {
        let path = match self.path {
            Path::Shown => self.url.path().to_owned(),
            Path::Secret if self.url.path() == "/" => "/".to_owned(),
            Path::Secret => format!("/{mask}"),
        };
        let query = self.url.query().map(|_| format!("?{mask}")).unwrap_or_default();
        format!("{}{path}{query}", self.origin())
    }
}

impl fmt::Display for CalleeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(MASKED))
    }
}

impl fmt::Debug for CalleeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown(MASKED))
    }
}

#[cfg(test)]
mod tests {
    use super::{CalleeUrl, Path};

    #[track_caller]
    fn check(url: &str, path: Path, expected: &str) {
        let url = CalleeUrl { url: url.parse().unwrap(), path };
        assert_eq!(url.to_string(), expected);
        assert_eq!(format!("{url:?}"), format!("{expected:?}"));
    }

    #[test]
    fn what_may_be_secret_is_not_printed() {
        let url = "https://a:b@pay.example/hook?token=1#x";
        check(url, Path::Shown, "https://pay.example/hook?***");
        check(url, Path::Secret, "https://pay.example/***?***");
        check("http://127.0.0.1:80/hook", Path::Shown, "http://127.0.0.1/hook");
        check("http://127.0.0.1:81/", Path::Secret, "http://127.0.0.1:81/");
    }

    #[test]
    fn only_a_request_gets_the_whole() {
        let url = CalleeUrl::parse("https://pay.example/hook?token=1", Path::Secret).unwrap();
        let url = url.with_query(&[("sign", "a+b")]);
        assert_eq!(url.to_uri().unwrap(), "https://pay.example/hook?token=1&sign=a%2Bb");
        assert_eq!(url.origin(), "https://pay.example");
        assert_eq!(url.join("/there?a=1").unwrap().to_string(), "https://pay.example/***?***");
    }
}
