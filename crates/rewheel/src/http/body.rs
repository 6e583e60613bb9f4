//! Bodies that can be made from bytes.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A response body that can be made from text, for the answers of a layer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a response body that this layer can create",
    note = "enable the feature `axum` or `tonic` of rewheel for the bodies of these crates, or implement `rewheel::http::TextBody`"
)]
pub trait TextBody {
    /// Creates a body from a text, which may be empty.
    fn of_text(text: String) -> Self;
}

/// A request body that can be sent again: the layer reads it, and makes a new body of the same type for each attempt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a request body that can be sent again",
    note = "enable the feature `axum` or `tonic` of rewheel for the bodies of these crates, or implement `rewheel::http::ReplayBody`"
)]
pub trait ReplayBody: Body<Data = Bytes> + Unpin + Send + 'static {
    /// Creates a body from what was read of another, and its rest. `Self::new(parts)` is enough where a body has such a function.
    fn of_parts(parts: Parts<Self>) -> Self
    where
        Self: Sized;
}

#[cfg(feature = "axum")]
impl TextBody for ::axum::body::Body {
    fn of_text(text: String) -> ::axum::body::Body {
        ::axum::body::Body::from(text)
    }
}

#[cfg(feature = "axum")]
impl ReplayBody for ::axum::body::Body {
    fn of_parts(parts: Parts<::axum::body::Body>) -> ::axum::body::Body {
        ::axum::body::Body::new(parts)
    }
}

#[cfg(feature = "tonic")]
impl TextBody for ::tonic::body::Body {
    fn of_text(text: String) -> ::tonic::body::Body {
        ::tonic::body::Body::new(Parts::<::tonic::body::Body>::whole(Bytes::from(text)))
    }
}

#[cfg(feature = "tonic")]
impl ReplayBody for ::tonic::body::Body {
    fn of_parts(parts: Parts<::tonic::body::Body>) -> ::tonic::body::Body {
        ::tonic::body::Body::new(parts)
    }
}

/// Bytes, followed by a frame that was read, and the rest of a body.
pub struct Parts<B: Body> {
    read: Bytes,
    held: Option<Result<Frame<Bytes>, B::Error>>,
    rest: Option<B>,
}

impl<B: Body<Data = Bytes>> Parts<B> {
    pub(super) const fn whole(read: Bytes) -> Parts<B> {
        Parts { read, held: None, rest: None }
    }
}

// A body is moved, never pinned in place.
impl<B: Body + Unpin> Unpin for Parts<B> {}

impl<B: Body> fmt::Debug for Parts<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("read", &self.read.len()).finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Parts<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.read)))));
        }
        if let Some(held) = self.held.take() {
            return Poll::Ready(Some(held));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_read = self.read.is_empty() && self.held.is_none();
        is_read && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.len() as u64;
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint.set_lower(rest.lower().saturating_add(read));
        hint
    }
}

/// What was read of a body.
pub(super) enum Read<B> {
    /// All of it: it can be sent again.
    Whole(Bytes),
    /// It is too long, has trailers, or failed: it can be sent once, as it came.
    Once(B),
}

/// Reads a body to its end, but at most `bytes_max` bytes.
pub(super) async fn read<B: ReplayBody>(mut body: B, bytes_max: usize) -> Read<B> {
    if body.size_hint().lower() > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Read::Once(body);
    }
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        if body.is_end_stream() {
            return Read::Whole(bytes.into());
        }
        let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return Read::Whole(bytes.into()),
            Some(Ok(Ok(data))) => bytes.extend_from_slice(&data),
            // Trailers, or an error: what follows is sent once, as it came.
            Some(held) => {
                let held = held.map(|frame| frame.map_or_else(|frame| frame, Frame::data));
                let held = Some(held);
                let parts = Parts { read: bytes.into(), held, rest: Some(body) };
                return Read::Once(B::of_parts(parts));
            }
        }
        if bytes.len() > bytes_max {
            let parts = Parts { read: bytes.into(), held: None, rest: Some(body) };
            return Read::Once(B::of_parts(parts));
        }
    }
}
