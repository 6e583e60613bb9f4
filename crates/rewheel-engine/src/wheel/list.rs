//! Lists of the timers in each slot, packed for the cache.

use super::level::{Occupied, Slot};

/// Four cache lines. A processor prefetches the next timers while it waits for the memory of the current timer, until a branch
/// misprediction; that happens where chunks end, so it should be rare.
const CHUNK_LEN: u32 = 64;

/// The position of a timer in a list: the chunk, then in the lowest bits the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u32);

impl Place {
    /// The last position of an empty list. As in a full chunk, there is no position after it, so that one comparison shows when a
    /// list needs a chunk.
    const NONE: Place = Place(u32::MAX);

    #[inline]
    fn chunk(self) -> u32 {
        self.0 / CHUNK_LEN
    }

    #[inline]
    fn position(self) -> u32 {
        self.0 % CHUNK_LEN
    }
}

/// Indexes of timers. Positions after the last one of a list contain arbitrary values.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk([u32; CHUNK_LEN as usize]);

/// The lists of all slots.
///
/// They are unordered: a removed timer is replaced by the last one of its list. So all chunks of a list except the first are
/// full, and a slot needs only the position of its last timer.
#[derive(Debug)]
pub(super) struct Lists {
    occupied: Occupied,
    /// For each slot, the position of the last timer.
    last: Box<[Place; Slot::COUNT]>,
    chunks: Vec<Chunk>,
    /// For each chunk, the number of the next one in its list, or in the list of free chunks.
    next: Vec<u32>,
    /// The first free chunk.
    vacant: u32,
}

/// A number that no chunk has.
const NO_CHUNK: u32 = Place::NONE.0 / CHUNK_LEN;

impl Lists {
    /// Allocates memory for this many timers, in any distribution.
    pub(super) fn new(timers_max: u32) -> Lists {
        let timers_max = timers_max as usize;
        let chunks_max = timers_max / CHUNK_LEN as usize + timers_max.min(Slot::COUNT);
        Lists {
            occupied: Occupied::NONE,
            last: Box::new([Place::NONE; Slot::COUNT]),
            chunks: Vec::with_capacity(chunks_max),
            next: Vec::with_capacity(chunks_max),
            vacant: NO_CHUNK,
        }
    }

    /// Returns the slot of the next timers.
    #[inline]
    pub(super) fn first_occupied(&self) -> Option<Slot> {
        self.occupied.first()
    }

    #[inline]
    pub(super) fn push(&mut self, slot: Slot, index: u32) -> Place {
        let last = &mut self.last[slot.number()];
        if last.position() == CHUNK_LEN - 1 {
            self.add_chunk(slot);
        } else {
            last.0 += 1;
        }
        let place = self.last[slot.number()];
        *self.at(place) = index;
        place
    }

    /// Removes any timer from a list.
    #[inline]
    pub(super) fn pop(&mut self, slot: Slot) -> Option<u32> {
        let last = self.last[slot.number()];
        if last == Place::NONE {
            return None;
        }
        self.shorten(slot, last);
        Some(*self.at(last))
    }

    /// Removes a timer from its list. Returns the timer that has its position now.
    #[inline]
    pub(super) fn remove(&mut self, slot: Slot, place: Place) -> Option<u32> {
        let last = self.last[slot.number()];
        self.shorten(slot, last);
        if last == place {
            return None;
        }
        let index = *self.at(last);
        *self.at(place) = index;
        Some(index)
    }

    /// Calls `each` with the timers of a slot, which is empty then; they may be added to others.
    pub(super) fn drain(&mut self, slot: Slot, mut each: impl FnMut(&mut Lists, u32)) {
        let mut last = std::mem::replace(&mut self.last[slot.number()], Place::NONE);
        self.occupied.remove(slot);
        while last != Place::NONE {
            let Chunk(indexes) = self.chunks[last.chunk() as usize];
            let len = last.position() as usize + 1;
            last = self.vacate(last.chunk());
            for &index in &indexes[..len] {
                each(self, index);
            }
        }
    }

    /// Returns the capacity in chunks, then in links.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> [usize; 2] {
        [self.chunks.capacity(), self.next.capacity()]
    }

    #[inline]
    fn at(&mut self, place: Place) -> &mut u32 {
        &mut self.chunks[place.chunk() as usize].0[place.position() as usize]
    }

    #[inline]
    fn shorten(&mut self, slot: Slot, last: Place) {
        debug_assert_ne!(last, Place::NONE, "{slot:?} is empty");
        if last.position() == 0 {
            self.remove_chunk(slot);
        } else {
            self.last[slot.number()].0 -= 1;
        }
    }

    /// Adds a chunk with one timer at the front of a list.
    fn add_chunk(&mut self, slot: Slot) {
        let last = &mut self.last[slot.number()];
        let behind = last.chunk();
        let mut chunk = self.vacant;
        if let Some(next) = self.next.get_mut(chunk as usize) {
            self.vacant = std::mem::replace(next, behind);
        } else {
            chunk = self.chunks.len() as u32;
            self.chunks.push(Chunk([0; CHUNK_LEN as usize]));
            self.next.push(behind);
        }
        *last = Place(chunk * CHUNK_LEN);
        self.occupied.add(slot);
    }

    fn remove_chunk(&mut self, slot: Slot) {
        let last = self.vacate(self.last[slot.number()].chunk());
        self.last[slot.number()] = last;
        if last == Place::NONE {
            self.occupied.remove(slot);
        }
    }

    /// Frees a chunk. Returns the last position of the rest of its list.
    fn vacate(&mut self, chunk: u32) -> Place {
        let behind = std::mem::replace(&mut self.next[chunk as usize], self.vacant);
        self.vacant = chunk;
        // The chunks after the first are full; without another chunk, this is no position.
        Place(behind * CHUNK_LEN + (CHUNK_LEN - 1))
    }
}
