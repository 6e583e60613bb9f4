//! `tracing` spans of calls.

#[cfg(any(feature = "http", feature = "reqwest"))]
use crate::classify::Class;
use crate::classify::Classify;
use crate::error::{Error, GiveUpReason};
use crate::observer::{Event, Observer};
use crate::pipeline::Pipeline;
use crate::retry::marker::{Async, Blocking, Invoke};
use crate::retry::{Attempt, Call, Hooks, Judge, Options, Setup};
use std::fmt::Display;
use std::future::{Future, IntoFuture as _};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracing::field::Empty;
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, Level, Span, debug_span};

/// The target of Rewheel's spans, for filters.
pub const TARGET: &str = "rewheel::trace";

/// The span of a call. Receives the same events as the call's own observer.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Span,
    /// The span of the latest attempt, open until its result is known.
    attempt: Mutex<Span>,
    attempts: AtomicU32,
    delay_ms: AtomicU64,
    /// Why the call was given up, also if it returns a value.
    gave_up: OnceLock<GiveUpReason>,
    before: Option<Arc<dyn Observer>>,
}

impl Trace {
    /// Begins the span of a call; `None` if no subscriber wants it.
    pub(crate) fn begin(
        name: &str,
        attempts_max: u32,
        before: Option<Arc<dyn Observer>>,
    ) -> Option<Arc<Trace>> {
        let span = debug_span!(
            target: TARGET,
            "call",
            otel.name = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
            retry.max_attempts = Empty,
            retry.current_attempt = Empty,
            retry.total_delay_ms = Empty,
            retry.success = Empty,
            retry.final_attempt = Empty,
            retry.last_error = Empty,
            retry.error_classification = Empty,
            retry.failure_reason = Empty,
            error.type = Empty,
        );
        if span.is_disabled() {
            return None;
        }
        if !name.is_empty() {
            span.record("otel.name", name);
        }
        span.record("retry.max_attempts", i64::from(attempts_max));
        Some(Arc::new(Trace {
            span,
            attempt: Mutex::new(Span::none()),
            attempts: AtomicU32::new(0),
            delay_ms: AtomicU64::new(0),
            gave_up: OnceLock::new(),
            before,
        }))
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Begins the span of an attempt.
    fn begin_attempt(&self, attempt: Attempt) -> Span {
        let number = attempt.number();
        self.attempts.store(number, Ordering::Relaxed);
        let span = debug_span!(
            target: TARGET,
            parent: &self.span,
            "attempt",
            // What the attempts do is a call of another service; the span of the whole call is internal.
            otel.kind = "client",
            otel.status_code = Empty,
            retry.current_attempt = i64::from(number),
            retry.error_classification = Empty,
            error.type = Empty,
        );
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = span.clone();
        span
    }

    /// Makes an attempt in its span.
    fn follow<Fut: Future>(
        &self,
        attempt: Attempt,
        call: impl FnOnce() -> Fut,
    ) -> Instrumented<Fut> {
        let span = self.begin_attempt(attempt);
        let future = span.in_scope(call);
        future.instrument(span)
    }

    fn end_attempt(&self) {
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = Span::none();
    }

    fn wait(&self, attempt: u32, delay: Duration) {
        self.end_attempt();
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay_ms.fetch_add(millis, Ordering::Relaxed);
        let (number, millis) = (i64::from(attempt), number(millis));
        tracing::event!(
            target: TARGET,
            parent: &self.span,
            Level::DEBUG,
            { retry.current_attempt = number, retry.delay_ms = millis },
            "retry.backoff"
        );
    }

    /// Ends the span with the result of the call.
    pub(crate) fn end<T, E: Display>(&self, result: &Result<T, Error<E>>) {
        self.end_without_text(result);
        if let Err(error) = result
            && let Some(last) = error.last()
        {
            self.span.record("retry.last_error", last.to_string());
        }
    }

    /// As [`end`](Trace::end), for errors that have no text.
    pub(crate) fn end_without_text<T, E>(&self, result: &Result<T, Error<E>>) {
        self.end_attempt();
        let attempts = i64::from(self.attempts.load(Ordering::Relaxed));
        self.span.record("retry.current_attempt", attempts);
        self.span.record("retry.final_attempt", attempts);
        let waited = number(self.delay_ms.load(Ordering::Relaxed));
        self.span.record("retry.total_delay_ms", waited);
        let failed = match result {
            Ok(_) => self.gave_up.get().copied(),
            Err(error) => Some(error.reason()),
        };
        self.span.record("retry.success", failed.is_none());
        let Some(reason) = failed else { return };
        self.span.record("retry.failure_reason", reason.as_str());
        self.span.record("otel.status_code", "error");
        self.span.record("otel.status_description", reason.as_str());
        if let Err(error) = result {
            let category = error.category().as_str();
            self.span.record("retry.error_classification", category);
            self.span.record("error.type", category);
        }
    }
}

impl Observer for Trace {
    fn observe(&self, event: &Event<'_>) {
        if let Some(before) = &self.before {
            before.observe(event);
        }
        match *event {
            Event::AttemptFailed { class, .. } => {
                let attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
                attempt.record("retry.error_classification", class.category.as_str());
                attempt.record("error.type", class.category.as_str());
                attempt.record("otel.status_code", "error");
            }
            Event::Retrying { attempt, delay, .. } => self.wait(attempt, delay),
            Event::GaveUp { why, .. } => {
                let _ = self.gave_up.set(why);
            }
            Event::RetrySuppressed { .. }
            | Event::Succeeded { .. }
            | Event::Refused { .. }
            | Event::Admitted { .. }
            | Event::BreakerBuilt { .. }
            | Event::BreakerChanged { .. }
            | Event::HedgeStarted { .. }
            | Event::HedgeWon { .. }
            | Event::FallbackUsed { .. }
            | Event::FallbackFailed { .. }
            | Event::LastGoodServed { .. }
            | Event::FailedOver { .. }
            | Event::TargetEjected { .. }
            | Event::LimitChanged { .. }
            | Event::ChaosInjected { .. } => {}
        }
    }
}

/// OpenTelemetry numbers are signed; an unsigned one would be sent as text.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl<F, A, Fut, T, E, J, H, O> Call<F, Async<A, Fut, T, E>, J, H, Setup<O>>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
    E: Display,
{
    /// Makes the call inside a span with this name: a child span for each attempt, an event before each wait, and the result at
    /// its end. Without a subscriber for spans, the call runs unchanged.
    ///
    /// ```
    /// use rewheel::{Retry, Retryable, millis};
    /// # async fn fetch() -> std::io::Result<u32> { Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let page = (|| fetch()).retry(Retry::exponential(millis(100))).traced("fetch").await;
    /// # assert_eq!(page.unwrap(), 7);
    /// # }
    /// ```
    ///
    /// # Errors
    /// The same as for the call itself.
    pub async fn traced(self, name: &'static str) -> Result<T, Error<E>> {
        let (told, before) = self.observed().map_or((name, None), |(told, one)| (told, Some(one)));
        let Some(trace) = Trace::begin(name, self.policy().attempts(), before) else {
            return self.into_future().await;
        };
        let call = self.observer(told, Arc::clone(&trace) as Arc<dyn Observer>);
        let call = call.around::<_, Async<Attempt, Instrumented<Fut>, T, E>>(|mut operation| {
            let trace = &trace;
            move |attempt: Attempt| trace.follow(attempt, || operation.invoke(attempt))
        });
        let result = call.into_future().instrument(trace.span()).await;
        trace.end(&result);
        result
    }
}

impl<F, A, T, E, J, H, O> Call<F, Blocking<A, T, E>, J, H, Setup<O>>
where
    F: Invoke<A, Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
    E: Display,
{
    /// Like [`traced`](Call::traced), for a blocking call.
    ///
    /// # Errors
    /// The same as for the call itself.
    pub fn call_traced(self, name: &'static str) -> Result<T, Error<E>> {
        let (told, before) = self.observed().map_or((name, None), |(told, one)| (told, Some(one)));
        let Some(trace) = Trace::begin(name, self.policy().attempts(), before) else {
            return self.call();
        };
        let call = self.observer(told, Arc::clone(&trace) as Arc<dyn Observer>);
        let call = call.around::<_, Blocking<Attempt, T, E>>(|mut operation| {
            let trace = &trace;
            move |attempt: Attempt| {
                trace.begin_attempt(attempt).in_scope(|| operation.invoke(attempt))
            }
        });
        let result = trace.span().in_scope(|| call.call());
        trace.end(&result);
        result
    }
}

impl Pipeline {
    /// Like [`run`](Pipeline::run), inside a span with the pipeline's name: a child span for each attempt, an event before each
    /// wait, and the result at its end.
    ///
    /// ```
    /// use rewheel::{Pipeline, Retry, millis};
    /// # async fn fetch() -> std::io::Result<u32> { Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let pipeline = Pipeline::new().named("fetch").retry(Retry::exponential(millis(100)));
    /// let page = pipeline.run_traced(|_| fetch()).await;
    /// # assert_eq!(page.unwrap(), 7);
    /// # }
    /// ```
    ///
    /// # Errors
    /// The same as for the call itself.
    pub async fn run_traced<F, Fut, T, E>(&self, mut operation: F) -> Result<T, Error<E>>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Classify + Display,
    {
        let (name, attempts_max, before) = self.for_trace();
        let Some(trace) = Trace::begin(name, attempts_max, before) else {
            return self.run(operation).await;
        };
        // A separate plan, so that the trace receives only the events of this call.
        let own = self.clone().observer(Arc::clone(&trace) as Arc<dyn Observer>);
        let follow = |attempt: Attempt| trace.follow(attempt, || operation(attempt));
        let result = own.run(follow).into_future().instrument(trace.span()).await;
        trace.end(&result);
        result
    }

    /// As [`run_traced`](Pipeline::run_traced), with a judge.
    #[cfg(any(feature = "http", feature = "reqwest"))]
    pub(crate) async fn run_judged_traced<F, Fut, T, E, J>(
        &self,
        mut operation: F,
        judge: J,
    ) -> Result<T, Error<E>>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: FnMut(&Result<T, E>) -> Class,
    {
        let (name, attempts_max, before) = self.for_trace();
        let Some(trace) = Trace::begin(name, attempts_max, before) else {
            return self.run(operation).judge(judge).await;
        };
        let own = self.clone().observer(Arc::clone(&trace) as Arc<dyn Observer>);
        let follow = |attempt: Attempt| trace.follow(attempt, || operation(attempt));
        let run = own.run(follow).judge(judge).into_future();
        let result = run.instrument(trace.span()).await;
        trace.end_without_text(&result);
        result
    }
}
