//! Reads which lanes have scheduled jobs, and when their first jobs are due.

use super::super::error::VerbError;
use super::super::floors::Reading;
use super::super::lanes::{Names, lane_at};
use super::super::row::{count, instant, tenant_text};
use super::super::session::{Param, Session};
use super::super::statements::{LANE_HEADS, LANES, LANES_LOOK};
use super::unreadable::readable;
use rewheel_core::store::LaneHead;
use rewheel_core::{KindName, Lane, Timestamp};
use tokio_postgres::Row;

/// Reads a page of the lanes of these kinds that have scheduled jobs.
pub(in super::super) async fn lanes(
    session: &Session<'_>,
    kinds: &[KindName],
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<LaneHead>, VerbError> {
    let mut kinds: Vec<&str> = kinds.iter().map(KindName::as_str).collect();
    let mut behind: (String, String, i32, i32) = match after {
        Some(lane) => {
            let tenant = tenant_text(lane.tenant.as_ref());
            let (priority, shard) = (lane.priority.get(), lane.shard.get());
            (lane.kind.as_str().into(), tenant.into(), priority.into(), shard.into())
        }
        None => (String::new(), String::new(), -1, 0),
    };
    let floors = &session.shared.lanes.floors;
    let reading = floors.all();
    let mut heads = Vec::new();
    loop {
        let left = limit - heads.len();
        // The server would look for each kind that comes before the page.
        kinds.retain(|kind| *kind >= behind.0.as_str());
        let params: [Param<'_>; 9] = [
            &session.offset(),
            &kinds,
            &behind.0,
            &behind.1,
            &behind.2,
            &count(left as u64),
            &reading.lanes,
            &reading.from,
            &behind.3,
        ];
        let rows = session.query(&LANES, &params).await?;
        read_heads(session, &reading, &rows, &mut heads)?;
        // Callers take a page that is not full for the last one: lanes that cannot be read must not make one look so.
        match rows.last() {
            Some(last) if rows.len() == left && heads.len() < limit => {
                behind = (last.try_get(2)?, last.try_get(3)?, last.try_get(4)?, last.try_get(5)?);
            }
            Some(_) | None => break,
        }
    }
    Ok(heads)
}

/// Reads the lanes that have scheduled jobs.
pub(in super::super) async fn lane_heads(
    session: &Session<'_>,
    lanes: &[Lane],
) -> Result<Vec<LaneHead>, VerbError> {
    let names = Names::of(lanes);
    let [kinds, tenants, priorities, shards] = names.params();
    let reading = session.shared.lanes.floors.all();
    let offset = session.offset();
    let params: [Param<'_>; 7] =
        [&offset, kinds, tenants, priorities, shards, &reading.lanes, &reading.from];
    let rows = session.query(&LANE_HEADS, &params).await?;
    let mut heads = Vec::with_capacity(rows.len());
    read_heads(session, &reading, &rows, &mut heads)?;
    Ok(heads)
}

fn read_heads(
    session: &Session<'_>,
    reading: &Reading,
    rows: &[Row],
    heads: &mut Vec<LaneHead>,
) -> Result<(), VerbError> {
    let lanes = &session.shared.lanes;
    for row in rows {
        let (now, number) = (instant(row.try_get(0)?), row.try_get(1)?);
        let due = row.try_get::<_, Option<i64>>(6)?.map(instant);
        let from = reading.start_of(number);
        // Jobs that are due later are not claimed soon: such a lane needs no floor.
        if from != i64::MIN || due.is_some_and(|due| due <= now) {
            let until = due.unwrap_or(Timestamp::from_millis(i64::MAX));
            lanes.floors.emptied(reading, (number, from), until, now);
        }
        let Some(due) = due else { continue };
        // The jobs of a lane that cannot be read wait; those of others go on.
        let Some(lane) = readable(lane_at(row, 2))? else { continue };
        lanes.check(&lane, number);
        heads.push(LaneHead { lane, due, due_in: due.since(now) });
    }
    Ok(())
}

/// Looks for jobs below the floors.
pub(in super::super) async fn look_below(
    session: &Session<'_>,
    reading: &Reading,
) -> Result<(), VerbError> {
    let rows = session.query(&LANES_LOOK, &[&reading.lanes, &reading.from]).await?;
    let found: Result<Vec<(i32, i64)>, VerbError> =
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect();
    let (shared, found) = (session.shared, found?);
    shared.lanes.floors.looked(reading, &found);
    if !found.is_empty() {
        shared.woken.wake(shared.lanes.report(found.into_iter().map(|(lane, _)| lane)));
    }
    Ok(())
}
