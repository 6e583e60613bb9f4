//! Hooks of one call: before each retry, on success, on giving up.

use crate::classify::Category;
use crate::error::Error;
use std::time::Duration;

/// Data of a failed attempt that is followed by another one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Retrying<'a, E> {
    /// The attempt that failed, counted from 1.
    pub attempt: u32,
    /// Delay before the next attempt.
    pub delay: Duration,
    /// Category of the failure.
    pub category: Category,
    /// The error; `None` if the attempt timed out or an `Ok` value was rejected.
    pub error: Option<&'a E>,
}

/// Receives the events of one call.
///
/// Implemented by the types behind [`Call::on_retry`](super::Call::on_retry) and the other hooks;
/// you need not name it.
pub trait Hooks<T, E> {
    /// An attempt failed, and another one follows.
    fn retrying(&mut self, retrying: &Retrying<'_, E>);
    /// The call succeeded after `attempts` attempts.
    fn succeeded(&mut self, value: &T, attempts: u32);
    /// The call was given up.
    fn gave_up(&mut self, error: &Error<E>);
}

impl<T, E> Hooks<T, E> for () {
    #[inline]
    fn retrying(&mut self, _: &Retrying<'_, E>) {}
    #[inline]
    fn succeeded(&mut self, _: &T, _: u32) {}
    #[inline]
    fn gave_up(&mut self, _: &Error<E>) {}
}

impl<T, E, H: Hooks<T, E>> Hooks<T, E> for &mut H {
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        H::retrying(self, retrying);
    }
    fn succeeded(&mut self, value: &T, attempts: u32) {
        H::succeeded(self, value, attempts);
    }
    fn gave_up(&mut self, error: &Error<E>) {
        H::gave_up(self, error);
    }
}

/// Calls a closure before each delay.
#[derive(Clone, Copy, Debug)]
pub struct OnRetry<H, F> {
    pub(super) hooks: H,
    pub(super) hook: F,
}

/// Calls a closure when the call succeeds.
#[derive(Clone, Copy, Debug)]
pub struct OnSuccess<H, F> {
    pub(super) hooks: H,
    pub(super) hook: F,
}

/// Calls a closure when the call is given up.
#[derive(Clone, Copy, Debug)]
pub struct OnGiveUp<H, F> {
    pub(super) hooks: H,
    pub(super) hook: F,
}

impl<T, E, H: Hooks<T, E>, F: FnMut(&Retrying<'_, E>)> Hooks<T, E> for OnRetry<H, F> {
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        self.hooks.retrying(retrying);
        (self.hook)(retrying);
    }
    fn succeeded(&mut self, value: &T, attempts: u32) {
        self.hooks.succeeded(value, attempts);
    }
    fn gave_up(&mut self, error: &Error<E>) {
        self.hooks.gave_up(error);
    }
}

impl<T, E, H: Hooks<T, E>, F: FnMut(&T, u32)> Hooks<T, E> for OnSuccess<H, F> {
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        self.hooks.retrying(retrying);
    }
    fn succeeded(&mut self, value: &T, attempts: u32) {
        self.hooks.succeeded(value, attempts);
        (self.hook)(value, attempts);
    }
    fn gave_up(&mut self, error: &Error<E>) {
        self.hooks.gave_up(error);
    }
}

impl<T, E, H: Hooks<T, E>, F: FnMut(&Error<E>)> Hooks<T, E> for OnGiveUp<H, F> {
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        self.hooks.retrying(retrying);
    }
    fn succeeded(&mut self, value: &T, attempts: u32) {
        self.hooks.succeeded(value, attempts);
    }
    fn gave_up(&mut self, error: &Error<E>) {
        self.hooks.gave_up(error);
        (self.hook)(error);
    }
}
