//! Receiver of callbacks: rejects an attempt that is older than one that was seen.

use ::axum::body::Body;
use ::axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use async_trait::async_trait;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// What a [`FenceStore`] says about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// No newer attempt of the job was seen.
    Yes,
    /// A newer attempt of the job was seen: another process has the job now.
    Stale,
}

/// Error: the store of the fences failed.
#[derive(Debug, thiserror::Error)]
#[error("the store of the fences failed: {0}")]
pub struct FenceStoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Remembers the newest fence of each job.
#[async_trait]
pub trait FenceStore: Send + Sync {
    /// Stores the fence of a job, unless a larger one is stored. Both must be one step: of two concurrent calls, the one with the
    /// smaller fence must not win. An equal fence is admitted: the request of one attempt may arrive twice.
    ///
    /// # Errors
    /// Fails if the store cannot be reached.
    async fn admit(&self, job: &str, fence: u64) -> Result<Admitted, FenceStoreError>;
}

/// Fences in the memory of this process: for a receiver that is a single process.
///
/// When the store is full, the job that was added first makes room.
#[derive(Debug)]
pub struct MemoryFences {
    jobs_max: usize,
    jobs: Mutex<Jobs>,
}

#[derive(Debug, Default)]
struct Jobs {
    fences: HashMap<Arc<str>, u64>,
    /// In the order in which they were added.
    order: VecDeque<Arc<str>>,
}

impl MemoryFences {
    /// Creates a store for this many jobs. Use more than the number of jobs whose attempts can overlap.
    ///
    /// # Panics
    /// Panics if the number is zero.
    pub fn new(jobs_max: usize) -> MemoryFences {
        assert!(jobs_max > 0, "a store of fences has room for at least one job");
        MemoryFences { jobs_max, jobs: Mutex::default() }
    }

    fn admit_now(&self, job: &str, fence: u64) -> Admitted {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        match jobs.fences.get_mut(job) {
            Some(newest) if *newest > fence => return Admitted::Stale,
            Some(newest) => {
                *newest = fence;
                return Admitted::Yes;
            }
            None => {}
        }
        if jobs.order.len() >= self.jobs_max
            && let Some(oldest) = jobs.order.pop_front()
        {
            jobs.fences.remove(&oldest);
        }
        let job: Arc<str> = job.into();
        jobs.order.push_back(Arc::clone(&job));
        jobs.fences.insert(job, fence);
        Admitted::Yes
    }
}

#[async_trait]
impl FenceStore for MemoryFences {
    async fn admit(&self, job: &str, fence: u64) -> Result<Admitted, FenceStoreError> {
        Ok(self.admit_now(job, fence))
    }
}

/// Statements for fences in a table of PostgreSQL.
pub mod fence_sql {
    /// Creates the table.
    pub const CREATE: &str = "CREATE TABLE IF NOT EXISTS rewheel_fences (
    job text PRIMARY KEY,
    fence bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
)";

    /// Stores the fence `$2` (`bigint`) of the job `$1` (`text`). It changes one row if the attempt is admitted, and none if a newer
    /// one was seen. In the transaction that does the work, it also locks the row: an older attempt waits, and is then rejected.
    pub const ADMIT: &str = "INSERT INTO rewheel_fences AS seen (job, fence) VALUES ($1, $2)
ON CONFLICT (job) DO UPDATE SET fence = EXCLUDED.fence, seen_at = now()
WHERE seen.fence <= EXCLUDED.fence";

    /// Deletes the fences of jobs that were seen last more than `$1` seconds (`double precision`) ago.
    pub const PRUNE: &str =
        "DELETE FROM rewheel_fences WHERE seen_at < now() - make_interval(secs => $1)";
}

/// Rejects callbacks of the engine that are older than one that was seen for the same job.
///
/// The engine calls a job again when the first attempt seems lost. The request of the first attempt may still be on its way: this layer
/// answers it with 409 `stale_fence`, by the headers `webhook-id` (the job) and `rewheel-fence`. Requests without
/// `rewheel-fence` pass. An invalid fence, or one without `webhook-id`, gets 400 `invalid_fence`; if the store fails, the answer is 503
/// `fences_unavailable`.
///
/// Place it inside the layer that checks the signature of the callback: otherwise any client can block a job with a large fence.
///
/// The layer looks when a request starts. An old attempt that has started before the new one arrives keeps running. To keep its late writes
/// out too, run [`fence_sql::ADMIT`] in the transaction that does the work.
///
/// ```
/// use axum::Router;
/// use axum::body::Body;
/// use axum::http::{Request, StatusCode};
/// use axum::routing::post;
/// use rewheel::axum::{MemoryFences, fence_guard};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let app: Router = Router::new()
///     .route("/charge", post(|| async { "charged" }))
///     .layer(fence_guard(MemoryFences::new(100_000)));
/// let attempt = |fence: &str| {
///     let request = Request::post("/charge").header("webhook-id", "job-7");
///     app.clone().oneshot(request.header("rewheel-fence", fence).body(Body::empty()).unwrap())
/// };
/// assert_eq!(attempt("2").await.unwrap().status(), StatusCode::OK);
/// assert_eq!(attempt("1").await.unwrap().status(), StatusCode::CONFLICT);
/// # }
/// ```
pub fn fence_guard(store: impl FenceStore + 'static) -> FenceGuardLayer {
    FenceGuardLayer { store: Arc::new(store) }
}

/// Created by [`fence_guard`].
#[derive(Clone)]
pub struct FenceGuardLayer {
    store: Arc<dyn FenceStore>,
}

impl<S> Layer<S> for FenceGuardLayer {
    type Service = FenceGuardService<S>;

    fn layer(&self, inner: S) -> FenceGuardService<S> {
        FenceGuardService { inner, store: Arc::clone(&self.store) }
    }
}

/// Rejects old callbacks. Created by [`FenceGuardLayer`].
#[derive(Clone)]
pub struct FenceGuardService<S> {
    inner: S,
    store: Arc<dyn FenceStore>,
}

impl<S> Service<Request<Body>> for FenceGuardService<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Readiness belongs to the instance that was polled; a clone has reserved nothing.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let store = Arc::clone(&self.store);
        Box::pin(async move {
            let admitted = match job_and_fence(request.headers()) {
                Ok(None) => Ok(Admitted::Yes),
                Ok(Some((job, fence))) => store.admit(job, fence).await,
                Err(Invalid) => return Ok(INVALID.response()),
            };
            match admitted {
                Ok(Admitted::Yes) => inner.call(request).await,
                Ok(Admitted::Stale) => Ok(STALE.response()),
                Err(_) => Ok(UNAVAILABLE.response()),
            }
        })
    }
}

struct Invalid;

fn job_and_fence(headers: &HeaderMap) -> Result<Option<(&str, u64)>, Invalid> {
    let text = |name: &str| match headers.get(name) {
        Some(value) => value.to_str().map(Some).map_err(|_| Invalid),
        None => Ok(None),
    };
    let Some(fence) = text("rewheel-fence")? else { return Ok(None) };
    let job = text("webhook-id")?.filter(|job| !job.is_empty()).ok_or(Invalid)?;
    // A column of SQL has a sign.
    let fence: i64 = fence.trim().parse().map_err(|_| Invalid)?;
    Ok(Some((job, u64::try_from(fence).map_err(|_| Invalid)?)))
}

/// An answer of the guard.
struct Answer {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: &'static str,
    retry_after: Option<HeaderValue>,
}

const STALE: Answer = Answer {
    status: StatusCode::CONFLICT,
    code: "stale_fence",
    title: "attempt is too old",
    detail: "a newer attempt of this job was seen: nothing was done",
    retry_after: None,
};
const INVALID: Answer = Answer {
    status: StatusCode::BAD_REQUEST,
    code: "invalid_fence",
    title: "invalid fence",
    detail: "rewheel-fence must be a whole number from 0, and webhook-id must name the job",
    retry_after: None,
};
const UNAVAILABLE: Answer = Answer {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: "fences_unavailable",
    title: "store of the fences unavailable",
    detail: "the server cannot check whether this attempt is the newest: nothing was done, repeat the request",
    retry_after: Some(HeaderValue::from_static("1")),
};

impl Answer {
    /// All texts are constants without quotes or backslashes, so they need no escaping.
    fn response(self) -> Response<Body> {
        let Answer { status, code, title, detail, retry_after } = self;
        let text = format!(
            "{{\"type\":\"urn:rewheel:problem:{code}\",\"title\":\"{title}\",\"status\":{},\"code\":\"{code}\",\"detail\":\"{detail}\"}}",
            status.as_u16()
        );
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

impl fmt::Debug for FenceGuardLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceGuardLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for FenceGuardService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceGuardService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Admitted, MemoryFences};

    #[test]
    fn an_older_fence_is_stale_and_an_equal_one_is_not() {
        let fences = MemoryFences::new(10);
        assert_eq!(
            [3, 2, 3, 4, 3].map(|fence| fences.admit_now("a", fence)),
            [Admitted::Yes, Admitted::Stale, Admitted::Yes, Admitted::Yes, Admitted::Stale]
        );
        assert_eq!(fences.admit_now("b", 1), Admitted::Yes);
    }

    #[test]
    fn the_number_of_jobs_is_limited() {
        let fences = MemoryFences::new(2);
        for job in ["a", "b", "c", "d"] {
            fences.admit_now(job, 9);
        }
        let jobs = fences.jobs.lock().unwrap();
        assert_eq!((jobs.fences.len(), jobs.order.len()), (2, 2));
        assert!(jobs.fences.contains_key("c") && jobs.fences.contains_key("d"));
    }
}
