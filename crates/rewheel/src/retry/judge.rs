//! Decides at the call what a result means.

use crate::classify::{Category, Class, Classify, Matcher, Verdict};

/// Judges the results of one call.
///
/// Implemented by what [`Call::when`](super::Call::when) and its siblings set; there is no need to
/// name it.
#[diagnostic::on_unimplemented(
    message = "nothing says what the failures of this call mean",
    note = "implement `Classify` for `{E}`, or add `.when(|error| …)` or `.judge(|result| …)`"
)]
pub trait Judge<T, E> {
    /// Says what this result means.
    fn judge(&mut self, result: &Result<T, E>) -> Class;
}

/// Lets the error judge itself, through [`Classify`]. What a call does unless told otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByClassify;

impl<T, E: Classify> Judge<T, E> for ByClassify {
    #[inline]
    fn judge(&mut self, result: &Result<T, E>) -> Class {
        match result {
            Ok(_) => Class::DONE,
            Err(error) => error.classify(),
        }
    }
}

/// Retries the errors that a closure picks.
#[derive(Clone, Copy, Debug)]
pub struct ByWhen<W>(pub(super) W);

impl<T, E, W: FnMut(&E) -> bool> Judge<T, E> for ByWhen<W> {
    #[inline]
    fn judge(&mut self, result: &Result<T, E>) -> Class {
        match result {
            Ok(_) => Class::DONE,
            Err(error) => picked((self.0)(error)),
        }
    }
}

/// Retries the errors that a [`Matcher`] picks.
#[derive(Clone, Debug)]
pub struct ByMatcher(pub(super) Matcher);

impl<T, E: std::error::Error + 'static> Judge<T, E> for ByMatcher {
    fn judge(&mut self, result: &Result<T, E>) -> Class {
        match result {
            Ok(_) => Class::DONE,
            Err(error) => picked(self.0.matches(error)),
        }
    }
}

fn picked(retryable: bool) -> Class {
    if retryable { Class::retry(Category::Transient) } else { Class::stop(Category::Unknown) }
}

/// Asks a closure about every result.
#[derive(Clone, Copy, Debug)]
pub struct ByJudge<J>(pub(crate) J);

impl<T, E, J: FnMut(&Result<T, E>) -> Class> Judge<T, E> for ByJudge<J> {
    #[inline]
    fn judge(&mut self, result: &Result<T, E>) -> Class {
        (self.0)(result)
    }
}

/// Retries successes that a closure is not content with, besides what `judge` retries.
#[derive(Clone, Copy, Debug)]
pub struct OrWhenOk<J, W> {
    pub(super) judge: J,
    pub(super) when: W,
}

impl<T, E, J: Judge<T, E>, W: FnMut(&T) -> bool> Judge<T, E> for OrWhenOk<J, W> {
    fn judge(&mut self, result: &Result<T, E>) -> Class {
        let class = self.judge.judge(result);
        match (class.verdict, result) {
            (Verdict::Done, Ok(value)) if (self.when)(value) => Class::retry(Category::Transient),
            _ => class,
        }
    }
}
