//! Tests debounced jobs.

use super::{debounced, job, key_job, lease, payload, replace, send, submit};
use crate::{Subject, seconds};
use rewheel_core::store::{Claim, Inserted, Leased, Refusal};
use rewheel_core::{Duplicates, Format, HolderId, Lane, NewHolder, Role, State, Timestamp};

/// Claims debounced jobs of the kind `index`, with a horizon of a minute.
async fn claim_early(subject: &Subject, holder: HolderId, lane: Lane) -> Vec<Leased> {
    let (visits, horizon) = ([subject.visit(lane, 10)], seconds(60));
    subject.store.claim(&Claim { holder, visits: &visits, horizon, limit: 10 }).await.unwrap()
}

/// No holder gets a debounced job before it is due, whatever its horizon: later submits must be able to postpone it.
pub async fn a_debounced_job_is_not_claimed_early(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let new = job(subject, "1", debounced(2, 60));
    submit(subject, &new).await;
    let holder = subject.holder().await;
    assert_eq!(claim_early(subject, holder, new.lane()).await, []);
    subject.clock.advance(seconds(2));
    let claimed = claim_early(subject, holder, new.lane()).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].job.id, new.id);
}

/// Each submit postpones the job and replaces its payload.
pub async fn each_submit_postpones_the_job(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let new = job(subject, "1", debounced(10, 60));
    submit(subject, &new).await;
    let holder = subject.holder().await;
    let replaced = Inserted::Replaced { job: new.id, state: State::Scheduled };
    for text in ["2", "3"] {
        subject.clock.advance(seconds(6));
        assert_eq!(send(subject, text, debounced(10, 60)).await, replaced);
    }
    subject.clock.advance(seconds(6));
    assert_eq!(claim_early(subject, holder, new.lane()).await, [], "not for ten seconds");
    subject.clock.advance(seconds(4));
    let claimed = claim_early(subject, holder, new.lane()).await;
    assert_eq!(claimed.iter().map(|leased| payload(&leased.job)).collect::<Vec<_>>(), ["3"]);
    assert!(matches!(send(subject, "4", debounced(10, 60)).await, Inserted::Created { .. }));
    assert_ne!(key_job(subject).await.unwrap().id, new.id);
    assert_eq!(subject.store.books().await.unwrap().submitted, 2);
    subject.balance().await;
}

/// Submits without a pause postpone the job only for so long.
pub async fn a_debounced_job_is_postponed_up_to_its_limit(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let new = job(subject, "0", debounced(10, 25));
    submit(subject, &new).await;
    let created = subject.get(new.id).await.created;
    for text in ["1", "2", "3"] {
        subject.clock.advance(seconds(8));
        send(subject, text, debounced(10, 25)).await;
    }
    let waiting = subject.get(new.id).await;
    assert_eq!((waiting.due, payload(&waiting)), (created.plus(seconds(25)), "3"));
    subject.clock.advance(seconds(60));
    send(subject, "4", debounced(10, 25)).await;
    assert_eq!(subject.get(new.id).await.due, created.plus(seconds(25)), "also in the past");
    let holder = subject.holder().await;
    let claimed = claim_early(subject, holder, new.lane()).await;
    assert_eq!(claimed.iter().map(|leased| payload(&leased.job)).collect::<Vec<_>>(), ["4"]);
}

/// A job changes between the lanes of debounced and of other jobs with its latest submit.
pub async fn the_last_submit_says_whether_a_job_is_debounced(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let plain = job(subject, "1", Duplicates::default());
    submit(subject, &plain).await;
    let new = job(subject, "2", debounced(10, 60));
    submit(subject, &new).await;
    let lanes = |heads: Vec<rewheel_core::store::LaneHead>| -> Vec<Lane> {
        heads.into_iter().map(|head| head.lane).collect()
    };
    assert_ne!(plain.lane(), new.lane());
    assert_eq!(lanes(subject.lanes(&["index"]).await), [new.lane()]);
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["index"], 1).await, [], "it is debounced now");
    send(subject, "3", replace()).await;
    assert_eq!(lanes(subject.lanes(&["index"]).await), [plain.lane()]);
    let claimed = subject.claim(holder, &["index"], 1).await;
    assert_eq!((claimed[0].job.id, payload(&claimed[0].job)), (plain.id, "3"));
}

/// A debounced submit does not wait for the run of the job before.
pub async fn a_debounced_submit_takes_the_key_of_a_claimed_job(subject: &Subject) {
    let (holder, old) = lease(subject, "1").await;
    let new = job(subject, "2", debounced(2, 60));
    assert!(matches!(submit(subject, &new).await, Inserted::Created { .. }));
    subject.succeed(holder, old).await;
    assert_eq!(key_job(subject).await.unwrap().id, new.id);
}

/// While a holder lives whose release would claim debounced jobs too early, they are refused.
pub async fn debounced_jobs_wait_for_the_last_old_holder(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random);
    let (role, name, format) = (Role::Engine, "old-1".to_owned(), Format::FOLLOW_UPS);
    let old = NewHolder { id, name, role, lease_ttl: seconds(15), format };
    subject.store.join(&old).await.unwrap();
    let refusal = Refusal::HolderTooOld { holder: old.name.clone() };
    assert_eq!(send(subject, "1", debounced(2, 60)).await, Inserted::Refused(refusal));
    assert!(matches!(send(subject, "1", replace()).await, Inserted::Created { .. }));
    subject.store.leave(old.id).await.unwrap();
    assert!(matches!(send(subject, "2", debounced(2, 60)).await, Inserted::Replaced { .. }));
}
