//! Counts the memory that request bodies use, and reserves a part of it for small bodies.

use super::SMALL_BYTES_MAX;
use crate::problem::{Code, Problem};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of a small body together with the copy that is parsed from it.
const SMALL_HELD_MAX: usize = 2 * SMALL_BYTES_MAX;

/// This fraction (1/8) is reserved for small bodies. With the default of 256 MiB it holds 256 bodies of 64 KiB with their copies, or many
/// thousands of ordinary submits; large bodies still have seven eighths.
const SMALL_PART: usize = 8;

/// The memory for all request bodies: `server.limits.bodies_bytes_max`.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    bytes_max: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    /// The part of `all` that large bodies use.
    large: usize,
}

impl BodyMemory {
    pub(crate) fn new(bytes_max: usize) -> BodyMemory {
        BodyMemory { bytes_max, used: Mutex::default() }
    }

    /// Changes the share of one request from `from` to `to` bytes. Fails without an effect if the share grows beyond the limit.
    fn change(&self, from: usize, to: usize) -> Result<(), Problem> {
        let mut used = lock(&self.used);
        let all = used.all - from + to;
        let large = used.large - large_part(from) + large_part(to);
        let large_max = self.bytes_max - self.bytes_max / SMALL_PART;
        if to > from && (all > self.bytes_max || (large_part(to) > 0 && large > large_max)) {
            let detail = "the memory for request bodies is full";
            return Err(Problem::new(Code::Overloaded, detail).hint(
                "send the request again in a moment; the limit is server.limits.bodies_bytes_max",
            ));
        }
        *used = Used { all, large };
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        lock(&self.used).all
    }
}

fn large_part(bytes: usize) -> usize {
    if bytes > SMALL_HELD_MAX { bytes } else { 0 }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The share of one request. Dropping the last clone frees it.
#[derive(Clone, Debug)]
pub(in crate::rest) struct Share(Arc<Held>);

#[derive(Debug)]
struct Held {
    room: Arc<BodyMemory>,
    bytes: Mutex<usize>,
}

impl Share {
    pub(in crate::rest) fn new(room: Arc<BodyMemory>) -> Share {
        Share(Arc::new(Held { room, bytes: Mutex::default() }))
    }

    /// Sets the share to this many bytes. A smaller value always succeeds.
    pub(super) fn resize(&self, bytes: usize) -> Result<(), Problem> {
        let mut held = lock(&self.0.bytes);
        self.0.room.change(*held, bytes)?;
        *held = bytes;
        Ok(())
    }

    /// Reduces the share to this many bytes, if it is larger.
    pub(super) fn shrink(&self, bytes: usize) {
        let mut held = lock(&self.0.bytes);
        if bytes < *held && self.0.room.change(*held, bytes).is_ok() {
            *held = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = *lock(&self.bytes);
        // A smaller share cannot fail.
        let _ = self.room.change(held, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, BodyMemory, SMALL_HELD_MAX, Share};

    const MIB: usize = 1024 * 1024;

    #[test]
    fn large_bodies_leave_room_for_small_ones() {
        let room = Arc::new(BodyMemory::new(8 * MIB));
        let share = || Share::new(Arc::clone(&room));
        let large: Vec<Share> = (0..7).map(|_| share()).collect();
        assert!(large.iter().all(|share| share.resize(MIB).is_ok()));
        assert!(share().resize(SMALL_HELD_MAX + 1).is_err());
        let small: Vec<Share> = (0..8).map(|_| share()).collect();
        assert!(small.iter().all(|share| share.resize(SMALL_HELD_MAX).is_ok()));
        assert_eq!(room.used(), 8 * MIB);
        assert!(share().resize(1).is_err());
        // A small body that grows counts as large with all its bytes.
        assert!(small[0].resize(SMALL_HELD_MAX + 1).is_err());
        drop(large);
        assert!(small[0].resize(7 * MIB).is_ok());
        drop(small);
        assert_eq!(room.used(), 0);
    }

    #[test]
    fn small_bodies_may_use_all_of_it() {
        let room = Arc::new(BodyMemory::new(10_000));
        let share = Share::new(Arc::clone(&room));
        assert!(share.resize(10_000).is_ok());
        assert!(share.resize(10_001).is_err());
        share.shrink(20_000);
        assert_eq!(room.used(), 10_000);
        share.shrink(300);
        assert_eq!(room.used(), 300);
        drop(share.clone());
        assert_eq!(room.used(), 300);
        drop(share);
        assert_eq!(room.used(), 0);
    }
}
