//! Continues a call that ran out of attempts as a durable job.

use super::call::marker::{Async, Blocking};
use super::{Call, Hooks, Retrying};
use crate::classify::{Category, Class, Classify};
use crate::clock::ThreadWaker;
use crate::error::{Error, GiveUpReason, Refused};
use crate::sealed::Sealed;
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

    /// Stores the work as a durable job. When it returns `Ok`, the work is safe. `failed` describes
    /// the call that failed; its attempts should count as attempts of the job.
    fn spill(
        &self,
        job: J,
        failed: FailedCall,
    ) -> impl Future<Output = Result<Self::Receipt, Self::Error>> + Send;
}

/// Describes a failed call that continues as a durable job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCall {
    /// How many times the call was made.
    pub attempts: u32,
    /// Total time of the call, including delays.
    pub elapsed: Duration,
    /// Why the call was given up.
    pub why: GiveUpReason,
    /// Category of the last failure.
    pub category: Category,
}

impl FailedCall {
    /// Returns what to hand over; nothing if the same call cannot succeed later, or should not run
    /// again.
    pub(crate) fn of<E>(call: &Error<E>) -> Option<FailedCall> {
        call.may_succeed_later().then(|| FailedCall {
            attempts: call.attempts(),
            elapsed: call.elapsed(),
            why: call.reason(),
            category: call.category(),
        })
    }

    /// Returns the error of a call that ended with a value that was judged a failure.
    pub(crate) fn to_error<E>(self) -> Error<E> {
        Error::new(Refused::new(self.why, None), self.attempts, self.elapsed, None)
            .with_category(Some(self.category))
    }
}

/// Notes whether a call was given up, also if it ends with a value. You do not need to name this type.
#[derive(Clone, Copy, Debug)]
pub struct NoteGiveUp<H> {
    hooks: H,
    failed: Option<FailedCall>,
}

impl<H> NoteGiveUp<H> {
    pub(crate) const fn new(hooks: H) -> NoteGiveUp<H> {
        NoteGiveUp { hooks, failed: None }
    }

    pub(crate) const fn failed(&self) -> Option<FailedCall> {
        self.failed
    }
}

impl<T, E, H: Hooks<T, E>> Hooks<T, E> for NoteGiveUp<H> {
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        self.hooks.retrying(retrying);
    }
    fn succeeded(&mut self, value: &T, attempts: u32) {
        self.hooks.succeeded(value, attempts);
    }
    fn gave_up(&mut self, error: &Error<E>) {
        self.failed = FailedCall::of(error);
        self.hooks.gave_up(error);
    }
}

/// The future of a call with these hooks. You do not need to name this trait.
pub trait HasHooks<H>: Sealed {
    #[doc(hidden)]
    fn hooks(&self) -> &H;
}

/// The result of a call that may be finished later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpillOutcome<T, R> {
    /// The call succeeded in this process.
    Done(T),
    /// The work was stored as a durable job.
    Spilled(R),
}

/// Error: a call failed, and could not be stored as a job.
#[derive(Debug)]
#[non_exhaustive]
pub struct SpillError<E, S> {
    /// Why the call was given up.
    pub call: Error<E>,
    /// Why the job could not be stored. `None` if no job was submitted, because the call would not
    /// succeed later either, an outer retry repeats it, the caller cancelled it, or a tower service
    /// did not become ready.
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

/// An outer retry sees the call itself: whether the job was stored makes no difference to it.
impl<E: Classify, S> Classify for SpillError<E, S> {
    fn classify(&self) -> Class {
        self.call.classify()
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
    Call<F, Async<A, Fut, T, E>, J, NoteGiveUp<H>, S>:
        IntoFuture<Output = Result<T, Error<E>>, IntoFuture: HasHooks<NoteGiveUp<H>>>,
{
    /// Makes the call. If the call is given up, submits `job` to a durable engine. Use the same
    /// idempotency key for the job and for the call itself, so that it does no harm if both run.
    ///
    /// A job is stored if the same call may succeed later: if it ran out of attempts, time or
    /// budget, or if a policy refused it. This includes a call whose last result is a value that
    /// [`judge`](Call::judge) or [`when_ok`](Call::when_ok) calls a failure, such as a response with
    /// status 503. No job is stored for a permanent failure, such as a declined card, for a
    /// cancelled call, and inside an attempt of an outer retry, which repeats the call.
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
    /// Returns why the call was given up, and why the job could not be stored.
    pub async fn or_spill_to<D, W>(
        self,
        spill: &D,
        job: W,
    ) -> Result<SpillOutcome<T, D::Receipt>, SpillError<E, D::Error>>
    where
        D: Spill<W>,
    {
        let (result, failed) = {
            let Call { operation, mode, judge, hooks, setup } = self;
            let call = Call { operation, mode, judge, hooks: NoteGiveUp::new(hooks), setup };
            let mut future = pin!(call.into_future());
            let result = future.as_mut().await;
            let failed = future.hooks().failed();
            (result, failed)
        };
        match (result, failed) {
            (Ok(value), None) => Ok(SpillOutcome::Done(value)),
            (Ok(_), Some(failed)) => hand_over(failed.to_error(), Some(failed), spill, job).await,
            (Err(call), failed) => hand_over(call, failed, spill, job).await,
        }
    }
}

impl<F, A, T, E, J, H, S> Call<F, Blocking<A, T, E>, J, H, S>
where
    for<'a> Call<F, Blocking<A, T, E>, J, &'a mut NoteGiveUp<H>, S>: Blocks<T, E>,
{
    /// As [`or_spill_to`](Call::or_spill_to), for a call that blocks: this thread is blocked until the
    /// job is stored.
    ///
    /// Use it only where blocking is allowed, as in `tokio::task::spawn_blocking`, because storing
    /// the job may need the threads of the runtime.
    ///
    /// # Errors As for `or_spill_to`.
    pub fn call_or_spill_to<D, W>(
        self,
        spill: &D,
        job: W,
    ) -> Result<SpillOutcome<T, D::Receipt>, SpillError<E, D::Error>>
    where
        D: Spill<W>,
    {
        let Call { operation, mode, judge, hooks, setup } = self;
        let mut noted = NoteGiveUp::new(hooks);
        let result = Call { operation, mode, judge, hooks: &mut noted, setup }.make_call();
        match (result, noted.failed()) {
            (Ok(value), None) => Ok(SpillOutcome::Done(value)),
            (Ok(_), Some(failed)) => {
                block_on(hand_over(failed.to_error(), Some(failed), spill, job))
            }
            (Err(call), failed) => block_on(hand_over(call, failed, spill, job)),
        }
    }
}

impl<F, A, T, E, J, H, S> Sealed for Call<F, Blocking<A, T, E>, J, H, S> {}

/// A [`Call`] of a blocking operation. You do not need to name this trait.
pub trait Blocks<T, E>: Sealed {
    #[doc(hidden)]
    fn make_call(self) -> Result<T, Error<E>>;
}

async fn hand_over<T, E, D: Spill<W>, W>(
    call: Error<E>,
    failed: Option<FailedCall>,
    spill: &D,
    job: W,
) -> Result<SpillOutcome<T, D::Receipt>, SpillError<E, D::Error>> {
    let Some(failed) = failed else {
        return Err(SpillError { call, spill: None });
    };
    match spill.spill(job, failed).await {
        Ok(receipt) => Ok(SpillOutcome::Spilled(receipt)),
        Err(why) => Err(SpillError { call, spill: Some(why) }),
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = ThreadWaker::current();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
