//! Decides whether a request without a token comes from a program on this machine.
//!
//! A server on loopback without tokens serves every program on its machine. Two sorts of requests must be rejected. A web page in a local
//! browser can send what a form can send, and can read the responses if its own host name resolves to 127.0.0.1 (DNS rebinding); the
//! browser still sends that name as `Host`. And a reverse proxy on the machine forwards requests from the whole network.

use crate::problem::{Code, Problem};
use axum::http::header::{FORWARDED, HOST, HeaderName, ORIGIN, VIA};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Headers that proxies add, besides all that start with `x-forwarded-`.
const ADDED_BY_PROXIES: [HeaderName; 3] = [FORWARDED, VIA, HeaderName::from_static("x-real-ip")];

/// Accepts a request without a token if its host is `localhost` or an IP address, and it comes neither from a page of another site nor
/// through a proxy.
///
/// A request without `Host` is accepted: HTTP/1.0 allows it, and no browser sends one. If there are several, each is checked.
pub(crate) fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(name) = headers.keys().find(|name| is_added_by_proxies(name)) {
        let why = format!(
            "the request came through a proxy (header `{name}`), and a server without tokens accepts only direct requests"
        );
        return Err(refused(&why));
    }
    let is_named_here = uri.authority().is_none_or(is_here)
        && headers.get_all(HOST).iter().all(|host| {
            Authority::try_from(host.as_bytes()).is_ok_and(|authority| is_here(&authority))
        });
    let is_own_page = headers.get_all(ORIGIN).iter().all(|origin| {
        let origin = Uri::try_from(origin.as_bytes()).ok();
        origin.as_ref().and_then(Uri::authority).is_some_and(is_page_here)
    });
    if is_named_here && is_own_page {
        return Ok(());
    }
    let why = "a server without tokens accepts only requests to `localhost` or an IP address, and no requests from web pages of other sites";
    Err(refused(why))
}

fn refused(why: &str) -> Problem {
    Problem::new(Code::Forbidden, why)
        .hint("create a token and send it: `rewheel token create NAME --role …`")
}

fn is_added_by_proxies(name: &HeaderName) -> bool {
    ADDED_BY_PROXIES.contains(name) || name.as_str().starts_with("x-forwarded-")
}

/// Returns whether the host needs no name resolution. A resolver or its search domains decide about names without dots, so they are
/// rejected, too.
fn is_here(authority: &Authority) -> bool {
    let host = authority.host();
    is_bare(authority)
        && (host.eq_ignore_ascii_case("localhost") || v4(host).is_some() || v6(host).is_some())
}

/// Returns whether a page with this origin was served by this machine.
fn is_page_here(authority: &Authority) -> bool {
    let host = authority.host();
    let is_loopback = v4(host).is_some_and(|v4| v4.is_loopback())
        || v6(host).is_some_and(|v6| v6.to_canonical().is_loopback());
    is_bare(authority) && (host.eq_ignore_ascii_case("localhost") || is_loopback)
}

/// Returns whether there is only a host and a port.
fn is_bare(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host());
    port.is_some_and(|port| port.is_empty() || authority.port_u16().is_some())
}

fn v4(host: &str) -> Option<Ipv4Addr> {
    host.parse().ok()
}

fn v6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::check;
    use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};

    fn passes(sent: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            let name = HeaderName::try_from(*name).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        check(&Uri::from_static("/v1/jobs"), &headers).is_ok()
    }

    #[test]
    fn only_localhost_and_addresses_pass_as_host() {
        for host in [
            "localhost",
            "LOCALHOST:7420",
            "127.0.0.1:7420",
            "127.0.0.1",
            "[::1]:7420",
            "[::1]",
            "10.0.0.1",
            "[fd00::1]:1",
        ] {
            assert!(passes(&[("host", host)]), "{host}");
        }
        for host in [
            "rewheel:7420",
            "a",
            "intranet",
            "",
            ":7420",
            "host.docker.internal",
            "a.localhost:1",
            "localhost.",
            "localhost.evil.example",
            "evil.example",
            "EVIL.example:7420",
            "evil.example.",
            "127.0.0.1.evil.example",
            "1.2.3.4.5",
            "::1",
            "2130706433",
            "0x7f.1",
            "[::1",
            "[v1.x]",
            "localhost:x",
            "localhost:",
            "localhost:99999",
            "me@localhost",
            "localhost,evil.example",
            "localhost evil.example",
        ] {
            assert!(!passes(&[("host", host)]), "{host}");
        }
        assert!(passes(&[]), "no browser leaves Host out");
        assert!(!passes(&[("host", "localhost"), ("host", "evil.example")]));
        assert!(!passes(&[("host", "evil.example"), ("host", "localhost")]));
    }

    #[test]
    fn the_target_of_a_request_counts_as_well() {
        let mut headers = HeaderMap::new();
        for (uri, is_fine) in [("http://evil.example/v1/jobs", false), ("http://[::1]:1/", true)] {
            assert_eq!(check(&Uri::from_static(uri), &headers).is_ok(), is_fine, "{uri}");
        }
        headers.insert("host", HeaderValue::from_static("evil.example"));
        assert!(check(&Uri::from_static("http://localhost/v1/jobs"), &headers).is_err());
    }

    #[test]
    fn what_came_through_a_proxy_needs_a_token() {
        for (name, value) in [
            ("forwarded", "for=10.0.0.9"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "localhost"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-port", "80"),
            ("x-real-ip", "10.0.0.9"),
            ("via", "1.1 proxy"),
            ("x-forwarded-for", ""),
        ] {
            assert!(!passes(&[("host", "localhost"), (name, value)]), "{name}");
        }
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let passes = |origin| passes(&[("host", "127.0.0.1:7420"), ("origin", origin)]);
        for origin in ["http://127.0.0.1:7420", "http://localhost:3000", "https://[::1]:1"] {
            assert!(passes(origin), "{origin}");
        }
        for origin in [
            "https://evil.example",
            "null",
            "",
            "http://10.0.0.1",
            "http://wiki",
            "http://a.localhost",
            "http://localhost@evil.example",
        ] {
            assert!(!passes(origin), "{origin}");
        }
    }
}
