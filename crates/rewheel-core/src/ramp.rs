//! Ramp: how many attempts of a kind may run at the same time after an outage.

/// The number of attempts that may run while a kind recovers.
///
/// Starts at one. Each success adds one, which doubles the number in the time of one attempt. Each failure takes one away: half would
/// be too much, because where one attempt in ten fails normally, a ramp that is halved each time stays at about twenty.
///
/// ```
/// use rewheel_core::Ramp;
///
/// let ramp = Ramp::START;
/// assert!(ramp.allows(0) && !ramp.allows(1));
/// let ramp = ramp.succeeded(3).unwrap().succeeded(3).unwrap();
/// assert_eq!((ramp.limit(), ramp.failed().limit()), (3, 2));
/// assert_eq!(ramp.succeeded(3), None, "it ends when there is one attempt for each slot");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp(usize);

impl Ramp {
    /// One attempt.
    pub const START: Ramp = Ramp(1);

    /// Returns how many attempts may run.
    pub const fn limit(self) -> usize {
        self.0
    }

    /// Returns whether one more attempt may run beside `running` others.
    pub const fn allows(self, running: usize) -> bool {
        running < self.0
    }

    /// Continues after a success. `None`: the ramp has ended, because it allows an attempt for each of the `slots`.
    #[must_use]
    pub const fn succeeded(self, slots: usize) -> Option<Ramp> {
        if self.0 < slots { Some(Ramp(self.0 + 1)) } else { None }
    }

    /// Continues after a failure. The ramp grows while fewer attempts fail than succeed.
    #[must_use]
    pub const fn failed(self) -> Ramp {
        if self.0 > 1 { Ramp(self.0 - 1) } else { self }
    }
}
