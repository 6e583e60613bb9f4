//! Shows where work is due.

use super::super::error::Trouble;
use super::super::lanes::lane_at;
use super::super::row::{count, instant, millis, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::LANES_DUE;
use rewheel_core::KindName;
use rewheel_core::store::{LaneHead, LanesDue};
use std::time::Duration;

pub(in super::super) async fn lanes_due(
    session: &Session<'_>,
    kinds: &[KindName],
    horizon: Duration,
    limit: usize,
) -> Result<LanesDue, Trouble> {
    let jobs_max = (limit as u64).saturating_mul(LanesDue::JOBS_PER_LANE as u64);
    let params: [Param<'_>; 3] = [&session.offset(), &millis(horizon), &count(jobs_max)];
    let rows = session.query(&LANES_DUE, &params).await?;
    let (mut heads, mut all_seen, mut next_in) = (Vec::new(), true, None);
    for row in &rows {
        let now = instant(row.try_get(0)?);
        all_seen = unsigned(row.try_get(1)?) < jobs_max;
        next_in = row.try_get::<_, Option<i64>>(2)?.map(|due| instant(due).since(now));
        if let Some(due) = row.try_get::<_, Option<i64>>(3)?.map(instant) {
            heads.push(LaneHead { lane: lane_at(row, 4)?, due, due_in: due.since(now) });
        }
    }
    Ok(LanesDue::new(heads, kinds, limit, all_seen, next_in))
}
