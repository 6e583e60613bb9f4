//! Failures that a test scripts for the next attempts of a kind.

use rewheel_core::Report;
use rewheel_engine::IntoReport;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The reports that replace the next attempts, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    reports: Arc<Mutex<BTreeMap<String, VecDeque<Report>>>>,
}

impl Script {
    pub(crate) fn add(&self, kind: &str, report: Report) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.entry(kind.to_owned()).or_default().push_back(report);
    }

    pub(crate) fn next(&self, kind: &str) -> Option<Report> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.get_mut(kind)?.pop_front()
    }
}

/// What an attempt returns: a scripted report, or what its handler returned.
#[derive(Debug)]
pub enum Scripted<R> {
    /// The test scripted this report; the handler did not run.
    Report(Report),
    /// The handler ran.
    Ran(R),
}

impl<R: IntoReport<M>, M> IntoReport<M> for Scripted<R> {
    fn into_report(self) -> Report {
        match self {
            Scripted::Report(report) => report,
            Scripted::Ran(returned) => returned.into_report(),
        }
    }

    fn to_json(&self) -> Option<Result<Vec<u8>, String>> {
        match self {
            Scripted::Report(_) => None,
            Scripted::Ran(returned) => returned.to_json(),
        }
    }
}
