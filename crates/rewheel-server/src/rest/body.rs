//! Reads request bodies, within limits.

mod memory;

pub(crate) use self::memory::BodyMemory;
pub(super) use self::memory::Share;

use super::gzip::Unpacking;
use crate::app::App;
use crate::fields::Fields;
use crate::problem::{Code, Problem};
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// How much of a too large body is read and discarded: a client that still sends when the connection closes never sees the response.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum size of a small request body.
pub(super) const SMALL_BYTES_MAX: usize = 64 * 1024;

/// An unread request body.
#[derive(Debug)]
pub(super) struct Body {
    body: axum::body::Body,
    coding: Coding,
    share: Share,
    pace: Pace,
}

impl FromRequest<Arc<App>> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Body, Problem> {
        let coding = Coding::of(request.headers())?;
        let share = request.extensions().get::<Share>().cloned();
        let share = share.unwrap_or_else(|| Share::new(app.bodies()));
        let limits = &app.config().server.limits;
        let pace = Pace::new(limits.body_timeout, limits.body_rate_min);
        Ok(Body { body: request.into_body(), coding, share, pace })
    }
}

/// A whole body.
///
/// It counts against the memory limit with its own size and the copy that is parsed from it. The memory of the copy is freed when the
/// handler ends; see `limits::keep`.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    share: Share,
}

impl Text {
    /// Frees all its memory: nothing of similar size was made from the body.
    pub(super) fn release(self) {
        self.share.shrink(0);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.share.shrink(self.text.len());
    }
}

/// Reads a whole body as text.
pub(super) async fn read(mut body: Body, bytes_max: usize) -> Result<Text, Problem> {
    let mut kept = match body.coding {
        Coding::Plain => body.read_plain(bytes_max).await?,
        Coding::Gzip => body.read_packed(bytes_max).await?,
    };
    kept.shrink_to_fit();
    body.share.resize(kept.len().saturating_mul(2))?;
    let text = String::from_utf8(kept)
        .map_err(|_| Problem::new(Code::BadJson, "the body is not valid UTF-8"))?;
    Ok(Text { text, share: body.share })
}

/// Checks that a request has no body that would be ignored.
pub(super) async fn read_nothing(body: Body) -> Result<(), Problem> {
    let text = read(body, SMALL_BYTES_MAX).await?;
    if text.trim().is_empty() {
        return Ok(());
    }
    let errors = Fields::read(&text, "", &[])?.into_errors();
    if errors.is_empty() { Ok(()) } else { Err(Problem::of_fields(Code::InvalidField, errors)) }
}

impl Body {
    async fn read_plain(&mut self, bytes_max: usize) -> Result<Vec<u8>, Problem> {
        let said = usize::try_from(self.body.size_hint().upper().unwrap_or(u64::MAX));
        let capacity_max = said.unwrap_or(usize::MAX).min(bytes_max);
        let (mut kept, mut seen) = (Vec::new(), 0_usize);
        while let Some(data) = self.next().await? {
            seen = seen.saturating_add(data.len());
            if seen <= bytes_max {
                self.grow(&mut kept, data.len(), capacity_max)?;
                kept.extend_from_slice(&data);
            } else {
                kept = Vec::new();
                self.share.shrink(0);
            }
            if seen > bytes_max.saturating_add(DRAIN_BYTES_MAX) {
                break;
            }
        }
        if seen > bytes_max { Err(too_large(bytes_max)) } else { Ok(kept) }
    }

    /// Grows the buffer, and counts its whole memory.
    fn grow(&self, kept: &mut Vec<u8>, more: usize, capacity_max: usize) -> Result<(), Problem> {
        let needed = kept.len().saturating_add(more);
        if needed > kept.capacity() {
            let capacity = kept.capacity().saturating_mul(2).min(capacity_max).max(needed);
            self.share.resize(capacity)?;
            kept.reserve_exact(capacity - kept.len());
        }
        Ok(())
    }

    async fn read_packed(&mut self, bytes_max: usize) -> Result<Vec<u8>, Problem> {
        let wrong = |error: std::io::Error| {
            Problem::new(Code::BadJson, format!("the body is not valid gzip: {error}"))
        };
        let mut unpacking = Unpacking::new();
        while let Some(data) = self.next().await? {
            let mut rest = &data[..];
            while !rest.is_empty() {
                rest = unpacking.step(rest).map_err(wrong)?;
                if unpacking.len() > bytes_max {
                    return Err(too_large(bytes_max));
                }
                self.share.resize(unpacking.capacity())?;
                tokio::task::consume_budget().await;
            }
        }
        let kept = unpacking.finish().map_err(wrong)?;
        if kept.len() > bytes_max { Err(too_large(bytes_max)) } else { Ok(kept) }
    }

    /// Returns the next chunk, unless the client is too slow.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let Body { body, pace, .. } = self;
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let frame = tokio::select! {
                biased;
                frame = frame => frame,
                () = pace.lost() => return Err(too_slow()),
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| {
                Problem::new(Code::BadJson, format!("the body is incomplete: {error}"))
            })?;
            if let Ok(data) = frame.into_data() {
                self.pace.came(data.len());
                return Ok(Some(data));
            }
        }
    }
}

fn too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::TooLarge, format!("the body has more than {bytes_max} bytes"))
        .hint("send a smaller body, or raise engine.payload_bytes_max or server.body_bytes_max in the config")
}

fn too_slow() -> Problem {
    Problem::new(Code::TooSlow, "the body arrived too slowly").hint(
        "nothing was stored; send the request again (the limits are server.limits.body_timeout and \
         server.limits.body_rate_min)",
    )
}

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Plain,
    Gzip,
}

impl Coding {
    fn of(headers: &HeaderMap) -> Result<Coding, Problem> {
        let mut said = headers.get_all(CONTENT_ENCODING).into_iter();
        let (Some(one), more) = (said.next(), said.next()) else { return Ok(Coding::Plain) };
        let one = one.to_str().unwrap_or("something else").trim().to_ascii_lowercase();
        match (one.as_str(), more) {
            ("" | "identity", None) => Ok(Coding::Plain),
            ("gzip" | "x-gzip", None) => Ok(Coding::Gzip),
            _ => Err(Problem::new(
                Code::UnknownEncoding,
                "the server does not support the Content-Encoding of the body",
            )
            .hint("send the body uncompressed, or with `Content-Encoding: gzip`")),
        }
    }
}

/// Checks the minimum rate of a body, interval by interval.
#[derive(Debug)]
struct Pace {
    stretch: Duration,
    bytes_min: u64,
    came: u64,
    /// Not set until the server has to wait for the client: most bodies arrive with their head.
    end: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    fn new(stretch: Duration, rate_min: u32) -> Pace {
        let bytes_min = u128::from(rate_min) * stretch.as_millis() / 1_000;
        let bytes_min = u64::try_from(bytes_min).unwrap_or(u64::MAX).max(1);
        Pace { stretch, bytes_min, came: 0, end: None }
    }

    fn came(&mut self, bytes: usize) {
        self.came = self.came.saturating_add(bytes as u64);
    }

    /// Returns once too few bytes arrived within an interval.
    async fn lost(&mut self) {
        loop {
            let stretch = self.stretch;
            self.end.get_or_insert_with(|| Box::pin(sleep(stretch))).await;
            self.end = None;
            if std::mem::take(&mut self.came) < self.bytes_min {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Coding, Pace};
    use axum::http::HeaderMap;
    use rewheel::{millis, seconds};
    use tokio::time::{sleep, timeout};

    #[tokio::test(start_paused = true)]
    async fn who_sends_enough_in_each_stretch_may_take_its_time() {
        let mut pace = Pace::new(seconds(10), 100);
        for _ in 0..100 {
            pace.came(500);
            assert!(timeout(seconds(5), pace.lost()).await.is_err());
        }
        pace.came(400);
        assert!(timeout(seconds(21), pace.lost()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_too_long_whatever_the_rate() {
        let mut pace = Pace::new(seconds(10), 0);
        pace.came(1);
        assert!(timeout(seconds(19), pace.lost()).await.is_err());
        sleep(millis(1)).await;
        assert!(timeout(seconds(2), pace.lost()).await.is_ok());
    }

    #[test]
    fn only_gzip_is_unpacked() {
        let coding = |said: &[&str]| {
            let mut headers = HeaderMap::new();
            for one in said {
                headers.append("content-encoding", one.parse().unwrap());
            }
            Coding::of(&headers).ok()
        };
        assert_eq!(coding(&[]), Some(Coding::Plain));
        assert_eq!(coding(&["identity"]), Some(Coding::Plain));
        assert_eq!(coding(&[" GZIP "]), Some(Coding::Gzip));
        for unknown in [&["br"][..], &["gzip, gzip"], &["gzip", "gzip"], &["deflate"]] {
            assert_eq!(coding(unknown), None);
        }
    }
}
