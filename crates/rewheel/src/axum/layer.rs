//! Runs a request once for each `Idempotency-Key`.

use super::body::{Collected, collect};
use super::header;
use super::kept::KeptResponse;
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

/// Headers of a response that are kept without being asked for: they say what the body is, or where to look. No cookies,
/// and nothing that belongs to one connection or one request.
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

/// Carries out a request once for each `Idempotency-Key`, and answers those who ask again with what was answered.
///
/// It belongs inside what says who the caller is, and outside what changes bodies for one client, such as compression. It
/// looks at every method that may change something: not at GET, HEAD, OPTIONS and TRACE.
///
/// | a request | gets |
/// | --- | --- |
/// | with a key that is new | whatever the handler answers |
/// | that was answered | the same answer, with `idempotent-replayed: true` |
/// | while another with its key is carried out | 409 `key_in_flight`, or its answer, see [`Idempotency::wait`] |
/// | with the key of another request | 422 `key_reused` |
/// | whose answer was too large to keep | 409 `answer_not_kept`: it is not carried out again |
/// | without a key, or with one that cannot be read | 400, if it is [`required`](IdempotencyLayer::required) |
/// | while the store is away | 503 `store_unavailable`: nothing is carried out |
///
/// All of these are `application/problem+json`. Answers that a client should ask for again are not kept, and the next
/// request with the key is carried out: see [`keep_when`](IdempotencyLayer::keep_when).
///
/// **A client that hangs up** does not stop the handler: it is carried out to its end, so that the answer is there when the
/// client asks again. What a crash leaves behind is told in [`idempotency`](crate::idempotency).
///
/// A handler finds its [`Ticket`](crate::idempotency::Ticket) among the extensions of the request.
#[derive(Clone)]
pub struct IdempotencyLayer {
    idempotency: Idempotency,
    caller: Arc<dyn Fn(&Parts) -> String + Send + Sync>,
    keep_when: Arc<dyn Fn(StatusCode) -> bool + Send + Sync>,
    keep_headers: Arc<[HeaderName]>,
    required: bool,
    request_bytes_max: usize,
    answer_bytes_max: usize,
}

impl IdempotencyLayer {
    /// Tells callers apart by what `caller` finds in a request: a tenant, an account. Callers do not see each other's
    /// answers, and may use the same keys. What tells them apart must stay the same when they ask again: not a token that
    /// is renewed meanwhile.
    pub fn per_caller(
        idempotency: &Idempotency,
        caller: impl Fn(&Parts) -> String + Send + Sync + 'static,
    ) -> IdempotencyLayer {
        IdempotencyLayer {
            idempotency: idempotency.clone(),
            caller: Arc::new(caller),
            keep_when: Arc::new(is_worth_keeping),
            keep_headers: Arc::new(KEPT_HEADERS),
            required: false,
            request_bytes_max: 1024 * 1024,
            answer_bytes_max: 256 * 1024,
        }
    }

    /// For a service with one caller: whoever sends the key and the request of another gets its answer.
    pub fn one_caller(idempotency: &Idempotency) -> IdempotencyLayer {
        IdempotencyLayer::per_caller(idempotency, |_| String::new())
    }

    /// Refuses requests without a key.
    #[must_use]
    pub fn required(mut self) -> IdempotencyLayer {
        self.required = true;
        self
    }

    /// Says which answers are kept. By default all but those that say nothing of the work (401, 403, 407) or are worth
    /// another attempt (408, 425, 429, 5xx): kept, a moment's failure would be one for a day. The handler is then run again for
    /// the same key, so what it did before it failed should be undone, or harmless when repeated. `|_| true` keeps everything.
    #[must_use]
    pub fn keep_when(
        mut self,
        keep_when: impl Fn(StatusCode) -> bool + Send + Sync + 'static,
    ) -> IdempotencyLayer {
        self.keep_when = Arc::new(keep_when);
        self
    }

    /// Keeps these headers of an answer, besides content type, encoding, language and location, location, etag, last-modified,
    /// link and vary.
    #[must_use]
    pub fn keep_headers(
        mut self,
        headers: impl IntoIterator<Item = HeaderName>,
    ) -> IdempotencyLayer {
        self.keep_headers = self.keep_headers.iter().cloned().chain(headers).collect();
        self
    }

    /// Refuses requests with a key and a larger body, with 413: they are read before they are carried out. 1 MiB by default.
    #[must_use]
    pub fn request_bytes_max(mut self, bytes: usize) -> IdempotencyLayer {
        self.request_bytes_max = bytes;
        self
    }

    /// Does not keep larger answers, of 256 KiB by default. They are passed on as they come; who asks again gets 409
    /// `answer_not_kept`.
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

/// A service that carries out a request once for each key. Made by [`IdempotencyLayer`].
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
        // Readiness belongs to the instance that was asked; a clone of it has reserved nothing.
        let fresh = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, fresh);
        let layer = self.layer.clone();
        Box::pin(async move {
            match layer.read(request).await {
                Asked::Unkeyed(request) => ready.call(request).await,
                Asked::Unclear(problem) => Ok(problem.response()),
                Asked::Keyed(key, fingerprint, mut request) => {
                    // To the end from here on: dropped in the middle, it could leave a key that nobody answers for.
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

/// What a request asks for.
enum Asked {
    /// It has no key, and needs none.
    Unkeyed(Request<Body>),
    /// It is not carried out.
    Unclear(Problem),
    /// It is to be carried out once.
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
        let Ok(key) = IdempotencyKey::new(&(self.caller)(&parts), &key) else {
            return Asked::Unclear(Problem::KEY_INVALID);
        };
        match collect(body, self.request_bytes_max).await {
            Collected::Whole(body) => {
                let fingerprint = fingerprint(&parts, &body);
                Asked::Keyed(key, fingerprint, Request::from_parts(parts, Body::from(body)))
            }
            Collected::Longer(_) => Asked::Unclear(Problem::TOO_LARGE),
            Collected::Broken(_) => Asked::Unclear(Problem::BODY_BROKEN),
        }
    }

    /// Begins a run, or says what is answered instead.
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
        match run.hold(Caught { work: Box::pin(handler) }).await {
            Ok(Ok(response)) => Ok(self.settle(&run, response).await),
            Ok(Err(error)) => {
                run.release().await;
                Err(error)
            }
            Err(panic) => {
                // As with an answer of 500: the next one who asks runs.
                run.release().await;
                resume_unwind(panic)
            }
        }
    }

    /// Keeps a response, or lets the next one try.
    async fn settle(&self, run: &Run, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        // As with 503: it says that it will be different.
        let is_passing =
            status == StatusCode::CONFLICT && response.headers().contains_key(names::RETRY_AFTER);
        if is_passing || !(self.keep_when)(status) {
            run.release().await;
            return response;
        }
        let (parts, body) = response.into_parts();
        let (kept, body) = match run.hold(collect(body, self.answer_bytes_max)).await {
            Collected::Whole(bytes) => {
                let headers = self.chosen(&parts.headers);
                (KeptResponse::new(status, headers, bytes.clone()), Body::from(bytes))
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
            // A newer run has the key: what it answers is what counts.
            Ok(Finished::Lost) => Problem::IN_FLIGHT.response(),
            // The work is done, whether its answer could be stored or not.
            Ok(Finished::Stored | Finished::Already) | Err(_) => Response::from_parts(parts, body),
        }
    }

    fn chosen(&self, headers: &HeaderMap) -> HeaderMap {
        let chosen = headers.iter().filter(|(name, _)| self.keep_headers.contains(name));
        chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// What was asked for: nothing that a client may send differently when it asks again.
fn fingerprint(parts: &Parts, body: &Bytes) -> Fingerprint {
    // Inside a nested router the path is only the end of it.
    let original = parts.extensions.get::<OriginalUri>();
    let uri = original.map_or(&parts.uri, |OriginalUri(uri)| uri);
    let kind = parts.headers.get(names::CONTENT_TYPE).map_or(&[][..], |kind| kind.as_bytes());
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    Fingerprint::of(&[parts.method.as_str().as_bytes(), path.as_bytes(), kind, body])
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

/// Work that goes on by itself when nobody waits for it any more.
struct ToTheEnd<T: Send + 'static> {
    /// None once it has ended, or panicked.
    work: Option<Boxed<T>>,
    /// Told to the work: who has nobody to answer to waits for nobody.
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
        // Outside a runtime, or in one that ends, the key stays in flight until its lease runs out.
        if let (Some(work), Ok(runtime)) = (self.work.take(), tokio::runtime::Handle::try_current())
        {
            drop(runtime.spawn(work));
        }
    }
}
