//! The context of one verb: a connection with or without a transaction, the time and the lanes.

use super::Shared;
use super::caller_session::check_session;
use super::error::{Stage, VerbError, judge, judge_write, unreadable};
use super::link::{Done, Link, within};
use super::places::Places;
use super::pool::Pool;
use super::row::{get, id16};
use super::statement::{padded, text};
use super::tries::Tries;
use mysql_async::{Row, Value};
use rewheel_core::store::{StoreChange, StoreError, StoreResult};
use rewheel_core::{HolderId, JobId, Lane, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Reads the server's time in milliseconds, whatever the session's time zone is: in some of them an hour repeats each year.
pub(super) const NOW: &str =
    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000";

const BEGIN: &str = "START TRANSACTION; \
     SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000";

/// Begins a read-only transaction with one consistent snapshot.
const SNAPSHOT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
     START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY; \
     SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000";

/// The transaction of one verb, or the connection of one that only reads.
pub(super) struct Transaction<'s> {
    link: Box<dyn Link + 's>,
    pub(super) shared: &'s Shared,
    /// The store's time: the same for the whole verb.
    pub(super) now: Timestamp,
    /// The jobs that the verb added and removed, for the ledger.
    pub(super) submitted: u64,
    pub(super) pruned: u64,
    /// What to report to watchers after the commit.
    pub(super) report: Option<StoreChange>,
    /// Lanes that this transaction numbered: they are remembered once it has committed.
    pub(super) lanes_new: Vec<(i64, Lane)>,
    /// Lanes whose number this transaction has read. A cached number is written only after that.
    pub(super) lanes_checked: HashMap<Lane, i64>,
    /// The jobs of each claim that are not leased under it any more: a set, so that no job counts twice.
    leases_ended: BTreeMap<i64, BTreeSet<JobId>>,
    /// Whether this is a repetition: another transaction may have taken a value that this one chose.
    pub(super) repeated: bool,
    /// The places of a repetition that met taken ones; otherwise those of the process.
    pub(super) places: Option<Places>,
    kind: Kind,
}

/// What is open on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A transaction that writes.
    Write,
    /// A transaction that only reads, with one snapshot.
    Snapshot,
    /// No transaction: each statement is its own.
    Read,
    /// The caller's transaction, which the caller ends.
    Theirs,
}

impl<'s> Transaction<'s> {
    /// Begins a transaction that writes.
    pub(super) async fn write(
        shared: &'s Shared,
        pool: &Arc<Pool>,
    ) -> StoreResult<Transaction<'s>> {
        Transaction::open(shared, pool, BEGIN, Kind::Write).await
    }

    /// Begins a transaction that only reads, with one snapshot.
    pub(super) async fn snapshot(shared: &'s Shared) -> StoreResult<Transaction<'s>> {
        Transaction::open(shared, &shared.work, SNAPSHOT, Kind::Snapshot).await
    }

    /// Returns a connection for statements that only read.
    pub(super) async fn read(shared: &'s Shared) -> StoreResult<Transaction<'s>> {
        Transaction::open(shared, &shared.work, NOW, Kind::Read).await
    }

    /// Uses the caller's transaction, if its session is suitable.
    pub(super) async fn theirs(
        shared: &'s Shared,
        link: impl Link + 's,
    ) -> StoreResult<Transaction<'s>> {
        let mut link = Box::new(link);
        check_session(&mut *link).await?;
        let now = link.query(NOW).await.map_err(|error| judge(error.into(), Stage::Open))?;
        let now = now.rows.first().ok_or_else(no_time).and_then(|row| get(row, 0));
        let now = now.map_err(|trouble| judge(trouble, Stage::Open))?;
        Ok(Transaction::new(shared, link, now, Kind::Theirs))
    }

    fn new(shared: &'s Shared, link: Box<dyn Link + 's>, now: i64, kind: Kind) -> Transaction<'s> {
        let now = shared.clock.apply(Timestamp::from_millis(now));
        Transaction {
            link,
            shared,
            now,
            submitted: 0,
            pruned: 0,
            report: None,
            lanes_new: Vec::new(),
            lanes_checked: HashMap::new(),
            leases_ended: BTreeMap::new(),
            repeated: false,
            places: None,
            kind,
        }
    }

    async fn open(
        shared: &'s Shared,
        pool: &Arc<Pool>,
        begin: &str,
        kind: Kind,
    ) -> StoreResult<Transaction<'s>> {
        // The server may have closed a connection that waited in the pool: then all of them are closed, and the next one is new.
        for is_last in [false, true] {
            let mut link = Box::new(pool.get().await?);
            shared.observe(pool.epoch());
            link.set_busy(true);
            match within(shared.timeout, link.query(begin)).await {
                Ok(done) => {
                    let now = done.rows.first().ok_or_else(no_time).and_then(|row| get(row, 0));
                    let now = now.map_err(|trouble| judge(trouble, Stage::Open))?;
                    return Ok(Transaction::new(shared, link, now, kind));
                }
                Err(trouble @ VerbError::Sql(mysql_async::Error::Server(_))) => {
                    return Err(judge(trouble, Stage::Open));
                }
                Err(trouble) if is_last => return Err(judge(trouble, Stage::Open)),
                Err(_) => pool.forget(),
            }
        }
        Err(StoreError::Closed)
    }

    /// Runs a statement.
    pub(super) async fn run(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Done, VerbError> {
        within(self.shared.timeout, self.link.exec(text(sql, 0), values)).await
    }

    /// Runs a statement, and returns how many rows it matched.
    pub(super) async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, VerbError> {
        Ok(self.run(sql, values).await?.affected)
    }

    /// Runs a statement, and returns its rows.
    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, VerbError> {
        Ok(self.run(sql, values).await?.rows)
    }

    /// Reads the first row, if there is one.
    pub(super) async fn find(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<Row>, VerbError> {
        Ok(self.run(sql, values).await?.rows.into_iter().next())
    }

    /// Runs a statement with a list: `before` are the values in front of `{list}`, `after` those behind it. A statement that takes part of
    /// the list at a time is run several times.
    pub(super) async fn run_list(
        &mut self,
        sql: &'static str,
        before: &[Value],
        list: &[Value],
        after: &[Value],
    ) -> Result<Done, VerbError> {
        let mut all = Done { rows: Vec::new(), affected: 0, number: 0 };
        for part in list.chunks(LIST_MAX) {
            let Some(last) = part.last() else { continue };
            let size = padded(part.len());
            let mut values = Vec::with_capacity(before.len() + size + after.len());
            values.extend_from_slice(before);
            values.extend_from_slice(part);
            values.resize(before.len() + size, last.clone());
            values.extend_from_slice(after);
            let done = within(self.shared.timeout, self.link.exec(text(sql, size), values)).await?;
            all.rows.extend(done.rows);
            all.affected += done.affected;
        }
        Ok(all)
    }

    /// Inserts rows with a statement that has `{rows}`; `values` are those of all rows.
    pub(super) async fn insert_rows(
        &mut self,
        sql: &'static str,
        count: usize,
        values: Vec<Value>,
    ) -> Result<u64, VerbError> {
        debug_assert!(count > 0, "no rows to insert");
        Ok(within(self.shared.timeout, self.link.exec(text(sql, count), values)).await?.affected)
    }

    /// Runs a statement without values that is not prepared.
    pub(super) async fn command(&mut self, sql: &str) -> Result<(), VerbError> {
        within(self.shared.timeout, self.link.query(sql)).await.map(drop)
    }

    /// Reads the time again: this transaction has waited for a lock.
    pub(super) async fn refresh_now(&mut self) -> Result<(), VerbError> {
        let row = self.find(NOW, vec![]).await?.ok_or_else(no_time)?;
        self.now = self.shared.clock.apply(Timestamp::from_millis(get(&row, 0)?));
        Ok(())
    }

    /// Reports to watchers that the lane may have a new first job. Fails no verb: if the lane cannot be read, any may have changed.
    pub(super) async fn report_lane(&mut self, number: i64) {
        let lane = self.lane_of(number).await;
        let report = self.report.get_or_insert_default();
        match lane {
            Ok(lane) => report.add(&lane),
            Err(_) => report.merge(StoreChange::AnyLane),
        }
    }

    /// Returns the number of a holder that is alive, and keeps it alive until the end of this transaction. The caller's transaction may stay
    /// open for long, so it only looks.
    pub(super) async fn alive(&mut self, holder: HolderId) -> Result<Option<i64>, VerbError> {
        let sql = match self.kind {
            Kind::Theirs => include_str!("sql/see_holder.sql"),
            Kind::Write | Kind::Snapshot | Kind::Read => include_str!("sql/find_holder.sql"),
        };
        let row = self.find(sql, vec![id16(holder.to_bytes())]).await?;
        let Some(row) = row else { return Ok(None) };
        self.shared.observe(get::<Option<i64>>(&row, 1)?.unwrap_or(0));
        Ok(Some(get(&row, 0)?))
    }

    /// Returns the number of a holder, alive or dead.
    pub(super) async fn number(&mut self, holder: HolderId) -> Result<Option<i64>, VerbError> {
        let sql = include_str!("sql/number_holder.sql");
        self.find(sql, vec![id16(holder.to_bytes())]).await?.map(|row| get(&row, 0)).transpose()
    }

    /// Ends a verb that reads.
    pub(super) async fn finish<T>(mut self, outcome: Result<T, VerbError>) -> StoreResult<T> {
        if self.kind == Kind::Snapshot {
            let ended = self.command("COMMIT").await;
            let answer = outcome.map_err(|trouble| judge(trouble, Stage::Open))?;
            if ended.is_ok() {
                self.link.set_busy(false);
            }
            return Ok(answer);
        }
        match outcome {
            Ok(answer) => {
                self.link.set_busy(false);
                Ok(answer)
            }
            Err(trouble) => {
                self.link.set_busy(is_broken(&trouble));
                Err(judge(trouble, Stage::Open))
            }
        }
    }

    /// Commits a verb that writes, or rolls it back. `None`: others were faster, and the verb must be repeated.
    pub(super) async fn commit<T>(
        mut self,
        outcome: Result<T, VerbError>,
        tries: &mut Tries,
    ) -> Option<StoreResult<T>> {
        let outcome = match outcome {
            Ok(answer) => self.write_ledger().await.map(|()| answer),
            Err(trouble) => Err(trouble),
        };
        let trouble = match outcome {
            Ok(answer) => match self.command("COMMIT").await {
                Ok(()) => {
                    self.link.set_busy(false);
                    self.committed();
                    return Some(Ok(answer));
                }
                // A cluster may report a conflict at the commit, which has then written nothing.
                Err(trouble) if trouble.is_conflict_of_commit() => {
                    drop(self);
                    if tries.again(&trouble).await {
                        return None;
                    }
                    return Some(Err(judge(trouble, Stage::Committing)));
                }
                Err(trouble) => return Some(Err(judge(trouble, Stage::Committing))),
            },
            Err(trouble) => trouble,
        };
        if !is_broken(&trouble) && self.command("ROLLBACK").await.is_ok() {
            self.link.set_busy(false);
        }
        drop(self);
        if trouble.is_passing() && tries.again(&trouble).await {
            return None;
        }
        Some(Err(judge_write(trouble)))
    }

    /// Writes what was done in the caller's transaction to the ledger. The caller commits.
    pub(super) async fn hand_back<T>(mut self, outcome: Result<T, VerbError>) -> StoreResult<T> {
        let outcome = match outcome {
            Ok(answer) => self.write_ledger().await.map(|()| answer),
            Err(trouble) => Err(trouble),
        };
        outcome.map_err(judge_write)
    }

    /// Forgets the lanes that this transaction numbered: it was rolled back to before that.
    pub(super) fn forget_new_lanes(&mut self) {
        self.lanes_new.clear();
        self.lanes_checked.clear();
    }

    /// Returns a place in a lane for a job.
    pub(super) fn place(&self, due: Timestamp) -> i64 {
        self.places.as_ref().unwrap_or(&self.shared.places).next(due)
    }

    /// Notes that a job is not leased under its claim any more. The caller has changed or deleted exactly its row.
    pub(super) fn lease_ended(&mut self, claim: i64, job: JobId) {
        if claim != 0 {
            self.leases_ended.entry(claim).or_default().insert(job);
        }
    }

    /// Returns whether this is the caller's transaction, which may stay open for long: it locks only rows of its own jobs and keys.
    pub(super) fn is_theirs(&self) -> bool {
        self.kind == Kind::Theirs
    }

    /// Writes how many jobs of claims have ended.
    async fn write_claims(&mut self) -> Result<(), VerbError> {
        let ended = std::mem::take(&mut self.leases_ended);
        let ended: BTreeMap<i64, i64> =
            ended.into_iter().map(|(claim, jobs)| (claim, jobs.len() as i64)).collect();
        if !self.is_theirs() {
            return self.count_claims(ended).await;
        }
        for (claim, jobs) in ended {
            let values = vec![claim.into(), jobs.into()];
            self.execute(include_str!("sql/insert_claim_end.sql"), values).await?;
        }
        Ok(())
    }

    /// Subtracts jobs from the counts of their claims. Last, in the order of the claims: others may wait for these rows.
    pub(super) async fn count_claims(
        &mut self,
        ended: BTreeMap<i64, i64>,
    ) -> Result<(), VerbError> {
        for (claim, jobs) in &ended {
            let values = vec![(*jobs).into(), (*claim).into()];
            self.execute(include_str!("sql/count_claim.sql"), values).await?;
        }
        let list: Vec<Value> = ended.into_keys().map(Value::from).collect();
        self.run_list(include_str!("sql/delete_claims.sql"), &[], &list, &[]).await.map(drop)
    }

    async fn write_ledger(&mut self) -> Result<(), VerbError> {
        self.write_claims().await?;
        if self.submitted == 0 && self.pruned == 0 && self.report.is_none() {
            return Ok(());
        }
        let count = |jobs: u64| Value::from(i64::try_from(jobs).unwrap_or(i64::MAX));
        let writer = if self.kind == Kind::Theirs { 0 } else { self.shared.writer };
        let values = vec![
            self.now.as_millis().into(),
            writer.into(),
            count(self.submitted),
            count(self.pruned),
        ];
        self.execute(include_str!("sql/insert_ledger.sql"), values).await.map(drop)
    }

    fn committed(&mut self) {
        for (number, lane) in self.lanes_new.drain(..) {
            self.shared.lanes.remember(number, &lane);
        }
        if let Some(report) = self.report.take() {
            self.shared.woken.wake(report);
        }
    }
}

/// Returns whether the connection cannot be used any more.
fn is_broken(trouble: &VerbError) -> bool {
    trouble.is_out_of_statements() || matches!(trouble, VerbError::Sql(error) if error.is_fatal())
}

fn no_time() -> VerbError {
    unreadable("the server's time")
}

/// Number of values in a list at most.
pub(super) const LIST_MAX: usize = 10_000;
