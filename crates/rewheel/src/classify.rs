//! Classifies failures: whether to retry, and the category.
//!
//! An error type implements [`Classify`] once, and every policy uses it: a retry reads the verdict,
//! a breaker reads whether the dependency failed, telemetry reads category and code. Errors of
//! other crates are classified at the call instead, by a closure or by a [`Matcher`].
//!
//! ```
//! use rewheel::{Category, Class, Classify, Verdict};
//!
//! #[derive(Debug)]
//! enum ApiError {
//!     Busy,
//!     NoSuchOrder,
//! }
//!
//! impl Classify for ApiError {
//!     fn classify(&self) -> Class {
//!         match self {
//!             ApiError::Busy => Class::retry(Category::Throttled),
//!             ApiError::NoSuchOrder => Class::stop(Category::Rejected).with_code("no_such_order"),
//!         }
//!     }
//! }
//!
//! assert_eq!(ApiError::Busy.classify().verdict, Verdict::Retry);
//! assert!(!ApiError::NoSuchOrder.classify().category.blames_dependency());
//! ```

mod status;
mod retry_after;
mod io;
mod matcher;
mod database;
mod database_codes;
mod drivers;
mod grpc;
#[cfg(feature = "reqwest")]
mod reqwest;

pub use self::matcher::Matcher;
#[cfg(feature = "reqwest")]
pub(crate) use self::reqwest::text_with_causes;
pub use self::retry_after::{RetryAfter, grpc_pushback};
pub use self::status::{StatusSet, StatusSetError};

use crate::error::GiveUpReason;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How a result is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The call succeeded.
    Done,
    /// Another attempt may succeed.
    Retry,
    /// Like `Retry`, but the called service asked for this delay before the next attempt.
    RetryAfter(Duration),
    /// Another attempt cannot succeed.
    Stop,
}

/// The type of a failure.
///
/// Three categories describe failures of a job and never come from a policy of this crate:
/// [`Panic`](Category::Panic), [`NoHandler`](Category::NoHandler) and
/// [`BadPayload`](Category::BadPayload). Only the engine uses them; see
/// [`is_engine_only`](Category::is_engine_only). Later releases may add categories, so a `match` needs a `_` arm.
///
/// ```
/// use rewheel::Category;
///
/// let of_calls: Vec<_> =
///     Category::ALL.iter().filter(|category| !category.is_engine_only()).collect();
/// assert_eq!(of_calls.len(), 10);
/// assert!(of_calls.contains(&&Category::Timeout));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// No response in time.
    Timeout,
    /// The network or the operating system failed.
    Io,
    /// The called service, or a rate limiter before it, asked for fewer calls.
    Throttled,
    /// A circuit breaker refused the call.
    CircuitOpen,
    /// A bulkhead had no free slot for the call.
    BulkheadFull,
    /// The called service understood the request and refused it (an HTTP 4xx).
    Rejected,
    /// The called service failed in a way that is usually temporary.
    Transient,
    /// The caller cancelled the call.
    Cancelled,
    /// The time for the whole operation is used up.
    Deadline,
    /// Nothing is known about the failure.
    Unknown,
    /// Only in the engine: the handler of a job panicked, or the processes that ran the job died.
    Panic,
    /// Only in the engine: the node that claimed the job cannot run jobs of its kind.
    NoHandler,
    /// Only in the engine: the payload of the job could not be decoded.
    BadPayload,
}

impl Category {
    /// Every category, in the order of the documentation.
    pub const ALL: &'static [Category] = &[
        Category::Timeout,
        Category::Io,
        Category::Throttled,
        Category::CircuitOpen,
        Category::BulkheadFull,
        Category::Rejected,
        Category::Transient,
        Category::Cancelled,
        Category::Deadline,
        Category::Panic,
        Category::NoHandler,
        Category::BadPayload,
        Category::Unknown,
    ];

    /// Returns the name used in JSON, SQL, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Category::Timeout => "timeout",
            Category::Io => "io",
            Category::Throttled => "throttled",
            Category::CircuitOpen => "circuit_open",
            Category::BulkheadFull => "bulkhead_full",
            Category::Rejected => "rejected",
            Category::Transient => "transient",
            Category::Cancelled => "cancelled",
            Category::Deadline => "deadline",
            Category::Panic => "panic",
            Category::NoHandler => "no_handler",
            Category::BadPayload => "bad_payload",
            Category::Unknown => "unknown",
        }
    }

    /// Returns whether only the engine uses this category, for failures of jobs. Policies around a call never use it.
    pub const fn is_engine_only(self) -> bool {
        match self {
            Category::Panic | Category::NoHandler | Category::BadPayload => true,
            Category::Timeout
            | Category::Io
            | Category::Throttled
            | Category::CircuitOpen
            | Category::BulkheadFull
            | Category::Rejected
            | Category::Transient
            | Category::Cancelled
            | Category::Deadline
            | Category::Unknown => false,
        }
    }

    /// Returns whether a failure of this category shows that the dependency is unhealthy.
    ///
    /// An error response of the category `rejected` shows that the dependency works. A call
    /// that a policy refused, or that the caller gave up, shows nothing about the dependency.
    pub const fn blames_dependency(self) -> bool {
        match self {
            Category::Timeout
            | Category::Io
            | Category::Throttled
            | Category::Transient
            | Category::Deadline
            | Category::Panic
            | Category::Unknown => true,
            Category::CircuitOpen
            | Category::BulkheadFull
            | Category::Rejected
            | Category::Cancelled
            | Category::NoHandler
            | Category::BadPayload => false,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Category {
    type Err = UnknownCategory;

    fn from_str(text: &str) -> Result<Category, UnknownCategory> {
        Category::ALL
            .iter()
            .copied()
            .find(|category| category.as_str() == text)
            .ok_or_else(|| UnknownCategory(text.to_owned()))
    }
}

/// Error: the text is not the name of a [`Category`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown category `{0}`")]
pub struct UnknownCategory(String);

/// The failure's own short code, as its source provided it: an HTTP status, an SQLSTATE, an errno
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Code(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    // Stored as a number, so that classifying an HTTP response does not allocate.
    Number(u32),
    Text(Cow<'static, str>),
    /// A policy of this process refused the call: nothing was learned about the dependency.
    Refusal(GiveUpReason),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Text(text) => f.write_str(text),
            Repr::Refusal(why) => f.write_str(why.as_str()),
        }
    }
}

impl From<u16> for Code {
    fn from(number: u16) -> Code {
        Code(Repr::Number(u32::from(number)))
    }
}

impl From<u32> for Code {
    fn from(number: u32) -> Code {
        Code(Repr::Number(number))
    }
}

impl From<&'static str> for Code {
    fn from(text: &'static str) -> Code {
        Code(Repr::Text(Cow::Borrowed(text)))
    }
}

impl From<String> for Code {
    fn from(text: String) -> Code {
        Code(Repr::Text(Cow::Owned(text)))
    }
}

/// The classification of a result: verdict, category, code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// What to do.
    pub verdict: Verdict,
    /// The category of the failure; `unknown` if the verdict is `Done`.
    pub category: Category,
    /// The failure's own code, if it has one.
    pub code: Option<Code>,
}

impl Class {
    /// The call succeeded.
    pub const DONE: Class =
        Class { verdict: Verdict::Done, category: Category::Unknown, code: None };

    /// A temporary failure.
    pub const fn retry(category: Category) -> Class {
        Class { verdict: Verdict::Retry, category, code: None }
    }

    /// A temporary failure; the called service asked for a delay.
    pub const fn retry_after(category: Category, delay: Duration) -> Class {
        Class { verdict: Verdict::RetryAfter(delay), category, code: None }
    }

    /// A permanent failure.
    pub const fn stop(category: Category) -> Class {
        Class { verdict: Verdict::Stop, category, code: None }
    }

    /// Marks a refusal by a policy of this process, which says nothing about the dependency.
    #[must_use]
    pub(crate) fn of_refusal(mut self, why: GiveUpReason) -> Class {
        self.code = Some(Code(Repr::Refusal(why)));
        self
    }

    /// Returns whether a policy of this process refused the call.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self.code, Some(Code(Repr::Refusal(_))))
    }

    /// Adds the failure's own code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Code>) -> Class {
        self.code = Some(code.into());
        self
    }
}

/// Classifies an error.
///
/// Implemented for [`std::io::Error`], for pointers to errors that implement it, and for
/// [`Error`](crate::Error), so that a policy can wrap a call that has its own policies.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Classify`, so a policy cannot tell which failures to retry",
    note = "implement `Classify` for `{Self}`, or classify errors at the call: `.when(|error| …)`"
)]
pub trait Classify {
    /// Classifies this failure. Never returns [`Verdict::Done`].
    fn classify(&self) -> Class;
}

impl<E: Classify + ?Sized> Classify for &E {
    fn classify(&self) -> Class {
        (**self).classify()
    }
}

impl<E: Classify + ?Sized> Classify for Box<E> {
    fn classify(&self) -> Class {
        (**self).classify()
    }
}

impl<E: Classify + ?Sized> Classify for std::sync::Arc<E> {
    fn classify(&self) -> Class {
        (**self).classify()
    }
}

impl Classify for std::convert::Infallible {
    fn classify(&self) -> Class {
        match *self {}
    }
}

#[cfg(test)]
mod tests;
