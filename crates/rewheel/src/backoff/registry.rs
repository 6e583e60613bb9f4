//! Knows backoffs by name.

use super::custom::{Custom, CustomBackoff};
use super::{Backoff, BackoffError, text};
use crate::presets;
use std::collections::BTreeMap;

/// Backoffs by name, so that a config file can say `backoff = "payday"`.
///
/// Knows the presets from the start. This is also how a [custom](Backoff::custom) backoff, which is
/// code, can be named in text.
///
/// ```
/// use rewheel::{Backoff, Backoffs, seconds};
///
/// let mut backoffs = Backoffs::new();
/// backoffs.register("payday", Backoff::fixed(seconds(86_400))).unwrap();
///
/// assert_eq!(backoffs.parse("payday"), Ok(Backoff::fixed(seconds(86_400))));
/// assert_eq!(backoffs.parse("fixed 1s"), Ok(Backoff::fixed(seconds(1))));
/// assert!(backoffs.parse("paydya").unwrap_err().to_string().contains("payday"));
/// ```
#[derive(Clone, Debug)]
pub struct Backoffs {
    named: BTreeMap<String, Backoff>,
}

impl Backoffs {
    /// A registry is filled by code and config, not by traffic: more than this is a leak.
    const NAMES_MAX: usize = 10_000;

    /// Starts with the presets.
    pub fn new() -> Backoffs {
        let named = presets::RETRIES
            .iter()
            .map(|(name, retry)| ((*name).to_owned(), retry.backoff()))
            .collect();
        Backoffs { named }
    }

    /// Adds a backoff, or replaces the one of this name.
    ///
    /// # Errors
    /// Refuses a name that is not lowercase letters, digits, `_`, `-` and `.`, 1 to 64 of them, or
    /// that is a word of the text form; and a custom backoff under another name than its own, by
    /// which it is printed.
    pub fn register(&mut self, name: &str, backoff: Backoff) -> Result<(), NameError> {
        self.check_name(name)?;
        if let Some(own) = backoff.custom_name().filter(|own| *own != name) {
            return Err(NameError::NotItsOwn { name: name.to_owned(), own });
        }
        self.named.insert(name.to_owned(), backoff);
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), NameError> {
        if !is_name(name) || text::SHAPES.contains(&name) {
            return Err(NameError::Invalid(name.to_owned()));
        }
        if self.named.len() >= Backoffs::NAMES_MAX && !self.named.contains_key(name) {
            return Err(NameError::TooMany);
        }
        Ok(())
    }

    /// Adds a backoff that is code and may hold state, or replaces the one of this name. Returns it,
    /// with full jitter and delays up to 30 seconds unless [`max`](Backoff::max) and
    /// [`jitter`](Backoff::jitter) say otherwise.
    ///
    /// A [`Backoff`] can be copied, so the object stays in memory until the process ends. Register
    /// it when the program starts, not for each call.
    ///
    /// # Errors
    /// Rejects a bad name, as [`register`](Backoffs::register) does.
    pub fn register_custom(
        &mut self,
        name: &str,
        delay: impl CustomBackoff + 'static,
    ) -> Result<Backoff, NameError> {
        self.check_name(name)?;
        let backoff = Backoff::of_custom(Custom::object(name, delay));
        self.named.insert(name.to_owned(), backoff);
        Ok(backoff)
    }

    /// Returns the backoff of this name.
    pub fn get(&self, name: &str) -> Option<Backoff> {
        self.named.get(name).copied()
    }

    /// Reads a name, a name with `min`, `max` and `jitter` of its own, or any other text form.
    ///
    /// # Errors
    /// Says what is wrong with the text, and which names are known.
    pub fn parse(&self, text: &str) -> Result<Backoff, BackoffError> {
        match text.split_whitespace().next().and_then(|name| self.get(name)) {
            Some(backoff) => text::parse_options(backoff, text),
            None => {
                let names: Vec<_> = self.named.keys().map(String::as_str).collect();
                text::parse(text, &names.join(", "))
            }
        }
    }
}

/// Longer names do not fit the columns and labels they end up in.
const NAME_BYTES_MAX: usize = 64;

pub(super) const fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        if !matches!(bytes[index], b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.') {
            return false;
        }
        index += 1;
    }
    !bytes.is_empty() && bytes.len() <= NAME_BYTES_MAX
}

impl Default for Backoffs {
    fn default() -> Backoffs {
        Backoffs::new()
    }
}

/// A backoff cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is not allowed.
    #[error(
        "`{0}` cannot name a backoff: use 1 to 64 of a-z, 0-9, `_`, `-`, `.`, and no shape's name"
    )]
    Invalid(String),
    /// A custom backoff has a name already.
    #[error("a custom backoff is registered under its own name, `{own}`, not `{name}`")]
    NotItsOwn {
        /// The name it was to get.
        name: String,
        /// The name it has.
        own: &'static str,
    },
    /// The registry is full.
    #[error("too many backoffs are registered: 10000 is the most")]
    TooMany,
}
