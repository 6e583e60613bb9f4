//! Tells whoever sits at this machine from a web page that its browser shows.
//!
//! A server without tokens lets everybody on its machine in. A page from elsewhere is on that machine
//! too, in a browser: it may send what a form can send, and read the answers once the name that it came
//! from is made to mean 127.0.0.1. Both give themselves away by the name that they ask for.

use crate::problem::{Code, Problem};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
use std::net::IpAddr;

/// Endings that no registry gives away: containers call their machine `host.docker.internal`.
const OWNED_BY_NOBODY: [&str; 2] = [".internal", ".localdomain"];

/// What a name counts as that cannot be read.
const UNREADABLE: &str = "unreadable.example";

/// Lets a request without a token pass unless it asks for a name that anybody may own, or comes from a page of another site.
pub(super) fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let host = match (uri.host(), headers.get(HOST)) {
        (Some(host), _) => Some(host),
        (None, Some(host)) => Some(host.to_str().map_or(UNREADABLE, |host| without_port(host))),
        (None, None) => None,
    };
    let origin = headers.get(ORIGIN).map(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin.map_or("", |(_, host)| without_port(host))
    });
    if host.is_none_or(|host| !is_public(host)) && origin.is_none_or(is_here) {
        return Ok(());
    }
    let why = "without a token this server answers those who call it localhost or 127.0.0.1, and no page of another site";
    Err(Problem::new(Code::Forbidden, why)
        .hint("make a token, and send it: `rewheel token create NAME --role …`"))
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Whether a resolver that others run may say what it means. An address needs none; a word without dots is a name of this
/// network.
fn is_public(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let is_nobodys = OWNED_BY_NOBODY.iter().any(|ending| name.ends_with(ending));
    address(name).is_none() && name.contains('.') && !is_nobodys && !is_here(name)
}

fn is_here(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    match address(&name) {
        Some(address) => address.to_canonical().is_loopback(),
        // Browsers never ask a resolver for these.
        None => name == "localhost" || name.ends_with(".localhost"),
    }
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::check;
    use axum::http::{HeaderMap, HeaderValue, Uri};

    fn passes(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [("host", host), ("origin", origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
        }
        check(&Uri::from_static("/v1/jobs"), &headers).is_ok()
    }

    #[test]
    fn a_name_that_others_may_own_is_refused() {
        let here = ["localhost", "LOCALHOST:7420", "127.0.0.1:7420", "[::1]:7420", "a.localhost:1"];
        for host in here.into_iter().chain([
            "rewheel:7420",
            "10.0.0.1",
            "host.docker.internal",
            "",
            ":7420",
        ]) {
            assert!(passes(Some(host), None), "{host}");
        }
        assert!(passes(None, None), "no browser is without");
        let public =
            ["evil.example", "EVIL.example:7420", "evil.example.", "localhost.evil.example"];
        for host in public.into_iter().chain(["127.0.0.1.evil.example", "1.2.3.4.5"]) {
            assert!(!passes(Some(host), None), "{host}");
        }
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let here = Some("127.0.0.1:7420");
        assert!(passes(here, Some("http://127.0.0.1:7420")));
        assert!(passes(here, Some("http://localhost:3000")));
        for origin in ["https://evil.example", "null", "", "http://10.0.0.1", "http://wiki"] {
            assert!(!passes(here, Some(origin)), "{origin}");
        }
        let uri = Uri::from_static("http://evil.example/v1/jobs");
        assert!(check(&uri, &HeaderMap::new()).is_err());
    }
}
