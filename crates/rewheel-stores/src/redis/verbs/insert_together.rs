//! Stores a batch together or not at all that is too large for one script.
//!
//! Its parts are staged first, and are not visible. With the last part the batch is decided: from then on it is stored, part by part. If the
//! node dies before, the housekeeping of another one deletes what was staged; after, it stores the rest.

use super::super::RedisStore;
use super::super::error::unreadable;
use super::super::pack::Args;
use super::super::script::{STAGE, UNSTAGE};
use super::insert::{exists, inserted, new_job};
use rewheel_core::store::{Insert, Inserted, Sent, StoreError, StoreResult};
use rewheel_core::{JobId, NewJob};
use std::collections::HashSet;
use std::time::Duration;

/// A staged batch is left by its node if nothing happened to it for this long.
const STALE_AFTER: Duration = Duration::from_secs(20);

/// The answers for a part, and whether one of its jobs is refused.
type Staged = (Vec<Inserted>, bool);

/// Whether a part is staged, or only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Part,
    LastPart,
    Nothing,
}

impl RedisStore {
    pub(super) async fn insert_together(
        &self,
        insert: &Insert<'_>,
        parts: &[&[NewJob]],
    ) -> StoreResult<Vec<Inserted>> {
        let mut ids = HashSet::new();
        if let Some(twice) = insert.jobs.iter().find(|job| !ids.insert(job.id)) {
            return Err(exists(twice.id));
        }
        // The same if the batch is sent again, so that what an earlier call has left is found.
        let batch = parts[0][0].id;
        if insert.sent == Sent::Again {
            self.unstage(Some(batch)).await?;
        }
        let (mut answers, mut is_refused) = (Vec::with_capacity(insert.jobs.len()), false);
        for (nth, part) in parts.iter().enumerate() {
            let stage = match nth + 1 == parts.len() {
                _ if is_refused => Stage::Nothing,
                true => Stage::LastPart,
                false => Stage::Part,
            };
            match self.stage(batch, (nth, part), insert.sent, stage).await {
                Ok((more, refuses)) => {
                    answers.extend(more);
                    if refuses && !is_refused {
                        is_refused = true;
                        self.unstage(Some(batch)).await?;
                    }
                }
                Err(error) => {
                    // If this fails too, the housekeeping of a node does it.
                    if !matches!(error, StoreError::Ambiguous(_)) {
                        let _ = self.unstage(Some(batch)).await;
                    }
                    return Err(error);
                }
            }
        }
        if is_refused {
            return Ok(answers);
        }
        let stored = match self.unstage(Some(batch)).await {
            // It is decided: sent again, it is stored.
            Err(StoreError::Unavailable(why) | StoreError::Full(why)) => {
                return Err(StoreError::Ambiguous(why));
            }
            stored => stored?,
        };
        if stored.len() != insert.jobs.len() {
            let why = "another node has stored a part of this batch: send it again";
            return Err(StoreError::Ambiguous(why.into()));
        }
        self.acknowledge(insert.jobs, &stored);
        Ok(stored)
    }

    async fn stage(
        &self,
        batch: JobId,
        (nth, jobs): (usize, &[NewJob]),
        sent: Sent,
        stage: Stage,
    ) -> StoreResult<Staged> {
        let args = Args::default()
            .bytes(&batch.to_bytes())
            .flag(sent == Sent::Again)
            .flag(stage != Stage::Nothing)
            .flag(stage == Stage::LastPart)
            .list(Args::lists(jobs.iter().map(|job| new_job(job, None))))
            .count(nth);
        let [answers, refused] = self.run(&STAGE, args).await?.parts()?;
        let Ok(answers) = answers.clone().list() else {
            return Err(exists(refused.job()?));
        };
        let answers = answers.into_iter().map(inserted).collect::<StoreResult<_>>()?;
        Ok((answers, refused.count()? == 1))
    }

    /// Stores a staged batch that was decided, or deletes one that was not; without a batch, those that their nodes have left.
    async fn unstage(&self, batch: Option<JobId>) -> StoreResult<Vec<Inserted>> {
        let id = batch.map(JobId::to_bytes);
        let mut stored = Vec::new();
        loop {
            let args = Args::default()
                .bytes(&self.shared.me)
                .maybe_bytes(id.as_ref().map(<[u8; 16]>::as_slice))
                .millis(STALE_AFTER);
            let answer = self.run(&UNSTAGE, args).await?;
            if answer.is_missing() {
                return Ok(stored);
            }
            let [answers, lanes] = answer.parts()?;
            self.wake(lanes)?;
            for answer in answers.list().map_err(|_| unreadable("a reply"))? {
                stored.push(inserted(answer)?);
            }
        }
    }

    /// Ends what nodes have left that died in the middle of a large batch.
    pub(super) async fn finish_batches(&self) -> StoreResult<()> {
        self.unstage(None).await.map(drop)
    }
}
