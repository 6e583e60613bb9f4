//! Simulates retry storms: shows what a policy does to clients and to the service they call, before production.
//!
//! Clients call a service that has a limited capacity and fails for a time. They run the library's real code on a virtual clock:
//! two minutes of 500 calls per second take at most one second, and the same seed gives the same result.
//!
//! ```
//! use rewheel::{Pipeline, Retry, RetryBudget, millis, seconds};
//! use rewheel_lab::{Dependency, Fault, Storm};
//!
//! // It can serve 1,000 calls per second, gets 400, and hangs for five seconds.
//! let storm = Storm::new(Dependency::new(1_000, millis(20)), 400)
//!     .clients(20)
//!     .lasts(seconds(60))
//!     .outage(seconds(10)..seconds(15), Fault::Hangs)
//!     .unwrap();
//!
//! let eager = Retry::fixed(millis(100)).attempts_max(6);
//! let hammered = storm.run(|_| Pipeline::new().retry(eager).attempt_timeout(seconds(1)));
//! let spared = storm.run(|client| {
//!     let budget = RetryBudget::ratio(0.1).floor_per_second(1).clock(client.clock()).build();
//!     Pipeline::new().retry(eager).retry_budget(&budget).attempt_timeout(seconds(1))
//! });
//!
//! // After the outage, the retries of the first fleet keep the dependency overloaded.
//! assert_eq!(hammered.recovered_after(), None);
//! assert!(spared.recovered_after().unwrap() < seconds(30));
//! ```

#![warn(missing_docs)]

mod chance;
mod latency;
mod world;
mod dependency;
mod outcome;
mod policy;
mod storm;
mod contention;
mod recovery;
mod delays;
mod report;
mod scenario;
mod history;
mod what_if;
mod plot;
mod svg;
mod html;

pub use self::contention::Contention;
pub use self::delays::{Delay, delays};
pub use self::dependency::{Dependency, Fault};
pub use self::history::{History, HistoryError, PastAttempt, PastEnd, PastJob, PastResult};
pub use self::html::html;
pub use self::latency::{Latency, LatencyError};
pub use self::outcome::{Outcome, Second};
pub use self::plot::{bar, curve, range};
pub use self::policy::{Policy, PolicyError};
pub use self::recovery::{Parking, Recovery};
pub use self::report::{Recovered, Report, Row};
pub use self::scenario::{Scenario, compare};
pub use self::storm::{Client, ClientPolicies, Storm, StormError};
pub use self::what_if::{Fit, what_if};

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
