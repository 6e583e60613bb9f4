//! Prepares the jobs that settlements submit.

use super::super::RedisStore;
use super::super::pack::Args;
use super::super::values::{With, write_failure};
use super::insert::new_job;
use super::kinds::{default_kind, kind_note};
use crate::follow_ups::{FollowUps, Letter};
use rewheel_core::store::{Settlement, StoreResult};
use rewheel_core::{Actor, AuditFields, JobId, Kind, KindName, Lane, NewJob};
use std::collections::HashMap;

impl RedisStore {
    /// Returns the lane of each settled job that submits others: they get its tenant, which never changes.
    pub(super) async fn lanes_of_parents(
        &self,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Option<Lane>>> {
        let parents = settlements.iter().filter(|one| !one.follow_ups.is_empty());
        let parents: Vec<JobId> = parents.map(|one| one.lease.job).collect();
        if parents.is_empty() {
            return Ok(vec![None; settlements.len()]);
        }
        let (_, rows) = self.rows(&parents, With::NoPayload).await?;
        let lane = |(id, row): (&JobId, Option<super::super::values::Values>)| {
            let job = row?.job(*id, With::NoPayload).ok()?;
            Some((*id, job.lane))
        };
        let lanes: HashMap<JobId, Lane> = parents.iter().zip(rows).filter_map(lane).collect();
        let of = |one: &Settlement| match one.follow_ups.is_empty() {
            true => None,
            false => lanes.get(&one.lease.job).cloned(),
        };
        Ok(settlements.iter().map(of).collect())
    }
}

/// Writes the jobs that a settlement submits: those to store, each with the dead letter that it becomes if it is refused; and those that no
/// store accepts.
pub(super) fn follow_ups(one: &Settlement, lane: &Lane) -> Args {
    let mut follow_ups = FollowUps::default();
    follow_ups.add(one, lane);
    let jobs = follow_ups.jobs.iter().map(|job| {
        let (fit, suffix) = FollowUps::fit(job.clone());
        let ungrouped = FollowUps::ungrouped(&fit)
            .map(|(fit, told)| letter(&fit, format!("{told}{suffix}").as_bytes()));
        let letter = letter(&fit, suffix.as_bytes());
        new_job(job, Some(ungrouped.into_iter().fold(letter, Args::list)))
    });
    let letters = follow_ups.letters.iter();
    let letters = letters.map(|Letter { job, failure }| letter(job, &write_failure(failure)));
    Args::default().list(Args::lists(jobs)).list(Args::lists(letters))
}

/// A dead letter: the job, what is known of its failure, and its kind in case that does not exist.
fn letter(job: &NewJob, failure: &[u8]) -> Args {
    let (raw, note) = missing_kind(&job.kind);
    Args::default().list(new_job(job, None)).bytes(failure).bytes(&raw).list(note)
}

fn missing_kind(name: &KindName) -> (Vec<u8>, Args) {
    let kind: Kind = default_kind(&FollowUps::kind(name));
    let note =
        kind_note(&Actor::engine(), "put kind", name, &AuditFields::default(), &kind.facts());
    (super::kinds::write_kind(&kind), note)
}
