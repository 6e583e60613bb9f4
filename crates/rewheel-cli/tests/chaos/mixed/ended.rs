//! What the store and the called service know when a mixed workload has ended.

use super::service::Service;
use crate::cell::Cell;
use crate::ledger::Jobs;
use serde_json::Value;

/// All jobs, after the last of them has ended.
pub(crate) struct Ended<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) service: &'a Service,
    pub(crate) jobs: Jobs,
}

impl Ended<'_> {
    /// Returns an acknowledged job.
    #[track_caller]
    pub(crate) fn job(&self, id: &str) -> &Value {
        self.jobs.get(id).unwrap_or_else(|| panic!("{id} is lost"))
    }

    /// Returns an acknowledged job that must have succeeded.
    #[track_caller]
    pub(crate) fn succeeded(&self, id: &str) -> &Value {
        let job = self.job(id);
        assert_eq!(job["state"], "succeeded", "{job}");
        job
    }

    /// Checks that the newest attempt of a callback settled its job.
    #[track_caller]
    pub(crate) fn settled_by_newest(&self, id: &str) {
        let (job, calls) = (self.job(id), self.service.calls_of(id));
        let newest = calls.iter().map(|call| call.fence).max();
        assert_eq!(job["fence"].as_u64(), newest, "a late holder settled {job}: {calls:#?}");
    }

    /// Returns the jobs of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.jobs.iter().filter(move |(_, job)| job["kind"] == kind)
    }

    /// Returns the jobs that were submitted by another one.
    pub(crate) fn children_of(&self, parent: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.jobs.iter().filter(move |(_, job)| job["parent"] == parent)
    }

    /// Returns a job with its payload and attempts, which lists leave out.
    pub(crate) async fn whole(&self, id: &str) -> Value {
        let (_, body) = self.cell.get(&format!("/v1/jobs/{id}")).await;
        serde_json::from_slice(&body).unwrap()
    }

    /// Returns the content type and the JSON of a result.
    pub(crate) async fn result(&self, id: &str) -> (String, Value) {
        let (content_type, body) = self.cell.get(&format!("/v1/jobs/{id}/result")).await;
        (content_type, serde_json::from_slice(&body).unwrap())
    }
}
