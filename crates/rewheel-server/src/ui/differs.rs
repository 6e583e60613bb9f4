//! What differs between the jobs of an incident and jobs of the same kind that succeeded.

use super::documents::{Incident, Job, Listed};
use super::frame::{Frame, show};
use super::jobs::with_query;
use super::refusal::Refusal;
use super::shown::{cut, segment};
use super::visitor::Visitor;
use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde_json::Value;
use std::collections::BTreeMap;

/// Jobs of each side: each one is read with its payload and its attempts.
const SAMPLE: usize = 50;

/// With fewer jobs on a side, a difference says nothing.
const SAMPLE_MIN: usize = 5;

/// Fields of a payload that are compared.
const FIELDS_MAX: usize = 30;

/// Longer values are texts or data, which no other job has.
const VALUE_CHARS_MAX: usize = 60;

/// Smaller differences, in percentage points, happen by chance in samples of this size.
const DIFFERENCE_MIN: u64 = 25;

/// Differences that are shown.
const SHOWN: usize = 12;

/// A value that is more frequent among the failed jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Difference {
    name: String,
    value: String,
    /// How many of 100 failed jobs have it.
    here: u64,
    /// How many of 100 succeeded jobs have it.
    elsewhere: u64,
}

#[derive(Template)]
#[template(path = "differs.html")]
struct DiffersPage {
    frame: Frame,
    id: String,
    kind: String,
    failed: usize,
    succeeded: usize,
    is_enough: bool,
    differences: Vec<Difference>,
}

/// `GET /ui/incidents/{id}/differs`
pub(super) async fn page(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Refusal> {
    let incident: Incident = visitor.get(&format!("/v1/incidents/{}", segment(&id))).await?;
    let failed = sample(&visitor, &[("incident", incident.id.as_str())]).await?;
    let of_kind = [("kind", incident.kind.as_str()), ("state", "succeeded")];
    let succeeded = sample(&visitor, &of_kind).await?;
    let is_enough = failed.len() >= SAMPLE_MIN && succeeded.len() >= SAMPLE_MIN;
    Ok(show(&DiffersPage {
        frame: visitor.frame(&format!("What differs: {}", incident.kind), "incidents"),
        failed: failed.len(),
        succeeded: succeeded.len(),
        is_enough,
        differences: if is_enough { compare(&failed, &succeeded) } else { Vec::new() },
        id: incident.id,
        kind: incident.kind,
    }))
}

/// Reads the traits of the newest jobs of a filter.
async fn sample(
    visitor: &Visitor,
    filter: &[(&str, &str)],
) -> Result<Vec<BTreeMap<String, String>>, Refusal> {
    let mut query: Vec<(String, String)> =
        filter.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    query.push(("limit".to_owned(), SAMPLE.to_string()));
    let listed: Listed<Job> = visitor.get(&with_query("/v1/jobs", &query)).await?;
    let mut found = Vec::with_capacity(listed.items.len());
    for job in &listed.items {
        // It may end, and be deleted, meanwhile.
        if let Ok(job) = visitor.get::<Job>(&format!("/v1/jobs/{}", job.id)).await {
            found.push(traits(&job));
        }
    }
    Ok(found)
}

/// Returns what can be compared of a job.
fn traits(job: &Job) -> BTreeMap<String, String> {
    let mut traits = BTreeMap::new();
    let none = || "none".to_owned();
    traits.insert("tenant".to_owned(), job.tenant.clone().unwrap_or_else(none));
    traits.insert("priority".to_owned(), job.priority.to_string());
    traits.insert("submitted by a parent".to_owned(), yes_or_no(job.parent.is_some()));
    if let Some(attempt) = job.attempts.last() {
        traits.insert("holder of the last attempt".to_owned(), attempt.holder.clone());
    }
    let payload = job.payload.as_ref().and_then(|payload| serde_json::from_str(payload.get()).ok());
    if let Some(Value::Object(fields)) = payload {
        for (name, value) in fields.into_iter().take(FIELDS_MAX) {
            let value = match value {
                Value::String(text) => text,
                Value::Array(_) | Value::Object(_) => continue,
                other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other.to_string(),
            };
            if value.chars().count() <= VALUE_CHARS_MAX {
                traits.insert(format!("payload.{}", cut(&name, VALUE_CHARS_MAX)), value);
            }
        }
    }
    traits
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Returns the values that are more frequent among the failed jobs, the largest difference first.
fn compare(
    failed: &[BTreeMap<String, String>],
    succeeded: &[BTreeMap<String, String>],
) -> Vec<Difference> {
    let count = |jobs: &[BTreeMap<String, String>]| {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for (name, value) in jobs.iter().flatten() {
            *counts.entry((name.clone(), value.clone())).or_default() += 1;
        }
        counts
    };
    let elsewhere = count(succeeded);
    let share = |count: u64, all: usize| count * 100 / (all as u64).max(1);
    let mut found: Vec<Difference> = count(failed)
        .into_iter()
        .map(|((name, value), here)| {
            let other = elsewhere.get(&(name.clone(), value.clone())).copied().unwrap_or(0);
            let (here, elsewhere) = (share(here, failed.len()), share(other, succeeded.len()));
            Difference { name, value, here, elsewhere }
        })
        .filter(|one| one.here >= one.elsewhere + DIFFERENCE_MIN)
        .collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.here - one.elsewhere));
    found.truncate(SHOWN);
    found
}

#[cfg(test)]
mod tests {
    use super::{Difference, compare};
    use std::collections::BTreeMap;

    fn jobs(of: &[(usize, &str, &str)]) -> Vec<BTreeMap<String, String>> {
        let one = |tenant: &str, holder: &str, at: usize| {
            let pairs = [
                ("tenant", tenant.to_owned()),
                ("holder", holder.to_owned()),
                ("payload.order", at.to_string()),
            ];
            pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        of.iter()
            .flat_map(|(count, tenant, holder)| (0..*count).map(move |at| one(tenant, holder, at)))
            .collect()
    }

    #[test]
    fn the_largest_difference_is_first_and_chance_is_left_out() {
        let failed = jobs(&[(48, "acme", "node-2"), (2, "other", "node-1")]);
        let succeeded =
            jobs(&[(6, "acme", "node-2"), (22, "other", "node-2"), (22, "other", "node-1")]);
        let found = compare(&failed, &succeeded);
        let expected = |name: &str, value: &str, here, elsewhere| Difference {
            name: name.to_owned(),
            value: value.to_owned(),
            here,
            elsewhere,
        };
        // Every job has an order of its own: that is no difference.
        assert_eq!(
            found,
            [expected("tenant", "acme", 96, 12), expected("holder", "node-2", 96, 56)]
        );
    }

    #[test]
    fn equal_jobs_have_no_difference() {
        let (one, other) =
            (jobs(&[(20, "a", "x"), (20, "b", "y")]), jobs(&[(9, "a", "x"), (11, "b", "y")]));
        assert_eq!(compare(&one, &other), []);
        assert_eq!(compare(&[], &[]), []);
    }
}
