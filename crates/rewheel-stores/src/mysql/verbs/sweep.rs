//! Frees jobs of dead holders and overdue jobs, and ends jobs whose deadline has passed.

use super::super::error::VerbError;
use super::super::job_columns::{LEASED, PAUSED, SCHEDULED};
use super::super::row::{bytes, get, id16, maybe_bytes, millis};
use super::super::transaction::Transaction;
use super::audit::Auditor;
use super::ending::{Ending, Live, end, expect_matched, lose_lease};
use super::held::claimed_jobs;
use super::unreadable::Unreadable;
use mysql_async::Value;
use rewheel_core::store::{StoreError, Sweep};
use rewheel_core::{
    Cause, Failure, HolderId, JobEvent, JobId, KindName, Retain, State, Transition,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Sleep;

/// Claims that are looked at together.
pub(in super::super) const CLAIMS_READ: usize = 50;

/// Jobs that are locked together.
const JOBS_LOCKED: usize = 500;

/// What a sweep did.
pub(in super::super) struct Swept {
    pub(in super::super) events: Vec<JobEvent>,
    /// Claims of living holders whose first job was said to be overdue: [`raise_overdue`] writes when it is.
    pub(in super::super) late: Vec<i64>,
}

pub(in super::super) async fn sweep(
    tx: &mut Transaction<'_>,
    sweep: &Sweep,
) -> Result<Swept, VerbError> {
    let Sweep { by, limit, keep, watched } = *sweep;
    if tx.alive(by).await?.is_none() {
        return Err(StoreError::HolderDead(by).into());
    }
    let swept = Swept { events: Vec::new(), late: Vec::new() };
    let auditor = Auditor::of_holder(by);
    let (takeovers_max, plain, budget) = (HashMap::new(), BTreeMap::new(), Budget::of(tx));
    let mut sweeper = Sweeper { limit, keep, auditor, takeovers_max, plain, budget, swept };
    for holding in holding(tx).await? {
        let (until, hold_max) = if holding.alive {
            (tx.now.min(watched.until).as_millis(), millis(watched.since))
        } else {
            (i64::MAX, i64::MAX)
        };
        sweeper.take_from(tx, &holding, &Late { until, hold_max }).await?;
        if sweeper.left() == 0 {
            break;
        }
    }
    sweeper.auditor.write(tx).await?;
    Ok(sweeper.swept)
}

/// The time after which a verb stops and commits what it has done, so that a slow server makes progress too: a quarter of the timeout.
pub(in super::super) struct Budget {
    sleep: Pin<Box<Sleep>>,
    is_spent: bool,
}

impl Budget {
    pub(super) fn of(tx: &Transaction<'_>) -> Budget {
        Budget::quarter_of(tx.shared.timeout)
    }

    pub(in super::super) fn quarter_of(timeout: Duration) -> Budget {
        Budget { sleep: Box::pin(tokio::time::sleep(timeout / 4)), is_spent: false }
    }

    pub(in super::super) async fn is_spent(&mut self) -> bool {
        if !self.is_spent {
            self.is_spent = tokio::select! {
                biased;
                () = self.sleep.as_mut() => true,
                () = std::future::ready(()) => false,
            };
        }
        self.is_spent
    }
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
}

/// A job that is taken from its holder.
struct Taken {
    live: Live,
    started: bool,
}

/// One sweep.
struct Sweeper {
    limit: usize,
    keep: Retain,
    auditor: Auditor,
    /// How many processes a job may crash, by kind.
    takeovers_max: HashMap<KindName, Option<u32>>,
    /// The places of jobs that only become scheduled again, by lane.
    plain: BTreeMap<i64, Vec<Value>>,
    budget: Budget,
    swept: Swept,
}

impl Sweeper {
    /// Returns how many more jobs may be taken.
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.swept.events.len())
    }

    /// Takes jobs from a holder. Several claims may list the same job, so the jobs of a page are a set, and are freed before the next page is
    /// read: there they are not leased any more.
    async fn take_from(
        &mut self,
        tx: &mut Transaction<'_>,
        holding: &Holding,
        late: &Late,
    ) -> Result<(), VerbError> {
        let (mut overdue, mut seq) = (i64::MIN, i64::MIN);
        while self.left() > 0 {
            let values = vec![
                holding.number.into(),
                late.until.into(),
                overdue.into(),
                overdue.into(),
                seq.into(),
                (CLAIMS_READ as u64).into(),
            ];
            let claims = tx.rows(include_str!("../sql/sweep_claims.sql"), values).await?;
            let mut ids = BTreeSet::new();
            for row in &claims {
                (overdue, seq) = (get(row, 0)?, get(row, 1)?);
                ids.extend(claimed_jobs(&get::<Vec<u8>>(row, 2)?));
                if holding.alive {
                    self.swept.late.push(seq);
                }
            }
            let list: Vec<Value> = ids.into_iter().map(|id| id16(id.to_bytes())).collect();
            for part in list.chunks(JOBS_LOCKED) {
                if self.left() == 0 {
                    break;
                }
                for taken in self.lock(tx, holding, late, part).await? {
                    self.free(tx, taken, holding.holder).await?;
                    if self.budget.is_spent().await {
                        self.limit = self.swept.events.len();
                        break;
                    }
                }
                self.write_plain(tx, holding.number).await?;
            }
            if claims.len() < CLAIMS_READ {
                break;
            }
        }
        Ok(())
    }

    /// Locks those of the given jobs that are taken.
    async fn lock(
        &self,
        tx: &mut Transaction<'_>,
        holding: &Holding,
        late: &Late,
        list: &[Value],
    ) -> Result<Vec<Taken>, VerbError> {
        let after = [
            holding.number.into(),
            late.until.into(),
            late.hold_max.into(),
            (self.left() as u64).into(),
        ];
        let rows = tx.run_list(include_str!("../sql/sweep.sql"), &[], list, &after).await?.rows;
        let (mut taken, mut unreadable) = (Vec::with_capacity(rows.len()), Unreadable::default());
        for row in rows {
            let id = JobId::from_bytes(bytes(&row, 0)?);
            let Some(live) = unreadable.check(id, Live::read(&row))? else { continue };
            // The later writes need the lane's name.
            let lane = tx.lane_of(live.lane).await;
            if unreadable.check(id, lane)?.is_some() {
                taken.push(Taken { live, started: get(&row, 18)? });
            }
        }
        unreadable.set_aside(tx).await?;
        Ok(taken)
    }

    async fn free(
        &mut self,
        tx: &mut Transaction<'_>,
        taken: Taken,
        holder: Option<HolderId>,
    ) -> Result<(), VerbError> {
        let Taken { mut live, started } = taken;
        live.takeovers += 1;
        live.takeovers_counted += u32::from(started);
        tx.report_lane(live.lane).await;
        let kind = tx.lane_of(live.lane).await?.kind;
        let takeovers_max = self.takeovers_max(tx, &kind).await?;
        let poison = started && takeovers_max.is_some_and(|max| live.takeovers_counted >= max);
        let state = match live.wanted {
            Some(wanted) => wanted.state(),
            None if poison => State::Dead,
            None => State::Scheduled,
        };
        let failure = (state == State::Dead).then(|| Failure::of_takeovers(live.takeovers_counted));
        let failure = failure.as_ref();
        if state == State::Scheduled && live.wanted.is_none() && live.keeps_place(tx, live.due) {
            self.plain.entry(live.lane).or_default().push(live.place.into());
            lose_lease(tx, &live).await?;
        } else if state.is_live() {
            let mut values = vec![
                if state == State::Scheduled { SCHEDULED } else { PAUSED }.into(),
                live.takeovers.into(),
                live.takeovers_counted.into(),
            ];
            values.extend(live.next_address(tx, state, live.due).map(Value::from));
            values.extend(live.guard());
            let matched = tx.execute(include_str!("../sql/take_over.sql"), values).await?;
            expect_matched(matched, 1)?;
            lose_lease(tx, &live).await?;
        } else {
            end(tx, &live, &Ending { state, failure, settled_by: None, keep: self.keep }).await?;
        }
        let transition = live.transition(Cause::Takeover, State::Leased, state);
        let transition = Transition { holder, wanted: live.wanted, failure, ..transition };
        self.auditor.note(tx, &live, &transition).await?;
        let (from, cause, at) = (State::Leased, Cause::Takeover, tx.now);
        self.swept.events.push(JobEvent { job: live.id, kind, from, to: state, cause, holder, at });
        Ok(())
    }

    /// Frees the jobs that only become scheduled again, with one statement for each lane.
    async fn write_plain(
        &mut self,
        tx: &mut Transaction<'_>,
        holder: i64,
    ) -> Result<(), VerbError> {
        for (lane, places) in std::mem::take(&mut self.plain) {
            let sql = include_str!("../sql/take_over_batch.sql");
            let done = tx.run_list(sql, &[lane.into()], &places, &[holder.into()]).await?;
            expect_matched(done.affected, places.len())?;
        }
        Ok(())
    }

    /// Reads how many processes a job of a kind may crash, once for each kind.
    async fn takeovers_max(
        &mut self,
        tx: &mut Transaction<'_>,
        kind: &KindName,
    ) -> Result<Option<u32>, VerbError> {
        if let Some(known) = self.takeovers_max.get(kind) {
            return Ok(*known);
        }
        let row = tx.find(include_str!("../sql/takeovers_max.sql"), vec![kind.as_str().into()]);
        let max: Option<u32> = row.await?.map(|row| get(&row, 0)).transpose()?;
        self.takeovers_max.insert(kind.clone(), max);
        Ok(max)
    }
}

/// Writes when the first jobs of claims are overdue: holders have extended some, or kept them for another attempt. Locks the claims and their
/// jobs, and waits for no lock. A claim is left to the next sweep if another transaction has one of its jobs: its new time, which may be
/// earlier, is not committed yet, and `lower_overdue.sql` writes and locks nothing while another job of the claim is overdue earlier.
pub(in super::super) async fn raise_overdue(
    tx: &mut Transaction<'_>,
    claims: &[i64],
) -> Result<(), VerbError> {
    let list: Vec<Value> = claims.iter().copied().map(Value::from).collect();
    let (mut left, mut ids) = (HashMap::new(), BTreeSet::new());
    let sql = include_str!("../sql/lock_claims.sql");
    for row in tx.run_list(sql, &[], &list, &[]).await?.rows {
        left.insert(get::<i64>(&row, 0)?, get::<i64>(&row, 1)?);
        ids.extend(claimed_jobs(&get::<Vec<u8>>(&row, 2)?));
    }
    let list: Vec<Value> = ids.into_iter().map(|id| id16(id.to_bytes())).collect();
    let mut earliest: BTreeMap<i64, i64> = BTreeMap::new();
    for row in tx.run_list(include_str!("../sql/claim_overdue.sql"), &[], &list, &[]).await?.rows {
        let (claim, overdue): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
        // Jobs that the holder has claimed again belong to other claims, some of whose jobs were not read.
        let Some(left) = left.get_mut(&claim) else { continue };
        *left -= 1;
        let first = earliest.entry(claim).or_insert(overdue);
        *first = overdue.min(*first);
    }
    for (claim, overdue) in earliest {
        if left.get(&claim) == Some(&0) {
            let values = vec![overdue.into(), claim.into(), overdue.into()];
            tx.execute(include_str!("../sql/set_overdue.sql"), values).await?;
        }
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
    let mut budget = Budget::of(tx);
    for live in found {
        events.push(end_late(tx, &live, &mut auditor).await?);
        if budget.is_spent().await {
            break;
        }
    }
    auditor.write(tx).await?;
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
