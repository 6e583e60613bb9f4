//! Runs two calls at the same time.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Makes two calls at once, starting with the first, and waits for both. In a store with threads or
/// connections they run concurrently.
pub(crate) async fn both<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    poll_fn(|cx| {
        if one.is_none()
            && let Poll::Ready(answer) = first.as_mut().poll(cx)
        {
            one = Some(answer);
        }
        if other.is_none()
            && let Poll::Ready(answer) = second.as_mut().poll(cx)
        {
            other = Some(answer);
        }
        match (one.take(), other.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (first, second) => {
                (one, other) = (first, second);
                Poll::Pending
            }
        }
    })
    .await
}

/// Makes many calls at once, and waits for all. Results are in order.
pub(crate) async fn all<T>(calls: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut calls: Vec<_> = calls.map(|call| (Box::pin(call), None)).collect();
    poll_fn(|cx| {
        let mut waits = false;
        for (call, answer) in calls.iter_mut().filter(|(_, answer)| answer.is_none()) {
            match call.as_mut().poll(cx) {
                Poll::Ready(value) => *answer = Some(value),
                Poll::Pending => waits = true,
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    calls.into_iter().filter_map(|(_, answer)| answer).collect()
}
