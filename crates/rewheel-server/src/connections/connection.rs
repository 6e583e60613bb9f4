//! The state of one client connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use tokio::sync::Notify;

/// How many unread body bytes are skipped so that the connection can serve another request. With more the connection is closed, and the
/// response must say so: the client would send its next request there.
const OWED_BYTES_MAX: u64 = 8 * 1024;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for a request, or receiving its head.
    Head = 0,
    /// A request was answered; another may follow.
    Idle = 1,
    /// A request is being answered.
    Busy = 2,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is not closed.
    Not = 0,
    /// The head of the request took too long.
    SlowHead = 1,
    /// No request came for too long.
    Idle = 2,
    /// The client does not read.
    Stalled = 3,
    /// Another client needs its slot.
    Crowded = 4,
}

/// One connection as the ticker sees it. Times are in ticks.
#[derive(Debug, Default)]
pub(super) struct Connection {
    now: Arc<AtomicU32>,
    phase: AtomicU8,
    since: AtomicU32,
    /// When a write first had to wait, plus one; 0 if no write waits.
    stalled: AtomicU32,
    /// Whether the client has sent data that was not read.
    is_owed: AtomicBool,
    /// Whether there is too much unread data to serve another request.
    is_last: AtomicBool,
    /// Whether any byte of the next request has arrived.
    has_begun: AtomicBool,
    cut: AtomicU8,
    notice: Notify,
}

impl Connection {
    pub(super) fn new(now: Arc<AtomicU32>) -> Connection {
        let since = AtomicU32::new(now.load(Ordering::Relaxed));
        Connection { now, since, ..Connection::default() }
    }

    /// A connection that the ticker does not check.
    pub(super) fn apart() -> Arc<Connection> {
        Arc::new(Connection::default())
    }

    fn enter(&self, phase: Phase) {
        self.since.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Head,
            1 => Phase::Idle,
            _ => Phase::Busy,
        }
    }

    /// Records that data arrived.
    pub(super) fn received(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Records that the head of a request is complete.
    pub(super) fn busy(&self) {
        self.enter(Phase::Busy);
    }

    /// Records that a request was answered.
    pub(super) fn answered(&self) {
        self.has_begun.store(false, Ordering::Relaxed);
        self.enter(Phase::Idle);
    }

    /// Records that a write waits or continues.
    pub(super) fn writes(&self, is_pending: bool) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if !is_pending && stalled != 0 {
            self.stalled.store(0, Ordering::Relaxed);
            if self.phase() == Phase::Idle {
                // A long response is still being sent: the client is slow, not idle.
                self.enter(Phase::Idle);
            }
        } else if is_pending && stalled == 0 {
            let now = self.now.load(Ordering::Relaxed);
            self.stalled.store(now.wrapping_add(1).max(1), Ordering::Relaxed);
        }
    }

    /// Records that the response was sent before the whole body was read, and how many bytes remain, if known.
    pub(super) fn owes(&self, bytes: Option<u64>) {
        self.is_owed.store(true, Ordering::Relaxed);
        if bytes.is_none_or(|bytes| bytes > OWED_BYTES_MAX) {
            self.is_last.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether this is the last response on this connection.
    pub(super) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Relaxed)
    }

    pub(super) fn is_owed(&self) -> bool {
        self.is_owed.load(Ordering::Relaxed)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Returns the number of ticks in the current phase.
    pub(super) fn waited(&self) -> u32 {
        self.now.load(Ordering::Relaxed).wrapping_sub(self.since.load(Ordering::Relaxed))
    }

    /// Returns how many ticks a write has been waiting.
    pub(super) fn stalled(&self) -> Option<u32> {
        let stalled = self.stalled.load(Ordering::Relaxed);
        let now = self.now.load(Ordering::Relaxed).wrapping_add(1);
        (stalled != 0).then(|| now.wrapping_sub(stalled))
    }

    /// Closes the connection. Only the first reason counts.
    pub(super) fn cut(&self, why: Cut) {
        let not = Cut::Not as u8;
        if self.cut.compare_exchange(not, why as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.notice.notify_one();
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed) != Cut::Not as u8
    }

    /// Waits until the connection is closed, and returns the reason.
    pub(super) async fn until_cut(&self) -> Cut {
        loop {
            match self.cut.load(Ordering::Relaxed) {
                1 => return Cut::SlowHead,
                2 => return Cut::Idle,
                3 => return Cut::Stalled,
                4 => return Cut::Crowded,
                _ => self.notice.notified().await,
            }
        }
    }
}
