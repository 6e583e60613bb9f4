//! The permit for one call through a circuit breaker.

use super::Outcome;
use super::machine::{Machine, Token};
use crate::classify::{Class, Classify};
use std::sync::Arc;

/// The permit for one call, which must report its result.
///
/// If the permit is dropped without a report, by a cancelled future or a panic, the call counts as
/// neither success nor failure, unless the breaker
/// [counts dropped calls](super::CircuitBreakerBuilder::count_dropped_calls). If it was a probe, its slot is free again.
#[must_use = "record the result: if a permit is dropped without a record, the breaker counts neither a success nor a failure"]
#[derive(Debug)]
pub struct Permit<'a> {
    machine: &'a Machine,
    token: Option<Token>,
}

/// A [`Permit`] that keeps its breaker alive. Created by
/// [`acquire_owned`](super::CircuitBreaker::acquire_owned).
#[must_use = "record the result: if a permit is dropped without a record, the breaker counts neither a success nor a failure"]
#[derive(Debug)]
pub struct OwnedPermit {
    machine: Arc<Machine>,
    token: Option<Token>,
}

impl<'a> Permit<'a> {
    #[inline]
    pub(super) fn new(machine: &'a Machine, token: Token) -> Permit<'a> {
        Permit { machine, token: Some(token) }
    }
}

impl OwnedPermit {
    pub(super) fn new(machine: Arc<Machine>, token: Token) -> OwnedPermit {
        OwnedPermit { machine, token: Some(token) }
    }
}

impl OwnedPermit {
    /// Remembers for how long the called service asked callers to stay away. Before a failure is recorded, which may open the breaker.
    pub(crate) fn hear(&self, delay: std::time::Duration) {
        self.machine.hear(delay);
    }

    /// As [`record`](OwnedPermit::record), for a result that is classified already.
    pub(crate) fn finish_class(self, class: Option<&Class>) {
        let outcome = class.and_then(|class| self.machine.judge_class(class));
        self.finish(outcome);
    }
}

macro_rules! recording {
    ($permit:ty) => {
        impl $permit {
            /// Classifies a result, and records it as a success or a failure of the dependency.
            #[inline]
            pub fn record<T, E: Classify>(self, result: &Result<T, E>) {
                let outcome = self.machine.judge(result);
                self.finish(outcome);
            }

            /// Records a success.
            #[inline]
            pub fn success(self) {
                self.finish(Some(Outcome::Success));
            }

            /// Records a failure.
            #[inline]
            pub fn failure(self) {
                self.finish(Some(Outcome::Failure));
            }

            #[inline]
            pub(crate) fn finish(mut self, outcome: Option<Outcome>) {
                if let Some(token) = self.token.take() {
                    self.machine.record(token, outcome);
                }
            }
        }

        impl Drop for $permit {
            #[inline]
            fn drop(&mut self) {
                if let Some(token) = self.token.take() {
                    self.machine.record_dropped(token);
                }
            }
        }
    };
}

recording!(Permit<'_>);
recording!(OwnedPermit);
