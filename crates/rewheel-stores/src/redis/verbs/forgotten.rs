//! Counts the acknowledged jobs that a restart or a failover of the server forgot.

use super::super::pack::{Args, count, number};
use super::super::script::FORGOTTEN;
use super::super::values::With;
use super::super::{RedisStore, SCRIPT_JOBS_MAX};
use crate::acknowledged::{Found, Part, Step};
use crate::clock;
use rewheel_core::store::{Inserted, Outcome, Risk, Settled, Settlement, StoreResult};
use rewheel_core::{NewJob, State, Timestamp};
use std::collections::HashSet;
use std::time::Duration;

/// How long it is reported: people are back after a weekend.
const REPORTED_FOR: Duration = Duration::from_secs(3 * 24 * 3_600);

/// How long one sweep looks for jobs. The next one continues, so that no sweep exceeds its timeout.
const LOOKED_FOR: Duration = Duration::from_secs(1);

impl RedisStore {
    /// Remembers jobs that were stored, as acknowledged to their callers.
    pub(super) fn acknowledge(&self, jobs: &[NewJob], answers: &[Inserted]) {
        let created = jobs.iter().zip(answers);
        let created = created.filter(|(_, answer)| matches!(answer, Inserted::Created { .. }));
        let created = created.map(|(job, _)| (job.id, &job.kind));
        self.shared.connections.acknowledged.submitted(created, self.time());
    }

    /// Remembers jobs that have ended.
    pub(super) fn acknowledge_ends(&self, settlements: &[Settlement], answers: &[Settled]) {
        let ended = settlements.iter().zip(answers).filter(|(_, answer)| has_ended(answer));
        let ended = ended.map(|(settled, _)| (settled.lease.job, settled.keep.job));
        self.shared.connections.acknowledged.ended(ended, self.time());
    }

    /// The time by which jobs are remembered.
    fn time(&self) -> Timestamp {
        clock::now(&self.shared.connections.clock)
    }

    /// Counts what the server forgot, if an epoch began: a part of it in each sweep. If it fails, the next sweep tries it again.
    pub(super) async fn count_forgotten(&self) {
        let began = self.time();
        while let Some(step) = self.shared.connections.acknowledged.next(SCRIPT_JOBS_MAX) {
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
        let (mut missing, mut live) = (HashSet::new(), HashSet::new());
        if !part.submitted.is_empty() {
            let (_, rows) = self.rows(&part.submitted, With::NoPayload).await?;
            let gone = part.submitted.iter().zip(rows).filter(|(_, row)| row.is_none());
            missing.extend(gone.map(|(id, _)| *id));
        }
        if !part.ended.is_empty() {
            let (_, rows) = self.rows(&part.ended, With::NoPayload).await?;
            for (id, row) in part.ended.iter().zip(rows) {
                let job = row.and_then(|row| row.job(*id, With::NoPayload).ok());
                if job.is_some_and(|job| job.state().is_live()) {
                    live.insert(*id);
                }
            }
        }
        self.shared.connections.acknowledged.looked(part, &missing, &live, self.time());
        Ok(())
    }

    async fn report(&self, found: &Found) -> StoreResult<()> {
        let Found { epoch, submitted, ended, .. } = found;
        let args = Args::default()
            .millis(REPORTED_FOR)
            .number(number(epoch.unsigned_abs()))
            .number(count(submitted.len()))
            .number(count(ended.len()));
        self.run(&FORGOTTEN, args).await?;
        self.shared.connections.acknowledged.reported(found);
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
        Ok(())
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
             jobs that had ended run again, as far as {nodes} nodes know; a missing job may also have ended on another node and have been \
             deleted since; jobs of nodes that have stopped are not counted, nor are jobs of more than 10 minutes before; the log of each \
             node names some of the missing jobs: submit those that did not run again, with their keys",
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
