//! Counts client connections, and chooses which to close.

use super::connection::{Connection, Cut, Phase};
use crate::config::LimitSettings;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of connections beyond the limit that are closing while their replacements are
/// already open.
const LEAVING_MAX: usize = 256;

/// The open connections.
#[derive(Debug)]
pub(super) struct Registry {
    now: Arc<AtomicU32>,
    connections_max: usize,
    head_ticks: u32,
    idle_ticks: u32,
    write_ticks: u32,
    entered: AtomicU64,
    lines: Mutex<HashMap<u64, Arc<Connection>>>,
}

/// The slot of a connection. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot {
    room: Arc<Registry>,
    number: u64,
    pub(super) line: Arc<Connection>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.room.lines().remove(&self.number);
    }
}

impl Registry {
    pub(super) fn new(limits: &LimitSettings, tick: Duration) -> Registry {
        let ticks = |limit: Duration| {
            let ticks = limit.as_nanos().div_ceil(tick.as_nanos().max(1));
            u32::try_from(ticks).unwrap_or(u32::MAX / 2)
        };
        Registry {
            now: Arc::new(AtomicU32::new(0)),
            connections_max: limits.connections_max,
            head_ticks: ticks(limits.head_timeout),
            idle_ticks: ticks(limits.idle_timeout),
            write_ticks: ticks(limits.write_timeout),
            entered: AtomicU64::new(0),
            lines: Mutex::new(HashMap::new()),
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a new connection a slot, if necessary by closing an idle one.
    pub(super) fn enter(self: &Arc<Registry>) -> Option<Slot> {
        let mut lines = self.lines();
        // Connections being closed need a moment to send their last response.
        let is_full = lines.len() >= self.connections_max;
        if is_full && (lines.len() >= self.connections_max + LEAVING_MAX || !cut_one(&lines)) {
            return None;
        }
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        let line = Arc::new(Connection::new(Arc::clone(&self.now)));
        lines.insert(number, Arc::clone(&line));
        drop(lines);
        Some(Slot { room: Arc::clone(self), number, line })
    }

    /// Closes the connection that has been idle longest. Returns whether there was one.
    pub(super) fn cut_one(&self) -> bool {
        cut_one(&self.lines())
    }

    /// Advances the tick, and closes connections that exceeded a timeout.
    pub(super) fn tick(&self) {
        self.now.fetch_add(1, Ordering::Relaxed);
        for line in self.lines().values() {
            let waited = line.waited();
            let (limit, why) = match line.phase() {
                Phase::Head => (self.head_ticks, Cut::SlowHead),
                Phase::Idle => (self.idle_ticks, Cut::Idle),
                Phase::Busy => (u32::MAX, Cut::Not),
            };
            if waited > limit {
                line.cut(why);
            }
            if line.stalled().is_some_and(|stalled| stalled > self.write_ticks) {
                line.cut(Cut::Stalled);
            }
        }
    }
}

/// Connections that never finished a request come first, then those that have waited longest.
fn cut_one(lines: &HashMap<u64, Arc<Connection>>) -> bool {
    // A connection with an unread response is not idle.
    let is_done = |line: &Arc<Connection>| line.phase() != Phase::Busy && line.stalled().is_none();
    let waits = |line: &&Arc<Connection>| is_done(line) && !line.is_cut();
    let rank = |line: &&Arc<Connection>| (line.phase() == Phase::Head, line.waited());
    let longest = lines.values().filter(waits).max_by_key(rank);
    longest.inspect(|line| line.cut(Cut::Crowded)).is_some()
}

#[cfg(test)]
mod tests {
    use super::Registry;
    use crate::config::LimitSettings;
    use rewheel::seconds;
    use std::sync::Arc;

    /// A room for one connection, with an idle timeout of ten ticks and a write timeout of five.
    fn room() -> Arc<Registry> {
        let (idle_timeout, write_timeout) = (seconds(10), seconds(5));
        let limits = LimitSettings {
            connections_max: 1,
            idle_timeout,
            write_timeout,
            ..LimitSettings::default()
        };
        Arc::new(Registry::new(&limits, seconds(1)))
    }

    #[test]
    fn a_slow_reader_of_a_long_answer_is_not_idle() {
        let room = room();
        let place = room.enter().unwrap();
        place.line.answered();
        for _ in 0..10 {
            place.line.writes(true);
            (0..4).for_each(|_| room.tick());
            place.line.writes(false);
        }
        assert!(!place.line.is_cut(), "it read something every four ticks");
        (0..11).for_each(|_| room.tick());
        assert!(place.line.is_cut(), "it has read all, and asks for nothing");
    }

    #[test]
    fn no_connection_replaces_one_that_still_reads() {
        let room = room();
        let place = room.enter().unwrap();
        place.line.answered();
        place.line.writes(true);
        assert!(room.enter().is_none());
        place.line.writes(false);
        assert!(room.enter().is_some());
    }
}
