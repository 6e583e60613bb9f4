//! Hierarchical timing wheel that holds jobs until they are due.
//!
//! A [`Wheel`] keeps each value until its given time. A wheel has no clock: time is an argument, so the owner decides
//! what a [`Tick`] means, sleeps until [`Wheel::next_expiry`], and takes due values with [`Wheel::expire`].
//!
//! ```
//! use rewheel_engine::wheel::{Tick, Wheel};
//!
//! let mut wheel = Wheel::new(1_000);
//! let charge = wheel.insert(Tick::from_millis(250), "charge the card")?;
//! wheel.insert(Tick::from_millis(40), "send the receipt")?;
//! wheel.insert(Tick::from_millis(90), "ask for a review")?;
//!
//! assert_eq!(wheel.next_expiry(), Some(Tick::from_millis(40)));
//! assert_eq!(wheel.cancel(charge), Some("charge the card"));
//! let due: Vec<_> = wheel.expire(Tick::from_millis(300)).collect();
//! assert_eq!(due, ["send the receipt", "ask for a review"]);
//! # Ok::<(), rewheel_engine::wheel::Full<&str>>(())
//! ```
//!
//! # How it works
//!
//! A tick is eight bytes, and each byte has a level of 256 slots. A timer waits in the level of the first byte in which its tick
//! differs from the wheel's, in the slot with the number of this byte:
//!
//! | level | a slot spans | the level spans |
//! | --- | --- | --- |
//! | 0 | 1 ms | 256 ms |
//! | 1 | 256 ms | 65 s |
//! | 2 | 65 s | 4.7 h |
//! | 3 | 4.7 h | 50 days |
//! | 4 | 50 days | 35 years |
//! | 5 to 7 | 35 years and more | the whole range of 64 bits |
//!
//! When the wheel reaches the start of a slot, the timers in it agree with the wheel in one more byte: they move to lower levels,
//! until they are due at level 0. So a timer moves at most seven times; most timers of less than a minute move once. One bit per
//! slot marks occupied slots, so a year without timers is passed in one step.
//!
//! Timers are stored in a slab; a slot lists their indexes, many per cache line. Memory access dominates the cost: these indexes
//! can be fetched in parallel, while a linked list must load one timer to find the next.

mod tick;
mod level;
mod list;
mod slab;
#[cfg(test)]
mod tests;

pub use self::tick::Tick;

use std::error::Error;
use std::fmt;
use std::iter::FusedIterator;

use self::level::Slot;
use self::list::Lists;
use self::slab::{Slab, Waiting};

/// Holds values until they are due.
///
/// All methods take constant time; [`expire`](Wheel::expire) does so for each timer that it moves or returns. All memory is
/// allocated when the wheel is created: no timer waits while a million others are copied into a larger allocation.
pub struct Wheel<T> {
    /// Everything that is due before this tick has expired.
    now: Tick,
    lists: Lists,
    timers: Slab<T>,
    timers_max: u32,
}

/// Identifies a timer of one wheel, for [`Wheel::cancel`].
///
/// The handle of a timer that has fired or was cancelled is invalid; it is not reused until its entry in the wheel was used four
/// billion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timer {
    index: u32,
    generation: u32,
}

impl<T> Wheel<T> {
    /// The maximum number of timers of a wheel. They take more than 6 GB, yet their indexes and positions stay far below the
    /// range of 32 bits.
    pub const TIMERS_MAX: u32 = 1 << 28;

    /// Creates a wheel for this many timers, at tick zero. It takes 20 bytes per timer, an `Option` of its value, and half a
    /// megabyte in addition. Most systems provide memory only once it is used.
    ///
    /// # Panics
    /// Panics if the number is more than [`Wheel::TIMERS_MAX`].
    pub fn new(timers_max: u32) -> Wheel<T> {
        assert!(timers_max <= Wheel::<T>::TIMERS_MAX, "a wheel has at most 2^28 timers");
        Wheel {
            now: Tick::ZERO,
            lists: Lists::new(timers_max),
            timers: Slab::new(timers_max),
            timers_max,
        }
    }

    /// Adds a value that is due at `at`. If that has passed, the next [`expire`](Wheel::expire) returns it, as if it were due
    /// now.
    ///
    /// # Errors
    /// Returns the value if the wheel is full.
    pub fn insert(&mut self, at: Tick, value: T) -> Result<Timer, Full<T>> {
        if self.timers.len() >= self.timers_max {
            return Err(Full { value, timers_max: self.timers_max });
        }
        let at = at.max(self.now);
        let index = self.timers.next_index();
        let place = self.lists.push(Slot::of(at, self.now), index);
        let generation = self.timers.insert(Waiting { at, place, value });
        Ok(Timer { index, generation })
    }

    /// Removes a value before it is due. Returns `None` if the timer has fired or was cancelled.
    ///
    /// A timer of another wheel is not recognized as such.
    pub fn cancel(&mut self, timer: Timer) -> Option<T> {
        let Timer { index, generation } = timer;
        let Waiting { at, place, value } = self.timers.remove_if(index, generation)?;
        if let Some(moved) = self.lists.remove(Slot::of(at, self.now), place) {
            self.timers.set_place(moved, place);
        }
        Some(value)
    }

    /// Returns the values that are due at `now`, ordered by tick; the order within one tick is unspecified.
    ///
    /// The iterator is lazy: values that are not taken stay in the wheel and come next time. So a caller can take only what it
    /// can handle. Values inserted while another value is handled are not part of this run, however soon they are due: they wait
    /// for the next call.
    ///
    /// Time does not go back: an earlier `now` counts as the previous one.
    ///
    /// ```
    /// use rewheel_engine::wheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(10);
    /// for name in ["first", "second", "third"] {
    ///     wheel.insert(Tick::from_millis(name.len() as u64), name)?;
    /// }
    /// let now = Tick::from_millis(1_000);
    /// assert_eq!(wheel.expire(now).take(2).count(), 2);
    /// assert_eq!(wheel.expire(now).collect::<Vec<_>>(), ["second"]);
    /// # Ok::<(), rewheel_engine::wheel::Full<&str>>(())
    /// ```
    #[must_use = "nothing expires unless it is asked for"]
    pub fn expire(&mut self, now: Tick) -> Expire<'_, T> {
        Expire { until: now.max(self.now), wheel: self }
    }

    /// Returns a tick that is not after the next timer's; `None` if the wheel is empty.
    ///
    /// It is exact for a timer that shares all but the last byte of its tick with the time of the wheel, so for at most the last
    /// 256 ms. Otherwise it is the time when the timer moves to a lower level. A caller that sleeps until then, and calls
    /// [`expire`](Wheel::expire), wakes at most seven times without a value, for any delay. It is never before the time of the
    /// wheel.
    ///
    /// ```
    /// use rewheel_engine::wheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(1);
    /// wheel.insert(Tick::from_millis(1_000), "a second later")?;
    /// let sooner = wheel.next_expiry().expect("something waits");
    /// assert_eq!(sooner, Tick::from_millis(768));
    /// assert_eq!(wheel.expire(sooner).count(), 0);
    /// assert_eq!(wheel.next_expiry(), Some(Tick::from_millis(1_000)));
    /// # Ok::<(), rewheel_engine::wheel::Full<&str>>(())
    /// ```
    pub fn next_expiry(&self) -> Option<Tick> {
        self.lists.first_occupied().map(|slot| slot.start(self.now))
    }

    /// Returns the number of timers.
    pub fn len(&self) -> usize {
        self.timers.len() as usize
    }

    /// Returns whether there are no timers.
    pub fn is_empty(&self) -> bool {
        self.timers.len() == 0
    }

    /// Returns the allocated capacities.
    #[cfg(test)]
    fn allocated(&self) -> [usize; 3] {
        let [chunks, next] = self.lists.allocated();
        [chunks, next, self.timers.allocated()]
    }

    fn pop(&mut self, until: Tick) -> Option<T> {
        loop {
            // Due timers are at level 0. Until that slot is empty, no search is needed.
            if let Some(index) = self.lists.pop(Slot::of(self.now, self.now)) {
                return Some(self.timers.remove(index));
            }
            let Some(slot) = self.lists.first_occupied() else { break };
            let start = slot.start(self.now);
            if start > until {
                break;
            }
            // Nothing is due in between, so all other timers keep their slots.
            self.now = start;
            if !slot.is_one_tick() {
                self.cascade(slot);
            }
        }
        self.now = until;
        None
    }

    /// Moves the timers of a slot that the wheel has reached to their new slots.
    fn cascade(&mut self, slot: Slot) {
        let Wheel { now, lists, timers, .. } = self;
        lists.drain(slot, |lists, index| {
            let place = lists.push(Slot::of(timers.at(index), *now), index);
            timers.set_place(index, place);
        });
    }
}

/// Iterator over due values: see [`Wheel::expire`].
pub struct Expire<'a, T> {
    until: Tick,
    wheel: &'a mut Wheel<T>,
}

impl<T> Iterator for Expire<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.wheel.pop(self.until)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.wheel.len()))
    }
}

impl<T> FusedIterator for Expire<'_, T> {}

/// Error: the wheel is full. Contains the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T> {
    value: T,
    timers_max: u32,
}

impl<T> Full<T> {
    /// Returns the value.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wheel is full: {} timers wait", self.timers_max)
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("timers_max", &self.timers_max).finish_non_exhaustive()
    }
}

impl<T> Error for Full<T> {}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wheel { now, timers_max, .. } = self;
        f.debug_struct("Wheel")
            .field("now", now)
            .field("len", &self.len())
            .field("timers_max", timers_max)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Expire<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expire").field("until", &self.until).finish_non_exhaustive()
    }
}
