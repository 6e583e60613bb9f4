//! Lanes that have something to claim now.

use super::LaneHead;
use crate::name::KindName;
use std::collections::HashSet;
use std::time::Duration;

/// Up to so many lanes, going through the kinds costs less than a set of them.
const FEW: usize = 8;

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

    /// Puts those of these kinds in order, and keeps so many. `all_seen` says whether every due job was looked at.
    ///
    /// Stores leave the kinds to this: an idle node with thousands of kinds would else name them all each time it looks.
    pub fn new(
        mut heads: Vec<LaneHead>,
        kinds: &[KindName],
        limit: usize,
        all_seen: bool,
        next_in: Option<Duration>,
    ) -> LanesDue {
        if heads.len() > FEW {
            let kinds: HashSet<&KindName> = kinds.iter().collect();
            heads.retain(|head| kinds.contains(&head.lane.kind));
        } else {
            heads.retain(|head| kinds.contains(&head.lane.kind));
        }
        heads.sort_by(|one, other| (one.due, &one.lane).cmp(&(other.due, &other.lane)));
        let complete = all_seen && heads.len() <= limit;
        heads.truncate(limit);
        LanesDue { heads, complete, next_in }
    }
}
