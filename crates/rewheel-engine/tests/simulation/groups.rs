//! Checks that groups run one job at a time, in the order of acceptance.

use crate::model::Model;
use rewheel_core::store::{Filter, PageRequest, ReadStore};
use rewheel_core::{GroupKey, Job, JobId, KindName, State, Tenant};
use std::collections::BTreeMap;

/// The name of a line.
type Line = (KindName, Option<Tenant>, GroupKey);

/// The acknowledged jobs of each line, in the order in which they were acknowledged. The next one was sent only after that.
#[derive(Debug, Default)]
pub(crate) struct Lines(BTreeMap<Line, Vec<JobId>>);

impl Lines {
    fn before(&self, job: &Job) -> Vec<JobId> {
        let Some(line) = line_of(job).and_then(|line| self.0.get(&line)) else { return Vec::new() };
        line.iter().copied().take_while(|other| *other != job.id).collect()
    }
}

fn line_of(job: &Job) -> Option<Line> {
    let key = job.group.as_ref()?.key.clone();
    Some((job.lane.kind.clone(), job.lane.tenant.clone(), key))
}

impl Model {
    /// A submit was acknowledged.
    pub(crate) async fn accepted(&self, id: JobId) {
        let Ok(Some(job)) = self.store.get(id).await else { return };
        if let Some(line) = line_of(&job) {
            self.count("jobs with a group");
            self.lines().0.entry(line).or_default().push(id);
        }
    }

    /// An attempt of a job starts, its first one or another.
    pub(crate) async fn check_group(&self, job: &Job, is_first: bool) {
        let Some((kind, tenant, key)) = line_of(job) else { return };
        let filter = Filter {
            states: vec![State::Leased],
            kinds: vec![kind],
            group_key: Some(key.clone()),
            ..Filter::default()
        };
        let leased = self.store.list(&filter, &PageRequest::first(100)).await;
        let mut leased = leased.expect("the store itself never fails").items;
        leased.retain(|other| other.lane.tenant == tenant);
        if leased.len() > 1 {
            let ids: Vec<JobId> = leased.iter().map(|job| job.id).collect();
            self.complain(format!("jobs of one group {key} are leased at once: {ids:?}"));
        }
        if !is_first || job.attempts_before > 0 {
            // A redriven job has its old place, but others may have run meanwhile.
            return;
        }
        let before = self.lines().before(job);
        for id in before {
            let earlier = self.store.get(id).await.expect("the store itself never fails");
            // One that was redriven may come back behind others.
            let waits = |other: &Job| other.state().is_live() && other.attempts_before == 0;
            if earlier.is_some_and(|other| waits(&other)) {
                self.complain(format!("job {} of group {key} starts before {id}", job.id));
            }
            self.count("jobs that follow another one in their group");
        }
    }
}
