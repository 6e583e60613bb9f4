//! Checks that groups run one job at a time, in the order of acceptance.

use crate::model::Model;
use rewheel_core::store::{Filter, PageRequest, ReadStore};
use rewheel_core::{GroupKey, Job, JobId, KindName, State, Tenant};
use std::collections::{BTreeMap, BTreeSet};

/// The name of a line.
type Line = (KindName, Option<Tenant>, GroupKey);

/// The acknowledged jobs of each line, in the order in which they were acknowledged. The next one was sent only after that.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    accepted: BTreeMap<Line, Vec<JobId>>,
    /// Dead letters that an operator put back. They have their old place, but others may have run meanwhile.
    redriven: BTreeSet<JobId>,
}

impl Lines {
    fn before(&self, job: &Job) -> Vec<JobId> {
        let Some(line) = line_of(job).and_then(|line| self.accepted.get(&line)) else {
            return Vec::new();
        };
        if !line.contains(&job.id) {
            // Its submit was not acknowledged, so it may have any place.
            return Vec::new();
        }
        let earlier = line.iter().copied().take_while(|other| *other != job.id);
        earlier.filter(|other| !self.redriven.contains(other)).collect()
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
            self.lines().accepted.entry(line).or_default().push(id);
        }
    }

    /// An operator put a dead letter back.
    pub(crate) fn redriven(&self, id: JobId) {
        self.lines().redriven.insert(id);
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
        if !is_first {
            return;
        }
        let before = self.lines().before(job);
        for id in before {
            let earlier = self.store.get(id).await.expect("the store itself never fails");
            if earlier.is_some_and(|other| other.state().is_live()) {
                self.complain(format!("job {} of group {key} starts before {id}", job.id));
            }
            self.count("jobs that follow another one in their group");
        }
    }
}
