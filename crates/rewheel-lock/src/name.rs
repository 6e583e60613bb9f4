//! The name of a lock.

use crate::error::LockError;
use std::fmt;

/// The name of a lock, checked.
///
/// ```
/// use rewheel_lock::LockName;
///
/// assert_eq!(LockName::parse("invoice-42")?.as_str(), "invoice-42");
/// let error = LockName::parse("").unwrap_err();
/// assert_eq!(error.to_string(), "invalid `name`: it is empty; use 1 to 255 bytes without control characters");
/// # Ok::<_, rewheel_lock::LockError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(String);

impl LockName {
    /// Fits an indexed column of every SQL server.
    pub const BYTES_MAX: usize = 255;

    /// Checks a name.
    ///
    /// # Errors
    /// [`LockError::Invalid`] says what is wrong with it.
    pub fn parse(raw: &str) -> Result<LockName, LockError> {
        let problem = if raw.is_empty() {
            "it is empty".to_owned()
        } else if raw.len() > LockName::BYTES_MAX {
            format!("it has {} bytes", raw.len())
        } else if let Some(control) = raw.chars().find(|c| c.is_control()) {
            format!("it contains the control character {control:?}")
        } else {
            return Ok(LockName(raw.to_owned()));
        };
        let advice = "use 1 to 255 bytes without control characters";
        Err(LockError::Invalid { argument: "name", problem: format!("{problem}; {advice}") })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::LockName;

    #[track_caller]
    fn wrong(raw: &str, expected: &str) {
        let text = LockName::parse(raw).unwrap_err().to_string();
        assert!(text.starts_with("invalid `name`: ") && text.contains(expected), "{text}");
    }

    #[test]
    fn what_is_wrong_with_a_name_is_said() {
        wrong("", "is empty");
        wrong(&"ä".repeat(128), "has 256 bytes");
        wrong("a\nb", "'\\n'");
        wrong("a\0b", "'\\0'");
        wrong("a\u{85}b", "'\\u{85}'");
        assert!(LockName::parse(&"a".repeat(255)).is_ok());
        assert!(LockName::parse("Rechnung 42 {ä}:*").is_ok());
    }
}
