//! Serves one client connection.

use super::Handshake;
use super::connection::{Connection, Cut, Phase};
use super::raw;
use super::registry::Slot;
use super::stream::Stream;
use crate::config::LimitSettings;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rewheel::CancelToken;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

/// How long to keep reading from a client that still sends after its response: closing a connection
/// with unread bytes would discard the response.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Maximum number of bytes read in that time.
const LAST_WORDS_BYTES_MAX: usize = 1024 * 1024;

/// Number of headers that hyper handles without an allocation.
const HEADERS_FREE: usize = 100;

/// Maximum number of body bytes per read.
const READ_BYTES_MAX: usize = 128 * 1024;

/// Returns an HTTP/1.1 server with these limits.
pub(super) fn protocol(limits: &LimitSettings) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None)
        .max_header_size(limits.head_bytes_max)
        .max_buf_size(READ_BYTES_MAX.max(limits.head_bytes_max.saturating_mul(2)));
    if limits.headers_max != HEADERS_FREE {
        http.max_headers(limits.headers_max);
    }
    http
}

/// Everything that is needed to serve a connection.
pub(super) struct Served {
    pub(super) http: http1::Builder,
    pub(super) router: Router,
    pub(super) quiet: CancelToken,
}

impl Served {
    /// Serves a connection until either side closes it.
    pub(super) async fn run<H: Handshake>(self, tcp: TcpStream, handshake: H, place: Slot) {
        let line = Arc::clone(&place.line);
        // Send responses at once, without waiting to combine packets.
        let _ = tcp.set_nodelay(true);
        let stream = tokio::select! {
            shaken = handshake.shake(tcp) => shaken,
            _ = line.until_cut() => return,
        };
        // Without a handshake the client cannot be told anything.
        let Ok(stream) = stream else { return };
        let stream = Stream::new(stream, Arc::clone(&line));
        let router = self.router;
        let answering = Arc::clone(&line);
        let service = service_fn(move |request| answer(&router, &answering, request));
        let mut connection = self.http.serve_connection(TokioIo::new(stream), service);
        let quiet = self.quiet.cancelled();
        tokio::pin!(quiet);
        let (ended, cut) = tokio::select! {
            biased;
            ended = &mut connection => (ended, Cut::Not),
            cut = line.until_cut() => (Ok(()), cut),
            () = &mut quiet => {
                Pin::new(&mut connection).graceful_shutdown();
                tokio::select! {
                    ended = &mut connection => (ended, Cut::Not),
                    cut = line.until_cut() => (Ok(()), cut),
                }
            }
        };
        let stream = connection.into_parts().io.into_inner();
        let is_torn = ended.is_err_and(|error| error.is_incomplete_message());
        if let Some(problem) = last_problem(&line, cut, is_torn) {
            let said = say(stream, &problem).await;
            // A connection that is replaced by another is closed at once.
            if let Some(stream) = said.filter(|_| cut != Cut::Crowded) {
                listen(stream).await;
            }
        } else if cut == Cut::Not && line.is_owed() {
            listen(stream).await;
        }
        drop(place);
    }
}

/// Returns the problem for a client whose request never reached a handler.
fn last_problem(line: &Connection, cut: Cut, is_torn: bool) -> Option<Problem> {
    let slow = || {
        Problem::new(Code::TooSlow, "the request headers arrived too slowly")
            .hint("send the request again; the time limit is server.limits.head_timeout")
    };
    match cut {
        // A connection without any request data is closed without a response.
        Cut::SlowHead => line.has_begun().then(slow),
        Cut::Crowded => line.has_begun().then(crowded),
        // A client that disconnects during its response gets nothing.
        Cut::Not if is_torn && line.phase() == Phase::Head && line.has_begun() => {
            Some(Problem::new(
                Code::BadRequest,
                "the connection closed before the request headers were complete",
            ))
        }
        Cut::Not | Cut::Idle | Cut::Stalled => None,
    }
}

fn crowded() -> Problem {
    Problem::new(Code::Overloaded, "the server is at its connection limit")
        .hint("send the request again in a moment; the limit is server.limits.connections_max")
}

/// Tells a client that the server has no free slot.
pub(super) async fn refuse<H: Handshake>(tcp: TcpStream, handshake: H, line: Arc<Connection>) {
    if let Ok(Ok(stream)) = timeout(LAST_WORDS, handshake.shake(tcp)).await
        && let Some(stream) = say(Stream::new(stream, line), &crowded()).await
    {
        listen(stream).await;
    }
}

/// Sends the last response. Returns the stream if it was sent.
async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: Stream<S>,
    problem: &Problem,
) -> Option<Stream<S>> {
    let saying = async {
        stream.write_all(&raw::answer(problem)).await?;
        stream.flush().await?;
        stream.shutdown().await
    };
    let said = timeout(LAST_WORDS, saying).await.is_ok_and(|said| said.is_ok());
    said.then_some(stream)
}

/// Keeps reading for a while from a client that already got its response.
async fn listen<S: AsyncRead + AsyncWrite + Unpin>(mut stream: Stream<S>) {
    let listening = async {
        let (mut heard, mut words) = (0, vec![0; 8 * 1024]);
        while heard < LAST_WORDS_BYTES_MAX && !stream.is_at_end() {
            match stream.read(&mut words).await {
                Ok(0) | Err(_) => break,
                Ok(more) => heard += more,
            }
        }
    };
    let _ = timeout(LAST_WORDS, listening).await;
}

/// Answers a request, and records its start and end.
fn answer(
    router: &Router,
    line: &Arc<Connection>,
    request: hyper::Request<Incoming>,
) -> impl Future<Output = Result<Response<Noted<Body>>, Infallible>> + use<> {
    line.busy();
    let (mut router, line) = (router.clone(), Arc::clone(line));
    let request: Request = if request.body().is_end_stream() {
        request.map(Body::new)
    } else {
        let note = |body| Body::new(Noted { body, line: Arc::clone(&line), of: Of::Request });
        request.map(note)
    };
    let answering = Service::call(&mut router, request);
    async move {
        let mut response = answering.await?;
        if line.is_last() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| Noted { body, line, of: Of::Answer }))
    }
}

/// The kind of body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Request,
    Answer,
}

/// A body whose end is recorded.
#[derive(Debug)]
struct Noted<B: HttpBody> {
    body: B,
    line: Arc<Connection>,
    of: Of,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Noted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: HttpBody> Drop for Noted<B> {
    fn drop(&mut self) {
        match self.of {
            Of::Answer => self.line.answered(),
            Of::Request if !self.body.is_end_stream() => {
                self.line.owes(self.body.size_hint().upper());
            }
            Of::Request => {}
        }
    }
}
