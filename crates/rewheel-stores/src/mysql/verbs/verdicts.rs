//! Writes the verdicts of a settled batch other than successes, with few statements.

use super::super::error::VerbError;
use super::super::job_columns::LEASED;
use super::super::statement::parts;
use super::super::transaction::Transaction;
use super::ending::{Live, drop_deadlines, expect_matched, lose_lease};
use super::given::{ForJob, Given};
use mysql_async::Value;
use rewheel_core::{Failure, Timestamp};
use std::collections::BTreeMap;

/// Records of attempts that one statement stores.
const RECORDS_MAX: usize = 512;

/// Bytes of records that one statement stores: a fraction of the smallest `max_allowed_packet` that servers have by default.
const RECORDS_BYTES_MAX: usize = 1024 * 1024;

/// What changes of a job that stays live, besides what it has in common with the others of its batch.
pub(super) struct Next<'a> {
    pub(super) due: Timestamp,
    /// Why it is due then; as before if `None`.
    pub(super) because: Option<&'a str>,
    pub(super) failure: Option<&'a Failure>,
}

/// Verdicts about jobs that this transaction has locked, and that are still as they were.
pub(super) struct Verdicts {
    /// The number of the holder whose leases end.
    holder: i64,
    /// What is stored as the settling holder, to recognize a repeated settle.
    settled_by: i64,
    /// The values of the records of failed attempts, and their sizes.
    records: Vec<(Vec<Value>, usize)>,
    let_go: Given,
    kept: Given,
    /// When the first of the kept jobs of a claim is overdue.
    overdue: BTreeMap<i64, i64>,
    dead: Given,
    /// The places of the dead jobs, by lane.
    gone: BTreeMap<i64, Vec<Value>>,
    /// The deadlines of the dead jobs.
    deadlines: Given,
}

impl Verdicts {
    pub(super) fn of(holder: i64, settled_by: i64) -> Verdicts {
        Verdicts {
            holder,
            settled_by,
            records: Vec::new(),
            let_go: Given::default(),
            kept: Given::default(),
            overdue: BTreeMap::new(),
            dead: Given::default(),
            gone: BTreeMap::new(),
            deadlines: Given::default(),
        }
    }

    /// Adds the record of a failed attempt; `bytes` is its size.
    pub(super) fn record(&mut self, values: Vec<Value>, bytes: usize) {
        self.records.push((values, bytes));
    }

    /// Releases a job, which stays live in this state and at this address.
    pub(super) async fn let_go(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        (state, lane, place): (u8, i64, i64),
        next: &Next<'_>,
    ) -> Result<(), VerbError> {
        let job = at(live).number(live.fence.get()).number(state).number(live.attempt);
        let job = with_failure(job.number(next.due.as_millis()).maybe_text(next.because), next);
        self.let_go.add(job.number(lane).number(place));
        lose_lease(tx, live).await
    }

    /// Keeps a job with its holder, under a new fence.
    pub(super) fn keep(&mut self, live: &Live, fence: u64, overdue: i64, next: &Next<'_>) {
        let job = at(live).number(live.fence.get()).number(fence).number(live.attempt);
        let job = with_failure(job.number(next.due.as_millis()).maybe_text(next.because), next);
        self.kept.add(job.number(overdue));
        let first = self.overdue.entry(live.claim).or_insert(overdue);
        *first = overdue.min(*first);
    }

    /// Ends a job of no group as a dead letter.
    pub(super) async fn die(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        failure: Option<&Failure>,
    ) -> Result<(), VerbError> {
        let next = Next { due: live.due, because: None, failure };
        self.dead.add(with_failure(at(live).number(live.attempt), &next));
        self.gone.entry(live.lane).or_default().push(live.place.into());
        if let Some(deadline) = live.deadline {
            self.deadlines.add(ForJob::default().number(deadline).bytes(&live.id.to_bytes()));
        }
        lose_lease(tx, live).await
    }

    pub(super) async fn write(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        self.write_records(tx).await?;
        self.write_let_go(tx).await?;
        self.write_kept(tx).await?;
        self.write_dead(tx).await
    }

    /// Writes the records of failed attempts.
    pub(super) async fn write_records(
        &mut self,
        tx: &mut Transaction<'_>,
    ) -> Result<(), VerbError> {
        let records = std::mem::take(&mut self.records);
        let sizes: Vec<usize> = records.iter().map(|(_, bytes)| *bytes).collect();
        let mut records = records.into_iter().map(|(values, _)| values);
        for size in parts(&sizes, RECORDS_MAX, RECORDS_BYTES_MAX) {
            let values = records.by_ref().take(size).flatten().collect();
            tx.insert_rows(include_str!("../sql/insert_attempt.sql"), size, values).await?;
        }
        Ok(())
    }

    async fn write_let_go(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        let (jobs, mut matched) = (self.let_go.len(), 0);
        for given in self.let_go.take() {
            let values = vec![given.into(), self.settled_by.into(), self.holder.into()];
            matched += tx.execute(include_str!("../sql/let_go_batch.sql"), values).await?;
        }
        expect_matched(matched, jobs)
    }

    async fn write_kept(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        let (jobs, mut matched) = (self.kept.len(), 0);
        for given in self.kept.take() {
            let values = vec![
                given.into(),
                self.settled_by.into(),
                tx.now.as_millis().into(),
                self.holder.into(),
            ];
            matched += tx.execute(include_str!("../sql/keep_lease_batch.sql"), values).await?;
        }
        for (claim, overdue) in std::mem::take(&mut self.overdue) {
            let values = vec![overdue.into(), claim.into(), overdue.into()];
            tx.execute(include_str!("../sql/lower_overdue.sql"), values).await?;
        }
        expect_matched(matched, jobs)
    }

    async fn write_dead(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        let (jobs, mut stored) = (self.dead.len(), 0);
        for given in self.dead.take() {
            let values = vec![tx.now.as_millis().into(), given.into()];
            stored += tx.execute(include_str!("../sql/end_dead_batch.sql"), values).await?;
        }
        expect_matched(stored, jobs)?;
        for (lane, places) in std::mem::take(&mut self.gone) {
            let sql = include_str!("../sql/delete_jobs.sql");
            let after = [self.holder.into(), LEASED.into()];
            let deleted = tx.run_list(sql, &[lane.into()], &places, &after).await?.affected;
            expect_matched(deleted, places.len())?;
        }
        drop_deadlines(tx, &mut self.deadlines).await
    }
}

/// Where a job is.
fn at(live: &Live) -> ForJob {
    ForJob::default().number(live.lane).number(live.place)
}

fn with_failure(job: ForJob, next: &Next<'_>) -> ForJob {
    let failure = next.failure;
    job.maybe_text(failure.map(|failure| failure.category().as_str()))
        .maybe_text(failure.and_then(Failure::code))
        .maybe_text(failure.map(Failure::message))
}
