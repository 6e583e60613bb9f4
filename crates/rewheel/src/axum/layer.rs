//! Runs a request once for each `Idempotency-Key`.

use super::body::{Collected, collect};
use super::header;
use super::kept::KeptResponse;
use super::multipart;
use super::problem::Problem;
use crate::classify::{Class, Verdict};
use crate::idempotency::{
    Entry, Fingerprint, Finished, Idempotency, IdempotencyKey, IdempotencyStoreError, Run,
};
use ::axum::body::{Body, Bytes};
use ::axum::extract::OriginalUri;
use ::axum::http::request::Parts;
use ::axum::http::{HeaderMap, HeaderName, Request, Response, StatusCode, header as names};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Response headers that are stored by default: they describe the body or its location. No cookies, and nothing that belongs to
/// one connection or one request.
const KEPT_HEADERS: [HeaderName; 9] = [
    names::CONTENT_TYPE,
    names::CONTENT_ENCODING,
    names::CONTENT_LANGUAGE,
    names::CONTENT_LOCATION,
    names::LOCATION,
    names::ETAG,
    names::LAST_MODIFIED,
    names::LINK,
    names::VARY,
];

/// Runs a request once for each `Idempotency-Key`, and answers repeated requests with the stored response.
///
/// Place this layer inside the layer that authenticates the caller, and outside layers that change bodies for one client,
/// such as compression. The layer applies to all methods except GET, HEAD, OPTIONS and TRACE.
///
/// | request | response |
/// | --- | --- |
/// | with a new key | the response of the handler |
/// | repeated after a response | the same response, with `idempotent-replayed: true` |
/// | while another request with the same key runs | 409 `key_in_flight`, or the response of the other request, see [`Idempotency::wait`] |
/// | with the key of a different request | 422 `key_reused` |
/// | repeated after a response that was too large to store | 409 `answer_not_kept`: the handler does not run again |
/// | without a key, or with an invalid one | 400, if a key is [`required`](IdempotencyLayer::required) |
/// | from a caller that [`per_caller`](IdempotencyLayer::per_caller) does not know | 403 `caller_unknown` |
/// | whose handler takes longer than [`Idempotency::work_max`] | 504 `work_timed_out` |
/// | while the store is unavailable | 503 `store_unavailable`: nothing runs |
///
/// All errors are `application/problem+json`. Responses that a client should retry are not stored, and the next request with the
/// key runs again: see [`keep_when`](IdempotencyLayer::keep_when).
///
/// **A client that disconnects** does not stop the handler. The handler runs to its end, at most for [`Idempotency::work_max`],
/// and its response is stored, so that the client gets the response when it asks again. For the effect of a crash, see [`idempotency`](crate::idempotency).
///
/// A handler finds its [`Ticket`](crate::idempotency::Ticket) in the extensions of the request.
#[derive(Clone)]
pub struct IdempotencyLayer {
    idempotency: Idempotency,
    caller: Arc<CallerOf>,
    keep_when: Arc<dyn Fn(StatusCode) -> bool + Send + Sync>,
    keep_headers: Arc<[HeaderName]>,
    required: bool,
    request_bytes_max: usize,
    answer_bytes_max: usize,
}

/// Returns who sent a request, if it is known.
type CallerOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl IdempotencyLayer {
    /// Separates callers by a value that `caller` extracts from a request: a tenant, an account. Callers do not see each other's
    /// responses, and may use the same keys. The value must stay the same when a caller repeats a request, so do not use a token
    /// that is renewed.
    ///
    /// The closure returns a `String`, or an `Option<String>`: the layer refuses a request with a key whose caller is `None` (403
    /// `caller_unknown`). All callers that share an empty text would see each other's responses.
    pub fn per_caller<C: Into<Option<String>>>(
        idempotency: &Idempotency,
        caller: impl Fn(&Parts) -> C + Send + Sync + 'static,
    ) -> IdempotencyLayer {
        IdempotencyLayer {
            idempotency: idempotency.clone(),
            caller: Arc::new(move |parts| caller(parts).into()),
            keep_when: Arc::new(is_worth_keeping),
            keep_headers: Arc::new(KEPT_HEADERS),
            required: false,
            request_bytes_max: 1024 * 1024,
            answer_bytes_max: 256 * 1024,
        }
    }

    /// For a service with one caller: callers are not separated. If two clients send the same key and the same request, the second client gets the response of the first.
    pub fn one_caller(idempotency: &Idempotency) -> IdempotencyLayer {
        IdempotencyLayer::per_caller(idempotency, |_| String::new())
    }

    /// Refuses requests without a key.
    #[must_use]
    pub fn required(mut self) -> IdempotencyLayer {
        self.required = true;
        self
    }

    /// Sets which responses are stored. By default all responses are stored, except responses about credentials (401, 403, 407)
    /// and responses that a client should retry (408, 425, 429, 5xx except 501 and 505). If these were stored, a client would get the response of a
    /// short failure for a whole day. After a response that is not stored, the handler runs again for the same key, so its
    /// earlier effects should be undone, or harmless when repeated. `|_| true` stores everything.
    #[must_use]
    pub fn keep_when(
        mut self,
        keep_when: impl Fn(StatusCode) -> bool + Send + Sync + 'static,
    ) -> IdempotencyLayer {
        self.keep_when = Arc::new(keep_when);
        self
    }

    /// Also stores these response headers. By default the layer stores content-type, content-encoding, content-language,
    /// content-location, location, etag, last-modified, link and vary.
    #[must_use]
    pub fn keep_headers(
        mut self,
        headers: impl IntoIterator<Item = HeaderName>,
    ) -> IdempotencyLayer {
        self.keep_headers = self.keep_headers.iter().cloned().chain(headers).collect();
        self
    }

    /// Sets the maximum body size of a request with a key; the default is 1 MiB. A larger request gets 413, because the layer reads the body into memory before the handler runs.
    #[must_use]
    pub fn request_bytes_max(mut self, bytes: usize) -> IdempotencyLayer {
        self.request_bytes_max = bytes;
        self
    }

    /// Sets the maximum size of a response that is stored; the default is 256 KiB. The first client gets a larger response
    /// unchanged; a repeated request gets 409 `answer_not_kept`.
    #[must_use]
    pub fn answer_bytes_max(mut self, bytes: usize) -> IdempotencyLayer {
        self.answer_bytes_max = bytes;
        self
    }
}

fn is_worth_keeping(status: StatusCode) -> bool {
    let says_nothing = matches!(status.as_u16(), 401 | 403 | 407);
    !says_nothing
        && !matches!(
            Class::of_status(status.as_u16()).verdict,
            Verdict::Retry | Verdict::RetryAfter(_)
        )
}

impl fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("idempotency", &self.idempotency)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = IdempotencyService<S>;

    fn layer(&self, inner: S) -> IdempotencyService<S> {
        IdempotencyService { inner, layer: self.clone() }
    }
}

/// A service that runs a request once for each key. Created by [`IdempotencyLayer`].
#[derive(Clone, Debug)]
pub struct IdempotencyService<S> {
    inner: S,
    layer: IdempotencyLayer,
}

impl<S> Service<Request<Body>> for IdempotencyService<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Boxed<Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Readiness belongs to the instance that was polled; a clone has reserved nothing.
        let fresh = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, fresh);
        let layer = self.layer.clone();
        Box::pin(async move {
            match layer.read(request).await {
                Asked::Unkeyed(request) => ready.call(request).await,
                Asked::Unclear(problem) => Ok(problem.response()),
                Asked::Keyed(key, fingerprint, mut request) => {
                    // Run to the end from here on: if dropped, it could leave a key without a response.
                    let hung_up = Arc::new(AtomicBool::new(false));
                    let is_wanted = Arc::clone(&hung_up);
                    let work = async move {
                        let is_wanted = || !is_wanted.load(Ordering::Relaxed);
                        match layer.begin(key, fingerprint, is_wanted).await {
                            Ok(run) => {
                                request.extensions_mut().insert(run.ticket());
                                layer.carry_out(run, ready.call(request)).await
                            }
                            Err(response) => Ok(response),
                        }
                    };
                    ToTheEnd { work: Some(Box::pin(work)), hung_up }.await
                }
            }
        })
    }
}

/// What a request requires.
enum Asked {
    /// No key, and none is required.
    Unkeyed(Request<Body>),
    /// Invalid: the request does not run.
    Unclear(Problem),
    /// The request must run once.
    Keyed(IdempotencyKey, Fingerprint, Request<Body>),
}

impl IdempotencyLayer {
    async fn read(&self, request: Request<Body>) -> Asked {
        if request.method().is_safe() {
            return Asked::Unkeyed(request);
        }
        let key = match header::idempotency_key(request.headers()) {
            Ok(Some(key)) => key,
            Ok(None) if self.required => return Asked::Unclear(Problem::KEY_MISSING),
            Ok(None) => return Asked::Unkeyed(request),
            Err(header::KeyHeaderError) => return Asked::Unclear(Problem::KEY_INVALID),
        };
        let (parts, body) = request.into_parts();
        let Some(caller) = (self.caller)(&parts) else {
            return Asked::Unclear(Problem::CALLER_UNKNOWN);
        };
        let Ok(key) = IdempotencyKey::new(&caller, &key) else {
            return Asked::Unclear(Problem::KEY_INVALID);
        };
        match collect(body, self.request_bytes_max).await {
            Collected::Whole(whole) => {
                let fingerprint = fingerprint(&parts, &whole.bytes);
                Asked::Keyed(key, fingerprint, Request::from_parts(parts, whole.into_body()))
            }
            Collected::Longer(_) => Asked::Unclear(Problem::TOO_LARGE),
            Collected::Broken(_) => Asked::Unclear(Problem::BODY_BROKEN),
        }
    }

    /// Starts a run, or returns the response to send instead.
    async fn begin(
        &self,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Box<Run>, Response<Body>> {
        let begun = self.idempotency.begin_while(key, fingerprint, is_wanted).await;
        let problem = match begun {
            Ok(Entry::Run(run)) => return Ok(run),
            Ok(Entry::Done(bytes)) => match KeptResponse::from_bytes(&bytes) {
                Some(kept) => return Err(kept.replay()),
                None => Problem::BROKEN,
            },
            Ok(Entry::InFlight { .. }) => Problem::IN_FLIGHT,
            Ok(Entry::Unknown) => Problem::UNKNOWN,
            Ok(Entry::Reused) => Problem::KEY_REUSED,
            Err(IdempotencyStoreError::Broken(_)) => Problem::BROKEN,
            Err(IdempotencyStoreError::Full) => Problem::FULL,
            Err(IdempotencyStoreError::Unavailable(_)) => Problem::UNAVAILABLE,
        };
        Err(problem.response())
    }

    async fn carry_out<E>(
        &self,
        run: Box<Run>,
        handler: impl Future<Output = Result<Response<Body>, E>>,
    ) -> Result<Response<Body>, E> {
        let Some(worked) = run.hold_for_work_max(Caught { work: Box::pin(handler) }).await else {
            return Ok(Problem::WORK_TIMED_OUT.response());
        };
        match worked {
            Ok(Ok(response)) => Ok(self.settle(&run, response).await),
            Ok(Err(error)) => {
                run.release().await;
                Err(error)
            }
            Err(panic) => {
                // As after a 500 response: the next request with the key runs.
                run.release().await;
                resume_unwind(panic)
            }
        }
    }

    /// Stores a response, or lets the next request run.
    async fn settle(&self, run: &Run, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        // As with 503: the result will be different later.
        let is_passing =
            status == StatusCode::CONFLICT && response.headers().contains_key(names::RETRY_AFTER);
        if is_passing || !(self.keep_when)(status) {
            run.release().await;
            return response;
        }
        let (parts, body) = response.into_parts();
        let Some(collected) = run.hold_for_work_max(collect(body, self.answer_bytes_max)).await
        else {
            return Problem::WORK_TIMED_OUT.response();
        };
        let (kept, body) = match collected {
            Collected::Whole(whole) => {
                let headers = self.chosen(&parts.headers);
                (KeptResponse::new(status, headers, whole.bytes.clone()), whole.into_body())
            }
            Collected::Longer(body) => (KeptResponse::not_kept(status), body),
            Collected::Broken(body) => {
                run.release().await;
                return Response::from_parts(parts, body);
            }
        };
        let mut finished = run.finish(&kept.to_bytes()).await;
        if let Err(IdempotencyStoreError::Full) = finished {
            finished = run.finish(&KeptResponse::not_kept(status).to_bytes()).await;
        }
        match finished {
            // A newer run has the key, and its response counts.
            Ok(Finished::Lost) => Problem::IN_FLIGHT.response(),
            // The work is done, whether or not its response could be stored.
            Ok(Finished::Stored | Finished::Already) | Err(_) => Response::from_parts(parts, body),
        }
    }

    fn chosen(&self, headers: &HeaderMap) -> HeaderMap {
        let chosen = headers.iter().filter(|(name, _)| self.keep_headers.contains(name));
        chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Fingerprint of the request, without parts that a client may change when it repeats the request.
fn fingerprint(parts: &Parts, body: &Bytes) -> Fingerprint {
    // Inside a nested router the path is only the last part.
    let original = parts.extensions.get::<OriginalUri>();
    let uri = original.map_or(&parts.uri, |OriginalUri(uri)| uri);
    let kind = parts.headers.get(names::CONTENT_TYPE).map_or(&[][..], |kind| kind.as_bytes());
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    let mut pieces = vec![parts.method.as_str().as_bytes(), path.as_bytes()];
    match multipart::boundary(kind) {
        // A client chooses a new boundary when it repeats the request.
        Some(boundary) => {
            pieces.push(multipart::media_type(kind));
            pieces.extend(multipart::split(body, boundary));
        }
        None => pieces.extend([kind, &body[..]]),
    }
    Fingerprint::of(&pieces)
}

/// Catches a panic of the handler.
struct Caught<F> {
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Caught<F> {
    type Output = std::thread::Result<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.work.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

/// Work that continues in the background when its caller is dropped.
struct ToTheEnd<T: Send + 'static> {
    /// `None` once it has ended or panicked.
    work: Option<Boxed<T>>,
    /// Tells the work that the client has disconnected, so that it need not wait for others.
    hung_up: Arc<AtomicBool>,
}

impl<T: Send + 'static> Future for ToTheEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToTheEnd<T> {
    fn drop(&mut self) {
        self.hung_up.store(true, Ordering::Relaxed);
        // Without a runtime, or in one that shuts down, the key stays in flight until its lease expires.
        if let (Some(work), Ok(runtime)) = (self.work.take(), tokio::runtime::Handle::try_current())
        {
            drop(runtime.spawn(work));
        }
    }
}
