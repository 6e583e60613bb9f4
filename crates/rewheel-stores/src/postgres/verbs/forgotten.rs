//! Counts the acknowledged jobs that a failover or a restore forgot.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{count, job_id, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{
    FORGOTTEN, FORGOTTEN_ENDS, FORGOTTEN_SUBMITS, INSERT_FORGOTTEN, Sql,
};
use crate::acknowledged::{Found, Part, Step};
use crate::clock;
use rewheel_core::store::{Inserted, Risk, StoreResult};
use rewheel_core::{JobId, NewJob, Timestamp};
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

/// How long a failover that forgot jobs is reported: people are back after a weekend.
const REPORTED_FOR_MS: i64 = 3 * 24 * 3_600 * 1_000;

/// Number of jobs to look for in one transaction. One takes about 0.4 ms, because finished jobs are in many tables, and more while the
/// caches of a new primary are cold.
const LOOKED_FOR_MAX: usize = 200;

/// How long one sweep looks for jobs. The next one continues, so that no sweep exceeds its timeout.
const LOOKED_FOR: Duration = Duration::from_secs(1);

impl PostgresStore {
    /// Remembers jobs that were stored, as acknowledged to their callers.
    pub(in super::super) fn acknowledge(&self, jobs: &[NewJob], answers: &[Inserted]) {
        let created = jobs.iter().zip(answers);
        let created = created.filter(|(_, answer)| matches!(answer, Inserted::Created { .. }));
        let created = created.map(|(job, _)| (job.id, &job.kind));
        self.shared.acknowledged.submitted(created, self.time());
    }

    /// The time by which jobs are remembered.
    pub(super) fn time(&self) -> Timestamp {
        clock::now(&self.shared.clock)
    }

    /// Counts what the store forgot, if an epoch began: a part of it in each sweep. If it fails, the next sweep tries it again.
    pub(super) async fn count_forgotten(&self) {
        let began = self.time();
        while let Some(step) = self.shared.acknowledged.next(LOOKED_FOR_MAX) {
            let done = match step {
                Step::Look(part) => self.look_for(&part).await,
                Step::Report(found) => self.report(&found).await,
            };
            if let Err(error) = done {
                tracing::debug!(%error, "failed to count forgotten jobs: retrying");
                return;
            }
            if self.time().since(began) >= LOOKED_FOR {
                return;
            }
        }
    }

    async fn look_for(&self, part: &Part) -> StoreResult<()> {
        let session = self.read().await?;
        let looked = look_for(&session, part).await;
        let (missing, live) = session.end(looked).await?;
        self.shared.acknowledged.looked(part, &missing, &live, self.time());
        Ok(())
    }

    async fn report(&self, found: &Found) -> StoreResult<()> {
        let session = self.write().await?;
        let written = write(&session, found, self.shared.node).await;
        session.end(written).await?;
        self.shared.acknowledged.reported(found);
        let Found { submitted, ended, .. } = found;
        if !submitted.is_empty() || !ended.is_empty() {
            let examples: Vec<String> =
                submitted.iter().take(10).map(ToString::to_string).collect();
            tracing::error!(
                submitted = submitted.len(),
                ended = ended.len(),
                examples = examples.join(","),
                "the failover or restore of the store forgot acknowledged jobs"
            );
        }
        Ok(())
    }
}

/// Returns the submitted jobs that are missing, and the ended ones that are live.
async fn look_for(
    session: &Session<'_>,
    part: &Part,
) -> Result<(HashSet<JobId>, HashSet<JobId>), VerbError> {
    let missing = named(session, &FORGOTTEN_SUBMITS, &part.submitted).await?;
    Ok((missing, named(session, &FORGOTTEN_ENDS, &part.ended).await?))
}

/// Returns those of the jobs that a statement names.
async fn named(
    session: &Session<'_>,
    sql: &'static Sql,
    jobs: &[JobId],
) -> Result<HashSet<JobId>, VerbError> {
    if jobs.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<Uuid> = jobs.iter().copied().map(uuid).collect();
    let rows = session.query(sql, &[&ids]).await?;
    rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
}

async fn write(session: &Session<'_>, found: &Found, node: Uuid) -> Result<(), VerbError> {
    let params: [Param<'_>; 6] = [
        &found.epoch,
        &node,
        &session.offset(),
        &count(found.submitted.len() as u64),
        &count(found.ended.len() as u64),
        &count(found.checked as u64),
    ];
    session.execute(&INSERT_FORGOTTEN, &params).await.map(drop)
}

/// Returns what was forgotten lately.
pub(super) async fn forgotten(session: &Session<'_>) -> Result<Option<Risk>, VerbError> {
    let row = session.one(&FORGOTTEN, &[&session.offset(), &REPORTED_FOR_MS]).await?;
    let (submitted, ended): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if submitted == 0 && ended == 0 {
        return Ok(None);
    }
    let (nodes, ago_ms): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
    let message = format!(
        "a failover or restore {} min ago forgot acknowledged work: {submitted} submitted jobs are missing, and {ended} jobs that had \
         ended run again, as far as {nodes} nodes know; a missing job may also have ended on another node and have been deleted since; \
         jobs that other processes submitted, or that nodes submitted which have stopped, are not counted, nor are jobs of more than \
         10 minutes before; the log of each node names some of the missing jobs: submit those that did not run again, with their keys",
        ago_ms / 60_000
    );
    Ok(Some(Risk { name: "failover", message }))
}
