//! The content of a notification.

use super::event::{Event, Severity};
use rewheel_core::{HolderId, JobId, KindName, Tenant, Timestamp, redact};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Enough of an error to recognize it; the job holds the rest.
const ERROR_CHARS_MAX: usize = 4_000;

/// A notification with its data.
///
/// A notice may contain text from clients and called services. Before a notifier gets the notice,
/// secrets are removed and long texts are cut.
///
/// ```
/// use rewheel_engine::{KindName, Timestamp};
/// use rewheel_engine::notify::{Event, Notice, Severity};
///
/// let kind = KindName::parse("charge-card")?;
/// let notice = Notice::kind_parked(&kind, Timestamp::from_millis(0), "9 of 10 attempts failed");
/// assert_eq!((notice.event, notice.severity), (Event::KindParked, Severity::Warning));
/// assert_eq!(notice.text, "kind charge-card is parked (its circuit breaker is open), and its jobs wait: 9 of 10 attempts failed");
/// # Ok::<(), rewheel_engine::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The event.
    pub event: Event,
    /// The severity.
    pub severity: Severity,
    /// When the event happened: by the store's clock if known, otherwise by this node's clock.
    pub at: Timestamp,
    /// What happened, as a sentence.
    pub text: String,
    /// The holder that sends it.
    pub holder: Option<HolderId>,
    /// The kind.
    pub kind: Option<KindName>,
    /// The tenant.
    pub tenant: Option<Tenant>,
    /// The job, if the notice is about a job.
    pub job: Option<JobId>,
    /// Number of used attempts.
    pub attempt: Option<u32>,
    /// The reason, as a word for programs.
    pub reason: Option<Cow<'static, str>>,
    /// The last error: at most 4,000 characters, without secrets.
    pub error: Option<String>,
    /// Other data.
    pub attributes: BTreeMap<Cow<'static, str>, String>,
    /// For a summary: the number of summarized notices.
    pub more: Option<u64>,
}

impl Notice {
    /// Creates a notice with the default severity of its event. Set further data in the fields.
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

    /// Creates a notice that a kind was parked.
    pub fn kind_parked(kind: &KindName, at: Timestamp, why: &str) -> Notice {
        let text = format!(
            "kind {kind} is parked (its circuit breaker is open), and its jobs wait: {why}"
        );
        Notice { kind: Some(kind.clone()), ..Notice::new(Event::KindParked, at, text) }
    }

    /// Creates a notice that a kind was unparked.
    pub fn kind_unparked(kind: &KindName, at: Timestamp, why: &str) -> Notice {
        let text = format!("kind {kind} is no longer parked, and its jobs can start: {why}");
        Notice { kind: Some(kind.clone()), ..Notice::new(Event::KindUnparked, at, text) }
    }

    /// Creates a test notice.
    pub fn test(at: Timestamp) -> Notice {
        Notice::new(Event::Test, at, "test notification from Rewheel")
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Notice {
        self.attributes.insert(Cow::Borrowed(name), value.to_string());
        self
    }

    /// Removes secrets first, then cuts long texts: in the other order a part of a secret could
    /// stay unrecognized.
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

    /// A secret at the position of the cut is removed completely.
    #[test]
    fn a_secret_across_the_cut_leaves_nothing() {
        let at = Timestamp::from_millis(0);
        let text = format!("{} token=abcdefgh", "x".repeat(3_990));
        let notice = Notice::new(Event::EngineError, at, text).made_fit();
        assert!(!notice.text.contains("abc"), "{}", &notice.text[3_980..]);
    }
}
