//! Packs a breaker's state into one machine word, so that a call reads it with one load.

use super::BreakerState;

/// Generation (29 bits), phase (3 bits), failures in a row (32 bits).
///
/// The generation increases with every phase change. A result with another generation is from
/// before the change. The generation's parity changes exactly when the breaker becomes closed; it
/// selects the window, so that each closed period uses another window than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    Open,
    HalfOpen,
    /// Held open manually.
    Isolated,
    /// Held closed manually.
    ForcedClosed,
}

const PHASE_SHIFT: u32 = 32;
const GENERATION_SHIFT: u32 = 35;

impl Word {
    pub(super) const fn new(generation: u32, phase: Phase) -> Word {
        Word((generation as u64) << GENERATION_SHIFT | (phase as u64) << PHASE_SHIFT)
    }

    #[inline]
    pub(super) const fn phase(self) -> Phase {
        match (self.0 >> PHASE_SHIFT) & 0b111 {
            0 => Phase::Closed,
            1 => Phase::Open,
            2 => Phase::HalfOpen,
            3 => Phase::Isolated,
            _ => Phase::ForcedClosed,
        }
    }

    /// Returns generation and phase, which a permit stores.
    #[inline]
    pub(super) const fn epoch(self) -> u64 {
        self.0 >> PHASE_SHIFT
    }

    pub(super) const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    /// Returns the word after a change to this phase.
    pub(super) const fn next(self, phase: Phase) -> Word {
        let mask = u32::MAX >> (GENERATION_SHIFT - PHASE_SHIFT);
        let step = match phase {
            Phase::Closed => 1,
            Phase::Open | Phase::HalfOpen | Phase::Isolated | Phase::ForcedClosed => 2,
        };
        Word::new(self.generation().wrapping_add(step) & mask, phase)
    }

    #[inline]
    pub(super) const fn failures(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(super) const fn with_failures(self, failures: u32) -> Word {
        Word(self.0 & !(u32::MAX as u64) | failures as u64)
    }
}

impl Phase {
    pub(super) const fn state(self) -> BreakerState {
        match self {
            Phase::Closed | Phase::ForcedClosed => BreakerState::Closed,
            Phase::Open | Phase::Isolated => BreakerState::Open,
            Phase::HalfOpen => BreakerState::HalfOpen,
        }
    }

    pub(super) const fn is_forced(self) -> bool {
        match self {
            Phase::Isolated | Phase::ForcedClosed => true,
            Phase::Closed | Phase::Open | Phase::HalfOpen => false,
        }
    }
}
