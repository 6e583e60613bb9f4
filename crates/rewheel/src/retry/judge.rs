//! Decides, for one call, what a result means.

use crate::classify::{Category, Class, Classify, Matcher, Verdict};

/// Classifies the results of one call.
///
/// Implemented by the types behind [`Call::when`](super::Call::when) and similar methods; you need
/// not name it.
#[diagnostic::on_unimplemented(
    message = "cannot tell which failures of this call to retry",
    note = "implement `Classify` for `{E}`, or add `.when(|error| …)` or `.judge(|result| …)`"
)]
pub trait Judge<T, E> {
    /// Classifies this result.
    fn judge(&mut self, result: &Result<T, E>) -> Class;
}

/// Classifies errors by [`Classify`]. The default.
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

/// Retries the errors that a closure selects.
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

/// Retries the errors that a [`Matcher`] matches.
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

/// Classifies every result by a closure.
#[derive(Clone, Copy, Debug)]
pub struct ByJudge<J>(pub(crate) J);

impl<T, E, J: FnMut(&Result<T, E>) -> Class> Judge<T, E> for ByJudge<J> {
    #[inline]
    fn judge(&mut self, result: &Result<T, E>) -> Class {
        (self.0)(result)
    }
}

/// Retries what `judge` retries, and also successes that a closure selects.
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
