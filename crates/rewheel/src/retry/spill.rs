//! Hands a call that ran out of attempts to a durable engine.

use super::Call;
use super::call::marker::{Async, Blocking};
use crate::classify::Category;
use crate::clock::ThreadWaker;
use crate::error::{Error, GiveUpReason};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

/// Accepts work that could not be done in this process. The durable engine implements it.
pub trait Spill<J> {
    /// Identifies the accepted work.
    type Receipt;
    /// Why the work was not accepted.
    type Error;

    /// Takes the work over; once it answers, the work is safe. `failed` says what was tried before:
    /// its attempts should count.
    fn spill(
        &self,
        job: J,
        failed: FailedCall,
    ) -> impl Future<Output = Result<Self::Receipt, Self::Error>> + Send;
}

/// What was tried before a call is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCall {
    /// How many times the call was made.
    pub attempts: u32,
    /// How long it took altogether, waits included.
    pub elapsed: Duration,
    /// Why it was given up.
    pub why: GiveUpReason,
    /// What kind the last failure was.
    pub category: Category,
}

impl FailedCall {
    /// Returns what to hand over; nothing if the call was cancelled.
    pub(crate) fn of<E>(call: &Error<E>) -> Option<FailedCall> {
        (call.reason() != GiveUpReason::Cancelled).then(|| FailedCall {
            attempts: call.attempts(),
            elapsed: call.elapsed(),
            why: call.reason(),
            category: call.category(),
        })
    }
}

/// The result of a call that may be finished later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpillOutcome<T, R> {
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
    /// Why it could not be handed over. `None` if it was not offered: the call was cancelled, or a
    /// tower service did not become ready.
    pub spill: Option<S>,
}

impl<E: fmt::Display + fmt::Debug, S: fmt::Display> fmt::Display for SpillError<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call)?;
        match &self.spill {
            Some(spill) => write!(f, "; storing the call as a job failed too: {spill}"),
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

impl<F, A, Fut, T, E, J, H, S> Call<F, Async<A, Fut, T, E>, J, H, S>
where
    Self: IntoFuture<Output = Result<T, Error<E>>>,
{
    /// Makes the call; if it is given up, hands `job` to a durable engine. Give the job the same
    /// key as the call itself, so that doing both is harmless.
    ///
    /// A cancelled call is not handed over.
    ///
    /// ```
    /// use rewheel::{SpillOutcome, FailedCall, Retry, Retryable, Spill, millis};
    /// use std::{io, sync::Mutex};
    ///
    /// /// Stands for the durable engine.
    /// struct Later(Mutex<Vec<(&'static str, u32)>>);
    ///
    /// impl Spill<&'static str> for Later {
    ///     type Receipt = usize;
    ///     type Error = io::Error;
    ///
    ///     async fn spill(&self, job: &'static str, failed: FailedCall) -> io::Result<usize> {
    ///         let mut jobs = self.0.lock().unwrap();
    ///         jobs.push((job, failed.attempts));
    ///         Ok(jobs.len())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let later = Later(Mutex::default());
    /// let answer = (|| async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) })
    ///     .retry(Retry::fixed(millis(1)).attempts_max(2))
    ///     .or_spill_to(&later, "charge order 17")
    ///     .await;
    /// assert_eq!(answer.unwrap(), SpillOutcome::Spilled(1));
    /// assert_eq!(*later.0.lock().unwrap(), [("charge order 17", 2)]);
    /// # }
    /// ```
    ///
    /// # Errors
    /// Says why the call was given up, and why it could not be handed over.
    pub async fn or_spill_to<D, W>(
        self,
        spill: &D,
        job: W,
    ) -> Result<SpillOutcome<T, D::Receipt>, SpillError<E, D::Error>>
    where
        D: Spill<W>,
    {
        match self.into_future().await {
            Ok(value) => Ok(SpillOutcome::Done(value)),
            Err(call) => hand_over(call, spill, job).await,
        }
    }
}

impl<F, A, T, E, J, H, S> Call<F, Blocking<A, T, E>, J, H, S>
where
    Self: Blocks<T, E>,
{
    /// As [`or_spill_to`](Call::or_spill_to), for a call that blocks: this thread is blocked until the
    /// job is handed over.
    ///
    /// Use it where blocking is allowed, as in `tokio::task::spawn_blocking`: what takes the job over
    /// may need the threads of its runtime for that.
    ///
    /// # Errors
    /// As there.
    pub fn call_or_spill_to<D, W>(
        self,
        spill: &D,
        job: W,
    ) -> Result<SpillOutcome<T, D::Receipt>, SpillError<E, D::Error>>
    where
        D: Spill<W>,
    {
        match self.make_call() {
            Ok(value) => Ok(SpillOutcome::Done(value)),
            Err(call) => block_on(hand_over(call, spill, job)),
        }
    }
}

/// A [`Call`] that can be made by blocking. There is no need to name it.
pub trait Blocks<T, E> {
    #[doc(hidden)]
    fn make_call(self) -> Result<T, Error<E>>;
}

async fn hand_over<T, E, D: Spill<W>, W>(
    call: Error<E>,
    spill: &D,
    job: W,
) -> Result<SpillOutcome<T, D::Receipt>, SpillError<E, D::Error>> {
    let Some(failed) = FailedCall::of(&call) else {
        return Err(SpillError { call, spill: None });
    };
    match spill.spill(job, failed).await {
        Ok(receipt) => Ok(SpillOutcome::Spilled(receipt)),
        Err(why) => Err(SpillError { call, spill: Some(why) }),
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = ThreadWaker::current();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
