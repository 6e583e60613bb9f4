//! A config value that is never printed.

use rewheel_core::MASKED;
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A URL or a secret from the config. Debug and Display mask it.
///
/// ```
/// use rewheel_server::notify::SecretText;
///
/// assert_eq!(SecretText::from("hunter2").to_string(), "***");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Returns the text itself. Never print it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> SecretText {
        SecretText(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SecretText, D::Error> {
        String::deserialize(from).map(SecretText)
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASKED)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASKED)
    }
}
