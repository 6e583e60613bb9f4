//! Lanes that have something to claim now.

use super::LaneHead;
use std::time::Duration;

/// Lanes whose first job is due within a horizon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanesDue {
    /// The lane whose job is due first comes first.
    pub heads: Vec<LaneHead>,
    /// Whether these are all. Where there is much to do they are not: [`WorkStore::lanes`](super::WorkStore::lanes) then finds
    /// the others.
    pub complete: bool,
    /// How long until the first job behind the horizon is due, of whatever kind; `None` if there is none.
    pub next_in: Option<Duration>,
}

impl LanesDue {
    /// Due jobs that are looked at for each lane that may be returned: of a lane that many jobs wait in, most are passed over.
    pub const JOBS_PER_LANE: usize = 4;

    /// Puts them in order, and keeps so many. `all_seen` says whether every due job was looked at.
    pub fn new(
        mut heads: Vec<LaneHead>,
        limit: usize,
        all_seen: bool,
        next_in: Option<Duration>,
    ) -> LanesDue {
        heads.sort_by(|one, other| (one.due, &one.lane).cmp(&(other.due, &other.lane)));
        let complete = all_seen && heads.len() <= limit;
        heads.truncate(limit);
        LanesDue { heads, complete, next_in }
    }
}
