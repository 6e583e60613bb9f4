//! Parses the query parameters of a list.

use super::cursor::List;
use crate::conditions::{Conditions, NAMES, word};
use crate::problem::{Code, FieldError, Problem};
use axum::extract::Query;
use axum::http::Uri;
use rewheel::duration;
use rewheel_core::store::{Cursor, Filter, PageRequest};
use rewheel_core::{KindName, Limits};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// Longest wait for the end of a job: proxies close silent connections after a minute.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long a list of jobs scans for jobs that match: then it answers with those that it found, and a cursor. The rest of 100 ms is for
/// other work on a request.
const SCAN_TIME: Duration = Duration::from_millis(60);

/// The default page size.
const LIMIT_DEFAULT: usize = 100;

/// The parameters of one request. Errors are collected.
pub(super) struct Parameters {
    found: Vec<(String, String)>,
    errors: Vec<FieldError>,
}

impl Parameters {
    /// Splits a query. Unknown parameters are errors.
    pub(super) fn read(uri: &Uri, known: &[&str]) -> Result<Parameters, Problem> {
        let Query(found) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Problem::new(Code::BadQuery, error))?;
        let mut parameters = Parameters { found: Vec::new(), errors: Vec::new() };
        for (name, value) in found {
            if known.contains(&name.as_str()) {
                parameters.found.push((name, value));
            } else if known.is_empty() {
                parameters.wrong(&name, "is unknown: this route has no query parameters");
            } else {
                parameters.wrong(
                    &name,
                    format!("is unknown: the known parameters are {}", known.join(", ")),
                );
            }
        }
        Ok(parameters)
    }

    /// Takes the page size.
    pub(super) fn limit(&mut self) -> usize {
        let limit = self.one("limit", |text| {
            let limit = text.parse().ok().filter(|limit| (1..=Limits::PAGE_MAX).contains(limit));
            limit.ok_or_else(|| format!("must be 1 to {}", Limits::PAGE_MAX))
        });
        limit.unwrap_or(LIMIT_DEFAULT)
    }

    /// Takes the position after which a page begins.
    pub(super) fn after(&mut self, list: List) -> Option<String> {
        self.one("cursor", |text| list.position(text))
    }

    /// Takes the position after which a page begins, parsed for the list.
    pub(super) fn after_as<T: FromStr>(&mut self, list: List) -> Option<T> {
        self.one("cursor", |text| {
            let position = list.position(text)?;
            position.parse().map_err(
                |_| "is not a cursor of this list: use the value of `next` in the previous page",
            )
        })
    }

    /// Takes how long to wait for the end of a job.
    pub(super) fn wait(&mut self) -> Option<Duration> {
        self.one("wait", |text| {
            let wait = duration::parse(text).map_err(|error| error.to_string())?;
            if wait > WAIT_MAX {
                return Err(format!("must be {} or shorter", duration::text(WAIT_MAX)));
            }
            Ok(wait)
        })
    }

    /// Returns the collected errors, if there are any.
    pub(super) fn finish(self) -> Result<(), Problem> {
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::of_fields(Code::BadQuery, self.errors))
        }
    }

    pub(super) fn wrong(&mut self, name: &str, message: impl Display) {
        self.errors.push(FieldError::new(crate::fields::pointer("", name), message));
    }
}

impl Conditions for Parameters {
    fn all<T, E: Display>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let (taken, found) =
            std::mem::take(&mut self.found).into_iter().partition(|(found, _)| found == name);
        self.found = found;
        let taken: Vec<(String, String)> = taken;
        let judge = |(_, text): &(String, String)| {
            parse(text).map_err(|error| self.wrong(name, error)).ok()
        };
        taken.iter().filter_map(judge).collect()
    }

    fn one<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let mut all = self.all(name, parse);
        if all.len() > 1 {
            self.wrong(name, "occurs more than once: send it only once");
        }
        all.pop()
    }
}

/// What a request for a list of jobs asks for.
#[derive(Debug)]
pub(super) struct JobList {
    pub(super) filter: Filter,
    pub(super) page: PageRequest,
    /// Jobs of this schedule.
    pub(super) schedule: Option<KindName>,
    /// Jobs of the holders with this id or name.
    pub(super) holder: Option<String>,
}

/// Parses a request for a list of jobs.
pub(super) fn jobs(uri: &Uri) -> Result<JobList, Problem> {
    let others = ["schedule", "holder", "limit", "cursor"];
    let known: Vec<&str> = NAMES.into_iter().chain(others).collect();
    let mut parameters = Parameters::read(uri, &known)?;
    let filter = parameters.filter();
    let schedule = parameters.one("schedule", KindName::parse);
    if schedule.is_some() && filter.parent.is_some() {
        parameters.wrong("schedule", "cannot be combined with `parent`: remove one of the two");
    }
    let holder = parameters.one("holder", word);
    let limit = parameters.limit();
    let cursor = parameters.after_as::<Cursor>(List::Jobs);
    parameters.finish()?;
    let page = PageRequest { cursor, scan_time: Some(SCAN_TIME), ..PageRequest::first(limit) };
    Ok(JobList { filter, page, schedule, holder })
}

#[cfg(test)]
mod tests {
    use super::{Code, JobList, jobs};
    use axum::http::Uri;

    fn uri(query: &str) -> Uri {
        format!("/v1/jobs?{query}").parse().unwrap()
    }

    #[test]
    fn every_filter_is_read() {
        let query = "state=dead&state=scheduled&kind=a&kind=b&tenant=shop%201&category=timeout&q=x&key=k\
                     &due_after=2026-01-01T00:00:00Z&due_before=2026-01-02T00:00:00Z\
                     &created_after=2026-01-01T00:00:00Z&created_before=2026-01-02T00:00:00Z\
                     &code=504&incident=00ff&reason=retry_budget&attempt=%3E3&holder=node-2&limit=7";
        let JobList { filter, page, holder, .. } = jobs(&uri(query)).unwrap();
        assert_eq!(
            (filter.code.as_deref(), filter.incident.as_deref()),
            (Some("504"), Some("00ff"))
        );
        assert_eq!(filter.reason, Some(rewheel_core::DueReason::RetryBudget));
        assert!(filter.attempts.is_some_and(|range| range.has(4) && !range.has(3)));
        assert_eq!(holder.as_deref(), Some("node-2"));
        assert_eq!((filter.states.len(), filter.kinds.len(), page.limit), (2, 2, 7));
        assert_eq!(filter.tenant.unwrap().as_str(), "shop 1");
        assert_eq!(
            (filter.category.unwrap().as_str(), filter.text.unwrap()),
            ("timeout", "x".into())
        );
        assert_eq!(filter.key.unwrap().as_str(), "k");
        assert!(filter.due_after < filter.due_before);
        assert!(filter.created_after < filter.created_before);
        assert_eq!(jobs(&uri("")).unwrap().page.limit, 100);
    }

    #[track_caller]
    fn check(query: &str, field: &str) {
        let problem = jobs(&uri(query)).unwrap_err();
        assert_eq!((problem.code, problem.errors[0].field.as_str()), (Code::BadQuery, field));
    }

    #[test]
    fn a_bad_parameter_is_named() {
        check("limit=0", "/limit");
        check("limit=1001", "/limit");
        check("limit=x", "/limit");
        check("limit=1&limit=2", "/limit");
        check("state=alive", "/state");
        check("kind=A", "/kind");
        check("category=odd", "/category");
        check("due_after=soon", "/due_after");
        check("cursor=abc", "/cursor");
        check("tenant=", "/tenant");
        check("q=", "/q");
        check("key=", "/key");
        check("kind=", "/kind");
        check("state=", "/state");
        check("category=", "/category");
        check("stat=dead", "/stat");
        check("code=", "/code");
        check("incident=", "/incident");
        check("reason=tired", "/reason");
        check("attempt=%3E%3E3", "/attempt");
        check("attempt=%3C0", "/attempt");
        check("holder=", "/holder");
        check("schedule=A", "/schedule");
        check("schedule=a&parent=0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e", "/schedule");
    }
}
