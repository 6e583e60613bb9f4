//! Counts the acknowledged jobs that a restart or a failover of the server forgot.

use super::super::pack::{Args, count, number};
use super::super::script::FORGOTTEN;
use super::super::values::With;
use super::super::{RedisStore, SCRIPT_JOBS_MAX};
use crate::acknowledged::Check;
use rewheel_core::store::{Inserted, Outcome, Risk, Settled, Settlement, StoreResult};
use rewheel_core::{JobId, NewJob, State};
use std::collections::HashSet;
use std::time::Duration;

/// How long it is reported: people are back after a weekend.
const REPORTED_FOR: Duration = Duration::from_secs(3 * 24 * 3_600);

/// What a check found.
#[derive(Debug, Default)]
struct Found {
    submitted: HashSet<JobId>,
    ended: HashSet<JobId>,
}

impl RedisStore {
    /// Remembers jobs that were stored, as acknowledged to their callers.
    pub(super) fn acknowledge(&self, jobs: &[NewJob], answers: &[Inserted]) {
        let created = jobs.iter().zip(answers);
        let created = created.filter(|(_, answer)| matches!(answer, Inserted::Created { .. }));
        self.shared.connections.acknowledged.submitted(created.map(|(job, _)| job.id));
    }

    /// Remembers jobs that have ended.
    pub(super) fn acknowledge_ends(&self, settlements: &[Settlement], answers: &[Settled]) {
        let ended = settlements.iter().zip(answers).filter(|(_, answer)| has_ended(answer));
        let ended = ended.map(|(settled, _)| (settled.lease.job, !settled.keep.job.is_zero()));
        self.shared.connections.acknowledged.ended(ended);
    }

    /// Counts what the server forgot, if an epoch began. Not urgent: if it fails, the next sweep tries it again.
    pub(super) async fn count_forgotten(&self) {
        let acknowledged = &self.shared.connections.acknowledged;
        let Some(check) = acknowledged.check() else { return };
        match self.look_for(&check).await {
            Ok(Found { submitted, ended }) => {
                if !submitted.is_empty() || !ended.is_empty() {
                    let examples: Vec<String> =
                        submitted.iter().take(10).map(ToString::to_string).collect();
                    tracing::error!(
                        submitted = submitted.len(),
                        ended = ended.len(),
                        examples = examples.join(","),
                        "the restart or failover of Redis forgot acknowledged jobs"
                    );
                }
                acknowledged.checked(check.epoch, &(&submitted | &ended));
            }
            Err(error) => {
                tracing::debug!(%error, "failed to count forgotten jobs: retrying");
            }
        }
    }

    async fn look_for(&self, check: &Check) -> StoreResult<Found> {
        let mut found = Found::default();
        for part in check.submitted.chunks(SCRIPT_JOBS_MAX) {
            let (_, rows) = self.rows(part, With::NoPayload).await?;
            let missing = part.iter().zip(rows).filter(|(_, row)| row.is_none());
            // A job that has ended here, and was not kept, is not missing.
            let missing = missing.map(|(id, _)| *id).filter(|id| !check.dropped.contains(id));
            found.submitted.extend(missing);
        }
        for part in check.ended.chunks(SCRIPT_JOBS_MAX) {
            let (_, rows) = self.rows(part, With::NoPayload).await?;
            for (id, row) in part.iter().zip(rows) {
                let job = row.and_then(|row| row.job(*id, With::NoPayload).ok());
                if job.is_some_and(|job| job.state().is_live()) {
                    found.ended.insert(*id);
                }
            }
        }
        let args = Args::default()
            .millis(REPORTED_FOR)
            .number(number(check.epoch.unsigned_abs()))
            .number(count(found.submitted.len()))
            .number(count(found.ended.len()));
        self.run(&FORGOTTEN, args).await?;
        Ok(found)
    }

    /// Returns what was forgotten lately.
    pub(super) async fn forgotten(&self) -> StoreResult<Option<Risk>> {
        let answer = self.run(&FORGOTTEN, Args::default().millis(REPORTED_FOR)).await?;
        let [now, submitted, ended, nodes, epoch] = answer.parts()?;
        let (submitted, ended, nodes) = (submitted.count()?, ended.count()?, nodes.count()?);
        if submitted == 0 && ended == 0 {
            return Ok(None);
        }
        let ago = now.time()?.since(epoch.time()?);
        let message = format!(
            "a restart or failover of Redis {} min ago forgot acknowledged work: {submitted} submitted jobs are missing, and {ended} \
             jobs that had ended run again, as far as {nodes} nodes know; jobs of nodes that have stopped are not counted; the log of \
             each node names some of the missing jobs: submit them again with their keys",
            ago.as_secs() / 60
        );
        Ok(Some(Risk { name: "failover", message }))
    }
}

fn has_ended(answer: &Settled) -> bool {
    match answer {
        Settled::Applied(Outcome::LetGo(state)) => !state.is_live() && *state != State::Dead,
        Settled::Applied(Outcome::Kept { .. } | Outcome::Gone)
        | Settled::AlreadyApplied(_)
        | Settled::Lost => false,
    }
}
