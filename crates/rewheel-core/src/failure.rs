//! The part of a failed attempt that is stored: category, code and message.

use crate::limits::Limits;
use rewheel::{Category, Class, Code};
use std::fmt;

/// A failure in the form that is stored: limited in size, without characters that databases reject.
///
/// ```
/// use rewheel::Category;
/// use rewheel_core::Failure;
///
/// let failure = Failure::new(Category::Timeout, Some("504"), "no answer\0 from the bank");
/// assert_eq!(failure.message(), "no answer from the bank");
/// assert_eq!(failure.to_string(), "timeout 504: no answer from the bank");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    category: Category,
    code: Option<String>,
    message: String,
}

impl Failure {
    /// Creates a failure. Cuts texts that are too long at a character boundary and removes NUL,
    /// which databases reject: the text of one failure must not prevent the store from writing the other results of the batch.
    pub fn new(category: Category, code: Option<&str>, message: &str) -> Failure {
        Failure {
            category,
            code: code.map(|code| clean(code, Limits::CODE_BYTES_MAX)).filter(|c| !c.is_empty()),
            message: clean(message, Limits::MESSAGE_BYTES_MAX),
        }
    }

    /// Creates a failure from an error's class and its text.
    pub fn of(class: &Class, message: &str) -> Failure {
        let code = class.code.as_ref().map(Code::to_string);
        Failure::new(class.category, code.as_deref(), message)
    }

    /// Returns the failure of a job whose deadline has passed.
    pub fn of_deadline() -> Failure {
        Failure::new(Category::Deadline, None, "deadline passed before the job succeeded")
    }

    /// Returns the failure of a job that was running each time its holder died.
    pub fn of_takeovers(counted: u32) -> Failure {
        let message = format!(
            "the process died {counted} times while it ran this job: the job may be the cause"
        );
        Failure::new(Category::Panic, Some("takeovers"), &message)
    }

    /// Returns the category of the failure.
    pub const fn category(&self) -> Category {
        self.category
    }

    /// The failure code of a follow-up (a job that is submitted together with the result of another job) that could not be stored as submitted.
    pub const FOLLOW_UP_REFUSED: &'static str = "follow_up_refused";

    /// Creates the failure of a follow-up (a job that is submitted together with the result of another job) that cannot be stored.
    pub fn of_follow_up(why: &str) -> Failure {
        let message = format!("the parent job submitted this job, but the store refused it: {why}");
        Failure::new(Category::Rejected, Some(Failure::FOLLOW_UP_REFUSED), &message)
    }

    /// Returns the failure's own code, such as a status or an SQLSTATE.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Creates a failure of unknown category from a message.
impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::new(Category::Unknown, None, message)
    }
}

/// Creates a failure of unknown category from a message.
impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::from(message.as_str())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.category)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

pub(crate) fn clean(text: &str, bytes_max: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(bytes_max));
    for character in text.chars().filter(|character| *character != '\0') {
        if kept.len() + character.len_utf8() > bytes_max {
            break;
        }
        kept.push(character);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{Failure, Limits};
    use rewheel::{Category, Class};

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let failure = Failure::new(Category::Unknown, None, &"é".repeat(5_000));
        assert_eq!(failure.message().len(), Limits::MESSAGE_BYTES_MAX);
        let odd = Failure::new(Category::Unknown, None, &format!("x{}", "é".repeat(5_000)));
        assert_eq!(odd.message().len(), Limits::MESSAGE_BYTES_MAX - 1);
    }

    #[test]
    fn an_empty_code_is_none() {
        assert_eq!(Failure::new(Category::Io, Some("\0"), "").code(), None);
        assert_eq!(Failure::new(Category::Io, None, "").to_string(), "io");
    }

    #[test]
    fn a_class_brings_its_code() {
        let failure = Failure::of(&Class::of_status(503), "busy");
        assert_eq!((failure.category(), failure.code()), (Category::Transient, Some("503")));
    }
}
