//! Frees jobs of dead holders and overdue jobs, and ends jobs whose deadline has passed.

use super::super::error::VerbError;
use super::super::job_columns::{LEASED, PAUSED, SCHEDULED};
use super::super::row::{bytes, get, id16, maybe_bytes, millis};
use super::super::transaction::Transaction;
use super::audit::Auditor;
use super::ending::{Ending, Live, end, lose_lease};
use super::held::claimed_jobs;
use super::unreadable::Unreadable;
use mysql_async::Value;
use rewheel_core::store::{StoreError, Sweep};
use rewheel_core::{Cause, Failure, HolderId, JobEvent, JobId, Retain, State, Transition};
use std::time::Duration;

/// Claims that are looked at together.
const CLAIMS_READ: usize = 50;

/// What is leased for longer than this leaves the range that claims read.
const LEASED_LONG: Duration = Duration::from_secs(2);

pub(in super::super) async fn sweep(
    tx: &mut Transaction<'_>,
    sweep: &Sweep,
) -> Result<Vec<JobEvent>, VerbError> {
    let Sweep { by, limit, keep, watched } = *sweep;
    if tx.alive(by).await?.is_none() {
        return Err(StoreError::HolderDead(by).into());
    }
    let mut events = Vec::new();
    let mut auditor = Auditor::of_holder(by);
    for Holding { number, holder, alive } in holding(tx).await? {
        let late = if alive {
            let until = tx.now.min(watched.until).as_millis();
            Late { until, hold_max: millis(watched.since), alive }
        } else {
            Late { until: i64::MAX, hold_max: i64::MAX, alive }
        };
        for taken in find_taken(tx, number, &late, limit - events.len()).await? {
            events.push(free(tx, taken, holder, &mut auditor, keep).await?);
        }
        if events.len() >= limit {
            break;
        }
    }
    Ok(events)
}

/// A holder that has jobs.
struct Holding {
    number: i64,
    /// Its id, if it is known.
    holder: Option<HolderId>,
    alive: bool,
}

async fn holding(tx: &mut Transaction<'_>) -> Result<Vec<Holding>, VerbError> {
    let rows = tx.rows(include_str!("../sql/holding.sql"), vec![]).await?;
    let read = |row: &mysql_async::Row| {
        let holder = maybe_bytes(row, 1)?.map(HolderId::from_bytes);
        Ok(Holding { number: get(row, 0)?, holder, alive: get(row, 2)? })
    };
    rows.iter().map(read).collect()
}

/// Which jobs of a holder are taken.
struct Late {
    until: i64,
    hold_max: i64,
    alive: bool,
}

/// A job that is taken from its holder.
struct Taken {
    live: Live,
    started: bool,
}

async fn find_taken(
    tx: &mut Transaction<'_>,
    number: i64,
    late: &Late,
    limit: usize,
) -> Result<Vec<Taken>, VerbError> {
    let (mut taken, mut unreadable, mut offset) = (Vec::new(), Unreadable::default(), 0_usize);
    while taken.len() < limit {
        let values = vec![
            number.into(),
            late.until.into(),
            (CLAIMS_READ as u64).into(),
            (offset as u64).into(),
        ];
        let claims = tx.rows(include_str!("../sql/sweep_claims.sql"), values).await?;
        let mut ids: Vec<JobId> = Vec::new();
        for row in &claims {
            ids.extend(claimed_jobs(&get::<Vec<u8>>(row, 1)?));
        }
        ids.sort_unstable();
        ids.dedup();
        let list: Vec<Value> = ids.iter().map(|id| id16(id.to_bytes())).collect();
        let after = [number.into(), late.until.into(), late.hold_max.into()];
        let rows = tx.run_list(include_str!("../sql/sweep.sql"), &[], &list, &after).await?.rows;
        for row in rows {
            if taken.len() >= limit {
                break;
            }
            let id = JobId::from_bytes(bytes(&row, 0)?);
            let Some(live) = unreadable.check(id, Live::read(&row))? else { continue };
            // The later writes need the lane's name.
            let lane = tx.lane_of(live.lane).await;
            if unreadable.check(id, lane)?.is_some() {
                taken.push(Taken { live, started: get(&row, 16)? });
            }
        }
        if late.alive {
            let taken: Vec<JobId> = taken.iter().map(|taken| taken.live.id).collect();
            raise_overdue(tx, number, &list, &taken).await?;
        }
        offset += CLAIMS_READ;
        if claims.len() < CLAIMS_READ {
            break;
        }
    }
    unreadable.set_aside(tx).await?;
    Ok(taken)
}

/// Writes when the first jobs of claims are overdue: holders have extended some, or kept them for another attempt.
async fn raise_overdue(
    tx: &mut Transaction<'_>,
    number: i64,
    jobs: &[Value],
    taken: &[JobId],
) -> Result<(), VerbError> {
    let taken: Vec<Value> = taken.iter().map(|id| id16(id.to_bytes())).collect();
    let left: Vec<Value> = jobs.iter().filter(|id| !taken.contains(id)).cloned().collect();
    let sql = include_str!("../sql/claim_overdue.sql");
    for row in tx.run_list(sql, &[], &left, &[number.into()]).await?.rows {
        let (claim, overdue): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
        let values = vec![overdue.into(), claim.into(), overdue.into()];
        tx.execute(include_str!("../sql/set_overdue.sql"), values).await?;
    }
    Ok(())
}

async fn free(
    tx: &mut Transaction<'_>,
    taken: Taken,
    holder: Option<HolderId>,
    auditor: &mut Auditor,
    keep: Retain,
) -> Result<JobEvent, VerbError> {
    let Taken { mut live, started } = taken;
    live.takeovers += 1;
    live.takeovers_counted += u32::from(started);
    tx.report_lane(live.lane).await;
    let lane = tx.lane_of(live.lane).await?;
    let kind = vec![lane.kind.as_str().into()];
    let row = tx.find(include_str!("../sql/takeovers_max.sql"), kind).await?;
    let takeovers_max: Option<u32> = row.map(|row| get(&row, 0)).transpose()?;
    let poison = started && takeovers_max.is_some_and(|max| live.takeovers_counted >= max);
    let state = match live.wanted {
        Some(wanted) => wanted.state(),
        None if poison => State::Dead,
        None => State::Scheduled,
    };
    let failure = (state == State::Dead).then(|| Failure::of_takeovers(live.takeovers_counted));
    let failure = failure.as_ref();
    if state.is_live() {
        let mut values = vec![
            if state == State::Scheduled { SCHEDULED } else { PAUSED }.into(),
            live.takeovers.into(),
            live.takeovers_counted.into(),
        ];
        values.extend(live.next_address(tx, state, live.due));
        values.extend(live.address());
        tx.execute(include_str!("../sql/take_over.sql"), values).await?;
        lose_lease(tx, &live).await?;
    } else {
        end(tx, &live, &Ending { state, failure, settled_by: None, keep }).await?;
    }
    let transition = live.transition(Cause::Takeover, State::Leased, state);
    let transition = Transition { holder, wanted: live.wanted, failure, ..transition };
    auditor.note(tx, &live, &transition).await?;
    Ok(JobEvent {
        job: live.id,
        kind: lane.kind,
        from: State::Leased,
        to: state,
        cause: Cause::Takeover,
        holder,
        at: tx.now,
    })
}

/// Moves jobs that a holder has had for long out of the range that claims read: they would pass over them again and again.
pub(in super::super) async fn set_long_leases_aside(
    tx: &mut Transaction<'_>,
    holder: HolderId,
) -> Result<(), VerbError> {
    let Some(number) = tx.number(holder).await? else { return Ok(()) };
    let since = tx.now.as_millis().saturating_sub(millis(LEASED_LONG));
    let sql = include_str!("../sql/aside_claims.sql");
    for row in tx.rows(sql, vec![number.into(), since.into()]).await? {
        let claim: i64 = get(&row, 0)?;
        let jobs: Vec<u8> = get(&row, 2)?;
        let list: Vec<Value> = claimed_jobs(&jobs).map(|id| id16(id.to_bytes())).collect();
        tx.run_list(include_str!("../sql/aside.sql"), &[], &list, &[claim.into()]).await?;
        tx.execute(include_str!("../sql/aside_done.sql"), vec![claim.into()]).await?;
    }
    Ok(())
}

pub(in super::super) async fn deadlines(
    tx: &mut Transaction<'_>,
    grace: Duration,
    limit: usize,
) -> Result<Vec<JobEvent>, VerbError> {
    let now = tx.now.as_millis();
    let times = [now.into(), now.saturating_sub(millis(grace)).into()];
    let mut values = times.to_vec();
    values.push((limit as u64).into());
    let mut ids = Vec::new();
    for row in tx.rows(include_str!("../sql/deadlines.sql"), values).await? {
        ids.push(id16(bytes(&row, 0)?));
    }
    let (mut found, mut unreadable) = (Vec::new(), Unreadable::default());
    let sql = include_str!("../sql/deadlines_lock.sql");
    for row in tx.run_list(sql, &[], &ids, &times).await?.rows {
        let id = JobId::from_bytes(bytes(&row, 0)?);
        let Some(live) = unreadable.check(id, Live::read(&row))? else { continue };
        let lane = tx.lane_of(live.lane).await;
        if unreadable.check(id, lane)?.is_some() {
            found.push(live);
        }
    }
    unreadable.set_aside(tx).await?;
    let mut auditor = Auditor::of_engine();
    let mut events = Vec::with_capacity(found.len());
    for live in found {
        events.push(end_late(tx, &live, &mut auditor).await?);
    }
    Ok(events)
}

/// Ends a job whose deadline has passed.
async fn end_late(
    tx: &mut Transaction<'_>,
    live: &Live,
    auditor: &mut Auditor,
) -> Result<JobEvent, VerbError> {
    let from = match live.state {
        LEASED => State::Leased,
        PAUSED => State::Paused,
        _ => State::Scheduled,
    };
    let holder = if from == State::Leased {
        let row = tx.find(include_str!("../sql/holder_id.sql"), vec![live.holder.into()]);
        row.await?.map(|row| bytes(&row, 0)).transpose()?.map(HolderId::from_bytes)
    } else {
        None
    };
    let failure = Failure::of_deadline();
    let (to, keep) = (State::Dead, Retain::default());
    end(tx, live, &Ending { state: to, failure: Some(&failure), settled_by: None, keep }).await?;
    let transition = live.transition(Cause::Deadline, from, to);
    let (wanted, failure) = (live.wanted, Some(&failure));
    auditor.note(tx, live, &Transition { holder, wanted, failure, ..transition }).await?;
    let kind = tx.lane_of(live.lane).await?.kind;
    Ok(JobEvent { job: live.id, kind, from, to, cause: Cause::Deadline, holder, at: tx.now })
}
