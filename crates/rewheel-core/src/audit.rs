//! Audit log entries: who changed what.

mod transition;

pub use self::transition::{AuditNote, Transition};

use crate::id::JobId;
use crate::limits::Limits;
use crate::name::KindName;
use crate::redact::redact;
use crate::timestamp::Timestamp;
use std::fmt;
use std::sync::Arc;

/// The author of a change: a token, a command or the engine itself.
///
/// ```
/// use rewheel_core::Actor;
///
/// assert_eq!(Actor::new("token:ops\n").as_str(), "token:ops");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(Arc<str>);

impl Actor {
    /// Creates an actor. Cuts the text at the size limit and removes control characters.
    pub fn new(who: &str) -> Actor {
        let mut kept = String::new();
        for character in who.chars().filter(|character| !character.is_control()) {
            if kept.len() + character.len_utf8() > Limits::ACTOR_BYTES_MAX {
                break;
            }
            kept.push(character);
        }
        Actor(Arc::from(kept))
    }

    /// Returns the actor for a holder, by its display name.
    pub fn of_holder(name: &str) -> Actor {
        Actor::new(&format!("holder:{name}"))
    }

    /// Returns the actor for the engine, where the holder does not matter.
    pub fn engine() -> Actor {
        Actor::new("engine")
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Sequence number of the entry in its store.
    pub seq: u64,
    /// When the change was made, by the store's clock.
    pub at: Timestamp,
    /// Who made the change.
    pub who: Actor,
    /// What was done, as a verb.
    pub what: String,
    /// The changed job.
    pub job: Option<JobId>,
    /// The changed kind, or the kind of the changed job.
    pub kind: Option<KindName>,
    /// The changed values before the change.
    pub before: AuditFields,
    /// The changed values after the change.
    pub after: AuditFields,
}

/// Names and values of what a change affected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFields(Vec<(String, Option<String>)>);

impl AuditFields {
    /// Adds a value; `None` means not set. Leaves out values that look like secrets, because some readers of the log must not see secrets.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl fmt::Display>) -> AuditFields {
        let value = value.map(|value| {
            let mut text = redact(&value.to_string());
            if let Some((cut, _)) =
                text.char_indices().find(|(at, c)| at + c.len_utf8() > Limits::MESSAGE_BYTES_MAX)
            {
                text.truncate(cut);
            }
            text
        });
        self.0.push((name.to_owned(), value));
        self
    }

    /// Returns the values in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Option<String>)> for AuditFields {
    fn from_iter<T: IntoIterator<Item = (String, Option<String>)>>(facts: T) -> AuditFields {
        AuditFields(facts.into_iter().collect())
    }
}
