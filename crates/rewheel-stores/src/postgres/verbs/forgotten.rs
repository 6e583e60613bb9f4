//! Counts the acknowledged jobs that a failover or a restore forgot.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{count, job_id, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{FORGOTTEN, FORGOTTEN_ENDS, FORGOTTEN_SUBMITS, INSERT_FORGOTTEN};
use crate::acknowledged::Check;
use rewheel_core::store::{Inserted, Risk};
use rewheel_core::{JobId, Limits, NewJob};
use std::collections::HashSet;
use uuid::Uuid;

/// How long a failover that forgot jobs is reported: people are back after a weekend.
const REPORTED_FOR_MS: i64 = 3 * 24 * 3_600 * 1_000;

/// What a check found.
#[derive(Debug, Default)]
struct Found {
    submitted: HashSet<JobId>,
    ended: HashSet<JobId>,
}

impl PostgresStore {
    /// Remembers jobs that were stored, as acknowledged to their callers.
    pub(in super::super) fn acknowledge(&self, jobs: &[NewJob], answers: &[Inserted]) {
        let created = jobs.iter().zip(answers);
        let created = created.filter(|(_, answer)| matches!(answer, Inserted::Created { .. }));
        self.shared.acknowledged.submitted(created.map(|(job, _)| job.id));
    }

    /// Counts what the store forgot, if an epoch began. Not urgent: if it fails, the next sweep tries it again.
    pub(super) async fn count_forgotten(&self) {
        let Some(check) = self.shared.acknowledged.check() else { return };
        let Ok(session) = self.write().await else { return };
        let found = count_forgotten(&session, &check, self.shared.node).await;
        match session.end(found).await {
            Ok(Found { submitted, ended }) => {
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
                let counted = &submitted | &ended;
                self.shared.acknowledged.checked(check.epoch, &counted);
            }
            Err(error) => {
                tracing::debug!(%error, "failed to count forgotten jobs: retrying");
            }
        }
    }
}

async fn count_forgotten(
    session: &Session<'_>,
    check: &Check,
    node: Uuid,
) -> Result<Found, VerbError> {
    let mut found = Found::default();
    for part in check.submitted.chunks(Limits::BATCH_MAX) {
        let ids: Vec<Uuid> = part.iter().copied().map(uuid).collect();
        for row in session.query(&FORGOTTEN_SUBMITS, &[&ids]).await? {
            let id = job_id(row.try_get(0)?);
            // A job that has ended here, and was not kept, is not missing.
            if !check.dropped.contains(&id) {
                found.submitted.insert(id);
            }
        }
    }
    for part in check.ended.chunks(Limits::BATCH_MAX) {
        let ids: Vec<Uuid> = part.iter().copied().map(uuid).collect();
        for row in session.query(&FORGOTTEN_ENDS, &[&ids]).await? {
            found.ended.insert(job_id(row.try_get(0)?));
        }
    }
    let params: [Param<'_>; 6] = [
        &check.epoch,
        &node,
        &session.offset(),
        &count(found.submitted.len() as u64),
        &count(found.ended.len() as u64),
        &count((check.submitted.len() + check.ended.len()) as u64),
    ];
    session.execute(&INSERT_FORGOTTEN, &params).await?;
    Ok(found)
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
         ended run again, as far as {nodes} nodes know; jobs that other processes submitted, or that nodes submitted which have \
         stopped, are not counted; the log of each node names some of the missing jobs: submit them again with their keys",
        ago_ms / 60_000
    );
    Ok(Some(Risk { name: "failover", message }))
}
