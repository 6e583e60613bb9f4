//! Sets aside jobs that cannot be read, so that they do not block others.

use super::super::RedisStore;
use super::super::pack::Args;
use super::super::script::{SET_ASIDE, UNREADABLE};
use super::super::values::Unreadable;
use crate::unreadable::unreadable_jobs;
use rewheel_core::JobId;
use rewheel_core::store::{Risk, StoreResult};

/// Jobs that cannot be read, and why.
#[derive(Debug, Default)]
pub(super) struct Aside(Vec<(JobId, Unreadable)>);

impl Aside {
    pub(super) fn add(&mut self, job: JobId, reason: Unreadable) {
        self.0.push((job, reason));
    }
}

impl RedisStore {
    /// Pauses jobs that were claimed and cannot be read. If that fails, they stay leased, are taken over when they are overdue, and this
    /// runs again.
    pub(super) async fn set_aside(&self, aside: Aside) {
        if aside.0.is_empty() {
            return;
        }
        for (job, reason) in &aside.0 {
            tracing::error!(%job, %reason, "job paused: its row is unreadable; run `rewheel doctor`");
        }
        let jobs = aside
            .0
            .iter()
            .map(|(job, reason)| Args::default().bytes(&job.to_bytes()).bytes(reason.0.as_bytes()));
        let args = Args::default().bytes(&self.shared.me).list(Args::lists(jobs));
        let paused = self.run(&SET_ASIDE, args).await.and_then(|lanes| self.wake(lanes));
        if let Err(error) = paused {
            tracing::error!(%error, "failed to pause unreadable jobs: trying again when their leases expire; run `rewheel doctor`");
        }
    }

    pub(in super::super) async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        let [count, first, reason] = self.read(&UNREADABLE, Args::default()).await?.parts()?;
        if first.is_missing() {
            return Ok(None);
        }
        let first = first.job()?.to_string();
        Ok(Some(unreadable_jobs(count.count()?, &first, &reason.text()?)))
    }
}
