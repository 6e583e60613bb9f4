//! Notifies operators, mainly of dead letters.
//!
//! A [`Notifier`] delivers a [`Notice`] to operators. An engine has any number of them, each with
//! its own [`Route`] that selects notices, its own queue, its own retries and a window that limits
//! the number of notices. Notices above this limit are counted in a summary when the window ends.
//! A notifier that hangs or fails does not affect the engine.
//!
//! Notices are best effort, except for dead letters: the store records which dead letters have not
//! been announced. Holders announce a dead letter again until every matching notifier has accepted it.
//!
//! ```
//! use rewheel_engine::Engine;
//! use rewheel_engine::notify::{Event, Notice, Notifier, NotifyError, Route};
//!
//! struct Pager;
//!
//! #[async_trait::async_trait]
//! impl Notifier for Pager {
//!     async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
//!         println!("{}: {}", notice.severity, notice.text);
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dead_letters = Route { events: vec![Event::DeadLetter], ..Route::default() };
//! let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
//!     .notifier("pager", dead_letters, Pager)
//!     .start()
//!     .await?;
//! assert_eq!(engine.notify_counts()[0].sent, 0);
//! # Ok(())
//! # }
//! ```

mod event;
mod notice;
mod route;
mod settings;
mod gate;
mod letter_job;
mod channel;
mod inbox;
mod turn;
mod dead_letters;
mod sources;

pub use self::channel::NotifyCounts;
pub use self::event::{Event, Severity, UnknownEvent, UnknownSeverity};
pub use self::notice::Notice;
pub use self::route::Route;
pub use self::settings::NotifySettings;

pub(crate) use self::inbox::{Inbox, Notifying, Telling, finish};

use async_trait::async_trait;
use rewheel::{Category, Class, Classify, Verdict};
use std::sync::Arc;

/// Delivers notices.
///
/// Each call is one attempt with a timeout: when the timeout has passed, the call is
/// dropped. A failed attempt is repeated a few times if the error says that a retry may help.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Delivers a notice, and returns once it is accepted.
    ///
    /// # Errors
    /// Fails with the reason, and whether a retry can help.
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError>;
}

#[async_trait]
impl<T: Notifier + ?Sized> Notifier for Arc<T> {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        (**self).notify(notice).await
    }
}

/// Error: a notice was not delivered.
///
/// ```
/// use rewheel_engine::notify::NotifyError;
///
/// assert_eq!(NotifyError::retry("503: busy").to_string(), "503: busy");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotifyError {
    /// Whether a retry can help.
    pub verdict: Verdict,
    /// The reason.
    pub message: String,
}

impl NotifyError {
    /// A retry may help.
    pub fn retry(message: impl Into<String>) -> NotifyError {
        NotifyError { verdict: Verdict::Retry, message: message.into() }
    }

    /// A retry cannot help.
    pub fn stop(message: impl Into<String>) -> NotifyError {
        NotifyError { verdict: Verdict::Stop, message: message.into() }
    }
}

impl Classify for NotifyError {
    fn classify(&self) -> Class {
        // If a notifier reports its own failure as done, the notice was still not delivered.
        match self.verdict {
            Verdict::Done | Verdict::Stop => Class::stop(Category::Rejected),
            Verdict::Retry => Class::retry(Category::Transient),
            Verdict::RetryAfter(delay) => Class::retry_after(Category::Throttled, delay),
        }
    }
}
