//! Conditional update: read a version, write where the version is still the same.

use super::transaction::without_attempt_timeout;
use crate::classify::{Category, Class, Classify, Verdict};
use crate::error::Error;
use crate::retry::{Retry, Retryable};
use std::fmt;
use std::future::Future;

/// The outcome of a write that has a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<T> {
    /// The condition was true, and the write is done.
    Done(T),
    /// Another process changed the row since it was read: nothing was written.
    Conflict,
}

impl<T> Written<T> {
    /// Converts the number of rows that an `UPDATE … WHERE id = … AND version = …` changed: none is a conflict.
    pub fn from_rows(rows: u64, value: T) -> Written<T> {
        if rows == 0 { Written::Conflict } else { Written::Done(value) }
    }
}

/// Error of one attempt of a conditional update.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpdateError<E> {
    /// Another process changed the row between read and write.
    Conflict,
    /// The read failed.
    Read(E),
    /// The write failed. If its connection broke or it took too long, the write may be done: it is not repeated.
    Write(E),
}

impl<E: fmt::Display> fmt::Display for UpdateError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateError::Conflict => {
                f.write_str("another process changed the row since it was read")
            }
            UpdateError::Read(error) => write!(f, "read failed: {error}"),
            UpdateError::Write(error) => write!(f, "write failed: {error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for UpdateError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UpdateError::Conflict => None,
            UpdateError::Read(error) | UpdateError::Write(error) => Some(error),
        }
    }
}

impl<E: Classify> Classify for UpdateError<E> {
    fn classify(&self) -> Class {
        match self {
            // The database works: this says nothing bad about it.
            UpdateError::Conflict => Class::retry(Category::Rejected).with_code("conflict"),
            UpdateError::Read(error) => error.classify(),
            UpdateError::Write(error) => {
                let class = error.classify();
                // The repeated call would read its own write, and change the row a second time.
                let is_unknown = class.category != Category::Transient;
                if is_unknown { Class { verdict: Verdict::Stop, ..class } } else { class }
            }
        }
    }
}

/// Reads a row, and writes it if its version is still the same; repeats both if another process was faster.
///
/// `read` returns the row with its version. `write` gets it, and writes with a condition on the version: see [`Written::from_rows`].
/// After a conflict, the policy decides about delay and number of attempts; [`CONFLICT`](super::CONFLICT) suits rows that few processes
/// change. A read is repeated as its error says. A write is repeated only after a deadlock or another failure after which surely
/// nothing was written. The attempt timeout of the policy does not apply.
///
/// ```
/// use rewheel::database::{CONFLICT, Written, update_with_retry};
/// use std::cell::Cell;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let row = Cell::new((100, 1)); // balance and version
/// let races = Cell::new(1);
/// let balance = update_with_retry(
///     CONFLICT,
///     || async { Ok::<_, std::io::Error>(row.get()) },
///     |(balance, version)| {
///         if races.replace(0) > 0 {
///             row.set((90, 2)); // another process is faster, once
///         }
///         let rows = if row.get().1 == version {
///             row.set((balance - 10, version + 1));
///             1
///         } else {
///             0
///         };
///         async move { Ok(Written::from_rows(rows, balance - 10)) }
///     },
/// )
/// .await;
/// assert_eq!((balance.unwrap(), row.get()), (80, (80, 3)));
/// # }
/// ```
///
/// # Errors
/// Returns why it was given up, with the last error.
pub async fn update_with_retry<R, FutR, W, FutW, V, T, E>(
    policy: Retry,
    read: R,
    write: W,
) -> Result<T, Error<UpdateError<E>>>
where
    R: Fn() -> FutR,
    FutR: Future<Output = Result<V, E>>,
    W: Fn(V) -> FutW,
    FutW: Future<Output = Result<Written<T>, E>>,
    E: Classify,
{
    let (read, write) = (&read, &write);
    let attempt = move || async move {
        let row = read().await.map_err(UpdateError::Read)?;
        match write(row).await.map_err(UpdateError::Write)? {
            Written::Done(value) => Ok(value),
            Written::Conflict => Err(UpdateError::Conflict),
        }
    };
    attempt.retry(without_attempt_timeout(policy)).await
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{UpdateError, Written, update_with_retry};
    use crate::{GiveUpReason, Retry, millis};
    use std::cell::Cell;
    use std::io::{Error, ErrorKind};

    const POLICY: Retry = Retry::fixed(millis(1)).attempts_max(3);

    #[tokio::test]
    async fn gives_up_when_others_are_always_faster() {
        let reads = Cell::new(0);
        let read = || {
            reads.set(reads.get() + 1);
            async { Ok::<_, Error>(7) }
        };
        let error = update_with_retry(POLICY, read, |_| async { Ok(Written::<()>::Conflict) })
            .await
            .unwrap_err();
        assert_eq!((error.reason(), reads.get()), (GiveUpReason::AttemptsExhausted, 3));
        assert!(matches!(error.last(), Some(UpdateError::Conflict)), "{error}");
    }

    #[tokio::test]
    async fn a_write_without_an_answer_is_not_repeated() {
        let broken = || Error::from(ErrorKind::ConnectionReset);
        let write = |_| async { Err::<Written<()>, _>(broken()) };
        let error = update_with_retry(POLICY, || async { Ok(7) }, write).await.unwrap_err();
        assert_eq!((error.attempts(), error.reason()), (1, GiveUpReason::Stopped));

        // A read may be repeated.
        let read = || async { Err::<u32, _>(broken()) };
        let write = |_| async { Ok(Written::Done(())) };
        assert_eq!(update_with_retry(POLICY, read, write).await.unwrap_err().attempts(), 3);
    }
}
