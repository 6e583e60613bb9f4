//! Notifies operators, mainly of dead letters.
//!
//! A [`Notifier`] carries a [`Notice`] to somebody. An engine has any number of them, each with a
//! [`Route`] that says what it wants to hear, a queue of its own, retries of its own and a window
//! that bounds how much it is told: what is more than that is summed up when the window ends. None
//! of them can hold up the engine, or fail it; an engine without any does nothing for them.
//!
//! Notices are best effort, except for dead letters: the store remembers which of them nobody has
//! been told of, and any holder tells it, until every notifier that wants it has it.
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
mod channel;
mod desk;
mod turn;
mod letters;
mod sources;

pub use self::channel::NotifyCounts;
pub use self::event::{Event, Severity, UnknownEvent, UnknownSeverity};
pub use self::notice::Notice;
pub use self::route::Route;
pub use self::settings::NotifySettings;

pub(crate) use self::desk::{Desk, Notifying, Telling, finish};

use async_trait::async_trait;
use rewheel::{Category, Class, Classify, Verdict};
use std::sync::Arc;

/// Carries notices to somebody.
///
/// Each call is one attempt, with a time limit: it is dropped when that is over. A failure is
/// tried again a few times where the error says that this may help.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Tells somebody, and returns once they have it.
    ///
    /// # Errors
    /// Says why they do not, and whether trying again can help.
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError>;
}

#[async_trait]
impl<T: Notifier + ?Sized> Notifier for Arc<T> {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        (**self).notify(notice).await
    }
}

/// A notice that did not arrive.
///
/// ```
/// use rewheel_engine::notify::NotifyError;
///
/// assert_eq!(NotifyError::retry("503: busy").to_string(), "503: busy");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotifyError {
    /// Whether trying again can help.
    pub verdict: Verdict,
    /// Why it did not.
    pub message: String,
}

impl NotifyError {
    /// Trying again may help.
    pub fn retry(message: impl Into<String>) -> NotifyError {
        NotifyError { verdict: Verdict::Retry, message: message.into() }
    }

    /// Trying again cannot help.
    pub fn stop(message: impl Into<String>) -> NotifyError {
        NotifyError { verdict: Verdict::Stop, message: message.into() }
    }
}

impl Classify for NotifyError {
    fn classify(&self) -> Class {
        // A notifier that calls its own failure done still did not arrive.
        match self.verdict {
            Verdict::Done | Verdict::Stop => Class::stop(Category::Rejected),
            Verdict::Retry => Class::retry(Category::Transient),
            Verdict::RetryAfter(delay) => Class::retry_after(Category::Throttled, delay),
        }
    }
}
