//! Compresses responses for clients that accept gzip, and decompresses requests.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, VARY,
};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use std::io::{self, Write};

/// A shorter response fits into one packet either way.
const BYTES_MIN: u64 = 1024;

/// A longer response is sent uncompressed: compression would take seconds.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How many bytes are decompressed between two checks of the size: the output is at most a thousand
/// times as large.
const STEP: usize = 1024;

/// Compresses a response that is long enough, if the client accepts gzip.
pub(super) async fn compress(request: Request, next: Next) -> Response {
    let is_wanted = request.method() != Method::HEAD && accepts(request.headers());
    let response = next.run(request).await;
    let (mut parts, body) = response.into_parts();
    // A response without a known length is a stream: it is not delayed for compression.
    let is_long =
        body.size_hint().exact().is_some_and(|bytes| bytes > BYTES_MIN && bytes <= BYTES_MAX);
    if !is_long || parts.headers.contains_key(CONTENT_ENCODING) || !is_text(&parts.headers) {
        return Response::from_parts(parts, body);
    }
    parts.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if !is_wanted {
        return Response::from_parts(parts, body);
    }
    // The body has the length that it declared.
    let Ok(plain) = axum::body::to_bytes(body, usize::MAX).await else {
        parts.status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(parts, Body::empty());
    };
    match pack(&plain) {
        Ok(packed) => {
            parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(packed.len()));
            Response::from_parts(parts, Body::from(packed))
        }
        Err(_) => Response::from_parts(parts, Body::from(plain)),
    }
}

fn pack(plain: &[u8]) -> io::Result<Vec<u8>> {
    let room = Vec::with_capacity(plain.len() / 4);
    let mut encoder = GzEncoder::new(room, Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Returns whether the response is one of our texts: JSON, metrics, pages.
fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type
        .is_some_and(|media_type| media_type.contains("json") || media_type.starts_with("text/"))
}

/// Returns whether a client accepts gzip: by name or as `*`, unless its weight is 0.
fn accepts(headers: &HeaderMap) -> bool {
    let said = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    let (mut named, mut any) = (None, None);
    for one in said.flat_map(|value| value.split(',')) {
        let (coding, weight) = one.split_once(';').unwrap_or((one, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|text| text.parse::<f32>().ok());
        let is_welcome = weight.is_none_or(|weight| weight > 0.0);
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case("gzip") => named = Some(is_welcome),
            "*" => any = Some(is_welcome),
            _ => {}
        }
    }
    named.or(any).unwrap_or(false)
}

/// Decompresses a body as it arrives.
#[derive(Debug)]
pub(super) struct Unpacking(GzDecoder<Vec<u8>>);

impl Unpacking {
    pub(super) fn new() -> Unpacking {
        Unpacking(GzDecoder::new(Vec::new()))
    }

    /// Decompresses the first part of the input, and returns the rest.
    pub(super) fn step<'a>(&mut self, came: &'a [u8]) -> io::Result<&'a [u8]> {
        let (now, later) = came.split_at(came.len().min(STEP));
        self.0.write_all(now)?;
        Ok(later)
    }

    /// Returns the number of decompressed bytes so far.
    pub(super) fn len(&self) -> usize {
        self.0.get_ref().len()
    }

    /// Returns how much memory they use.
    pub(super) fn capacity(&self) -> usize {
        self.0.get_ref().capacity()
    }

    /// Returns the whole body, if it was complete.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BYTES_MAX, Body, CONTENT_ENCODING, HeaderMap, Request, Unpacking, accepts, compress, pack,
    };
    use axum::Router;
    use axum::http::header::ACCEPT_ENCODING;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt;

    #[track_caller]
    fn check(said: &[&str], is_accepted: bool) {
        let mut headers = HeaderMap::new();
        for one in said {
            headers.append("accept-encoding", one.parse().unwrap());
        }
        assert_eq!(accepts(&headers), is_accepted, "{said:?}");
    }

    #[test]
    fn only_who_says_so_gets_gzip() {
        check(&[], false);
        check(&["br"], false);
        check(&["gzip"], true);
        check(&["br, GZIP;q=0.5"], true);
        check(&["gzip;q=0"], false);
        check(&["*"], true);
        check(&["*, gzip;q=0"], false);
        check(&["*;q=0", "gzip"], true);
        check(&["identity"], false);
    }

    #[tokio::test]
    async fn what_would_take_seconds_to_pack_goes_out_as_it_is() {
        for (bytes, is_packed) in [(BYTES_MAX, true), (BYTES_MAX + 1, false)] {
            let text = move || async move { "x".repeat(bytes as usize) };
            let app = Router::new().route("/", get(text)).layer(from_fn(compress));
            let request = Request::get("/").header(ACCEPT_ENCODING, "gzip");
            let response = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), is_packed, "{bytes}");
            assert!(response.status().is_success());
        }
    }

    #[test]
    fn a_bomb_is_noticed_before_it_is_unpacked() {
        let bomb = pack(&vec![b' '; 64 * 1024 * 1024]).unwrap();
        let mut unpacking = Unpacking::new();
        let (mut rest, mut sizes) = (bomb.as_slice(), Vec::new());
        while !rest.is_empty() && sizes.len() < 4 {
            rest = unpacking.step(rest).unwrap();
            sizes.push(unpacking.len());
        }
        assert!(!rest.is_empty(), "it was unpacked at once");
        assert!(sizes[0] < 2 * 1024 * 1024, "{sizes:?}");
    }
}
