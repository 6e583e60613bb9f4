//! Reads the jobs of a settled batch with one statement, and ends them with one.

use super::super::error::VerbError;
use super::super::row::{unsigned, wanted};
use super::super::transaction::Transaction;
use super::ending::{Live, end_key};
use super::groups;
use super::results::{self, write_millis};
use super::unreadable::Unreadable;
use rewheel_core::store::{AttemptTiming, Settlement};
use rewheel_core::{
    Fence, GivenResult, HolderId, JobId, Lease, Retain, State, SuccessCode, Wanted,
};
use rusqlite::Row;
use rusqlite::types::{ToSql, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// The settled jobs that the holder has, by id.
pub(super) struct Held(HashMap<JobId, (Live, Option<Wanted>)>);

impl Held {
    pub(super) fn find(
        tx: &Transaction<'_, '_>,
        holder: i64,
        leases: impl Iterator<Item = Lease>,
    ) -> Result<Held, VerbError> {
        let ids: Vec<Value> =
            leases.map(|lease| Value::Blob(lease.job.to_bytes().to_vec())).collect();
        let mut held = HashMap::with_capacity(ids.len());
        let mut unreadable = Unreadable::default();
        let statement = tx.sql(include_str!("../sql/settle_find.sql"))?;
        let mut statement = statement.get();
        let mut rows = statement.query((Rc::new(ids), holder))?;
        while let Some(row) = rows.next()? {
            let id = JobId::from_bytes(row.get(0)?);
            if let Some(read) = unreadable.check(id, read_held(row, id))? {
                held.insert(id, read);
            }
        }
        // The attempts are over, but the decision cannot be applied to unreadable jobs.
        unreadable.set_aside(tx)?;
        Ok(Held(held))
    }

    /// Takes a job if the holder has it under this lease. Guards every settle.
    pub(super) fn take(&mut self, lease: Lease) -> Option<(Live, Option<Wanted>)> {
        if self.0.get(&lease.job)?.0.fence != lease.fence {
            return None;
        }
        self.0.remove(&lease.job)
    }
}

fn read_held(row: &Row<'_>, id: JobId) -> Result<(Live, Option<Wanted>), VerbError> {
    let live = Live {
        seq: row.get(2)?,
        id,
        lane: row.get(3)?,
        attempt: row.get(5)?,
        key: row.get(6)?,
        fence: Fence::new(unsigned(row.get(1)?)),
        takeovers: row.get(7)?,
        takeovers_counted: row.get(8)?,
        group_key: row.get(9)?,
    };
    Ok((live, wanted(row.get(4)?)?))
}

/// Jobs that succeeded and are still in the hot table.
pub(super) struct Successes {
    id: HolderId,
    holder: i64,
    /// What all of them have in common: they are written with one statement.
    keep: Retain,
    code: Option<SuccessCode>,
    rows: Vec<(i64, AttemptTiming)>,
    results: Vec<(JobId, GivenResult)>,
}

impl Successes {
    pub(super) fn of(id: HolderId, holder: i64) -> Successes {
        let (rows, results) = (Vec::new(), Vec::new());
        Successes { id, holder, keep: Retain::default(), code: None, rows, results }
    }

    pub(super) fn add(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        live: Live,
        settled: &Settlement,
    ) -> Result<(), VerbError> {
        let keep = settled.keep;
        if keep != self.keep || settled.code != self.code {
            self.write(tx)?;
            self.keep = keep;
            self.code.clone_from(&settled.code);
        }
        self.rows.push((live.seq, settled.ran));
        if let (Some(result), false) = (&settled.result, keep.job.is_zero()) {
            self.results.push((live.id, result.clone()));
        }
        groups::ended(tx, &live, State::Succeeded)?;
        if keep.job.is_zero() {
            // Under the first fence no attempt can have failed; under a later one there may be records, even of uncounted failures.
            if settled.lease.fence > Fence::new(1) {
                let id = live.id.to_bytes();
                tx.execute(include_str!("../sql/delete_attempts.sql"), [id])?;
            }
            tx.pruned += 1;
        }
        if let Some(key) = &live.key {
            let lane = tx.lane_of(live.lane)?;
            let expires = tx.now.plus(keep.key);
            end_key(tx, &lane, key, live.id, State::Succeeded, expires)?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, tx: &Transaction<'_, '_>) -> Result<(), VerbError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        // In the order of the table, which is the fastest to read.
        self.rows.sort_unstable_by_key(|(seq, _)| *seq);
        let mut times = Vec::with_capacity(self.rows.len() * 26);
        for (_, ran) in &self.rows {
            write_millis(&mut times, ran.started_ago);
            write_millis(&mut times, ran.duration);
        }
        let rows: Vec<Value> = self.rows.drain(..).map(|(seq, _)| Value::Integer(seq)).collect();
        let rows = Rc::new(rows);
        if !self.keep.job.is_zero() {
            let expires = tx.now.plus(self.keep.job);
            let code = self.code.as_ref().map(SuccessCode::as_str);
            let values: [&dyn ToSql; 7] = [
                &rows,
                &self.holder,
                &tx.now.as_millis(),
                &expires.as_millis(),
                &self.id.to_bytes(),
                &times,
                &code,
            ];
            tx.execute(include_str!("../sql/settle_keep.sql"), &values[..])?;
            for (job, result) in self.results.drain(..) {
                results::store(tx, job, expires, &result)?;
            }
        }
        tx.execute(include_str!("../sql/delete_jobs.sql"), [rows])?;
        Ok(())
    }
}
