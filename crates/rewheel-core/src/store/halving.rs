//! Finds the items of a batch that a store rejects, by halving the batch.

use crate::store::{StoreError, StoreResult};
use std::future::Future;

/// Sends a batch. If the store rejects it because of its content, sends the halves, and so on until
/// each bad item is alone. The result of a bad item is the rejection; the result of every other item is the store's result.
///
/// Any other error ends the process: repeating the batch returns the results of the parts that were
/// already sent.
///
/// # Errors
/// Returns every error except [`StoreError::Rejected`].
pub async fn halving<'a, I, T, F>(
    items: &'a [I],
    mut send: impl FnMut(&'a [I]) -> F,
) -> StoreResult<Vec<Result<T, StoreError>>>
where
    F: Future<Output = StoreResult<Vec<T>>>,
{
    let mut answers = Vec::with_capacity(items.len());
    // The parts still to send, the next one last.
    let mut parts = vec![items];
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        match send(part).await {
            Ok(said) => answers.extend(said.into_iter().map(Ok)),
            Err(StoreError::Rejected(why)) if part.len() == 1 => {
                answers.push(Err(StoreError::Rejected(why)));
            }
            Err(StoreError::Rejected(_)) => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            Err(other) => return Err(other),
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::{StoreError, halving};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn only_the_bad_items_are_refused_and_the_order_is_kept() {
        let items: Vec<u32> = (0..500).collect();
        let mut sent = 0;
        let answers = ready(halving(&items, |part: &[u32]| {
            sent += 1;
            std::future::ready(if part.iter().any(|item| [0, 77, 499].contains(item)) {
                Err(StoreError::Rejected("a bad item".into()))
            } else {
                Ok(part.to_vec())
            })
        }))
        .unwrap();
        for (item, answer) in items.iter().zip(&answers) {
            match answer {
                Ok(said) => assert_eq!(said, item),
                Err(_) => assert!([0, 77, 499].contains(item)),
            }
        }
        assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 3);
        assert!(sent <= 3 * 2 * 9 + 1, "a bad item costs two calls for each halving, not {sent}");
    }

    #[test]
    fn another_error_ends_it() {
        let closed = |_: &[u32]| std::future::ready(Err::<Vec<()>, _>(StoreError::Closed));
        let answer = ready(halving(&[1, 2], closed));
        assert!(matches!(answer, Err(StoreError::Closed)));
    }
}
