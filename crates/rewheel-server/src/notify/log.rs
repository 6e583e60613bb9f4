//! Writes notices to the log of this process.

use async_trait::async_trait;
use rewheel_core::printable;
use rewheel_engine::notify::{Notice, Notifier, NotifyError, Severity};

/// Writes each notice as one log line, at a level that matches its severity.
///
/// ```
/// use rewheel_core::Timestamp;
/// use rewheel_engine::notify::{Notice, Notifier};
/// use rewheel_server::notify::LogNotifier;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert!(LogNotifier.notify(&Notice::test(Timestamp::from_millis(0))).await.is_ok());
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogNotifier;

#[async_trait]
impl Notifier for LogNotifier {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        let Notice { event, attempt, more, .. } = notice;
        // These may contain text of a callee, and a subscriber may print them unescaped.
        let text = printable(&notice.text);
        let reason = notice.reason.as_deref().map(printable);
        let error = notice.error.as_deref().map(printable);
        macro_rules! write {
            ($level:ident) => {
                tracing::$level!(
                    %event,
                    severity = %notice.severity,
                    kind = notice.kind.as_ref().map(tracing::field::display),
                    tenant = notice.tenant.as_ref().map(tracing::field::display),
                    job = notice.job.as_ref().map(tracing::field::display),
                    attempt,
                    reason = reason.as_deref(),
                    error = error.as_deref(),
                    more,
                    "{text}"
                )
            };
        }
        match notice.severity {
            Severity::Info => write!(info),
            Severity::Warning => write!(warn),
            Severity::Error | Severity::Critical => write!(error),
        }
        Ok(())
    }
}
