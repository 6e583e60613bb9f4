//! Reads jobs, attempts, counts and the audit log.

use super::world::{Row, World};
use crate::pages::{Tallies, cut};
use crate::patience::Patience;
use rewheel_core::store::{
    AttemptRecord, Books, Count, Cursor, FailureScan, Failures, Filter, Page, PageRequest, Tally,
};
use rewheel_core::{AuditEntry, FailedJob, Job, JobId, Key, Limits, State, Timestamp};
use std::ops::Bound;

impl World {
    pub(super) fn list(&self, filter: &Filter, page: &PageRequest, now: Timestamp) -> Page<Job> {
        let limit = page.limit.clamp(1, Limits::PAGE_MAX);
        if let Some(key) = &filter.key {
            let mut found = self.keyed(filter, key, now);
            found.retain(|job| page.cursor.is_none_or(|cursor| job.id < cursor.job()));
            return cut(found, None, limit);
        }
        let mut items = Vec::new();
        let mut last = None;
        let patience = Patience::new(page);
        // Other stores find the children of a job by an index.
        let is_child =
            |row: &Row| filter.parent.is_none_or(|parent| row.job.parent == Some(parent));
        let rows = self.newest_behind(page.cursor).filter(|(_, row)| is_child(row));
        for (looked_at, (id, row)) in rows.enumerate() {
            if let Some(last) = last
                && (items.len() == limit
                    || looked_at >= page.scan_max
                    || patience.is_over(looked_at))
            {
                return Page { items, next: Some(Cursor::between(last, *id)) };
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

    /// Returns the jobs that a key belongs to.
    fn keyed(&self, filter: &Filter, key: &Key, now: Timestamp) -> Vec<Job> {
        let is_live =
            |ended: Option<(State, Timestamp)>| ended.is_none_or(|(_, until)| until > now);
        let named = self.keys.iter().filter(|((_, _, own), row)| own == key && is_live(row.ended));
        let jobs = named.filter_map(|(_, row)| self.jobs.get(&row.job));
        jobs.map(|row| &row.job).filter(|job| filter.matches(job)).cloned().collect()
    }

    pub(super) fn failures(&self, scan: &FailureScan) -> Failures {
        let mut failures = Failures { jobs: Vec::new(), complete: true };
        for dead in [true, false] {
            let is_of_table = |row: &&Row| match row.job.state() {
                State::Dead => dead,
                State::Scheduled | State::Leased | State::Paused => !dead,
                State::Succeeded | State::Failed | State::Cancelled => false,
            };
            let (mut rows, mut bytes) = (0, 0);
            for row in self.jobs.values().rev().filter(is_of_table) {
                if rows >= scan.rows_max || bytes >= scan.bytes_max {
                    failures.complete = false;
                    break;
                }
                rows += 1;
                let failed = FailedJob::of(&row.job).filter(|_| scan.wants(&row.job.lane));
                bytes += failed.as_ref().map_or(0, |job| job.failure.message().len());
                failures.jobs.extend(failed);
            }
        }
        failures
    }

    pub(super) fn count(&self, filter: &Filter, scan_max: usize, now: Timestamp) -> Count {
        if let Some(key) = &filter.key {
            return Count::Exactly(self.keyed(filter, key, now).len() as u64);
        }
        let looked_at = self.jobs.values().rev().take(scan_max);
        let found = looked_at.filter(|row| filter.matches(&row.job)).count() as u64;
        if self.jobs.len() > scan_max { Count::AtLeast(found) } else { Count::Exactly(found) }
    }

    pub(super) fn attempts(&self, job: JobId) -> Vec<AttemptRecord> {
        let Some(row) = self.jobs.get(&job) else { return Vec::new() };
        let failed = row.attempts.len().saturating_sub(Limits::ATTEMPTS_LISTED_MAX);
        row.attempts[failed..].iter().chain(&row.succeeded).cloned().collect()
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
        let mut tallies = Tallies::default();
        self.kinds.keys().for_each(|kind| tallies.add(kind, None, None));
        for Row { job, .. } in self.jobs.values() {
            let due = (job.state() == State::Scheduled && !job.is_blocked()).then_some(job.due);
            if !job.state().is_final() {
                tallies.add(&job.lane.kind, Some((job.state(), 1)), due);
            }
        }
        tallies.into_vec()
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
