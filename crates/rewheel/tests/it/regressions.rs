//! Checks that the library does not have known defects of similar libraries.
//!
//! Each test says in one line what it guards against, and where that was seen.

#![expect(clippy::unwrap_used, reason = "test code")]

mod delays;
mod calls;
mod budget;
mod breaker;
mod limiter;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A temporary error.
fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// Runs `work` in several threads at the same time; returns their results.
fn race<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let start = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        let race = || {
            start.wait();
            work()
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(race)).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}
