//! Keeps the lines of groups, and decides which job of each line may run.
//!
//! A transaction that ends the head of a line releases the next job itself, without waiting. It may not see a job that another transaction
//! stores at the same time, and that transaction may still see the old head. It passes over a line whose next job another transaction has
//! locked. So each transaction that stores, ends or locks a job of a group looks at its line again after the commit: the last check sees everything.
//! A process that dies before its look leaves the rest to `release_groups`. A user's transaction lists its lines for the next check of any
//! node, see [`group_checks`](super::group_checks).

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{count, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{
    GROUP_CHECK, GROUP_LEAVE, GROUP_NEXT, GROUP_STALE, RELEASE, RELEASE_GROUPS,
};
use crate::groups::{Line, Release};
use rewheel_core::store::{GroupName, GroupsReleased, StoreResult};
use rewheel_core::{Job, JobId, Timestamp};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use tokio_postgres::Row;
use uuid::Uuid;

/// How often to look again at lines whose next job was locked here, while another transaction gave them a head.
const LOOKS_MAX: usize = 8;

/// How many lines `stuck_groups` reads with one statement.
const LINES_READ: usize = 1_000;

/// The largest turn that this process has seen.
#[derive(Debug, Default)]
pub(in super::super) struct SeenTurn(AtomicI64);

impl SeenTurn {
    pub(super) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn see(&self, turn: i64) {
        self.0.fetch_max(turn, Ordering::Relaxed);
    }

    /// Sees the turn of a job that was read.
    pub(super) fn see_job(&self, job: &Job) {
        if let Some(turn) = job.group.as_ref().and_then(|group| group.turn) {
            self.see(count(turn.get()));
        }
    }
}

/// The jobs of groups that a transaction has ended or locked.
#[derive(Debug, Default)]
pub(super) struct Touched {
    ended: Vec<Uuid>,
    died: Vec<Uuid>,
    locked: Vec<Uuid>,
    /// Other lines to look at.
    lines: BTreeSet<Line>,
}

impl Touched {
    /// Adds a job that has ended.
    pub(super) fn end(&mut self, job: JobId) {
        self.ended.push(uuid(job));
    }

    /// Adds a job that is a dead letter now.
    pub(super) fn die(&mut self, job: JobId) {
        self.died.push(uuid(job));
    }

    /// Adds a job that was locked, whether it was changed or not.
    pub(super) fn lock(&mut self, job: JobId) {
        self.locked.push(uuid(job));
    }

    /// Adds those of these locked jobs that have a group.
    pub(super) fn lock_all<'j>(&mut self, jobs: impl Iterator<Item = &'j Job>) {
        jobs.filter(|job| job.group.is_some()).for_each(|job| self.lock(job.id));
    }

    /// Adds lines to look at.
    pub(super) fn look_at(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.lines.extend(lines);
    }

    pub(super) fn merge(&mut self, other: Touched) {
        self.ended.extend(other.ended);
        self.died.extend(other.died);
        self.locked.extend(other.locked);
        self.lines.extend(other.lines);
    }

    /// Takes ended jobs out of their lines, marks dead letters, and releases the next jobs. The last step of a transaction: it waits for
    /// no job and no key.
    pub(super) async fn leave(
        self,
        session: &Session<'_>,
        now: Timestamp,
    ) -> Result<Freed, VerbError> {
        let Touched { ended, died, locked, mut lines } = self;
        if !(ended.is_empty() && died.is_empty() && locked.is_empty()) {
            let rows = session.query(&GROUP_LEAVE, &[&ended, &died, &locked]).await?;
            for row in &rows {
                lines.insert(line(row)?);
            }
        }
        if lines.is_empty() {
            return Ok(Freed::default());
        }
        if session.is_theirs() {
            // A release would lock the next job for as long as the user keeps the transaction open.
            list(session, &lines).await?;
            return Ok(Freed::default());
        }
        let done = release(session, &lines, Release::AfterWait, Some(now)).await?;
        let lines = lines.difference(&done.released).cloned().collect();
        Ok(Freed { lanes: done.lanes, lines })
    }
}

/// What a transaction did to lines.
#[derive(Debug, Default)]
pub(in super::super) struct Freed {
    /// The lanes of released jobs.
    pub(in super::super) lanes: HashSet<i32>,
    /// Lines to look at again after the commit.
    pub(in super::super) lines: BTreeSet<Line>,
}

/// The lines that got a head.
#[derive(Debug, Default)]
pub(super) struct Released {
    pub(super) released: BTreeSet<Line>,
    /// Lines to look at again: their next job was locked here while another transaction gave them a head.
    pub(super) again: BTreeSet<Line>,
    /// The lanes of the released jobs.
    pub(super) lanes: HashSet<i32>,
}

impl PostgresStore {
    /// Finishes after the commit what a transaction did to lines. If that fails, housekeeping does it.
    pub(super) async fn after_groups(&self, freed: Freed) {
        if !freed.lanes.is_empty() {
            self.wake(self.shared.lanes.report(freed.lanes));
        }
        self.release_lines(freed.lines, Release::AfterWait).await;
    }

    /// As `after_groups`, after a settle: this node has a free slot for the next job, so it does not wake the others.
    pub(super) async fn after_settled_groups(&self, mut freed: Freed) {
        let lanes = std::mem::take(&mut freed.lanes);
        if !lanes.is_empty() {
            self.shared.woken.wake(self.shared.lanes.report(lanes));
        }
        self.after_groups(freed).await;
    }

    /// Gives lines without a head their smallest members as heads. If that fails, housekeeping does it.
    pub(super) async fn release_lines(&self, mut lines: BTreeSet<Line>, how: Release<'_>) {
        for _ in 0..LOOKS_MAX {
            if lines.is_empty() {
                return;
            }
            match self.try_release(&lines, how).await {
                Ok(again) => lines = again,
                Err(error) => {
                    tracing::debug!(%error, groups = lines.len(), "failed to release jobs of groups: housekeeping will do it");
                    return;
                }
            }
        }
    }

    /// Returns the lines to look at again.
    async fn try_release(
        &self,
        lines: &BTreeSet<Line>,
        how: Release<'_>,
    ) -> StoreResult<BTreeSet<Line>> {
        let session = self.transaction().await?;
        let done = release(&session, lines, how, None).await;
        Ok(self.released(session.end(done).await?).1)
    }

    /// Wakes the nodes for released jobs. Returns how many lines got a head, and the lines to look at again.
    pub(super) fn released(&self, done: Released) -> (usize, BTreeSet<Line>) {
        if !done.lanes.is_empty() {
            self.wake(self.shared.lanes.report(done.lanes));
        }
        (done.released.len(), done.again)
    }

    pub(in super::super) async fn release_groups_batch(
        &self,
        limit: usize,
    ) -> StoreResult<GroupsReleased> {
        let listed = self.release_listed().await?;
        let after = self.shared.groups_checked.get();
        let session = self.read().await?;
        let lines = lines_after(&session, &after, limit).await;
        let lines = session.end(lines).await?;
        let checked = lines.len();
        self.shared.groups_checked.set(lines.last().map(|(line, _)| line.clone()), checked, limit);
        let needy: BTreeSet<Line> =
            lines.into_iter().filter(|(_, needs)| *needs).map(|(line, _)| line).collect();
        if needy.is_empty() {
            return Ok(GroupsReleased { checked, released: listed });
        }
        let session = self.transaction().await?;
        let done = release_stale(&session, &needy).await;
        let (released, again) = self.released(session.end(done).await?);
        self.release_lines(again, Release::AfterWait).await;
        Ok(GroupsReleased { checked, released: listed + released })
    }
}

/// Lists lines for the next check of any node after the commit of a user's transaction.
pub(in super::super) async fn list(
    session: &Session<'_>,
    lines: &BTreeSet<Line>,
) -> Result<(), VerbError> {
    if lines.is_empty() {
        return Ok(());
    }
    let [keys, kinds, tenants] = columns(lines.iter());
    session.execute(&GROUP_CHECK, &[&keys, &kinds, &tenants]).await.map(drop)
}

/// Releases the next jobs of lines whose head or members may be stale.
async fn release_stale(
    session: &Session<'_>,
    lines: &BTreeSet<Line>,
) -> Result<Released, VerbError> {
    let [keys, kinds, tenants] = columns(lines.iter());
    session.execute(&GROUP_STALE, &[&keys, &kinds, &tenants]).await?;
    release(session, lines, Release::AfterWait, None).await
}

/// Gives lines without a head their smallest members as heads.
pub(super) async fn release(
    session: &Session<'_>,
    lines: &BTreeSet<Line>,
    how: Release<'_>,
    now: Option<Timestamp>,
) -> Result<Released, VerbError> {
    if lines.is_empty() {
        return Ok(Released::default());
    }
    let [keys, kinds, tenants] = columns(lines.iter());
    let rows = session.query(&GROUP_NEXT, &[&keys, &kinds, &tenants]).await?;
    if rows.is_empty() {
        return Ok(Released::default());
    }
    let found: BTreeSet<(Line, Uuid)> = rows
        .iter()
        .map(|row| Ok((line(row)?, row.try_get(3)?)))
        .collect::<Result<_, VerbError>>()?;
    let [keys, kinds, tenants] = columns(found.iter().map(|(line, _)| line));
    let jobs: Vec<Uuid> = found.iter().map(|(_, job)| *job).collect();
    let mut fresh: Vec<Uuid> = how.inserted().iter().copied().map(uuid).collect();
    fresh.sort_unstable();
    let now = match now {
        Some(now) => now,
        None => session.now().await?,
    };
    let turn = session.shared.turn.get();
    let params: [Param<'_>; 7] = [&now.as_millis(), &fresh, &keys, &kinds, &tenants, &jobs, &turn];
    let (mut heads, mut lanes) = (HashSet::new(), HashSet::new());
    for row in session.query(&RELEASE, &params).await? {
        if let Some(job) = row.try_get::<_, Option<Uuid>>(0)? {
            session.shared.turn.see(row.try_get(1)?);
            heads.insert(job);
        } else {
            lanes.insert(session.put_back_row(&row, 2, now)?);
        }
    }
    let (released, again): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(_, job)| heads.contains(job));
    let lines = |found: Vec<(Line, Uuid)>| found.into_iter().map(|(line, _)| line).collect();
    Ok(Released { released: lines(released), again: lines(again), lanes })
}

/// Returns lines as one array per column.
fn columns<'l>(lines: impl Iterator<Item = &'l Line> + Clone) -> [Vec<&'l str>; 3] {
    [
        lines.clone().map(|line| line.key.as_str()).collect(),
        lines.clone().map(|line| line.kind.as_str()).collect(),
        lines.map(|line| line.tenant.as_str()).collect(),
    ]
}

pub(super) fn line(row: &Row) -> Result<Line, VerbError> {
    Ok(Line { key: row.try_get(0)?, kind: row.try_get(1)?, tenant: row.try_get(2)? })
}

/// Reads lines with live jobs, each with whether it needs another head.
async fn lines_after(
    session: &Session<'_>,
    after: &Line,
    limit: usize,
) -> Result<Vec<(Line, bool)>, VerbError> {
    let limit = count(limit as u64);
    let params: [Param<'_>; 4] = [&after.key, &after.kind, &after.tenant, &limit];
    let rows = session.query(&RELEASE_GROUPS, &params).await?;
    rows.iter().map(|row| Ok((line(row)?, row.try_get(3)?))).collect()
}

pub(in super::super) async fn stuck_groups(
    session: &Session<'_>,
    limit: usize,
) -> Result<Vec<GroupName>, VerbError> {
    let (mut after, mut stuck) = (Line::default(), Vec::new());
    loop {
        let lines = lines_after(session, &after, LINES_READ).await?;
        let needy = lines.iter().filter(|(_, needs)| *needs);
        stuck.extend(needy.filter_map(|(line, _)| line.name()));
        stuck.truncate(limit);
        let last = lines.len() < LINES_READ;
        match lines.into_iter().last() {
            Some((line, _)) if !last && stuck.len() < limit => after = line,
            Some(_) | None => return Ok(stuck),
        }
    }
}
