//! Hands a call that ran out of attempts to something that outlives the process.

use super::call::marker::{Async, Invoke};
use super::options::{Options, Setup};
use super::{Call, Hooks, Judge};
use crate::error::{Error, Why};
use std::fmt;
use std::future::{Future, IntoFuture};

/// Takes over work that could not be done in this process. The durable engine is one.
pub trait Spill<J> {
    /// What is known of the work from now on.
    type Receipt;
    /// Why it could not be taken over.
    type Error;

    /// Takes the work over; once it answers, the work is safe.
    fn spill(&self, job: J) -> impl Future<Output = Result<Self::Receipt, Self::Error>> + Send;
}

/// What became of a call that may be finished later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durably<T, R> {
    /// It succeeded here.
    Done(T),
    /// It goes on elsewhere.
    Spilled(R),
}

/// A call failed, and could not be handed over either.
#[derive(Debug)]
pub struct SpillError<E, S> {
    /// Why the call was given up.
    pub call: Error<E>,
    /// Why nobody took it over; `None` where it was not offered: it was cancelled.
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
    /// Makes the call; when it is given up, hands `job` to something that outlives this process.
    /// Give the job the key that the call itself uses, so that doing both is harmless.
    ///
    /// A call that was cancelled is not handed over: nobody wants it.
    ///
    /// ```
    /// use rewheel::{Durably, Retry, Retryable, Spill, millis};
    /// use std::{io, sync::Mutex};
    ///
    /// /// Stands for the durable engine.
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
    /// Says why the call was given up, and why it could not be handed over.
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
