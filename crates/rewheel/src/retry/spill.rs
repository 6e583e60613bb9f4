//! Hands a call that ran out of attempts to a durable engine.

use super::call::marker::{Async, Invoke};
use super::options::{Options, Setup};
use super::{Call, Hooks, Judge};
use crate::error::{Error, Why};
use std::fmt;
use std::future::{Future, IntoFuture};

/// Accepts work that could not be done in this process. The durable engine implements it.
pub trait Spill<J> {
    /// Identifies the accepted work.
    type Receipt;
    /// Why the work was not accepted.
    type Error;

    /// Accepts the work; once it returns `Ok`, the work is durable.
    fn spill(&self, job: J) -> impl Future<Output = Result<Self::Receipt, Self::Error>> + Send;
}

/// The result of a call that may be finished later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durably<T, R> {
    /// The call succeeded in this process.
    Done(T),
    /// The work was handed over.
    Spilled(R),
}

/// Error: a call failed, and could not be handed over.
#[derive(Debug)]
pub struct SpillError<E, S> {
    /// Why the call was given up.
    pub call: Error<E>,
    /// Why it could not be handed over; `None` if that was not tried, because the call was
    /// cancelled.
    pub spill: Option<S>,
}

impl<E: fmt::Display + fmt::Debug, S: fmt::Display> fmt::Display for SpillError<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call)?;
        match &self.spill {
            Some(spill) => write!(f, "; it could not be made durable either: {spill}"),
            None => Ok(()),
        }
    }
}

impl<E, S> std::error::Error for SpillError<E, S>
where
    E: fmt::Display + fmt::Debug,
    S: std::error::Error + 'static,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.spill.as_ref().map(|spill| spill as &(dyn std::error::Error + 'static))
    }
}

impl<F, A, Fut, T, E, J, H, O> Call<F, Async<A, Fut, T, E>, J, H, Setup<O>>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    /// Makes the call; if it is given up, hands `job` to a durable engine. Give the job the same
    /// key as the call itself, so that doing both is harmless.
    ///
    /// A cancelled call is not handed over.
    ///
    /// ```
    /// use rewheel::{Durably, Retry, Retryable, Spill, millis};
    /// use std::{io, sync::Mutex};
    ///
    /// /// Stands in for the durable engine.
    /// struct Later(Mutex<Vec<&'static str>>);
    ///
    /// impl Spill<&'static str> for Later {
    ///     type Receipt = usize;
    ///     type Error = io::Error;
    ///
    ///     async fn spill(&self, job: &'static str) -> io::Result<usize> {
    ///         let mut jobs = self.0.lock().unwrap();
    ///         jobs.push(job);
    ///         Ok(jobs.len())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let later = Later(Mutex::default());
    /// let answer = (|| async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) })
    ///     .retry(Retry::fixed(millis(1)).attempts_max(2))
    ///     .or_durably(&later, "charge order 17")
    ///     .await;
    /// assert_eq!(answer.unwrap(), Durably::Spilled(1));
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails with the reason for giving up, and the reason why it could not be handed over.
    pub async fn or_durably<S, W>(
        self,
        spill: &S,
        job: W,
    ) -> Result<Durably<T, S::Receipt>, SpillError<E, S::Error>>
    where
        S: Spill<W>,
    {
        let call = match self.into_future().await {
            Ok(value) => return Ok(Durably::Done(value)),
            Err(call) => call,
        };
        if call.why() == Why::Cancelled {
            return Err(SpillError { call, spill: None });
        }
        match spill.spill(job).await {
            Ok(receipt) => Ok(Durably::Spilled(receipt)),
            Err(why) => Err(SpillError { call, spill: Some(why) }),
        }
    }
}
