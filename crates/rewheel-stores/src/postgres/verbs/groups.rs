//! Keeps the lines of groups, and decides which job of each line may run.
//!
//! A transaction that ends the head of a line releases the next job itself, without waiting. It may not see a job that another transaction
//! stores at the same time, and that transaction may still see the old head. So both look again after their commit: the later look sees
//! both. A process that dies before its look, and a user's transaction, leave the rest to `release_groups`.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{count, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::{
    GROUP_LEAVE, GROUP_NEXT, GROUP_STALE, RELEASE, RELEASE_GROUPS, STUCK_GROUPS,
};
use crate::groups::{Line, Release};
use rewheel_core::store::{GroupsReleased, StoreResult};
use rewheel_core::{Job, Timestamp};
use std::collections::{BTreeSet, HashSet};
use tokio_postgres::Row;
use uuid::Uuid;

/// What a transaction did to lines.
#[derive(Debug, Default)]
pub(in super::super) struct Freed {
    /// The lanes of released jobs.
    pub(in super::super) lanes: HashSet<i32>,
    /// Lines to look at again after the commit.
    pub(in super::super) lines: BTreeSet<Line>,
}

impl Freed {
    pub(super) fn merge(&mut self, other: Freed) {
        self.lanes.extend(other.lanes);
        self.lines.extend(other.lines);
    }

    /// Looks at the lines of these jobs, which an operator changed, after the commit.
    pub(super) fn look_at<'j>(&mut self, jobs: impl Iterator<Item = &'j Job>) {
        let line = |job: &Job| {
            let group = job.group.as_ref()?;
            Some(Line::of(&job.lane, group.key.as_str()))
        };
        self.lines.extend(jobs.filter_map(line));
    }
}

impl PostgresStore {
    /// Finishes after the commit what a transaction did to lines. If that fails, housekeeping does it.
    pub(super) async fn after_groups(&self, freed: Freed) {
        if !freed.lanes.is_empty() {
            self.wake(self.shared.lanes.report(freed.lanes));
        }
        self.release_lines(&freed.lines, Release::AfterWait).await;
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
    pub(super) async fn release_lines(&self, lines: &BTreeSet<Line>, how: Release) {
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.try_release(lines, how).await {
            tracing::debug!(%error, groups = lines.len(), "failed to release the next jobs of groups: housekeeping tries again");
        }
    }

    async fn try_release(&self, lines: &BTreeSet<Line>, how: Release) -> StoreResult<usize> {
        let session = self.transaction().await?;
        let released = release(&session, lines, how, None).await;
        Ok(self.released(session.end(released).await?))
    }

    /// As `try_release`, for lines whose head may be a dead letter that does not hold them up any more.
    async fn release_stale(&self, lines: &BTreeSet<Line>) -> StoreResult<usize> {
        let session = self.transaction().await?;
        let released = release_stale(&session, lines).await;
        Ok(self.released(session.end(released).await?))
    }

    fn released(&self, (lanes, lines): (HashSet<i32>, BTreeSet<Line>)) -> usize {
        if !lanes.is_empty() {
            self.wake(self.shared.lanes.report(lanes));
        }
        lines.len()
    }

    pub(in super::super) async fn release_groups_batch(
        &self,
        limit: usize,
    ) -> StoreResult<GroupsReleased> {
        let after = self.shared.groups_checked.get();
        let session = self.read().await?;
        let limit_count = count(limit as u64);
        let params: [Param<'_>; 4] = [&after.key, &after.kind, &after.tenant, &limit_count];
        let rows = session.query(&RELEASE_GROUPS, &params).await;
        let read = |row: &Row| Ok((line(row)?, row.try_get(3)?));
        let lines = rows.and_then(|rows| rows.iter().map(read).collect());
        let lines: Vec<(Line, bool)> = session.end(lines).await?;
        let checked = lines.len();
        self.shared.groups_checked.set(lines.last().map(|(line, _)| line.clone()), checked, limit);
        let needy: BTreeSet<Line> =
            lines.into_iter().filter(|(_, needs)| *needs).map(|(line, _)| line).collect();
        if needy.is_empty() {
            return Ok(GroupsReleased { checked, released: 0 });
        }
        let released = self.release_stale(&needy).await?;
        Ok(GroupsReleased { checked, released })
    }
}

/// Takes ended jobs out of their lines, marks dead letters, and releases the next job of each line that lost its head.
pub(super) async fn leave(
    session: &Session<'_>,
    ended: &[Uuid],
    died: &[Uuid],
    now: Timestamp,
) -> Result<Freed, VerbError> {
    let rows = session.query(&GROUP_LEAVE, &[&ended, &died]).await?;
    let lines: BTreeSet<Line> = rows.iter().map(line).collect::<Result<_, _>>()?;
    let (lanes, released) = release(session, &lines, Release::AfterWait, Some(now)).await?;
    let lines = lines.difference(&released).cloned().collect();
    Ok(Freed { lanes, lines })
}

async fn release_stale(
    session: &Session<'_>,
    lines: &BTreeSet<Line>,
) -> Result<(HashSet<i32>, BTreeSet<Line>), VerbError> {
    let [keys, kinds, tenants] = columns(lines.iter());
    session.execute(&GROUP_STALE, &[&keys, &kinds, &tenants]).await?;
    release(session, lines, Release::AfterWait, None).await
}

/// Returns the lanes of the released jobs, and their lines.
async fn release(
    session: &Session<'_>,
    lines: &BTreeSet<Line>,
    how: Release,
    now: Option<Timestamp>,
) -> Result<(HashSet<i32>, BTreeSet<Line>), VerbError> {
    if lines.is_empty() {
        return Ok((HashSet::new(), BTreeSet::new()));
    }
    let [keys, kinds, tenants] = columns(lines.iter());
    let rows = session.query(&GROUP_NEXT, &[&keys, &kinds, &tenants]).await?;
    if rows.is_empty() {
        return Ok((HashSet::new(), BTreeSet::new()));
    }
    let found: BTreeSet<(Line, Uuid)> = rows
        .iter()
        .map(|row| Ok((line(row)?, row.try_get(3)?)))
        .collect::<Result<_, VerbError>>()?;
    let [keys, kinds, tenants] = columns(found.iter().map(|(line, _)| line));
    let jobs: Vec<Uuid> = found.iter().map(|(_, job)| *job).collect();
    let waited = how == Release::AfterWait;
    let now = match now {
        Some(now) => now,
        None => session.now().await?,
    };
    let params: [Param<'_>; 6] = [&now.as_millis(), &waited, &keys, &kinds, &tenants, &jobs];
    let lanes = session.execute_returning_lanes(&RELEASE, &params, now).await?;
    Ok((lanes, found.into_iter().map(|(line, _)| line).collect()))
}

/// Returns lines as one array per column.
fn columns<'l>(lines: impl Iterator<Item = &'l Line> + Clone) -> [Vec<&'l str>; 3] {
    [
        lines.clone().map(|line| line.key.as_str()).collect(),
        lines.clone().map(|line| line.kind.as_str()).collect(),
        lines.map(|line| line.tenant.as_str()).collect(),
    ]
}

fn line(row: &Row) -> Result<Line, VerbError> {
    Ok(Line { key: row.try_get(0)?, kind: row.try_get(1)?, tenant: row.try_get(2)? })
}

pub(in super::super) async fn stuck_groups(
    session: &Session<'_>,
    limit: usize,
) -> Result<u64, VerbError> {
    let row = session.one(&STUCK_GROUPS, &[&count(limit as u64)]).await?;
    Ok(unsigned(row.try_get(0)?))
}
