//! Options of a call besides its policy.
//!
//! Most calls have no options, and should not pay for them: neither in bytes that are copied with
//! the future, nor in branches. So the options are a type parameter.

use super::Retry;
use crate::budget::RetryBudget;
use crate::cancel::{CancelToken, Cancelled};
use crate::clock::Clock;
use crate::observer::Observer;
use crate::random::Random;
use crate::statistics::Statistics;
use std::sync::Arc;

/// The retry policy of a call, with the other options of the call. You do not need to name this type.
///
/// The alignment makes copies of this type fast: wide copies that cross a cache line are slow.
#[derive(Debug)]
#[repr(align(16))]
pub struct Setup<O> {
    pub(super) policy: Retry,
    pub(super) options: O,
}

/// The options of a call besides the policy. You need not name these types.
pub trait Options: sealed::Sealed {
    #[doc(hidden)]
    fn extras(&self) -> Option<&Extras>;
    #[doc(hidden)]
    fn extras_mut(&mut self) -> Option<&mut Extras>;
    #[doc(hidden)]
    fn into_extras(self) -> Extras;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Plain {}
    impl Sealed for super::Extras {}
}

/// No options: no space, and nothing to copy or to drop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Options for Plain {
    #[inline]
    fn extras(&self) -> Option<&Extras> {
        None
    }
    #[inline]
    fn extras_mut(&mut self) -> Option<&mut Extras> {
        None
    }
    fn into_extras(self) -> Extras {
        Extras::NONE
    }
}

impl Options for Extras {
    #[inline]
    fn extras(&self) -> Option<&Extras> {
        Some(self)
    }
    #[inline]
    fn extras_mut(&mut self) -> Option<&mut Extras> {
        Some(self)
    }
    fn into_extras(self) -> Extras {
        self
    }
}

/// The options of a call besides its policy: clock, budget and others.
#[derive(Debug)]
pub struct Extras {
    pub(super) first_attempt: u32,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) budget: Option<RetryBudget>,
    pub(super) statistics: Option<Statistics>,
    pub(super) cancel: Option<Cancelled>,
    pub(super) observer: Option<(&'static str, Arc<dyn Observer>)>,
}

impl Extras {
    const NONE: Extras = Extras {
        first_attempt: 1,
        clock: Clock::system(),
        random: Random::thread(),
        budget: None,
        statistics: None,
        cancel: None,
        observer: None,
    };
}

impl Setup<Plain> {
    #[inline]
    pub(super) const fn new(policy: Retry) -> Setup<Plain> {
        Setup { policy, options: Plain }
    }
}

impl<O: Options> Setup<O> {
    #[inline]
    pub(super) fn extras(&self) -> Option<&Extras> {
        self.options.extras()
    }

    #[inline]
    pub(super) fn first_attempt(&self) -> u32 {
        self.extras().map_or(1, |extras| extras.first_attempt.max(1))
    }

    #[inline]
    pub(super) fn clock(&self) -> &Clock {
        static SYSTEM: Clock = Clock::system();
        self.extras().map_or(&SYSTEM, |extras| &extras.clock)
    }

    pub(super) fn random(&self) -> &Random {
        static THREAD: Random = Random::thread();
        self.extras().map_or(&THREAD, |extras| &extras.random)
    }

    #[inline]
    pub(super) fn budget(&self) -> Option<&RetryBudget> {
        self.extras()?.budget.as_ref()
    }

    #[inline]
    pub(super) fn statistics(&self) -> Option<&Statistics> {
        self.extras()?.statistics.as_ref()
    }

    #[inline]
    pub(super) fn cancel(&self) -> Option<&CancelToken> {
        self.extras()?.cancel.as_ref().map(Cancelled::token)
    }

    #[inline]
    pub(super) fn cancelled(&mut self) -> Option<&mut Cancelled> {
        self.options.extras_mut()?.cancel.as_mut()
    }

    #[inline]
    pub(super) fn observer(&self) -> Option<&(&'static str, Arc<dyn Observer>)> {
        self.extras()?.observer.as_ref()
    }

    pub(crate) fn observed_by(&self) -> Option<(&str, &Arc<dyn Observer>)> {
        self.observer().map(|(name, observer)| (*name, observer))
    }

    /// Returns whether the start time must be known from the start.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.policy.is_timed() || self.clock().is_manual() || self.observer().is_some()
    }
}
