//! Parses the requests of remote workers.

use crate::fields::{Fields, List, bad_json};
use crate::problem::{Code, FieldError, Problem};
use crate::workers::job_result;
use crate::{payload, submit};
use rewheel::{Category, Verdict, duration};
use rewheel_core::{
    Failure, Fence, HolderId, JobId, KindName, Lease, Limits, NewJob, Report, SuccessCode,
};
use rewheel_engine::WorkerResult;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum wait of a claim: proxies close silent connections after a minute.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Maximum number of kinds in one claim.
const KINDS_MAX: usize = 100;

/// Every field of a claim.
pub(crate) const CLAIM_FIELDS: [&str; 5] = ["holder", "name", "kinds", "max", "wait"];

/// Every field of a heartbeat.
pub(crate) const HEARTBEAT_FIELDS: [&str; 2] = ["holder", "jobs"];

/// Every field of an extend request.
pub(crate) const EXTEND_FIELDS: [&str; 4] = ["holder", "id", "fence", "timeout"];

/// Every field of a checkpoint.
pub(crate) const CHECKPOINT_FIELDS: [&str; 4] = ["holder", "id", "fence", "payload"];

/// Every field of a leave request.
pub(crate) const LEAVE_FIELDS: [&str; 1] = ["holder"];

/// Every field of a settle request.
pub(crate) const SETTLE_FIELDS: [&str; 2] = ["holder", "results"];

/// Every field of one result.
pub(crate) const RESULT_FIELDS: [&str; 10] = [
    "id", "fence", "verdict", "after", "category", "code", "message", "duration", "submit",
    "result",
];

/// `POST /v1/workers/claim`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClaimRequest {
    pub(crate) holder: Option<HolderId>,
    pub(crate) name: String,
    pub(crate) kinds: Vec<KindName>,
    pub(crate) max: usize,
    pub(crate) wait: Duration,
}

/// `POST /v1/workers/heartbeat`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatRequest {
    pub(crate) holder: HolderId,
    pub(crate) jobs: BTreeSet<JobId>,
}

/// `POST /v1/workers/extend`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExtendRequest {
    pub(crate) holder: HolderId,
    pub(crate) lease: Lease,
    pub(crate) timeout: Duration,
}

/// `POST /v1/workers/checkpoint`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CheckpointRequest {
    pub(crate) holder: HolderId,
    pub(crate) lease: Lease,
    pub(crate) payload: Vec<u8>,
}

/// `POST /v1/workers/leave`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeaveRequest {
    pub(crate) holder: HolderId,
}

/// `POST /v1/workers/settle`
#[derive(Debug)]
pub(crate) struct SettleRequest {
    pub(crate) holder: HolderId,
    pub(crate) results: Vec<WorkerResult>,
}

impl ClaimRequest {
    pub(crate) fn parse(text: &str) -> Result<ClaimRequest, Problem> {
        let mut fields = Fields::read(text, "", &CLAIM_FIELDS)?;
        let holder = fields.text("holder", str::parse::<HolderId>);
        let name = fields.text("name", name).unwrap_or_else(|| "worker".to_owned());
        let has_kinds = fields.has("kinds");
        let kinds = fields.texts("kinds", KindName::parse);
        if !has_kinds || (kinds.is_empty() && fields_ok(&fields)) {
            fields.wrong("kinds", "is required: list the kinds that this worker runs");
        } else if kinds.len() > KINDS_MAX {
            fields.wrong("kinds", format!("must have {KINDS_MAX} entries or fewer"));
        }
        let max = fields.number("max", |max| {
            let max = usize::try_from(max).ok().filter(|max| (1..=Limits::BATCH_MAX).contains(max));
            max.ok_or_else(|| format!("must be 1 to {}", Limits::BATCH_MAX))
        });
        let wait = fields.text("wait", |text| {
            let wait = duration::parse(text).map_err(|error| error.to_string())?;
            if wait > WAIT_MAX {
                return Err(format!("must be {} or shorter", duration::text(WAIT_MAX)));
            }
            Ok(wait)
        });
        finish(fields)?;
        let wait = wait.unwrap_or_default();
        Ok(ClaimRequest { holder, name, kinds, max: max.unwrap_or(1), wait })
    }
}

impl HeartbeatRequest {
    pub(crate) fn parse(text: &str) -> Result<HeartbeatRequest, Problem> {
        let mut fields = Fields::read(text, "", &HEARTBEAT_FIELDS)?;
        let holder = holder(&mut fields);
        let jobs = fields.texts("jobs", str::parse::<JobId>).into_iter().collect();
        match holder {
            Some(holder) => finish(fields).map(|()| HeartbeatRequest { holder, jobs }),
            None => Err(Problem::of_fields(Code::InvalidField, fields.into_errors())),
        }
    }
}

impl ExtendRequest {
    pub(crate) fn parse(text: &str) -> Result<ExtendRequest, Problem> {
        let mut fields = Fields::read(text, "", &EXTEND_FIELDS)?;
        let holder = holder(&mut fields);
        for name in ["id", "fence", "timeout"] {
            if !fields.has(name) {
                fields.wrong(name, "is required");
            }
        }
        let (job, fence) = lease(&mut fields);
        let timeout = fields.text("timeout", |text| match duration::parse(text) {
            Ok(timeout) if timeout.is_zero() => Err("must be longer than 0s".to_owned()),
            Ok(timeout) => Ok(timeout),
            Err(error) => Err(error.to_string()),
        });
        let errors = fields.into_errors();
        match (holder, job, fence, timeout) {
            (Some(holder), Some(job), Some(fence), Some(timeout)) if errors.is_empty() => {
                Ok(ExtendRequest { holder, lease: Lease { job, fence }, timeout })
            }
            _ => Err(Problem::of_fields(Code::InvalidField, errors)),
        }
    }
}

impl CheckpointRequest {
    pub(crate) fn parse(text: &str, bytes_max: usize) -> Result<CheckpointRequest, Problem> {
        let mut fields = Fields::read(text, "", &CHECKPOINT_FIELDS)?;
        let holder = holder(&mut fields);
        for name in ["id", "fence", "payload"] {
            if !fields.has(name) {
                fields.wrong(name, "is required");
            }
        }
        let (job, fence) = lease(&mut fields);
        let payload = fields.take("payload").map(serde_json::value::RawValue::get);
        let bytes = payload.map_or(0, str::len);
        if bytes > bytes_max {
            fields.wrong("payload", format!("has {bytes} bytes; the limit is {bytes_max}"));
        } else if let Some(Err(why)) = payload.map(payload::check) {
            fields.wrong("payload", why);
        }
        let payload = payload.map(|payload| payload.as_bytes().to_vec());
        let errors = fields.into_errors();
        match (holder, job, fence, payload) {
            (Some(holder), Some(job), Some(fence), Some(payload)) if errors.is_empty() => {
                Ok(CheckpointRequest { holder, lease: Lease { job, fence }, payload })
            }
            _ => Err(Problem::of_fields(Code::InvalidField, errors)),
        }
    }
}

impl LeaveRequest {
    pub(crate) fn parse(text: &str) -> Result<LeaveRequest, Problem> {
        let mut fields = Fields::read(text, "", &LEAVE_FIELDS)?;
        match holder(&mut fields) {
            Some(holder) => finish(fields).map(|()| LeaveRequest { holder }),
            None => Err(Problem::of_fields(Code::InvalidField, fields.into_errors())),
        }
    }
}

impl SettleRequest {
    /// Parses a request. Jobs that results submit get new ids, and payloads of at most `bytes_max`.
    pub(crate) fn parse(
        text: &str,
        new_id: &dyn Fn() -> JobId,
        bytes_max: usize,
    ) -> Result<SettleRequest, Problem> {
        let mut fields = Fields::read(text, "", &SETTLE_FIELDS)?;
        let holder = holder(&mut fields);
        let mut results = Vec::new();
        match fields.take("results") {
            Some(raw) => {
                let entries = List::read(raw.get(), Limits::BATCH_MAX)
                    .map_err(|error| bad_json(&error, "/results"))?;
                if entries.count > Limits::BATCH_MAX {
                    let message = format!(
                        "has {} entries; the limit is {}",
                        entries.count,
                        Limits::BATCH_MAX
                    );
                    let errors = vec![FieldError::new("/results", message)];
                    return Err(Problem::of_fields(Code::TooLarge, errors));
                }
                for (place, entry) in entries.kept.iter().enumerate() {
                    let at = format!("/results/{place}");
                    match result(&at, entry.get(), (new_id, bytes_max))? {
                        Ok(result) => results.push(result),
                        Err(errors) => fields.note(errors),
                    }
                }
            }
            None => fields.wrong("results", "is required: set it to a list of results"),
        }
        match holder {
            Some(holder) => finish(fields).map(|()| SettleRequest { holder, results }),
            None => Err(Problem::of_fields(Code::InvalidField, fields.into_errors())),
        }
    }
}

/// Parses one result: returns it, or its errors.
fn result(
    at: &str,
    text: &str,
    submit: (&dyn Fn() -> JobId, usize),
) -> Result<Result<WorkerResult, Vec<FieldError>>, Problem> {
    let mut fields = Fields::read(text, at, &RESULT_FIELDS)?;
    for name in ["id", "fence", "verdict"] {
        if !fields.has(name) {
            fields.wrong(name, "is required");
        }
    }
    let (job, fence) = lease(&mut fields);
    let verdict = fields.text("verdict", |text| Ok::<_, String>(text.to_owned()));
    let after = fields.text("after", duration::parse);
    let category = fields.text("category", str::parse::<Category>).unwrap_or(Category::Unknown);
    let code = fields.text("code", |text| Ok::<_, String>(text.to_owned()));
    let message = fields.text("message", |text| Ok::<_, String>(text.to_owned()));
    let took = fields.text("duration", duration::parse).unwrap_or_default();
    let failure = Failure::new(category, code.as_deref(), &message.unwrap_or_default());
    let code = code.as_deref().and_then(SuccessCode::new);
    let report = match (verdict.as_deref(), after) {
        (Some("done"), None) => Some(Report::Done),
        (Some("retry"), None) => Some(Report::AttemptFailed { verdict: Verdict::Retry, failure }),
        (Some("retry"), Some(after)) => {
            Some(Report::AttemptFailed { verdict: Verdict::RetryAfter(after), failure })
        }
        (Some("stop"), None) => Some(Report::AttemptFailed { verdict: Verdict::Stop, failure }),
        (Some("dead"), None) => Some(Report::Dead(failure)),
        (Some("fail"), None) => Some(Report::FailJob(failure)),
        (Some("pause"), None) => Some(Report::Pause),
        (Some("cancel"), None) => Some(Report::Cancel),
        (Some("snooze"), Some(after)) => Some(Report::Snooze(after)),
        (Some("snooze"), None) => {
            fields.wrong("after", "is required with the verdict `snooze`: set it to a duration");
            None
        }
        (Some("done" | "stop" | "dead" | "fail" | "pause" | "cancel"), Some(_)) => {
            fields.wrong(
                "after",
                "is allowed only with the verdicts `retry` and `snooze`: remove it",
            );
            None
        }
        (Some(_), _) => {
            let known = "must be done, retry, stop, dead, fail, pause, cancel or snooze";
            fields.wrong("verdict", known);
            None
        }
        (None, _) => None,
    };
    let follow_ups = follow_ups(&mut fields, at, submit)?;
    if !follow_ups.is_empty() && !matches!(report, None | Some(Report::Done | Report::Snooze(_))) {
        let only = "is allowed only with the verdicts `done` and `snooze`: remove it, or change the verdict";
        fields.wrong("submit", only);
    }
    let result = job_result::take(&mut fields, at)?;
    if result.is_some() && !matches!(report, None | Some(Report::Done)) {
        let only = "is allowed only with the verdict `done`: only a job that succeeds has a result";
        fields.wrong("result", only);
    }
    let errors = fields.into_errors();
    Ok(match (job, fence, report) {
        (Some(job), Some(fence), Some(report)) if errors.is_empty() => {
            let lease = Lease { job, fence };
            Ok(WorkerResult { lease, report, took, follow_ups, result, code })
        }
        _ => Err(errors),
    })
}

/// Parses the follow-ups of a result.
fn follow_ups(
    fields: &mut Fields<'_>,
    at: &str,
    (new_id, bytes_max): (&dyn Fn() -> JobId, usize),
) -> Result<Vec<NewJob>, Problem> {
    let Some(raw) = fields.take("submit") else { return Ok(Vec::new()) };
    let at = format!("{at}/submit");
    let (count_max, together_max) = (Limits::FOLLOW_UPS_MAX, Limits::FOLLOW_UPS_BYTES_MAX);
    let entries = List::read(raw.get(), count_max).map_err(|error| bad_json(&error, &at))?;
    if entries.count > count_max {
        let count = entries.count;
        fields.wrong("submit", format!("has {count} entries; the limit is {count_max}"));
        return Ok(Vec::new());
    }
    let mut jobs = Vec::with_capacity(entries.kept.len());
    for (place, entry) in entries.kept.iter().enumerate() {
        let at = format!("{at}/{place}");
        match submit::parse_at(&at, entry.get(), new_id(), bytes_max) {
            Ok(job) if job.tenant.is_some() => {
                let why = "must be left out: the job has the tenant of its parent";
                fields.note(vec![FieldError::new(format!("{at}/tenant"), why)]);
            }
            Ok(job) => match submit::check_duplicates(&at, &job) {
                Ok(()) => jobs.push(job),
                Err(problem) => fields.note(problem.errors),
            },
            Err(problem) => fields.note(problem.errors),
        }
    }
    let bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
    if bytes > together_max {
        let why = format!("has {bytes} bytes of payloads together; the limit is {together_max}");
        fields.wrong("submit", why);
    }
    Ok(jobs)
}

fn lease(fields: &mut Fields<'_>) -> (Option<JobId>, Option<Fence>) {
    let job = fields.text("id", str::parse::<JobId>);
    let fence = fields.number("fence", |fence| {
        u64::try_from(fence).map(Fence::new).map_err(|_| "must not be negative")
    });
    (job, fence)
}

fn holder(fields: &mut Fields<'_>) -> Option<HolderId> {
    if !fields.has("holder") {
        fields.wrong("holder", "is required: the response to a claim contains it");
    }
    fields.text("holder", str::parse::<HolderId>)
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty()
        || text.len() > Limits::HOLDER_NAME_BYTES_MAX
        || text.contains(char::is_control)
    {
        return Err(format!(
            "must have 1 to {} bytes and no control characters",
            Limits::HOLDER_NAME_BYTES_MAX
        ));
    }
    Ok(text.to_owned())
}

fn fields_ok(fields: &Fields<'_>) -> bool {
    !fields.is_wrong("kinds")
}

fn finish(fields: Fields<'_>) -> Result<(), Problem> {
    let errors = fields.into_errors();
    if errors.is_empty() { Ok(()) } else { Err(Problem::of_fields(Code::InvalidField, errors)) }
}

#[cfg(test)]
mod tests {
    use super::{ClaimRequest, Code, ExtendRequest, HeartbeatRequest, LeaveRequest, SettleRequest};

    const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";

    fn settling(text: &str) -> Result<SettleRequest, super::Problem> {
        SettleRequest::parse(text, &|| ID.parse().unwrap(), 300_000)
    }

    #[test]
    fn jobs_to_submit_are_read() {
        let job = r#"{"kind":"mail","payload":{"order":17},"key":"receipt-17"}"#;
        let results = |verdict: &str, jobs: &[&str]| {
            let jobs = jobs.join(",");
            format!(
                r#"{{"holder":"{ID}","results":[{{"id":"{ID}","fence":1,{verdict},"submit":[{jobs}]}}]}}"#
            )
        };
        let done = r#""verdict":"done""#;
        let parsed = settling(&results(done, &[job; 16])).unwrap();
        assert_eq!(parsed.results[0].follow_ups.len(), 16);
        assert_eq!(parsed.results[0].follow_ups[0].payload, br#"{"order":17}"#);
        let snooze = r#""verdict":"snooze","after":"1m""#;
        assert!(settling(&results(snooze, &[job])).is_ok());
        assert!(settling(&results(r#""verdict":"retry""#, &[])).is_ok());
        let large = format!(r#"{{"kind":"mail","payload":"{}"}}"#, "x".repeat(140_000));
        for (verdict, jobs, field) in [
            (done, &[job; 17][..], "/results/0/submit"),
            (done, &[&large, &large], "/results/0/submit"),
            (r#""verdict":"retry""#, &[job], "/results/0/submit"),
            (r#""verdict":"dead""#, &[job], "/results/0/submit"),
            (done, &[job, r#"{"kind":"mail"}"#], "/results/0/submit/1/payload"),
            (done, &[r#"{"kind":"No!","payload":1}"#], "/results/0/submit/0/kind"),
            (
                done,
                &[r#"{"kind":"mail","payload":1,"tenant":"acme"}"#],
                "/results/0/submit/0/tenant",
            ),
        ] {
            check(settling(&results(verdict, jobs)), field);
        }
    }

    #[test]
    fn what_the_wire_shows_is_read() {
        let claim =
            r#"{"holder":null,"name":"py-1","kinds":["charge-card"],"max":10,"wait":"20s"}"#;
        let claim = ClaimRequest::parse(claim).unwrap();
        assert_eq!((claim.holder, claim.name.as_str(), claim.max), (None, "py-1", 10));
        let least = ClaimRequest::parse(r#"{"kinds":["a"]}"#).unwrap();
        assert_eq!((least.max, least.wait.as_secs()), (1, 0));
        let beat = format!(r#"{{"holder":"{ID}","jobs":["{ID}"]}}"#);
        assert_eq!(HeartbeatRequest::parse(&beat).unwrap().jobs.len(), 1);
        let verdicts = [
            r#""verdict":"done""#,
            r#""verdict":"retry","after":"5s","category":"timeout","code":"504""#,
            r#""verdict":"retry""#,
            r#""verdict":"stop""#,
            r#""verdict":"dead","message":"no""#,
            r#""verdict":"fail""#,
            r#""verdict":"pause""#,
            r#""verdict":"cancel""#,
            r#""verdict":"snooze","after":"5m","duration":"1s""#,
        ];
        let results = verdicts.map(|verdict| format!(r#"{{"id":"{ID}","fence":1,{verdict}}}"#));
        let settle = format!(r#"{{"holder":"{ID}","results":[{}]}}"#, results.join(","));
        assert_eq!(settling(&settle).unwrap().results.len(), 9);
    }

    #[track_caller]
    fn check<T: std::fmt::Debug>(parsed: Result<T, super::Problem>, field: &str) {
        let problem = parsed.unwrap_err();
        assert_eq!((problem.code, problem.errors[0].field.as_str()), (Code::InvalidField, field));
    }

    #[test]
    fn a_mistake_is_named() {
        for (claim, field) in [
            ("{}", "/kinds"),
            (r#"{"kinds":[]}"#, "/kinds"),
            (r#"{"kinds":["No!"]}"#, "/kinds"),
            (r#"{"kinds":["a"],"max":0}"#, "/max"),
            (r#"{"kinds":["a"],"wait":"2h"}"#, "/wait"),
            (r#"{"kinds":["a"],"name":""}"#, "/name"),
            (r#"{"kinds":["a"],"holder":"me"}"#, "/holder"),
        ] {
            check(ClaimRequest::parse(claim), field);
        }
        check(LeaveRequest::parse("{}"), "/holder");
        for (extend, field) in [
            (r#""id":"x","fence":1,"timeout":"1m""#, "/id"),
            (&format!(r#""id":"{ID}","timeout":"1m""#), "/fence"),
            (&format!(r#""id":"{ID}","fence":1,"timeout":"0s""#), "/timeout"),
            (&format!(r#""id":"{ID}","fence":1"#), "/timeout"),
        ] {
            check(ExtendRequest::parse(&format!(r#"{{"holder":"{ID}",{extend}}}"#)), field);
        }
        check(HeartbeatRequest::parse("{}"), "/holder");
        check(HeartbeatRequest::parse(&format!(r#"{{"holder":"{ID}","jobs":["x"]}}"#)), "/jobs");
        for (result, field) in [
            (r#"{"fence":1,"verdict":"done"}"#.to_owned(), "/results/0/id"),
            (format!(r#"{{"id":"{ID}","fence":-1,"verdict":"done"}}"#), "/results/0/fence"),
            (format!(r#"{{"id":"{ID}","fence":1,"verdict":"maybe"}}"#), "/results/0/verdict"),
            (format!(r#"{{"id":"{ID}","fence":1,"verdict":"snooze"}}"#), "/results/0/after"),
            (
                format!(r#"{{"id":"{ID}","fence":1,"verdict":"done","after":"1s"}}"#),
                "/results/0/after",
            ),
            (
                format!(r#"{{"id":"{ID}","fence":1,"verdict":"retry","category":"odd"}}"#),
                "/results/0/category",
            ),
        ] {
            check(settling(&format!(r#"{{"holder":"{ID}","results":[{result}]}}"#)), field);
        }
    }
}
