//! What an engine knows about the dependency of a kind.

use crate::engine::Engine;
use rewheel::BreakerState;
use rewheel_core::KindName;

/// The state of a kind's dependency, as one engine sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindHealth {
    /// State of the circuit breaker that counts the attempts of this engine. `None` if the kind has no breaker, or an operator
    /// has decided whether its jobs run.
    pub breaker: Option<BreakerState>,
    /// Whether the kind is parked: no engine starts its jobs, except for one probe at a time.
    pub parked: bool,
    /// Whether this engine has the right to probe the parked kind.
    pub probing: bool,
}

impl Engine {
    /// Returns what this engine knows about the dependency of a kind. Reads nothing from the store.
    ///
    /// ```
    /// # use rewheel::BreakerState;
    /// # use rewheel_engine::{BreakerSettings, Engine, KindName, KindSettings, Report};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let breaker = Some(BreakerSettings::default());
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .kind("charge-card", KindSettings { breaker, ..KindSettings::default() })
    ///     .raw_handler("charge-card", |_| async { Report::Done })
    ///     .start()
    ///     .await?;
    /// let health = engine.health(&KindName::parse("charge-card")?);
    /// assert_eq!((health.breaker, health.parked), (Some(BreakerState::Closed), false));
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self, kind: &KindName) -> KindHealth {
        self.shared().admission.health(kind)
    }
}
