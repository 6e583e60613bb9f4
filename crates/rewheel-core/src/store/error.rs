//! Store errors.

use crate::id::HolderId;
use rewheel::{Category, Class, Classify};
use std::error::Error;
use std::fmt;
use std::fmt::Write as _;

/// An error of the underlying database or file.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a verb (an operation of the store). Each variant requires a different reaction of the caller.
///
/// The text says what failed and why; the sources add details of the database driver.
///
/// ```
/// use rewheel_core::store::StoreError;
///
/// let error = StoreError::Unavailable("connection refused".into());
/// assert_eq!(error.to_string(), "the store is unavailable: connection refused");
/// ```
#[derive(Debug)]
pub enum StoreError {
    /// Nothing was written. Wait, then repeat the call.
    Unavailable(BoxError),
    /// It is unknown whether the call has written. Repeat an insert with the same jobs and
    /// [`Sent::Again`](crate::store::Sent::Again): for this value the store checks whether it
    /// has stored the jobs already, which it does not do for
    /// [`Sent::First`](crate::store::Sent::First). Repeat every other verb unchanged,
    /// except [`grant`](crate::store::KindStore::grant), which would count twice.
    ///
    /// An engine repeats its calls by itself. If it returns this error, the repetitions failed too:
    /// submit the job again with the same key.
    Ambiguous(BoxError),
    /// The store is full. Nothing was written, and nothing can be written until there is free space. Accept no new jobs.
    Full(BoxError),
    /// A part of this batch cannot be stored. Find this part by [`halving`](crate::store::halving).
    Rejected(BoxError),
    /// The holder is dead, or was never registered. Drop its work, and register again under a new id.
    HolderDead(HolderId),
    /// An operator must repair the store; the text describes the problem.
    Broken {
        /// What is wrong, and what to do.
        what: String,
        /// The error of the database.
        source: Option<BoxError>,
    },
    /// The store was closed by its owner, or the engine that uses it was shut down.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable(why) => write!(f, "the store is unavailable: {why}"),
            StoreError::Ambiguous(why) => write!(
                f,
                "the store's response was lost, so it is unknown whether the change was made: {why}"
            ),
            StoreError::Full(why) => {
                write!(
                    f,
                    "the store is full: make space on its disk, or in the memory of Redis (no acknowledged job is lost): {why}"
                )
            }
            StoreError::Rejected(why) => write!(f, "the store rejected the request: {why}"),
            StoreError::HolderDead(holder) => {
                write!(f, "holder {holder} has expired: register again under a new id")
            }
            StoreError::Broken { what, source: Some(why) } => write!(f, "{what}: {why}"),
            StoreError::Broken { what, source: None } => f.write_str(what),
            StoreError::Closed => f.write_str("the store is closed: this process has shut it down"),
        }
    }
}

impl Error for StoreError {
    /// The first cause is part of the text already: a chain of sources must not repeat it.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause().and_then(Error::source)
    }
}

impl StoreError {
    /// Returns whether repeating the same call may help.
    pub const fn is_transient(&self) -> bool {
        match self {
            StoreError::Unavailable(_) | StoreError::Ambiguous(_) | StoreError::Full(_) => true,
            StoreError::Rejected(_)
            | StoreError::HolderDead(_)
            | StoreError::Broken { .. }
            | StoreError::Closed => false,
        }
    }

    /// Returns the cause that the text of this error names.
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Unavailable(why)
            | StoreError::Ambiguous(why)
            | StoreError::Full(why)
            | StoreError::Rejected(why)
            | StoreError::Broken { source: Some(why), .. } => Some(&**why),
            StoreError::HolderDead(_)
            | StoreError::Broken { source: None, .. }
            | StoreError::Closed => None,
        }
    }

    /// Returns the error with all its causes, in one line. The causes contain the messages of the
    /// database, which an operator can search for.
    ///
    /// ```
    /// use rewheel_core::store::StoreError;
    ///
    /// let error = StoreError::Unavailable("connection refused".into());
    /// assert_eq!(error.with_causes(), "the store is unavailable: connection refused");
    /// ```
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        add_sources(&mut text, self.source());
        text
    }

    /// Returns only the causes, in one line.
    pub fn causes(&self) -> Option<String> {
        let cause = self.cause()?;
        let mut text = cause.to_string();
        add_sources(&mut text, cause.source());
        Some(text)
    }
}

fn add_sources(text: &mut String, mut source: Option<&(dyn Error + 'static)>) {
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
}

/// Decides whether the call may be repeated at once, and whether the failure counts against the
/// store. Only calls that did not reach the store, or whose response was lost, count: any other
/// error is a response, so the store is available.
///
/// ```
/// use rewheel::{Classify, Verdict};
/// use rewheel_core::store::StoreError;
///
/// let away = StoreError::Unavailable("connection refused".into()).classify();
/// assert!(away.verdict == Verdict::Retry && away.category.blames_dependency());
/// // A retry within the same second cannot help, and reads of other callers must not be refused.
/// let full = StoreError::Full("no space left on device".into()).classify();
/// assert!(full.verdict == Verdict::Stop && !full.category.blames_dependency());
/// ```
impl Classify for StoreError {
    fn classify(&self) -> Class {
        match self {
            StoreError::Unavailable(_) => Class::retry(Category::Io),
            StoreError::Ambiguous(_) => Class::retry(Category::Timeout),
            StoreError::Full(_) => Class::stop(Category::Rejected).with_code("full"),
            StoreError::Rejected(_) => Class::stop(Category::Rejected),
            StoreError::HolderDead(_) => Class::stop(Category::Rejected).with_code("holder_dead"),
            StoreError::Broken { .. } => Class::stop(Category::Rejected).with_code("broken"),
            // The owner closed the store: this counts neither for nor against it.
            StoreError::Closed => Class::stop(Category::Cancelled).with_code("closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxError, StoreError};
    use std::error::Error;

    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct Refused(#[source] std::num::ParseIntError);

    #[test]
    fn every_error_says_why_in_its_text_and_its_sources_only_add_to_it() {
        let why = || -> BoxError { Box::new(Refused("x".parse::<i32>().unwrap_err())) };
        let broken = |source| StoreError::Broken { what: "check it".to_owned(), source };
        for error in [
            StoreError::Unavailable(why()),
            StoreError::Ambiguous(why()),
            StoreError::Full(why()),
            StoreError::Rejected(why()),
            broken(Some(why())),
        ] {
            assert!(error.to_string().ends_with(": connection refused"), "{error}");
            assert_eq!(error.source().unwrap().to_string(), "invalid digit found in string");
            let whole = error.with_causes();
            assert_eq!(whole, format!("{error}: invalid digit found in string"));
            let causes = "connection refused: invalid digit found in string";
            assert_eq!(error.causes().as_deref(), Some(causes));
        }
        assert_eq!(
            (broken(None).with_causes().as_str(), broken(None).causes()),
            ("check it", None)
        );
    }
}
