//! Serializes a response for an idempotency store.

use super::problem::Problem;
use ::axum::body::{Body, Bytes};
use ::axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

/// Header that marks a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The first byte: the format of the rest.
const WHOLE: u8 = 1;
const NOT_KEPT: u8 = 2;

/// A response as stored under a key.
///
/// The layer creates one from the response of a handler. A handler that stores its response in its own transaction creates
/// this value itself, see `PostgresStore::finish_in` of `rewheel-stores`.
///
/// ```
/// use axum::http::{HeaderMap, StatusCode};
/// use rewheel::axum::KeptResponse;
///
/// let answer = KeptResponse::new(StatusCode::CREATED, HeaderMap::new(), "charged");
/// let bytes = answer.to_bytes();
/// assert_eq!(KeptResponse::from_bytes(&bytes).unwrap().to_bytes(), bytes);
/// ```
#[derive(Clone, Debug)]
pub struct KeptResponse {
    status: StatusCode,
    headers: HeaderMap,
    /// `None` if it was too large to store.
    body: Option<Bytes>,
}

impl KeptResponse {
    /// Creates a response to store.
    pub fn new(status: StatusCode, headers: HeaderMap, body: impl Into<Bytes>) -> KeptResponse {
        KeptResponse { status, headers, body: Some(body.into()) }
    }

    /// Stores only that there was a response, not its content.
    pub(super) fn not_kept(status: StatusCode) -> KeptResponse {
        KeptResponse { status, headers: HeaderMap::new(), body: None }
    }

    /// Serializes the response.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Some(body) = &self.body else {
            let status = self.status.as_u16().to_be_bytes();
            return vec![NOT_KEPT, status[0], status[1]];
        };
        let mut bytes = vec![WHOLE];
        bytes.extend(self.status.as_u16().to_be_bytes());
        let short = |bytes: &[u8]| u16::try_from(bytes.len()).ok();
        let fields: Vec<_> = self
            .headers
            .iter()
            .filter_map(|(name, value)| {
                let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
                Some((short(name)?, name, short(value)?, value))
            })
            .take(usize::from(u16::MAX))
            .collect();
        bytes.extend(u16::try_from(fields.len()).unwrap_or(u16::MAX).to_be_bytes());
        for (name_length, name, value_length, value) in fields {
            bytes.extend(name_length.to_be_bytes());
            bytes.extend(name);
            bytes.extend(value_length.to_be_bytes());
            bytes.extend(value);
        }
        bytes.extend_from_slice(body);
        bytes
    }

    /// Parses the output of [`to_bytes`](KeptResponse::to_bytes). Returns `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<KeptResponse> {
        let mut rest = Reader(bytes);
        let kind = rest.take(1)?[0];
        let status = StatusCode::from_u16(rest.number()?).ok()?;
        match kind {
            NOT_KEPT => Some(KeptResponse::not_kept(status)),
            WHOLE => {
                let mut headers = HeaderMap::new();
                for _ in 0..rest.number()? {
                    let length = rest.number()?;
                    let name = HeaderName::from_bytes(rest.take(length.into())?).ok()?;
                    let length = rest.number()?;
                    let value = HeaderValue::from_bytes(rest.take(length.into())?).ok()?;
                    headers.append(name, value);
                }
                Some(KeptResponse { status, headers, body: Some(Bytes::copy_from_slice(rest.0)) })
            }
            _ => None,
        }
    }

    /// Builds the response for a repeated request.
    pub(super) fn replay(self) -> Response<Body> {
        let Some(body) = self.body else { return Problem::NOT_KEPT.response() };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::KeptResponse;
    use ::axum::http::{HeaderMap, HeaderValue, StatusCode, header};

    fn kept() -> KeptResponse {
        let mut headers = HeaderMap::new();
        headers.append(header::LINK, HeaderValue::from_static("</a>"));
        headers.append(header::LINK, HeaderValue::from_static("</b>"));
        headers.append(header::ETAG, HeaderValue::from_bytes(b"\"caf\xe9\"").unwrap());
        KeptResponse::new(StatusCode::CREATED, headers, vec![0, 255, 10])
    }

    #[test]
    fn a_response_is_read_as_it_was_written() {
        let read = KeptResponse::from_bytes(&kept().to_bytes()).unwrap();
        assert_eq!((read.status, &read.headers), (StatusCode::CREATED, &kept().headers));
        assert_eq!(read.body, kept().body);
        let tomb = KeptResponse::from_bytes(&KeptResponse::not_kept(StatusCode::OK).to_bytes());
        assert_eq!(tomb.unwrap().replay().status(), StatusCode::CONFLICT);
    }

    #[test]
    fn unknown_bytes_are_no_response() {
        let whole = kept().to_bytes();
        let body = 3;
        for end in 0..whole.len() - body {
            assert!(KeptResponse::from_bytes(&whole[..end]).is_none(), "{end}");
        }
        assert!(KeptResponse::from_bytes(&[9, 0, 200]).is_none());
        assert!(KeptResponse::from_bytes(&[2, 0, 1]).is_none());
    }
}
