//! Finds the wheel slot of a timer.

use super::Tick;

/// One for each byte of a tick.
const LEVELS: usize = 8;

/// One for each value of a byte.
const SLOTS: usize = 256;

/// The slot of timers that agree with the wheel in all bytes above the level's, and with each other in that byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    level: u8,
    byte: u8,
}

impl Slot {
    /// Number of slots of all levels.
    pub(super) const COUNT: usize = LEVELS * SLOTS;

    /// Returns the slot of a timer, given the time of the wheel, which is not later.
    ///
    /// It depends on the first byte in which the two differ. So nothing needs to be stored to find a timer again: while the wheel
    /// turns, this byte stays the first to differ until the wheel reaches the slot.
    #[inline]
    pub(super) fn of(at: Tick, now: Tick) -> Slot {
        debug_assert!(now <= at, "a timer in the past has no slot: now={now:?} at={at:?}");
        let (at, now) = (at.as_millis(), now.as_millis());
        // The lowest bit changes only the level of zero, which would have none.
        let level = ((at ^ now) | 1).ilog2() / u8::BITS;
        Slot { level: level as u8, byte: (at >> (level * u8::BITS)) as u8 }
    }

    /// Returns a number below [`Slot::COUNT`].
    #[inline]
    pub(super) fn number(self) -> usize {
        usize::from(self.level) * SLOTS + usize::from(self.byte)
    }

    /// Returns when the wheel reaches the slot.
    #[inline]
    pub(super) fn start(self, now: Tick) -> Tick {
        let shift = u32::from(self.level) * u8::BITS;
        let above = now.as_millis() & u64::MAX.checked_shl(shift + u8::BITS).unwrap_or(0);
        Tick::from_millis(above | u64::from(self.byte) << shift)
    }

    /// Returns whether all timers of the slot have the same tick.
    #[inline]
    pub(super) fn is_one_tick(self) -> bool {
        self.level == 0
    }
}

/// One bit for each slot that contains timers.
#[derive(Debug)]
pub(super) struct Occupied {
    /// One bit for each level that contains timers.
    levels: u8,
    slots: [[u64; SLOTS / 64]; LEVELS],
}

impl Occupied {
    pub(super) const NONE: Occupied = Occupied { levels: 0, slots: [[0; SLOTS / 64]; LEVELS] };

    pub(super) fn add(&mut self, slot: Slot) {
        self.levels |= 1 << slot.level;
        self.slots[usize::from(slot.level)][usize::from(slot.byte / 64)] |= 1 << (slot.byte % 64);
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        let slots = &mut self.slots[usize::from(slot.level)];
        slots[usize::from(slot.byte / 64)] &= !(1 << (slot.byte % 64));
        if *slots == [0; SLOTS / 64] {
            self.levels &= !(1 << slot.level);
        }
    }

    /// Returns the slot of the next timers.
    ///
    /// All timers of a level are in the future, in the same slot of the level above as the wheel. So lower levels are earlier,
    /// and within a level lower bytes are: nothing wraps around.
    #[inline]
    pub(super) fn first(&self) -> Option<Slot> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as u8;
        let words = &self.slots[usize::from(level)];
        let word = words.iter().position(|&word| word != 0)?;
        Some(Slot { level, byte: word as u8 * 64 + words[word].trailing_zeros() as u8 })
    }
}
