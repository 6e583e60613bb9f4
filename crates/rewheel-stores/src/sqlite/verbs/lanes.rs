//! Shows where work is due.

use super::super::error::Trouble;
use super::super::row::{instant, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use rewheel_core::KindName;
use rewheel_core::store::{LaneHead, LanesDue};
use std::time::Duration;

/// What was found, of all kinds.
pub(in super::super) struct Due {
    heads: Vec<LaneHead>,
    all_seen: bool,
    next_in: Option<Duration>,
}

impl Due {
    pub(in super::super) fn of(self, kinds: &[KindName], limit: usize) -> LanesDue {
        LanesDue::new(self.heads, kinds, limit, self.all_seen, self.next_in)
    }
}

pub(in super::super) fn lanes_due(
    tx: &mut Transaction<'_, '_>,
    horizon: Duration,
    limit: usize,
) -> Result<Due, Trouble> {
    let until = tx.now.plus(horizon).as_millis();
    let jobs_max = (limit as u64).saturating_mul(LanesDue::JOBS_PER_LANE as u64);
    let (mut heads, mut jobs) = (Vec::new(), 0);
    {
        let statement = tx.sql(include_str!("../sql/lanes_due.sql"))?;
        let mut statement = statement.get();
        let mut rows = statement.query((until, count(jobs_max)))?;
        while let Some(row) = rows.next()? {
            jobs += unsigned(row.get(2)?);
            let (lane, due) = (tx.lane_of(row.get(0)?)?, instant(row.get(1)?));
            heads.push(LaneHead { lane, due, due_in: due.since(tx.now) });
        }
    }
    let next = tx.find(include_str!("../sql/next_due.sql"), [until], |row| row.get(0))?;
    let next_in = next.map(|next| instant(next).since(tx.now));
    Ok(Due { heads, all_seen: jobs < jobs_max, next_in })
}
