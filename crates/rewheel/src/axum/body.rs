//! Reads bodies up to a size limit.

use ::axum::Error;
use ::axum::body::{Body, Bytes, HttpBody};
use ::axum::http::HeaderMap;
use http_body::{Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The result of reading a body.
pub(super) enum Collected {
    /// The whole body.
    Whole(Whole),
    /// The body is longer than the limit. Contains the whole body again.
    Longer(Body),
    /// The body failed. Contains a body that fails at the same position.
    Broken(Body),
}

/// A body that was read to its end.
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    trailers: Option<HeaderMap>,
}

impl Whole {
    /// Returns the body again, with its trailers.
    pub(super) fn into_body(self) -> Body {
        match self.trailers {
            None => Body::from(self.bytes),
            Some(trailers) => {
                let pieces = vec![self.bytes].into_iter();
                Body::new(Reread { pieces, trailers: Some(trailers), error: None, rest: None })
            }
        }
    }
}

/// Reads a body to its end, but at most `bytes_max` bytes.
pub(super) async fn collect(mut body: Body, bytes_max: usize) -> Collected {
    let bytes_max_hint = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if body.size_hint().lower() > bytes_max_hint {
        return Collected::Longer(body);
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    let mut bytes: usize = 0;
    let mut trailers = None;
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return Collected::Whole(Whole { bytes: joined(pieces), trailers }),
            Some(Ok(Err(frame))) => trailers = frame.into_trailers().ok().or(trailers),
            Some(Ok(Ok(data))) => {
                bytes = bytes.saturating_add(data.len());
                pieces.push(data);
                if bytes > bytes_max {
                    let read = Reread {
                        pieces: pieces.into_iter(),
                        trailers: None,
                        error: None,
                        rest: Some(body),
                    };
                    return Collected::Longer(Body::new(read));
                }
            }
            Some(Err(error)) => {
                let read = Reread {
                    pieces: pieces.into_iter(),
                    trailers: None,
                    error: Some(error),
                    rest: None,
                };
                return Collected::Broken(Body::new(read));
            }
        }
    }
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        // Most bodies are one piece, which need not be copied.
        1 => pieces.remove(0),
        _ => pieces.concat().into(),
    }
}

/// The part of a body that was read, followed by the rest.
struct Reread {
    pieces: std::vec::IntoIter<Bytes>,
    trailers: Option<HeaderMap>,
    error: Option<Error>,
    rest: Option<Body>,
}

impl HttpBody for Reread {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(piece) = self.pieces.next() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        // Nothing is known about a body that failed.
        let Some(rest) = self.rest.as_ref().map(HttpBody::size_hint) else { return hint };
        let read: usize = self.pieces.as_slice().iter().map(Bytes::len).sum();
        let whole = |rest: u64| rest.saturating_add(read as u64);
        if let Some(upper) = rest.upper() {
            hint.set_upper(whole(upper));
        }
        hint.set_lower(whole(rest.lower()));
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::{Collected, Reread, collect};
    use ::axum::body::{Body, Bytes, HttpBody, to_bytes};
    use ::axum::http::HeaderMap;
    use std::future::poll_fn;
    use std::pin::Pin;

    fn pieces(pieces: &[&'static str], error: bool) -> Body {
        let pieces: Vec<Bytes> =
            pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        let error = error.then(|| ::axum::Error::new(std::io::Error::other("cut")));
        Body::new(Reread { pieces: pieces.into_iter(), trailers: None, error, rest: None })
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_bound_is_whole() {
        let Collected::Whole(whole) = collect(pieces(&["ab", "cd"], false), 4).await else {
            panic!("not whole")
        };
        assert_eq!(whole.bytes, "abcd");
    }

    #[tokio::test]
    async fn trailers_are_passed_on() {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", "17".parse().unwrap());
        let body = Body::new(Reread {
            pieces: vec![Bytes::from_static(b"ab")].into_iter(),
            trailers: Some(trailers.clone()),
            error: None,
            rest: None,
        });
        let Collected::Whole(whole) = collect(body, 4).await else { panic!("not whole") };
        let mut body = whole.into_body();
        let mut frames = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            frames.push(frame.unwrap());
        }
        assert_eq!(frames.len(), 2);
        assert_eq!(frames.pop().unwrap().into_trailers().unwrap(), trailers);
    }

    #[tokio::test]
    async fn a_longer_one_is_passed_on_as_it_is() {
        let body = Body::new(Reread {
            pieces: vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cd")].into_iter(),
            trailers: None,
            error: None,
            rest: Some(Body::from("ef")),
        });
        let Collected::Longer(body) = collect(body, 3).await else { panic!("not longer") };
        assert_eq!(body.size_hint().exact(), Some(6));
        assert_eq!(to_bytes(body, 100).await.unwrap(), "abcdef");
        // The length is known, so the body is not read at all.
        let Collected::Longer(body) = collect(Body::from("abcdef"), 3).await else {
            panic!("not longer")
        };
        assert_eq!(to_bytes(body, 100).await.unwrap(), "abcdef");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_still_does() {
        let Collected::Broken(body) = collect(pieces(&["ab"], true), 100).await else {
            panic!("not broken")
        };
        assert!(to_bytes(body, 100).await.unwrap_err().to_string().contains("cut"));
    }
}
