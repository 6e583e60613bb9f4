//! Resilience policies: retry, timeout, circuit breaker, rate limiter, bulkhead and more.
//!
//! Put a [`Retry`] around a call that may fail (a payment API, a database, a queue), and other policies as needed: a
//! [`RetryBudget`], a [`CircuitBreaker`], a [`RateLimiter`], a [`Bulkhead`], a [`Timeout`], or all of them as one [`Pipeline`].
//!
//! ```
//! use rewheel::{Retry, Retryable};
//! # use std::io;
//! # async fn fetch_page(number: u32) -> io::Result<String> { Ok(number.to_string()) }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rewheel::Error<io::Error>> {
//! let page = (|| fetch_page(7)).retry(Retry::EXTERNAL_API).await?;
//! # assert_eq!(page, "7");
//! # Ok(())
//! # }
//! ```
//!
//! - An error type says once, through [`Classify`], what its failures mean; every policy uses it.
//! - Policies are values: `const`, checked by the compiler, written as short strings in config files.
//! - Shared policies (breakers, limiters, budgets) are handles: a clone shares the state of the
//!   original.
//! - If a call is given up, its [`Error`] contains the reason, the number of attempts and the last
//!   error.
//! - Time and chance are arguments: with a [`ManualClock`] and a seeded [`Random`], tests of code
//!   that waits are fast and not flaky.
//! - It works with any executor. The feature `tokio`, which is on by default, uses tokio's timer
//!   inside a tokio runtime.
//!
//! # Where to find what
//!
//! | to | use |
//! | --- | --- |
//! | retry one call | [`Retryable::retry`], with a [`Retry`] |
//! | choose delays | [`Backoff`], [`Jitter`], or a preset such as [`Retry::EXTERNAL_API`] |
//! | decide which errors are retried | [`Classify`], [`Class`], [`Category`], [`Matcher`] |
//! | limit retries to a share of the calls | [`RetryBudget`], [`KeyedRetryBudget`] |
//! | stop calling a service that is down | [`CircuitBreaker`], [`KeyedCircuitBreaker`] |
//! | limit the rate of calls | [`RateLimiter`], [`KeyedRateLimiter`] |
//! | limit concurrent calls | [`Bulkhead`], [`KeyedBulkhead`] |
//! | let the number of concurrent calls follow the dependency | [`AdaptiveLimit`] |
//! | send fewer calls to a dependency that rejects them | [`ClientThrottle`] |
//! | limit the time of a call | [`Timeout`] |
//! | try a slow call a second time | [`Hedge`] |
//! | call another target if one fails | [`Failover`], [`OutlierEjection`] |
//! | return something else if a call fails | [`Call::or_value`], [`Call::or_call`]; `LastGood` (feature `cache`) |
//! | compose policies, and explain them | [`Pipeline`] |
//! | continue a failed call as a durable job | [`Spill`], implemented by the engine |
//! | observe calls | [`Observer`], [`Statistics`]; module `otel` (feature `otel`) |
//! | test code that waits | [`ManualClock`], [`Random`] |
//! | run work once per key | module `idempotency` (feature `idempotency`) |
//! | call HTTP services, gRPC services, databases | modules `reqwest`, `tonic` (features of the same names), [`database`] |
//! | tell the next service deadline and retries | [`CallContext`]; module `http` (feature `http`) |
//! | use it in tower or axum | modules `tower` and `axum` (features of the same names) |

#![warn(missing_docs)]

mod sync;
pub mod duration;
#[cfg(feature = "serde")]
mod text;
mod ratio;
mod setting;
mod random;
mod cancel;
mod clock;

mod classify;
mod error;
mod observer;

mod backoff;
mod nesting;
mod sealed;
mod retry;
mod call_context;
mod window;
mod statistics;
mod budget;
mod queue;
mod keyed;
mod breaker;
mod limiter;
mod bulkhead;
mod timeout;
mod adaptive;
#[cfg(feature = "chaos")]
mod chaos;
mod throttle;
mod pipeline;
mod presets;
mod hedge;
mod fallback;
mod last_good;
mod ejection;
mod failover;
pub mod database;
#[cfg(feature = "idempotency")]
pub mod idempotency;
#[cfg(feature = "otel")]
pub mod otel;
#[cfg(any(feature = "http", feature = "reqwest"))]
mod traced;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "axum")]
pub mod axum;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "tonic")]
pub mod tonic;

pub use self::adaptive::{AdaptiveLimit, AdaptiveLimitBuilder, AdaptivePermit};
pub use self::backoff::{
    Backoff, BackoffError, Backoffs, CustomBackoff, Jitter, JitterError, NameError, Past,
};
pub use self::breaker::{
    BreakerSnapshot, BreakerState, BreakerTotals, CircuitBreaker, CircuitBreakerBuilder,
    KeyedCircuitBreaker, OwnedPermit, Permit,
};
pub use self::budget::{KeyedRetryBudget, RetryBudget, RetryBudgetBuilder};
pub use self::bulkhead::{Bulkhead, BulkheadBuilder, BulkheadPermit, KeyedBulkhead};
pub use self::call_context::{CallContext, InContext, Retries};
pub use self::cancel::{CancelToken, Cancelled};
#[cfg(feature = "chaos")]
pub use self::chaos::{Chaos, ChaosBuilder, ChaosSwitch};
pub use self::classify::{
    Category, Class, Classify, Code, Matcher, RetryAfter, StatusSet, StatusSetError,
    UnknownCategory, Verdict, grpc_pushback,
};
pub use self::clock::{Clock, Drive, ManualClock, Moment, Sleep};
pub use self::duration::{DurationError, millis, minutes, seconds};
pub use self::ejection::OutlierEjection;
pub use self::error::{BoxedError, Error, GiveUpReason, Refused};
pub use self::failover::{Failover, FailoverBuilder};
pub use self::fallback::FallbackError;
pub use self::hedge::{Hedge, HedgeBuilder, Hedging, SafeToRepeat};
#[cfg(feature = "idempotency")]
pub use self::idempotency::{Idempotency, IdempotencyKey, IdempotencyStore, MemoryIdempotency};
pub use self::last_good::Freshness;
#[cfg(feature = "cache")]
pub use self::last_good::{Good, LastGood, LastGoodBuilder};
pub use self::limiter::{KeyedRateLimiter, RateLimiter, RateLimiterBuilder};
#[cfg(feature = "tracing")]
pub use self::observer::LogObserver;
pub use self::observer::{Event, Observer};
pub use self::pipeline::{Explanation, Pipeline, Run, Warning};
pub use self::presets::{ServiceClass, ServiceClassError};
pub use self::random::Random;
pub use self::retry::{
    Attempt, Call, FailedCall, Inner, Nested, Retry, RetryError, RetryFuture, Retryable, Retrying,
    Series, Spill, SpillError, SpillOutcome, Step,
};
pub use self::setting::SettingError;
pub use self::statistics::{Statistics, Summary};
pub use self::throttle::{
    ClientThrottle, ClientThrottleBuilder, KeyedClientThrottle, ThrottlePermit,
};
pub use self::timeout::Timeout;

/// The types behind the methods of [`Call`]. You need not name them.
pub mod call {
    pub use crate::fallback::Observed;
    pub use crate::hedge::{OfPipeline, Plain as PlainTries, Tries};
    #[cfg(feature = "tower")]
    pub use crate::pipeline::OwnedKey;
    pub use crate::pipeline::{InPipeline, NoKey, PipelineCall, Policies, WithKey};
    pub use crate::retry::{
        Blocks, ByClassify, ByJudge, ByMatcher, ByWhen, Extras, HasHooks, Hooks, Judge, NoteGiveUp,
        OnGiveUp, OnRetry, OnSuccess, Options, OrWhenOk, Plain, Setup, marker,
    };
}

/// Runs the examples of the idempotency documentation as tests.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/idempotency.md")]
struct IdempotencyPage;

/// Runs the examples of the page about integrations as tests.
#[cfg(all(doctest, feature = "axum", feature = "reqwest", feature = "tokio-postgres"))]
#[doc = include_str!("../../../docs/integrations.md")]
struct IntegrationsPage;

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
