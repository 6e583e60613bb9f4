//! The source of the time in an id.

use rewheel_core::Timestamp;

/// The source of the time in an id. It only orders ids; nothing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdTime {
    /// This machine's clock: later ids sort later, which keeps indexes compact.
    Machine,
    /// None: the same random numbers give the same ids.
    None,
}

impl IdTime {
    pub(crate) fn now(self) -> Timestamp {
        match self {
            IdTime::None => Timestamp::from_millis(0),
            IdTime::Machine => {
                #[expect(clippy::disallowed_methods, reason = "the time in an id decides nothing")]
                let now = std::time::SystemTime::now();
                let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0))
            }
        }
    }
}
