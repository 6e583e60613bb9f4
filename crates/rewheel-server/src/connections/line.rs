//! The state of one client connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use tokio::sync::Notify;

/// What is left of a request's body and read with one look, so that the connection can go on. For more the connection is closed, and
/// the client must know: it would send its next request there.
const OWED_BYTES_MAX: u64 = 8 * 1024;

/// What a connection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A request is awaited, or on its way.
    Head = 0,
    /// A request was answered; another may come.
    Idle = 1,
    /// A request is being answered.
    Busy = 2,
}

/// Why a connection is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is not.
    Not = 0,
    /// The head of the request took too long.
    SlowHead = 1,
    /// No request came for too long.
    Idle = 2,
    /// The client does not read.
    Stalled = 3,
    /// Somebody else needs the room.
    Crowded = 4,
}

/// One connection, as the ticker sees it. Times are in ticks.
#[derive(Debug, Default)]
pub(super) struct Line {
    now: Arc<AtomicU32>,
    phase: AtomicU8,
    since: AtomicU32,
    /// When a write first had to wait, plus one; 0 while none does.
    stalled: AtomicU32,
    /// Whether the client has sent something that nobody has read.
    is_owed: AtomicBool,
    /// Whether that is so much that the connection cannot serve another request.
    is_last: AtomicBool,
    /// Whether anything of the awaited request has come.
    has_begun: AtomicBool,
    cut: AtomicU8,
    notice: Notify,
}

impl Line {
    pub(super) fn new(now: Arc<AtomicU32>) -> Line {
        let since = AtomicU32::new(now.load(Ordering::Relaxed));
        Line { now, since, ..Line::default() }
    }

    /// A connection that nobody looks after.
    pub(super) fn apart() -> Arc<Line> {
        Arc::new(Line::default())
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

    /// Notes that something came.
    pub(super) fn received(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Notes that a request is complete but for its body.
    pub(super) fn busy(&self) {
        self.enter(Phase::Busy);
    }

    /// Notes that a request is answered.
    pub(super) fn answered(&self) {
        self.has_begun.store(false, Ordering::Relaxed);
        self.enter(Phase::Idle);
    }

    /// Notes that a write waits, or goes on.
    pub(super) fn writes(&self, is_pending: bool) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if !is_pending && stalled != 0 {
            self.stalled.store(0, Ordering::Relaxed);
            if self.phase() == Phase::Idle {
                // A long answer is on its way still: its reader is slow, not idle.
                self.enter(Phase::Idle);
            }
        } else if is_pending && stalled == 0 {
            let now = self.now.load(Ordering::Relaxed);
            self.stalled.store(now.wrapping_add(1).max(1), Ordering::Relaxed);
        }
    }

    /// Notes that the client is answered before it has said everything, and how many bytes it has left to say, if known.
    pub(super) fn owes(&self, bytes: Option<u64>) {
        self.is_owed.store(true, Ordering::Relaxed);
        if bytes.is_none_or(|bytes| bytes > OWED_BYTES_MAX) {
            self.is_last.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the answer is the last one on this connection.
    pub(super) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Relaxed)
    }

    pub(super) fn is_owed(&self) -> bool {
        self.is_owed.load(Ordering::Relaxed)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// How many ticks it has been in its phase.
    pub(super) fn waited(&self) -> u32 {
        self.now.load(Ordering::Relaxed).wrapping_sub(self.since.load(Ordering::Relaxed))
    }

    /// How many ticks a write has waited.
    pub(super) fn stalled(&self) -> Option<u32> {
        let stalled = self.stalled.load(Ordering::Relaxed);
        let now = self.now.load(Ordering::Relaxed).wrapping_add(1);
        (stalled != 0).then(|| now.wrapping_sub(stalled))
    }

    /// Cuts the connection off. Only the first reason counts.
    pub(super) fn cut(&self, why: Cut) {
        let not = Cut::Not as u8;
        if self.cut.compare_exchange(not, why as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.notice.notify_one();
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed) != Cut::Not as u8
    }

    /// Waits until the connection is cut off, and says why.
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
