//! Reads the body of a request, within a limit.

use crate::fields::Fields;
use crate::problem::{Code, Problem};
use axum::body::{Body, HttpBody};
use std::future::poll_fn;
use std::pin::Pin;

/// How much of a body that is too large is read and forgotten: a client that is still writing when
/// the connection closes never sees the answer.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a request without a body to speak of may have.
pub(super) const SMALL_BYTES_MAX: usize = 64 * 1024;

/// Reads a whole body as text.
pub(super) async fn read(mut body: Body, bytes_max: usize) -> Result<String, Problem> {
    let mut kept = Vec::new();
    let mut seen = 0_usize;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| {
            Problem::new(Code::BadJson, format!("the body ended early: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= bytes_max {
            kept.extend_from_slice(&data);
        } else {
            kept = Vec::new();
        }
        if seen > bytes_max.saturating_add(DRAIN_BYTES_MAX) {
            break;
        }
    }
    if seen > bytes_max {
        return Err(Problem::new(
            Code::TooLarge,
            format!("the body has more than {bytes_max} bytes"),
        )
        .hint("the limits are engine.payload_bytes_max and server.body_bytes_max"));
    }
    String::from_utf8(kept)
        .map_err(|_| Problem::new(Code::BadJson, "the body is not UTF-8, so it is no JSON"))
}

/// Makes sure that a request says nothing that would be overheard.
pub(super) async fn read_nothing(body: Body) -> Result<(), Problem> {
    let text = read(body, SMALL_BYTES_MAX).await?;
    if text.trim().is_empty() {
        return Ok(());
    }
    let errors = Fields::read(&text, "", &[])?.into_errors();
    if errors.is_empty() { Ok(()) } else { Err(Problem::of_fields(Code::InvalidField, errors)) }
}
