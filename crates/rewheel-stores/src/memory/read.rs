//! Answers questions.

use super::world::{Row, World};
use rewheel_core::store::{AttemptRecord, Books, Count, Cursor, Filter, Page, PageRequest, Tally};
use rewheel_core::{AuditEntry, Job, JobId, Kind, Limits, State, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound;

impl World {
    pub(super) fn list(&self, filter: &Filter, page: &PageRequest) -> Page<Job> {
        let limit = page.limit.clamp(1, Limits::PAGE_MAX);
        let mut items = Vec::new();
        let mut last = None;
        for (looked_at, (id, row)) in self.newest_behind(page.cursor).enumerate() {
            if let Some(last) = last
                && (items.len() == limit || looked_at >= page.scan_max)
            {
                return Page { items, next: Some(Cursor::behind(last)) };
            }
            if filter.matches(&row.job) {
                items.push(row.job.clone());
            }
            last = Some(*id);
        }
        Page { items, next: None }
    }

    fn newest_behind(&self, cursor: Option<Cursor>) -> impl Iterator<Item = (&JobId, &Row)> {
        let end = cursor.map_or(Bound::Unbounded, |cursor| Bound::Excluded(cursor.job()));
        self.jobs.range((Bound::Unbounded, end)).rev()
    }

    pub(super) fn count(&self, filter: &Filter, scan_max: usize) -> Count {
        let looked_at = self.jobs.values().rev().take(scan_max);
        let found = looked_at.filter(|row| filter.matches(&row.job)).count() as u64;
        if self.jobs.len() > scan_max { Count::AtLeast(found) } else { Count::Exactly(found) }
    }

    pub(super) fn attempts(&self, job: JobId) -> Vec<AttemptRecord> {
        let all = self.jobs.get(&job).map_or(&[][..], |row| &row.attempts);
        all[all.len().saturating_sub(Limits::ATTEMPTS_LISTED_MAX)..].to_vec()
    }

    pub(super) fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> Vec<AuditEntry> {
        let entries = self.audit.iter().rev();
        entries
            .filter(|entry| before.is_none_or(|before| entry.seq < before))
            .filter(|entry| job.is_none() || entry.job == job)
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn tally(&self) -> Vec<Tally> {
        self.kinds.values().map(|row| self.tally_of(&row.kind)).collect()
    }

    fn tally_of(&self, kind: &Kind) -> Tally {
        let counted = [State::Scheduled, State::Leased, State::Paused, State::Dead];
        let mut jobs: BTreeMap<State, u64> = counted.map(|state| (state, 0)).into();
        let mut oldest_due: Option<Timestamp> = None;
        for Row { job, .. } in self.jobs.values().filter(|row| row.job.lane.kind == kind.name) {
            if let Some(count) = jobs.get_mut(&job.state()) {
                *count += 1;
            }
            if job.state() == State::Scheduled {
                oldest_due = Some(oldest_due.map_or(job.due, |oldest| oldest.min(job.due)));
            }
        }
        Tally { kind: kind.name.clone(), jobs, oldest_due }
    }

    pub(super) fn books(&self) -> Books {
        let mut books = Books::default();
        for line in &self.ledger {
            books.submitted += line.submitted;
            books.pruned += line.pruned;
        }
        for row in self.jobs.values() {
            match row.job.state() {
                State::Scheduled | State::Leased | State::Paused => books.live += 1,
                State::Dead => books.dead += 1,
                State::Succeeded | State::Failed | State::Cancelled => books.finished += 1,
            }
        }
        books
    }
}
