//! Keeps the lines of groups, and decides which job of each line may run.

use super::Weakness;
use super::world::{Row, World};
use crate::groups::Release;
use rewheel_core::store::{GroupName, GroupsReleased};
use rewheel_core::{GroupKey, JobGroup, JobId, KindName, State, Tenant, Timestamp, Turn};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The name of a line.
pub(super) type LineName = (KindName, Option<Tenant>, GroupKey);

/// The unfinished jobs of a group, dead letters included.
#[derive(Default)]
pub(super) struct Line {
    /// The jobs by their places.
    members: BTreeMap<u64, JobId>,
    /// The job that may run, or that holds up the others.
    head: Option<JobId>,
}

/// All lines.
#[derive(Default)]
pub(super) struct Groups {
    lines: BTreeMap<LineName, Line>,
    /// The latest place and the latest turn of any line.
    place: u64,
    turn: u64,
    /// The line that `release_groups` checked last.
    checked: Option<LineName>,
}

impl World {
    /// Gives a new job its place in the line.
    pub(super) fn join_line(&mut self, row: &mut Row) {
        let Some(name) = line_of(row) else { return };
        self.groups.place += 1;
        row.place = Some(self.groups.place);
        let line = self.groups.lines.entry(name).or_default();
        line.members.insert(self.groups.place, row.job.id);
    }

    /// Returns whether a job without a holder has to wait for others of its group.
    pub(super) fn is_behind(&self, row: &Row) -> bool {
        let line = line_of(row).and_then(|name| self.groups.lines.get(&name));
        line.is_some_and(|line| line.head != Some(row.job.id))
    }

    /// Keeps the line of a job up to date after the job got another state.
    pub(super) fn after_let_go(&mut self, id: JobId, to: State, now: Timestamp) {
        let Some(row) = self.jobs.get(&id) else { return };
        let (Some(name), Some(place)) = (line_of(row), row.place) else { return };
        if to.is_final() {
            self.leave_line(&name, place, id);
        }
        if !self.is_weak(Weakness::NoReleaseAtEnd) {
            self.release(&name, Release::AfterWait, now);
        }
    }

    fn leave_line(&mut self, name: &LineName, place: u64, id: JobId) {
        let Some(line) = self.groups.lines.get_mut(name) else { return };
        line.members.remove(&place);
        line.head = line.head.filter(|head| *head != id);
        if line.members.is_empty() {
            self.groups.lines.remove(name);
        }
    }

    /// Gives a line without a head its smallest member as head. Returns whether it did.
    pub(super) fn release(&mut self, name: &LineName, how: Release<'_>, now: Timestamp) -> bool {
        let Some(next) = self.next_of(name) else { return false };
        // Not less than the time: services that were called before a restart have seen larger turns than 1.
        let time = u64::try_from(now.as_millis()).unwrap_or(0);
        self.groups.turn = time.max(self.groups.turn + 1);
        let turn = Some(Turn::new(self.groups.turn));
        if let Some(line) = self.groups.lines.get_mut(name) {
            line.head = Some(next);
        }
        self.write(next, |row| {
            let was_blocked = row.job.is_blocked();
            if let Some(JobGroup { blocked, turn: latest, .. }) = &mut row.job.group {
                (*blocked, *latest) = (false, turn);
            }
            if was_blocked && !how.inserted().contains(&next) {
                row.job.due = row.job.due.max(now);
            }
        });
        self.report_lane(next);
        true
    }

    /// Returns the job to release, if a line has no head.
    fn next_of(&self, name: &LineName) -> Option<JobId> {
        let line = self.groups.lines.get(name)?;
        let blocks = self.kinds.get(&name.0).is_some_and(|row| row.kind.on_dead.blocks());
        if self.is_weak(Weakness::NoLine) {
            return line.members.values().copied().find(|job| self.jobs[job].job.is_blocked());
        }
        let counts = |job: &JobId| blocks || self.jobs[job].job.state() != State::Dead;
        if line.head.filter(counts).is_some() {
            return None;
        }
        let mut members = line.members.values().copied().filter(counts);
        match self.is_weak(Weakness::NoOrder) {
            true => members.next_back(),
            false => members.next(),
        }
    }

    pub(super) fn release_groups(&mut self, limit: usize, now: Timestamp) -> GroupsReleased {
        let start = self.groups.checked.take();
        let start = start.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.groups.lines.range((start, Bound::Unbounded));
        let names = names.filter(|(_, line)| self.has_live(line));
        let names: Vec<LineName> = names.map(|(name, _)| name.clone()).take(limit).collect();
        let checked = names.len();
        let released =
            names.iter().filter(|name| self.release(name, Release::AfterWait, now)).count();
        self.groups.checked = names.into_iter().last().filter(|_| checked == limit);
        GroupsReleased { checked, released }
    }

    pub(super) fn stuck_groups(&self, limit: usize) -> Vec<GroupName> {
        let lines = self.groups.lines.iter().filter(|(_, line)| self.has_live(line));
        let stuck = lines.filter(|(name, _)| self.next_of(name).is_some()).take(limit);
        let name = |(kind, tenant, key): LineName| GroupName { kind, tenant, key };
        stuck.map(|(line, _)| name(line.clone())).collect()
    }

    /// Returns whether a line has a job that is no dead letter.
    fn has_live(&self, line: &Line) -> bool {
        line.members.values().any(|job| self.jobs[job].job.state() != State::Dead)
    }
}

/// Returns the line that a job belongs to while it is unfinished.
pub(super) fn line_of(row: &Row) -> Option<LineName> {
    let key = row.job.group.as_ref()?.key.clone();
    Some((row.job.lane.kind.clone(), row.job.lane.tenant.clone(), key))
}
