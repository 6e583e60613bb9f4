//! Fallback: what a call returns instead of a failure.

use crate::classify::{Class, Classify};
use crate::error::Error;
use crate::observer::{Event, Observer};
use crate::pipeline::{Explanation, InPipeline, Policies};
use crate::retry::marker::{Async, Blocking};
use crate::retry::{Blocks, Call, HasHooks, NoteGiveUp, Options, Setup};
use crate::sealed::Sealed;
use std::fmt;
use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;

/// Error: a call was given up, and its fallback failed, too.
///
/// Contains both causes. [`source`](std::error::Error::source) is the error of the fallback, or that of the call if the
/// fallback was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FallbackError<E, B> {
    /// Why the call was given up.
    pub call: Error<E>,
    /// Why the fallback failed. `None` if it was not used, because the called service rejected the call or the caller
    /// cancelled it.
    pub fallback: Option<B>,
}

impl<E: fmt::Display, B: fmt::Display> fmt::Display for FallbackError<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call)?;
        match &self.fallback {
            Some(fallback) => write!(f, "; the fallback failed too: {fallback}"),
            None => Ok(()),
        }
    }
}

impl<E, B> std::error::Error for FallbackError<E, B>
where
    E: std::error::Error + 'static,
    B: std::error::Error + 'static,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fallback {
            Some(fallback) => Some(fallback),
            None => std::error::Error::source(&self.call),
        }
    }
}

/// An outer policy sees the call itself: the fallback is only its replacement.
impl<E: Classify, B> Classify for FallbackError<E, B> {
    fn classify(&self) -> Class {
        self.call.classify()
    }
}

/// Who hears of the events of a call. You do not need to name this trait.
pub trait Observed: Sealed {
    #[doc(hidden)]
    fn observer(&self) -> Option<(&str, &Arc<dyn Observer>)>;
}

impl<O> Sealed for Setup<O> {}

impl<P> Sealed for InPipeline<P> {}

impl<O: Options> Observed for Setup<O> {
    fn observer(&self) -> Option<(&str, &Arc<dyn Observer>)> {
        self.observed_by()
    }
}

impl<P: Policies> Observed for InPipeline<P> {
    fn observer(&self) -> Option<(&str, &Arc<dyn Observer>)> {
        self.observed_by()
    }
}

/// Tells of the fallback of one call, after the call itself is gone.
struct Teller(Option<(Box<str>, Arc<dyn Observer>)>);

impl Teller {
    fn of(setup: &impl Observed) -> Teller {
        Teller(setup.observer().map(|(name, observer)| (name.into(), Arc::clone(observer))))
    }

    fn used<E>(&self, call: &Error<E>) {
        if let Some((name, observer)) = &self.0 {
            observer.observe(&Event::FallbackUsed { name, why: call.reason() });
        }
    }

    fn failed(&self) {
        if let Some((name, observer)) = &self.0 {
            observer.observe(&Event::FallbackFailed { name });
        }
    }
}

/// Returns the error that a fallback replaces, if it should.
fn failure<T, E>(ended: Ended<T, E>) -> Result<T, Failure<E>> {
    match ended {
        (Ok(value), None) => Ok(value),
        (Ok(_), Some(failed)) => Err(Failure::Replaceable(failed.to_error())),
        (Err(error), _) if error.is_conclusive() => Err(Failure::Conclusive(error)),
        (Err(error), _) => Err(Failure::Replaceable(error)),
    }
}

/// The result of a call, and its failure if the result is a value that the call's judge has found bad.
type Ended<T, E> = (Result<T, Error<E>>, Option<crate::FailedCall>);

enum Failure<E> {
    Replaceable(Error<E>),
    Conclusive(Error<E>),
}

impl<F, A, Fut, T, E, J, H, S> Call<F, Async<A, Fut, T, E>, J, H, S>
where
    Call<F, Async<A, Fut, T, E>, J, NoteGiveUp<H>, S>:
        IntoFuture<Output = Result<T, Error<E>>, IntoFuture: HasHooks<NoteGiveUp<H>>>,
    S: Observed,
{
    /// Makes the call. If the call is given up, returns `value`.
    ///
    /// The value also replaces the last result of a call that [`judge`](Call::judge) or [`when_ok`](Call::when_ok) calls a
    /// failure. It does not replace an error of the category [`Rejected`](crate::Category::Rejected), which is an answer of
    /// the called service, and not the error of a call that the caller cancelled.
    ///
    /// ```
    /// use rewheel::{Retry, Retryable, millis};
    /// # use std::io;
    /// # async fn stock_of(_: u32) -> io::Result<u32> { Err(io::ErrorKind::TimedOut.into()) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), rewheel::Error<io::Error>> {
    /// let stock = (|| stock_of(17)).retry(Retry::fixed(millis(1))).or_value(0).await?;
    /// assert_eq!(stock, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails with the error of the call if the value does not replace it.
    pub async fn or_value(self, value: T) -> Result<T, Error<E>> {
        self.or_with(|_| value).await
    }

    /// As [`or_value`](Call::or_value), with a value that `fallback` makes from the error.
    ///
    /// # Errors
    /// Fails with the error of the call if the value does not replace it.
    pub async fn or_with<B>(self, fallback: B) -> Result<T, Error<E>>
    where
        B: FnOnce(&Error<E>) -> T,
    {
        let teller = Teller::of(&self.setup);
        match failure(self.ended().await) {
            Ok(value) => Ok(value),
            Err(Failure::Conclusive(error)) => Err(error),
            Err(Failure::Replaceable(error)) => {
                teller.used(&error);
                Ok(fallback(&error))
            }
        }
    }

    /// As [`or_value`](Call::or_value), with the result of another call: of another service, or under another
    /// [`Pipeline`](crate::Pipeline).
    ///
    /// ```
    /// use rewheel::{Pipeline, Retry, millis, seconds};
    /// # use std::io;
    /// # async fn ask_primary() -> io::Result<u32> { Err(io::ErrorKind::TimedOut.into()) }
    /// # async fn ask_replica() -> io::Result<u32> { Err(io::ErrorKind::ConnectionRefused.into()) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let primary = Pipeline::new().retry(Retry::fixed(millis(1)).attempts_max(2));
    /// let replica = Pipeline::new().timeout(seconds(1));
    ///
    /// let error = primary
    ///     .run(|_| ask_primary())
    ///     .or_call(|_| replica.run(|_| ask_replica()))
    ///     .await
    ///     .unwrap_err();
    ///
    /// assert_eq!(error.call.attempts(), 2);
    /// assert!(error.to_string().contains("timed out; the fallback failed too: "));
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails with both causes.
    pub async fn or_call<B, C, N>(self, fallback: B) -> Result<T, FallbackError<E, N>>
    where
        B: FnOnce(&Error<E>) -> C,
        C: IntoFuture<Output = Result<T, N>>,
    {
        let teller = Teller::of(&self.setup);
        let call = match failure(self.ended().await) {
            Ok(value) => return Ok(value),
            Err(Failure::Conclusive(call)) => return Err(FallbackError { call, fallback: None }),
            Err(Failure::Replaceable(error)) => error,
        };
        teller.used(&call);
        fallback(&call).await.map_err(|fallback| {
            teller.failed();
            FallbackError { call, fallback: Some(fallback) }
        })
    }

    /// Makes the call, and notes whether a value is a failure.
    pub(crate) async fn ended(self) -> Ended<T, E> {
        let Call { operation, mode, judge, hooks, setup } = self;
        let call = Call { operation, mode, judge, hooks: NoteGiveUp::new(hooks), setup };
        let mut future = pin!(call.into_future());
        let result = future.as_mut().await;
        let failed = future.hooks().failed();
        (result, failed)
    }
}

impl<F, A, T, E, J, H, S> Call<F, Blocking<A, T, E>, J, H, S>
where
    for<'a> Call<F, Blocking<A, T, E>, J, &'a mut NoteGiveUp<H>, S>: Blocks<T, E>,
    S: Observed,
{
    /// As [`or_value`](Call::or_value), for a call that blocks.
    ///
    /// # Errors
    /// Fails with the error of the call if the value does not replace it.
    pub fn call_or_value(self, value: T) -> Result<T, Error<E>> {
        self.call_or_with(|_| value)
    }

    /// As [`or_with`](Call::or_with), for a call that blocks.
    ///
    /// # Errors
    /// Fails with the error of the call if the value does not replace it.
    pub fn call_or_with<B>(self, fallback: B) -> Result<T, Error<E>>
    where
        B: FnOnce(&Error<E>) -> T,
    {
        let teller = Teller::of(&self.setup);
        match failure(self.ended_blocking()) {
            Ok(value) => Ok(value),
            Err(Failure::Conclusive(error)) => Err(error),
            Err(Failure::Replaceable(error)) => {
                teller.used(&error);
                Ok(fallback(&error))
            }
        }
    }

    /// As [`or_call`](Call::or_call), for calls that block.
    ///
    /// ```
    /// use rewheel::{Pipeline, Retry, millis};
    /// # use std::io;
    /// # fn ask_primary() -> io::Result<u32> { Err(io::ErrorKind::TimedOut.into()) }
    /// # fn ask_replica() -> io::Result<u32> { Ok(7) }
    ///
    /// let primary = Pipeline::new().retry(Retry::fixed(millis(1)).attempts_max(2));
    /// let replica = Pipeline::new();
    /// let answer = primary
    ///     .run_blocking(|_| ask_primary())
    ///     .call_or_call(|_| replica.run_blocking(|_| ask_replica()).call());
    /// assert_eq!(answer.unwrap(), 7);
    /// ```
    ///
    /// # Errors
    /// Fails with both causes.
    pub fn call_or_call<B, N>(self, fallback: B) -> Result<T, FallbackError<E, N>>
    where
        B: FnOnce(&Error<E>) -> Result<T, N>,
    {
        let teller = Teller::of(&self.setup);
        let call = match failure(self.ended_blocking()) {
            Ok(value) => return Ok(value),
            Err(Failure::Conclusive(call)) => return Err(FallbackError { call, fallback: None }),
            Err(Failure::Replaceable(error)) => error,
        };
        teller.used(&call);
        fallback(&call).map_err(|fallback| {
            teller.failed();
            FallbackError { call, fallback: Some(fallback) }
        })
    }

    /// Makes the call, and notes whether a value is a failure.
    pub(crate) fn ended_blocking(self) -> Ended<T, E> {
        let Call { operation, mode, judge, hooks, setup } = self;
        let mut noted = NoteGiveUp::new(hooks);
        let result = Call { operation, mode, judge, hooks: &mut noted, setup }.make_call();
        (result, noted.failed())
    }
}

impl Explanation {
    /// Describes a call under this pipeline that falls back to a call under another one, as
    /// [`Call::or_call`](crate::Call::or_call) does.
    ///
    /// ```
    /// use rewheel::{Pipeline, Retry, millis, seconds};
    ///
    /// let primary = Pipeline::new().timeout(seconds(2)).retry(Retry::exponential(millis(100)));
    /// let replica = Pipeline::new().timeout(seconds(1));
    /// let explained = primary.explain().with_fallback(&replica.explain());
    /// assert_eq!((explained.time_max, explained.amplification_max), (Some(seconds(3)), 4));
    /// ```
    #[must_use]
    pub fn with_fallback(mut self, fallback: &Explanation) -> Explanation {
        let inner: Vec<_> = fallback.steps.iter().map(String::as_str).chain(["the call"]).collect();
        self.steps.insert(0, format!("fallback: {}", inner.join(" > ")));
        self.time_max = match (self.time_max, fallback.time_max) {
            (Some(time), Some(more)) => Some(time.saturating_add(more)),
            (Some(_) | None, _) => None,
        };
        self.amplification_max = self.amplification_max.saturating_add(fallback.amplification_max);
        for warning in &fallback.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(*warning);
            }
        }
        self
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
