//! Health routes: liveness, readiness and the state of each part.

use crate::clock::Clock;
use crate::duration::{self, seconds};
use ::axum::Router;
use ::axum::body::Body;
use ::axum::http::{HeaderValue, Response, StatusCode, header};
use ::axum::routing::get;
use std::fmt::{self, Display, Write};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Health of a part of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// Works.
    Ok,
    /// Works, but needs attention.
    Degraded,
    /// Does not work: the service should get no requests.
    Down,
}

impl HealthState {
    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            HealthState::Ok => "ok",
            HealthState::Degraded => "degraded",
            HealthState::Down => "down",
        }
    }
}

/// The result of a health check.
///
/// ```
/// use rewheel::axum::{Health, HealthState};
///
/// let full = Health::degraded("97 % of the disk are used");
/// assert_eq!(full.state, HealthState::Degraded);
/// let away: Health = Err::<(), _>("connection refused").into();
/// assert_eq!((away.state, away.message.as_str()), (HealthState::Down, "connection refused"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The state.
    pub state: HealthState,
    /// A message for the operator.
    pub message: String,
    /// Whether the message is the text of an error, which may contain addresses or credentials.
    is_error: bool,
}

impl Health {
    /// The part works.
    pub fn ok(message: impl Into<String>) -> Health {
        Health { state: HealthState::Ok, message: message.into(), is_error: false }
    }

    /// The part works, but needs attention.
    pub fn degraded(message: impl Into<String>) -> Health {
        Health { state: HealthState::Degraded, message: message.into(), is_error: false }
    }

    /// The part does not work.
    pub fn down(message: impl Into<String>) -> Health {
        Health { state: HealthState::Down, message: message.into(), is_error: false }
    }
}

impl<E: Display> From<Result<(), E>> for Health {
    fn from(result: Result<(), E>) -> Health {
        match result {
            Ok(()) => Health::ok("ok"),
            Err(error) => Health { is_error: true, ..Health::down(error.to_string()) },
        }
    }
}

type Checking = Pin<Box<dyn Future<Output = Health> + Send>>;

#[derive(Clone)]
struct Check {
    name: Arc<str>,
    check: Arc<dyn Fn() -> Checking + Send + Sync>,
    timeout: Duration,
}

/// Health checks for the parts of a service.
///
/// | route | |
/// | --- | --- |
/// | `/livez` | 200 as long as the process responds. Runs no checks: a restart would not repair a dependency |
/// | `/readyz` | 503 if a part is down: the service should get no requests |
/// | `/health` | the state of each part; 503 if a part is down. Shows the messages of [`Health`], but not the texts of errors, which may contain addresses or credentials |
///
/// All checks run at the same time. A check that exceeds its timeout, or panics, counts as down.
///
/// ```
/// use axum::body::{Body, to_bytes};
/// use axum::http::Request;
/// use rewheel::axum::{Health, HealthChecks};
/// use tower::ServiceExt;
///
/// # async fn ping() -> Result<(), std::io::Error> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let checks = HealthChecks::new()
///     .check("database", || async { ping().await })
///     .check("disk", || async { Health::degraded("3 % are free") });
/// let app: axum::Router = axum::Router::new().merge(checks.router());
///
/// let health = app.oneshot(Request::get("/health").body(Body::empty()).unwrap()).await.unwrap();
/// assert_eq!(health.status(), 200);
/// let text = to_bytes(health.into_body(), 10_000).await.unwrap();
/// assert_eq!(text, r#"{"ok":true,"state":"degraded","components":{"database":{"ok":true,"state":"ok","message":"ok"},"disk":{"ok":true,"state":"degraded","message":"3 % are free"}}}"#);
/// # }
/// ```
#[derive(Clone)]
pub struct HealthChecks {
    checks: Vec<Check>,
    timeout: Duration,
    clock: Clock,
}

impl HealthChecks {
    /// Creates an empty list of checks. The timeout of each check is two seconds.
    pub fn new() -> HealthChecks {
        HealthChecks { checks: Vec::new(), timeout: seconds(2), clock: Clock::system() }
    }

    /// Sets the timeout of the checks that are added after this call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> HealthChecks {
        self.timeout = timeout;
        self
    }

    /// Uses another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> HealthChecks {
        self.clock = clock.into();
        self
    }

    /// Adds a part. A check returns a [`Health`], or a `Result<(), E>` whose error means that the part is down.
    #[must_use]
    pub fn check<F, Fut, H>(mut self, name: impl Into<Arc<str>>, check: F) -> HealthChecks
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = H> + Send + 'static,
        H: Into<Health>,
    {
        let check = move || -> Checking {
            let checking = check();
            Box::pin(async move { checking.await.into() })
        };
        self.checks.push(Check {
            name: name.into(),
            check: Arc::new(check),
            timeout: self.timeout,
        });
        self
    }

    /// Runs all checks.
    pub async fn run(&self) -> HealthReport {
        let asking = |check: &Check| (Box::pin(self.ask(check.clone())), None);
        let mut parts: Vec<_> = self.checks.iter().map(asking).collect();
        poll_fn(|cx| {
            let mut waits = false;
            for (asking, health) in parts.iter_mut().filter(|(_, health)| health.is_none()) {
                match asking.as_mut().poll(cx) {
                    Poll::Ready(answer) => *health = Some(answer),
                    Poll::Pending => waits = true,
                }
            }
            if waits { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        let names = self.checks.iter().map(|check| Arc::clone(&check.name));
        let answers = parts.into_iter().filter_map(|(_, health)| health);
        HealthReport { components: names.zip(answers).collect() }
    }

    async fn ask(&self, check: Check) -> Health {
        let panicked = || Health::down("the check panicked");
        let Ok(checking) = catch_unwind(AssertUnwindSafe(|| (check.check)())) else {
            return panicked();
        };
        let (mut checking, mut cut) = (checking, pin!(self.clock.sleep(check.timeout)));
        poll_fn(|cx| {
            match catch_unwind(AssertUnwindSafe(|| checking.as_mut().poll(cx))) {
                Ok(Poll::Pending) => {}
                Ok(ready) => return ready,
                Err(_) => return Poll::Ready(panicked()),
            }
            cut.as_mut().poll(cx).map(|()| {
                let time = duration::text(check.timeout);
                Health::down(format!("no response within {time}"))
            })
        })
        .await
    }

    /// Creates the routes `/livez`, `/readyz` and `/health`, for any caller.
    pub fn router<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        self.routes(HealthReport::public_response)
    }

    /// As [`router`](HealthChecks::router), but `/health` shows the texts of errors, too. Mount it only where callers are
    /// authenticated, or on a port that only operators reach.
    pub fn router_with_errors<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        self.routes(HealthReport::response)
    }

    fn routes<S: Clone + Send + Sync + 'static>(
        &self,
        respond: fn(&HealthReport) -> Response<Body>,
    ) -> Router<S> {
        let (ready, health) = (self.clone(), self.clone());
        Router::new()
            .route("/livez", get(|| async { json(StatusCode::OK, "{\"live\":true}".to_owned()) }))
            .route("/readyz", get(move || async move { ready.run().await.readiness() }))
            .route("/health", get(move || async move { respond(&health.run().await) }))
    }
}

impl Default for HealthChecks {
    fn default() -> HealthChecks {
        HealthChecks::new()
    }
}

impl fmt::Debug for HealthChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.checks.iter().map(|check| &*check.name).collect();
        f.debug_struct("HealthChecks").field("checks", &names).finish_non_exhaustive()
    }
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// Each part with its name, in the order in which the checks were added.
    pub components: Vec<(Arc<str>, Health)>,
}

impl HealthReport {
    /// Returns the worst state.
    pub fn state(&self) -> HealthState {
        let states = self.components.iter().map(|(_, health)| health.state);
        states.max().unwrap_or(HealthState::Ok)
    }

    /// Returns whether the service is ready for requests: no part is down.
    pub fn is_ready(&self) -> bool {
        self.state() < HealthState::Down
    }

    /// Returns the state of each part as a response, with all messages. Errors of checks may contain addresses or credentials: send it
    /// only to operators.
    pub fn response(&self) -> Response<Body> {
        self.response_with(|health| &health.message)
    }

    /// Returns the state of each part as a response, without the texts of errors.
    pub fn public_response(&self) -> Response<Body> {
        self.response_with(
            |health| if health.is_error { "the check failed" } else { &health.message },
        )
    }

    fn response_with(&self, message: impl Fn(&Health) -> &str) -> Response<Body> {
        let mut text = String::from("{");
        outline(&mut text, self.state());
        text.push_str(",\"components\":{");
        for (place, (name, health)) in self.components.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            quote(&mut text, name);
            text.push_str(":{");
            outline(&mut text, health.state);
            text.push_str(",\"message\":");
            quote(&mut text, message(health));
            text.push('}');
        }
        text.push_str("}}");
        json(self.status(), text)
    }

    fn readiness(&self) -> Response<Body> {
        json(self.status(), format!("{{\"ready\":{}}}", self.is_ready()))
    }

    fn status(&self) -> StatusCode {
        if self.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    }
}

fn outline(text: &mut String, state: HealthState) {
    let ok = state < HealthState::Down;
    // Writing to a string cannot fail.
    let _ = write!(text, "\"ok\":{ok},\"state\":\"{}\"", state.as_str());
}

/// Writes a text as a JSON string.
fn quote(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    // An old result must not be cached.
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    response
}

#[cfg(test)]
mod tests;
