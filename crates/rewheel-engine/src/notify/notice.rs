//! What people are told.

use super::event::{Event, Severity};
use rewheel_core::{HolderId, JobId, KindName, Tenant, Timestamp, redact};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Enough of an error for a person to know which one it is; the rest is with the job.
const ERROR_CHARS_MAX: usize = 4_000;

/// One thing that somebody should know, with what is known about it.
///
/// Whoever makes one may put texts of others into it: secrets in them are taken out, and what is
/// too long is cut, before a notifier sees it.
///
/// ```
/// use rewheel_engine::{KindName, Timestamp};
/// use rewheel_engine::notify::{Event, Notice, Severity};
///
/// let kind = KindName::parse("charge-card")?;
/// let notice = Notice::kind_parked(&kind, Timestamp::from_millis(0), "9 of 10 attempts failed");
/// assert_eq!((notice.event, notice.severity), (Event::KindParked, Severity::Warning));
/// assert_eq!(notice.text, "kind charge-card is parked: 9 of 10 attempts failed");
/// # Ok::<(), rewheel_engine::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub event: Event,
    /// How urgent it is.
    pub severity: Severity,
    /// When it happened: by the store's clock where the store said, else by this node's.
    pub at: Timestamp,
    /// What happened, in a sentence.
    pub text: String,
    /// Who tells it.
    pub holder: Option<HolderId>,
    /// Of which kind.
    pub kind: Option<KindName>,
    /// On whose behalf.
    pub tenant: Option<Tenant>,
    /// Which job, where it is about one.
    pub job: Option<JobId>,
    /// How many attempts it had used up.
    pub attempt: Option<u32>,
    /// Why, in a word that programs understand.
    pub reason: Option<Cow<'static, str>>,
    /// What finally went wrong: at most 4,000 characters, without secrets.
    pub error: Option<String>,
    /// What else is known.
    pub attributes: BTreeMap<Cow<'static, str>, String>,
    /// For a summary: how many notices it stands for.
    pub more: Option<u64>,
}

impl Notice {
    /// Says that something happened, as urgent as its event usually is. What else is known is
    /// written into the fields.
    pub fn new(event: Event, at: Timestamp, text: impl Into<String>) -> Notice {
        Notice {
            event,
            severity: event.severity(),
            at,
            text: text.into(),
            holder: None,
            kind: None,
            tenant: None,
            job: None,
            attempt: None,
            reason: None,
            error: None,
            attributes: BTreeMap::new(),
            more: None,
        }
    }

    /// Says that nobody claims a kind until a probe succeeds.
    pub fn kind_parked(kind: &KindName, at: Timestamp, why: &str) -> Notice {
        let text = format!("kind {kind} is parked: {why}");
        Notice { kind: Some(kind.clone()), ..Notice::new(Event::KindParked, at, text) }
    }

    /// Says that a kind is claimed again.
    pub fn kind_unparked(kind: &KindName, at: Timestamp, why: &str) -> Notice {
        let text = format!("kind {kind} is claimed again: {why}");
        Notice { kind: Some(kind.clone()), ..Notice::new(Event::KindUnparked, at, text) }
    }

    /// Says nothing but that it arrived.
    pub fn test(at: Timestamp) -> Notice {
        Notice::new(Event::Test, at, "test notification from Rewheel")
    }

    /// Returns it with another fact.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Notice {
        self.attributes.insert(Cow::Borrowed(name), value.to_string());
        self
    }

    /// Takes out what is secret, then what is too long: the other way around half a secret could
    /// stay unrecognised.
    pub(crate) fn made_fit(mut self) -> Notice {
        let fit = |text: &str| cut(redact(text));
        self.text = fit(&self.text);
        self.error = self.error.as_deref().map(fit);
        for value in self.attributes.values_mut() {
            *value = fit(value);
        }
        self
    }
}

fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(ERROR_CHARS_MAX) {
        text.truncate(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Event, Notice};
    use rewheel_core::Timestamp;

    #[test]
    fn a_long_error_is_cut_at_4000_characters_and_not_within_one() {
        let at = Timestamp::from_millis(0);
        let error = Some("é".repeat(4_001));
        let notice = Notice { error, ..Notice::new(Event::EngineError, at, "x") }.made_fit();
        assert_eq!(notice.error, Some("é".repeat(4_000)));
    }

    #[test]
    fn no_text_of_a_notice_keeps_a_secret() {
        let at = Timestamp::from_millis(0);
        let secret = "password=hunter2";
        let error = Some(secret.to_owned());
        let notice = Notice { error, ..Notice::new(Event::EngineError, at, secret) };
        let notice = notice.with("headers", secret).made_fit();
        assert!(!format!("{notice:?}").contains("hunter2"), "{notice:?}");
    }

    /// A secret that only the cut would have split is gone as a whole.
    #[test]
    fn a_secret_across_the_cut_leaves_nothing() {
        let at = Timestamp::from_millis(0);
        let text = format!("{} token=abcdefgh", "x".repeat(3_990));
        let notice = Notice::new(Event::EngineError, at, text).made_fit();
        assert!(!notice.text.contains("abc"), "{}", &notice.text[3_980..]);
    }
}
