//! Stores the timers of a wheel at stable indexes.

use super::Tick;
use super::list::Place;

/// A timer.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub(super) at: Tick,
    pub(super) place: Place,
    pub(super) value: T,
}

#[derive(Debug)]
struct Entry<T> {
    at: Tick,
    /// In a free entry, the index of the next free one.
    place: Place,
    /// Counts the timers that used this entry, so that an old handle does not match a new timer.
    generation: u32,
    /// `None` if the entry is free.
    value: Option<T>,
}

/// All timers.
#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    /// The first free entry. If there is none, the end of the entries, where the next one will be.
    vacant: u32,
    len: u32,
}

impl<T> Slab<T> {
    pub(super) fn new(timers_max: u32) -> Slab<T> {
        Slab { entries: Vec::with_capacity(timers_max as usize), vacant: 0, len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the index that the next timer gets.
    #[inline]
    pub(super) fn next_index(&self) -> u32 {
        self.vacant
    }

    /// Inserts a timer at the next index. Returns its generation.
    #[inline]
    pub(super) fn insert(&mut self, timer: Waiting<T>) -> u32 {
        let Waiting { at, place, value } = timer;
        self.len += 1;
        if let Some(entry) = self.entries.get_mut(self.vacant as usize) {
            self.vacant = entry.place.0;
            entry.at = at;
            entry.place = place;
            entry.value = Some(value);
            return entry.generation;
        }
        self.entries.push(Entry { at, place, generation: 0, value: Some(value) });
        self.vacant += 1;
        0
    }

    /// Removes a timer that is known to exist.
    #[inline]
    pub(super) fn remove(&mut self, index: u32) -> T {
        let removed = self.vacate(index, |_| true).expect("a list names no vacant entry");
        removed.value
    }

    /// Removes a timer unless it is already gone.
    #[inline]
    pub(super) fn remove_if(&mut self, index: u32, generation: u32) -> Option<Waiting<T>> {
        self.vacate(index, |found| found == generation)
    }

    /// Returns the capacity in timers.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.entries.capacity()
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> Tick {
        self.entries[index as usize].at
    }

    #[inline]
    pub(super) fn set_place(&mut self, index: u32, place: Place) {
        self.entries[index as usize].place = place;
    }

    #[inline]
    fn vacate(&mut self, index: u32, is_meant: impl Fn(u32) -> bool) -> Option<Waiting<T>> {
        let entry = self.entries.get_mut(index as usize)?;
        if !is_meant(entry.generation) {
            return None;
        }
        // A free entry has a generation that no handle has yet, but after four billion timers one might.
        let value = entry.value.take()?;
        let removed = Waiting { at: entry.at, place: entry.place, value };
        entry.generation = entry.generation.wrapping_add(1);
        entry.place = Place(self.vacant);
        self.vacant = index;
        self.len -= 1;
        Some(removed)
    }
}
