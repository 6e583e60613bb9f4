//! Classifies errors of other crates by custom rules.

use super::StatusSet;
use std::any::type_name;
use std::error::Error;
use std::fmt::{self, Write};
use std::io;
use std::ops::Not;
use std::sync::Arc;

/// Longer than any useful chain of causes; a `source()` that points back to an earlier error must not hang the caller.
const CHAIN_MAX: usize = 64;

/// Drivers quote whole statements in their messages. The description of the failure fits many times into this; the rest of a huge
/// message is not worth formatting for each failure.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Matches errors by message, type or cause.
///
/// A matcher checks an error together with all its sources. A matcher can be combined from smaller matchers, and is cheap to clone.
///
/// ```
/// use rewheel::{Matcher, StatusSet};
/// use std::io::{Error, ErrorKind};
///
/// let passes = Matcher::io([ErrorKind::ConnectionReset, ErrorKind::TimedOut])
///     .or(Matcher::text("try again"))
///     .and(!Matcher::text("certificate"));
///
/// assert!(passes.matches(&Error::other("please TRY AGAIN later")));
/// assert!(!passes.matches(&Error::new(ErrorKind::TimedOut, "certificate has expired")));
/// ```
///
/// A boxed error is matched by its content; the same works for `anyhow::Error`:
///
/// ```
/// # use rewheel::Matcher;
/// let error: Box<dyn std::error::Error + Send + Sync> = "database is locked".into();
/// assert!(Matcher::database().matches(&*error));
///
/// let when = |error: &Box<dyn std::error::Error + Send + Sync>| {
///     Matcher::database().matches(&**error)
/// };
/// assert!(when(&error));
/// ```
#[derive(Clone)]
pub struct Matcher(Arc<Node>);

/// Checks one error of a chain.
type Look<T> = Box<dyn Fn(&(dyn Error + 'static)) -> T + Send + Sync>;

enum Node {
    Any(Vec<Matcher>),
    All(Vec<Matcher>),
    Not(Matcher),
    /// Any of these texts, all in lower case and not empty.
    Texts(Vec<String>),
    Io(Vec<io::ErrorKind>),
    Source {
        type_name: &'static str,
        test: Look<bool>,
    },
    Status {
        set: StatusSet,
        type_name: &'static str,
        read: Look<Option<u16>>,
    },
}

impl Matcher {
    /// Matches an error if at least one of these matchers matches it. With an empty list, it matches no error.
    pub fn any(matchers: impl IntoIterator<Item = Matcher>) -> Matcher {
        Matcher::new(Node::Any(matchers.into_iter().collect()))
    }

    /// Matches an error if all of these matchers match it. With an empty list, it matches every error.
    pub fn all(matchers: impl IntoIterator<Item = Matcher>) -> Matcher {
        Matcher::new(Node::All(matchers.into_iter().collect()))
    }

    /// Matches no error.
    pub fn never() -> Matcher {
        Matcher::any([])
    }

    /// Matches every error.
    pub fn always() -> Matcher {
        Matcher::all([])
    }

    /// Matches errors that this matcher or the other one matches.
    #[must_use]
    pub fn or(self, other: Matcher) -> Matcher {
        Matcher::any([self, other])
    }

    /// Matches errors that both this matcher and the other one match.
    #[must_use]
    pub fn and(self, other: Matcher) -> Matcher {
        Matcher::all([self, other])
    }

    /// Matches an error if its message, or that of one of its sources, contains this text, ignoring case.
    ///
    /// An empty text matches nothing. Otherwise an empty setting would make every error retryable.
    pub fn text(text: &str) -> Matcher {
        Matcher::texts([text])
    }

    /// Like [`text`](Matcher::text) for several texts, but formats each message only once.
    pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Matcher {
        let texts = texts.into_iter().filter(|text| !text.is_empty()).map(lower_case);
        Matcher::new(Node::Texts(texts.collect()))
    }

    /// Matches an error that is, or was caused by, an [`io::Error`] of one of these kinds, also
    /// inside [`io::Error::other`].
    pub fn io(kinds: impl IntoIterator<Item = io::ErrorKind>) -> Matcher {
        Matcher::new(Node::Io(kinds.into_iter().collect()))
    }

    /// Matches an error that is, or was caused by, a `T`.
    pub fn source<T: Error + 'static>() -> Matcher {
        Matcher::source_where(|_: &T| true)
    }

    /// Matches an error that is, or was caused by, a `T` for which the closure returns true.
    ///
    /// ```
    /// use rewheel::Matcher;
    /// use std::num::{IntErrorKind, ParseIntError};
    ///
    /// let empty = Matcher::source_where(|e: &ParseIntError| *e.kind() == IntErrorKind::Empty);
    /// assert!(empty.matches(&"".parse::<u8>().unwrap_err()));
    /// assert!(!empty.matches(&"x".parse::<u8>().unwrap_err()));
    /// ```
    pub fn source_where<T: Error + 'static>(
        test: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Matcher {
        let test = move |error: &(dyn Error + 'static)| find(error).is_some_and(&test);
        Matcher::new(Node::Source { type_name: type_name::<T>(), test: Box::new(test) })
    }

    /// Matches an error that is, or was caused by, a `T` whose HTTP status is in the set.
    ///
    /// ```
    /// use rewheel::{Matcher, StatusSet};
    /// # #[derive(Debug)]
    /// # struct HttpError { status: Option<u16> }
    /// # impl std::fmt::Display for HttpError {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("http") }
    /// # }
    /// # impl std::error::Error for HttpError {}
    ///
    /// let passes = Matcher::status(StatusSet::RETRYABLE, |e: &HttpError| e.status);
    /// assert!(passes.matches(&HttpError { status: Some(503) }));
    /// assert!(!passes.matches(&HttpError { status: None }));
    /// ```
    pub fn status<T: Error + 'static>(
        set: StatusSet,
        read: impl Fn(&T) -> Option<u16> + Send + Sync + 'static,
    ) -> Matcher {
        let read = move |error: &(dyn Error + 'static)| find(error).and_then(&read);
        Matcher::new(Node::Status { set, type_name: type_name::<T>(), read: Box::new(read) })
    }

    /// Returns whether this error, together with its sources, matches.
    ///
    /// Checks at most 64 errors of one chain, so that the check also ends if the sources form a circle.
    pub fn matches(&self, error: &(dyn Error + 'static)) -> bool {
        match &*self.0 {
            Node::Any(matchers) => matchers.iter().any(|matcher| matcher.matches(error)),
            Node::All(matchers) => matchers.iter().all(|matcher| matcher.matches(error)),
            Node::Not(matcher) => !matcher.matches(error),
            Node::Texts(texts) => {
                !texts.is_empty()
                    && chain(error).any(|error| {
                        let message = lower_case(error);
                        texts.iter().any(|text| message.contains(text))
                    })
            }
            Node::Io(kinds) => {
                chain(error).filter_map(find::<io::Error>).any(|io| kinds.contains(&io.kind()))
            }
            Node::Source { test, .. } => chain(error).any(test),
            Node::Status { set, read, .. } => {
                chain(error).filter_map(read).any(|status| set.contains(status))
            }
        }
    }

    fn new(node: Node) -> Matcher {
        Matcher(Arc::new(node))
    }
}

/// Matches errors that the other matcher does not match.
impl Not for Matcher {
    type Output = Matcher;

    fn not(self) -> Matcher {
        Matcher::new(Node::Not(self))
    }
}

/// Prints the expression of the matcher.
impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Node::Any(matchers) => f.write_str("any").and_then(|()| matchers.fmt(f)),
            Node::All(matchers) => f.write_str("all").and_then(|()| matchers.fmt(f)),
            Node::Not(matcher) => f.write_str("!").and_then(|()| matcher.fmt(f)),
            Node::Texts(texts) => f.write_str("text").and_then(|()| texts.fmt(f)),
            Node::Io(kinds) => f.write_str("io").and_then(|()| kinds.fmt(f)),
            Node::Source { type_name, .. } => write!(f, "source[{type_name}]"),
            Node::Status { set, type_name, .. } => write!(f, "status[{set}, {type_name}]"),
        }
    }
}

/// Returns the error, then its cause, and so on.
pub(super) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error)).take(CHAIN_MAX)
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    // The source of an `io::Error` is the source of the error inside it, so the inner error itself would be skipped.
    match find::<io::Error>(error).and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// Returns the error if it is a `T`, also behind a pointer that implements `Error` itself.
pub(super) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    error
        .downcast_ref::<T>()
        .or_else(|| error.downcast_ref::<Arc<T>>().map(|pointer| &**pointer))
        .or_else(|| error.downcast_ref::<Box<T>>().map(|pointer| &**pointer))
}

fn lower_case(message: impl fmt::Display) -> String {
    let mut text = LowerCase(String::new());
    // Fails only if the text is long enough, or the `Display` of the message fails; `to_string` would panic then.
    let _ = write!(text, "{message}");
    text.0
}

struct LowerCase(String);

impl Write for LowerCase {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            if self.0.len() >= TEXT_BYTES_MAX {
                return Err(fmt::Error);
            }
            // Character by character, because `str::to_lowercase` maps a sigma depending on what follows: a text would not be
            // found in the middle of a word.
            self.0.extend(character.to_lowercase());
        }
        Ok(())
    }
}
