//! What has to happen before a waiting job runs: its place in its lane, or the change that an operator has to make.

use super::documents::{History, Job, Kind, Listed};
use super::jobs::with_query;
use super::shown::{Number, Times, duration, segment};
use super::visitor::Visitor;
use crate::rfc3339;

/// Jobs that are looked at to find the place of a job. Further back, the page says "more than".
const LOOKED_AT: usize = 100;

/// The period of the rate at which attempts start.
const RATE_OVER: &str = "10m";

/// What a visitor can expect of a waiting job, and the page that would change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outlook {
    pub(super) text: String,
    /// The label of a link, and the page.
    pub(super) link: Option<(&'static str, String)>,
}

/// Returns what has to happen before a job runs; nothing if the job does not wait, or waits only for its time.
pub(super) async fn of(visitor: &Visitor, job: &Job, times: &Times) -> Option<Outlook> {
    if job.state != "scheduled" || job.blocked || !visitor.sees_all() {
        return None;
    }
    match job.held_because.as_ref().map(|held| held.reason.as_str()) {
        Some("paused" | "parked") => {
            let kind = visitor.get(&format!("/v1/kinds/{}", segment(&job.kind))).await.ok()?;
            Some(of_kind(visitor, &kind, times))
        }
        None | Some("concurrency" | "rate_limit" | "tenant_limit" | "budget")
            if is_due(job, times) =>
        {
            of_lane(visitor, job).await
        }
        _ => None,
    }
}

fn is_due(job: &Job, times: &Times) -> bool {
    rfc3339::parse(&job.due).is_ok_and(|due| due <= times.now)
}

/// A kind that is paused or parked starts none of its jobs.
fn of_kind(visitor: &Visitor, kind: &Kind, times: &Times) -> Outlook {
    let page = |verb: &str| visitor.link(&format!("/kinds/{}/{verb}", kind.kind));
    let may = visitor.operates_all();
    if kind.paused {
        let text = "Nothing starts it until an operator resumes the kind.".to_owned();
        return Outlook { text, link: may.then(|| ("Resume the kind…", page("resume"))) };
    }
    if kind.breaker.forced {
        let text = "Nothing starts it until an operator closes or resets the breaker of the kind.";
        let link = may.then(|| ("Reset the breaker…", page("breaker-reset")));
        return Outlook { text: text.to_owned(), link };
    }
    let next = match kind.breaker.until.as_deref() {
        Some(until) => format!("The next probe is {}", times.at(until).ago),
        None => "One job at a time runs as a probe".to_owned(),
    };
    Outlook { text: format!("{next}; its jobs go on when a probe succeeds."), link: None }
}

/// Returns the place of a job among those of its kind, tenant and priority.
async fn of_lane(visitor: &Visitor, job: &Job) -> Option<Outlook> {
    let query = [
        ("kind", job.kind.clone()),
        ("state", "scheduled".to_owned()),
        ("due_before", job.due.clone()),
        ("limit", LOOKED_AT.to_string()),
    ];
    let query = query.map(|(name, value)| (name.to_owned(), value));
    let earlier: Listed<Job> = visitor.get(&with_query("/v1/jobs", &query)).await.ok()?;
    let path = format!("/v1/history?since={RATE_OVER}&kind={}", segment(&job.kind));
    let history: History = visitor.get(&path).await.ok()?;
    Some(Outlook { text: in_lane(job, &earlier, attempts_per_minute(&history)), link: None })
}

/// Returns how many attempts of the kind started in each reported minute; `None` if no minute was reported.
fn attempts_per_minute(history: &History) -> Option<f64> {
    let (mut minutes, mut attempts) = (0, 0);
    for point in &history.points {
        if let Some(counts) = &point.counts {
            minutes += point.reported;
            attempts += counts.attempts;
        }
    }
    (minutes > 0).then(|| attempts as f64 / f64::from(minutes))
}

fn in_lane(job: &Job, earlier: &Listed<Job>, rate: Option<f64>) -> String {
    let is_same_lane = |other: &&Job| other.tenant == job.tenant && other.priority == job.priority;
    let ahead = earlier.items.iter().filter(is_same_lane).count();
    // Jobs of other lanes share the rate: then the turn of this lane is not known.
    let is_alone = ahead == earlier.items.len() && job.tenant.is_none();
    let place = match (ahead, earlier.next.is_some()) {
        (_, true) => format!(
            "More than {} jobs of this kind are due before it",
            Number(earlier.items.len() as u64)
        ),
        (0, false) => "No job of its kind, tenant and priority is due before it".to_owned(),
        (1, false) => "1 job of its kind, tenant and priority is due before it".to_owned(),
        (ahead, false) => format!(
            "{} jobs of its kind, tenant and priority are due before it",
            Number(ahead as u64)
        ),
    };
    let Some(rate) = rate.filter(|rate| *rate > 0.0) else { return format!("{place}.") };
    let rate_text =
        if rate < 10.0 { format!("{rate:.1}") } else { Number(rate as u64).to_string() };
    let pace = format!("the kind started {rate_text} attempts a minute in the last 10 minutes");
    if earlier.next.is_some() || !is_alone {
        return format!("{place}; {pace}.");
    }
    let wait = (ahead + 1) as f64 / rate * 60_000.0;
    format!("{place}: about {} at the present rate ({pace}).", duration(wait.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::{Job, Listed, in_lane};
    use serde_json::json;

    fn job(tenant: Option<&str>, priority: u8) -> Job {
        serde_json::from_value(json!({
            "id": "0193a5f0-1111-7000-8000-000000000001", "kind": "mail", "state": "scheduled",
            "tenant": tenant, "priority": priority, "blocked": false, "attempt": 0,
            "attempts_max": 3, "takeovers": 0, "fence": 0, "version": 1, "due": "2026-01-01T00:00:00.000Z",
            "due_because": { "text": "submitted" }, "attempt_timeout": "30s", "backoff": "x",
            "created": "2026-01-01T00:00:00.000Z",
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(ahead: Vec<Job>, next: Option<&str>, rate: Option<f64>, expected: &str) {
        let earlier = Listed { items: ahead, next: next.map(str::to_owned) };
        assert_eq!(in_lane(&job(None, 5), &earlier, rate), expected);
    }

    #[test]
    fn a_job_that_waits_alone_has_a_place_and_a_time() {
        let ahead = (0..16).map(|_| job(None, 5)).collect();
        check(
            ahead,
            None,
            Some(25.5),
            "16 jobs of its kind, tenant and priority are due before it: about 40 s at the present rate (the kind started 25 attempts a minute in the last 10 minutes).",
        );
        check(Vec::new(), None, None, "No job of its kind, tenant and priority is due before it.");
        check(
            vec![job(None, 5)],
            None,
            Some(0.0),
            "1 job of its kind, tenant and priority is due before it.",
        );
    }

    #[test]
    fn no_time_is_promised_that_is_not_known() {
        let pace = "the kind started 2.5 attempts a minute in the last 10 minutes.";
        let one = "1 job of its kind, tenant and priority is due before it";
        check(vec![job(None, 5), job(Some("a"), 5)], None, Some(2.5), &format!("{one}; {pace}"));
        check(vec![job(None, 5), job(None, 9)], None, Some(2.5), &format!("{one}; {pace}"));
        let many = "More than 1 jobs of this kind are due before it";
        check(vec![job(None, 5)], Some("cursor"), Some(2.5), &format!("{many}; {pace}"));
    }
}
