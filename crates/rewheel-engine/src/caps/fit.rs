//! Inserts the jobs of a batch that fit their tenants' caps.

use super::note;
use super::reserved::Taken;
use crate::shared::Shared;
use crate::submit;
use rewheel_core::store::{IfRefused, Insert, Inserted, Refusal, StoreResult};
use rewheel_core::{NewJob, Tenant, Timestamp, When};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Inserts the jobs that fit, in the order of the batch. Duplicates do not count against the cap.
pub(super) async fn insert(
    shared: &Arc<Shared>,
    insert: &Insert<'_>,
    mut taken: BTreeMap<Tenant, Taken>,
) -> StoreResult<Vec<Inserted>> {
    let answers = match known(shared, insert, &taken).await {
        Ok(known) => insert_rest(shared, insert, &mut taken, known).await,
        Err(error) => {
            // Nothing was sent that could be stored.
            taken.values_mut().for_each(Taken::give_back);
            Err(error)
        }
    };
    if answers.is_ok() {
        taken.values_mut().for_each(Taken::give_back);
    }
    answers
}

async fn insert_rest(
    shared: &Arc<Shared>,
    insert: &Insert<'_>,
    taken: &mut BTreeMap<Tenant, Taken>,
    mut answers: Vec<Option<Inserted>>,
) -> StoreResult<Vec<Inserted>> {
    refuse(shared, insert.jobs, taken, &mut answers);
    let is_refused = answers.iter().flatten().any(|one| matches!(one, Inserted::Refused(_)));
    if is_refused && insert.if_refused == IfRefused::StoreNothing {
        return Ok(answers.into_iter().map(|one| one.unwrap_or(Inserted::LeftOut)).collect());
    }
    let rest = insert.jobs.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
    let rest: Vec<NewJob> = rest.map(|(job, _)| job.clone()).collect();
    let stored = submit::insert(shared, &Insert { jobs: &rest, ..insert.clone() }).await?;
    note(taken, &rest, &stored);
    let mut stored = stored.into_iter();
    let next = |answer: Option<Inserted>| answer.or_else(|| stored.next());
    Ok(answers.into_iter().map(next).map(|one| one.unwrap_or(Inserted::LeftOut)).collect())
}

/// Returns the results of jobs of full tenants that are duplicates, or that cannot be stored at
/// all.
async fn known(
    shared: &Shared,
    insert: &Insert<'_>,
    taken: &BTreeMap<Tenant, Taken>,
) -> StoreResult<Vec<Option<Inserted>>> {
    let is_asked = |job: &NewJob| job.key.is_some() && is_short(taken, job);
    // A store checks the key first, and stores no job whose deadline has passed.
    let deadline = Some(When::At(Timestamp::from_millis(0)));
    let asked = insert.jobs.iter().filter(|job| is_asked(job));
    let asked: Vec<NewJob> = asked.map(|job| NewJob { deadline, ..job.clone() }).collect();
    let mut answers = match asked.is_empty() {
        true => Vec::new(),
        false => {
            let asking = Insert { sent: insert.sent, ..Insert::new(&asked) };
            shared.store.insert(&asking).await?
        }
    }
    .into_iter();
    let answer = |job: &NewJob| match is_asked(job).then(|| answers.next()).flatten() {
        Some(Inserted::Refused(Refusal::DeadlineTooEarly)) | None => None,
        known => known,
    };
    Ok(insert.jobs.iter().map(answer).collect())
}

/// Refuses jobs that exceed the cap.
fn refuse(
    shared: &Shared,
    jobs: &[NewJob],
    taken: &BTreeMap<Tenant, Taken>,
    answers: &mut [Option<Inserted>],
) {
    let mut left: BTreeMap<&Tenant, u64> =
        taken.iter().map(|(tenant, taken)| (tenant, taken.jobs())).collect();
    for (job, answer) in jobs.iter().zip(answers).filter(|(_, answer)| answer.is_none()) {
        let Some(tenant) = job.tenant.as_ref().filter(|_| is_short(taken, job)) else { continue };
        let left = left.entry(tenant).or_default();
        match left.checked_sub(1) {
            Some(rest) => *left = rest,
            None => {
                let jobs_max = shared.intake.caps.jobs_max(tenant).unwrap_or(u64::MAX);
                *answer = Some(Inserted::Refused(Refusal::TenantFull { jobs_max }));
            }
        }
    }
}

fn is_short(taken: &BTreeMap<Tenant, Taken>, job: &NewJob) -> bool {
    job.tenant.as_ref().and_then(|tenant| taken.get(tenant)).is_some_and(Taken::is_short)
}
