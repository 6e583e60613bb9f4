//! Custom backoffs, registered by name.

use super::custom::{Custom, CustomBackoff};
use super::{Backoff, BackoffError, text};
use crate::presets;
use std::collections::BTreeMap;

/// Backoffs by name, so that a config file can contain `backoff = "payday"`.
///
/// Contains the presets from the start. A [custom](Backoff::custom) backoff, which is code, can be
/// named in text through this registry.
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
    /// A registry is filled by code and config, not by traffic: more entries than this are a leak.
    const NAMES_MAX: usize = 10_000;

    /// Creates a registry with the presets.
    pub fn new() -> Backoffs {
        let named = presets::RETRIES
            .iter()
            .map(|(name, retry)| ((*name).to_owned(), retry.backoff()))
            .collect();
        Backoffs { named }
    }

    /// Adds a backoff, or replaces the one with this name.
    ///
    /// # Errors
    /// Fails if the name is not 1 to 64 lowercase letters, digits, `_`, `-` and `.`, or if it is a
    /// word of the text form such as `fixed`. Also fails if a custom backoff is registered under a
    /// name that is not its own: it is always printed with its own name.
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

    /// Adds a backoff that is code and may keep state, or replaces the backoff with this name.
    /// Returns the backoff, with full jitter and delays up to 30 seconds, unless
    /// [`max`](Backoff::max) and [`jitter`](Backoff::jitter) say otherwise.
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

    /// Returns the backoff with this name.
    pub fn get(&self, name: &str) -> Option<Backoff> {
        self.named.get(name).copied()
    }

    /// Parses a name, a name with its own `min`, `max` and `jitter`, or any other text form.
    ///
    /// # Errors
    /// Fails with the reason and the known names.
    pub fn parse(&self, text: &str) -> Result<Backoff, BackoffError> {
        match text.split_whitespace().next().and_then(|name| self.get(name)) {
            Some(backoff) => text::parse_options(backoff, text),
            None => {
                let names: Vec<_> = self.named.keys().map(String::as_str).collect();
                text::parse(text, &names.join(", "))
            }
        }
    }

    /// As [`parse`](Backoffs::parse), but also accepts the name of a custom backoff that is not registered in this process,
    /// because another process may have stored it. See [`Backoff::unknown_name`].
    ///
    /// # Errors
    /// Fails for a text that is neither a backoff nor a name with options.
    pub fn parse_stored(&self, text: &str) -> Result<Backoff, BackoffError> {
        self.parse(text).or_else(|error| match text.split_whitespace().next() {
            Some(name) if is_name(name) && !text::SHAPES.contains(&name) => {
                let unknown = Backoff::of_custom(Custom::unknown(name));
                text::parse_options(unknown, text).map_err(|_| error)
            }
            Some(_) | None => Err(error),
        })
    }

    /// Finds the code of a backoff that was [stored](Backoffs::parse_stored) by its name; its limits and jitter stay. Returns
    /// any other backoff as it is, and `None` for a name that is not registered.
    ///
    /// ```
    /// use rewheel::{Backoff, Backoffs, Jitter, Past, Random, seconds};
    ///
    /// let stored = Backoff::from_stored("hourly max 2h jitter none")?;
    /// let mut backoffs = Backoffs::new();
    /// assert_eq!(backoffs.resolve(stored), None);
    /// backoffs.register_custom("hourly", |_: &Past| seconds(3_600))?;
    /// let hourly = backoffs.resolve(stored).unwrap();
    /// assert_eq!(hourly.delay(1, &Random::thread()), seconds(3_600));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve(&self, backoff: Backoff) -> Option<Backoff> {
        match backoff.unknown_name() {
            Some(name) => self.get(name).map(|known| Backoff { growth: known.growth, ..backoff }),
            None => Some(backoff),
        }
    }
}

/// Longer names do not fit the columns and labels that contain them.
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

/// Error: the backoff cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is not allowed.
    #[error(
        "`{0}` is not a valid backoff name: use 1 to 64 characters (a-z, 0-9, `_`, `-`, `.`), and not \
         the name of a built-in backoff such as `fixed`"
    )]
    Invalid(String),
    /// A custom backoff already has a name.
    #[error("a custom backoff must be registered under its own name: use `{own}`, not `{name}`")]
    NotItsOwn {
        /// The requested name.
        name: String,
        /// Its own name.
        own: &'static str,
    },
    /// The registry is full.
    #[error("too many backoffs are registered: the limit is 10000")]
    TooMany,
}
