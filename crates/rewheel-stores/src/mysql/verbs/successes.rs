//! Ends the jobs of a settled batch that succeeded, with few statements.

use super::super::error::VerbError;
use super::super::job_columns::LEASED;
use super::super::row::{id16, millis};
use super::super::transaction::Transaction;
use super::ending::{Live, drop_deadlines, drop_origin, expect_matched, lose_lease};
use super::given::{ForJob, Given};
use super::groups;
use super::keys::{end_keys, ended};
use super::results;
use mysql_async::Value;
use rewheel_core::store::{AttemptTiming, Settlement};
use rewheel_core::{GivenResult, HolderId, JobId, Retain, State, SuccessCode};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Jobs that succeeded and are still in the hot table.
pub(super) struct Successes {
    id: HolderId,
    holder: i64,
    /// What all of them have in common: they are written together.
    keep: Retain,
    code: Option<SuccessCode>,
    /// Their places, by lane.
    rows: BTreeMap<i64, Vec<(i64, AttemptTiming)>>,
    results: Vec<(JobId, GivenResult)>,
    /// Their keys and their deadlines.
    keys: Given,
    deadlines: Given,
    /// Jobs whose attempt records are deleted with them.
    forgotten: Vec<Value>,
}

impl Successes {
    pub(super) fn of(id: HolderId, holder: i64) -> Successes {
        Successes {
            id,
            holder,
            keep: Retain::default(),
            code: None,
            rows: BTreeMap::new(),
            results: Vec::new(),
            keys: Given::default(),
            deadlines: Given::default(),
            forgotten: Vec::new(),
        }
    }

    pub(super) async fn add(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        settled: &Settlement,
    ) -> Result<(), VerbError> {
        let keep = settled.keep;
        if keep != self.keep || settled.code != self.code {
            self.write(tx).await?;
            self.keep = keep;
            self.code.clone_from(&settled.code);
        }
        self.rows.entry(live.lane).or_default().push((live.place, settled.ran));
        if let (Some(result), false) = (&settled.result, keep.job.is_zero()) {
            self.results.push((live.id, result.clone()));
        }
        if let Some(deadline) = live.deadline {
            self.deadlines.add(ForJob::default().number(deadline).bytes(&live.id.to_bytes()));
        }
        lose_lease(tx, live).await?;
        groups::ended(tx, live, State::Succeeded).await?;
        if keep.job.is_zero() {
            if !live.unsettled || live.parent.is_some() || live.group_key.is_some() {
                self.forgotten.push(id16(live.id.to_bytes()));
                drop_origin(tx, live.id, live.parent, live.group_key.as_deref()).await?;
            }
            tx.pruned += 1;
        }
        if let Some(key) = &live.key {
            let lane = tx.lane_of(live.lane).await?;
            self.keys.add(ended(&lane, key, live.id));
        }
        Ok(())
    }

    pub(super) async fn write(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        for (lane, mut rows) in std::mem::take(&mut self.rows) {
            // In the order of the table, which is the fastest to read.
            rows.sort_unstable_by_key(|(place, _)| *place);
            if !self.keep.job.is_zero() {
                self.keep_rows(tx, lane, &rows).await?;
            }
            let places: Vec<Value> = rows.iter().map(|(place, _)| (*place).into()).collect();
            let sql = include_str!("../sql/delete_jobs.sql");
            let after = [self.holder.into(), LEASED.into()];
            let deleted = tx.run_list(sql, &[lane.into()], &places, &after).await?.affected;
            expect_matched(deleted, places.len())?;
        }
        let expires = tx.now.plus(self.keep.job);
        results::store(tx, expires, &std::mem::take(&mut self.results)).await?;
        let forgotten = std::mem::take(&mut self.forgotten);
        tx.run_list(include_str!("../sql/drop_attempts.sql"), &[], &forgotten, &[]).await?;
        drop_deadlines(tx, &mut self.deadlines).await?;
        let expires = tx.now.plus(self.keep.key);
        end_keys(tx, &mut self.keys, State::Succeeded, expires).await
    }

    async fn keep_rows(
        &self,
        tx: &mut Transaction<'_>,
        lane: i64,
        rows: &[(i64, AttemptTiming)],
    ) -> Result<(), VerbError> {
        let mut given = String::with_capacity(rows.len() * 40);
        for (place, ran) in rows {
            let start = if given.is_empty() { '[' } else { ',' };
            let (ago, took) = (millis(ran.started_ago), millis(ran.duration));
            let _ = write!(given, "{start}[{place},{ago},{took}]");
        }
        given.push(']');
        let now = tx.now.as_millis();
        let values = vec![
            now.into(),
            tx.now.plus(self.keep.job).as_millis().into(),
            id16(self.id.to_bytes()),
            now.into(),
            self.code.as_ref().map(SuccessCode::as_str).into(),
            given.into(),
            lane.into(),
        ];
        tx.execute(include_str!("../sql/settle_keep.sql"), values).await.map(drop)
    }
}
