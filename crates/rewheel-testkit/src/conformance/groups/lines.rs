//! Tests that a line always gets a head, whatever happens at the same time.

use super::{check_lines, claim, grouped, line};
use crate::Subject;
use crate::threads::at_once;
use rewheel_core::store::{Change, ChangeVerb, Insert, Settlement, Store};
use rewheel_core::{Actor, HolderId, JobId, NewJob, Retain};
use std::sync::Arc;

/// One of the things that happen at the same time.
#[derive(Clone)]
enum Step {
    Insert(Vec<NewJob>),
    Settle(HolderId, Box<Settlement>),
    PauseAndResume(JobId),
}

impl Step {
    async fn run(self, store: Arc<dyn Store>) {
        match self {
            Step::Insert(jobs) => drop(store.insert(&Insert::new(&jobs)).await.unwrap()),
            Step::Settle(holder, settlement) => {
                drop(store.settle(holder, &[*settlement]).await.unwrap());
            }
            Step::PauseAndResume(job) => {
                for what in [ChangeVerb::Pause, ChangeVerb::Resume] {
                    let change = [Change::new(job, what)];
                    store.change(&change, &Actor::new("suite"), Retain::default()).await.unwrap();
                }
            }
        }
    }
}

async fn all_at_once(subject: &Subject, steps: Vec<Step>) {
    if !steps.is_empty() {
        at_once(steps.len(), |place| steps[place].clone().run(Arc::clone(&subject.store))).await;
    }
    // As housekeeping does.
    subject.store.release_groups(100).await.unwrap();
    check_lines(subject).await;
}

/// While a job ends, another one is stored: it runs afterwards, whichever comes first.
pub async fn go_on_while_a_job_is_stored(subject: &Subject) {
    let mut last = line(subject, 1).await[0];
    let holder = subject.holder().await;
    for _ in 0..30 {
        let claimed = claim(subject, holder).await;
        assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [last]);
        let new = grouped(subject, "customer-17");
        last = new.id;
        let settle = Step::Settle(holder, Box::new(Settlement::succeed(claimed[0].lease())));
        all_at_once(subject, vec![Step::Insert(vec![new]), settle]).await;
    }
}

/// Many jobs of few groups, stored, ended, paused and resumed at the same time: no group has two leases, and all of them end.
pub async fn never_have_two_leases(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let holder = subject.holder().await;
    let mut left: Vec<NewJob> =
        (0..60).map(|nth| grouped(subject, &format!("customer-{}", nth % 4))).collect();
    let (mut ran, mut stored) = (0, None);
    for _ in 0..200 {
        let claimed = claim(subject, holder).await;
        let groups = claimed.iter().filter_map(|leased| leased.job.group.as_ref());
        let mut groups: Vec<_> = groups.map(|group| &group.key).collect();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), claimed.len(), "two jobs of one group are leased");
        ran += claimed.len();
        let next: Vec<NewJob> = left.drain(..left.len().min(5)).collect();
        let settle = |lease| Step::Settle(holder, Box::new(Settlement::succeed(lease)));
        let mut steps: Vec<Step> = claimed.iter().map(|leased| settle(leased.lease())).collect();
        steps.extend(stored.map(Step::PauseAndResume));
        stored = next.last().map(|job| job.id).or(stored);
        if !next.is_empty() {
            steps.push(Step::Insert(next));
        }
        all_at_once(subject, steps).await;
        if ran == 60 {
            break;
        }
    }
    assert_eq!(ran, 60, "every job ran");
    subject.balance().await;
}
