//! Says in a sentence why a job is where it is.

use serde_json::Value;

/// Says it from the job's document, and from its kind's where that matters.
pub(crate) fn sentence(job: &Value, kind: Option<&Value>) -> String {
    let (attempt, most) = (&job["attempt"], &job["attempts_max"]);
    let holder = text(&job["holder"]);
    match text(&job["state"]) {
        "scheduled" => match obstacle(kind) {
            "" => waiting(job, "waits", "until"),
            // When it is due is not what keeps it, and may be over.
            obstacle => waiting(job, "waits", "and is due") + obstacle,
        },
        "leased" if runs(job) => {
            format!("runs attempt {attempt} of {most} at holder {holder}{}", wanted(job))
        }
        "leased" => waiting(job, &format!("waits at holder {holder}"), "until") + wanted(job),
        "paused" => format!("{}; a person must resume it", stopped(job, "pause", "paused")),
        "succeeded" => format!("succeeded with attempt {attempt} at {}", text(&job["finished"])),
        "failed" => format!("{}: nobody waits for it", given_up(job)),
        "dead" => format!("{}; a person must retry or cancel it", given_up(job)),
        "cancelled" => stopped(job, "cancel", "cancelled"),
        other => format!("is {other}"),
    }
}

fn waiting(job: &Value, waits: &str, until: &str) -> String {
    let because = text(&job["due_because"]["text"]);
    // Times of one form and length, so they sort as text.
    let is_due = text(&job["due"]) <= text(&job["created"]);
    if is_due {
        format!("{waits} for a place: {because}")
    } else {
        format!("{waits} {until} {}: {because}", text(&job["due"]))
    }
}

/// What keeps every job of its kind from running.
fn obstacle(kind: Option<&Value>) -> &'static str {
    let is = |name: &str, value: bool| kind.is_some_and(|kind| kind[name] == value);
    if is("paused", true) {
        "; its kind is paused, and a person must resume it"
    } else if is("parked", true) {
        "; its kind is parked until a probe succeeds"
    } else if is("runnable", false) {
        "; this server does not run its kind"
    } else {
        ""
    }
}

fn wanted(job: &Value) -> &'static str {
    match text(&job["wanted"]) {
        "cancel" => "; a person wants it cancelled",
        "pause" => "; a person wants it paused",
        _ => "",
    }
}

/// Whether a leased job has started: then its attempt is one that no record counts yet.
fn runs(job: &Value) -> bool {
    let counted = |record: &&Value| !matches!(text(&record["decision"]), "snooze" | "pause");
    let used =
        records(job).iter().rev().find(counted).and_then(|record| record["attempt"].as_u64());
    job["attempt"].as_u64() > Some(used.unwrap_or(0))
}

/// Who stopped it: a rule that leaves a record, a person whom the audit log knows, or its handler.
fn stopped(job: &Value, verb: &str, done: &str) -> String {
    let audit = job["audit"].as_array().map_or(&[][..], Vec::as_slice);
    let by = audit.iter().find(|entry| entry["what"] == verb).map(|entry| text(&entry["who"]));
    match (last(job, verb), by) {
        (Some(attempt), _) => format!("{done} after an attempt ended with {}", said(attempt)),
        (None, Some(who)) => format!("{done} by {who}"),
        (None, None) => format!("{done} by its handler"),
    }
}

/// The latest attempt that failed, if this was decided about it.
fn last<'a>(job: &'a Value, decision: &str) -> Option<&'a Value> {
    records(job).last().filter(|record| record["decision"] == decision)
}

fn records(job: &Value) -> &[Value] {
    job["attempts"].as_array().map_or(&[], Vec::as_slice)
}

fn given_up(job: &Value) -> String {
    let when = match job["attempt"].as_u64() {
        Some(0) | None => "before its first attempt".to_owned(),
        Some(attempt) => format!("after attempt {attempt} of {}", job["attempts_max"]),
    };
    let failure = &job["failure"];
    if failure.is_null() {
        return format!("given up {when}");
    }
    format!("given up {when}, because of {}", said(failure))
}

/// A failure without its message, which may be long and stands below.
fn said(failure: &Value) -> String {
    match (text(&failure["category"]), text(&failure["code"])) {
        (category, "") => category.to_owned(),
        (category, code) => format!("{category} {code}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use serde_json::{Value, json};

    const CREATED: &str = "2026-01-02T03:04:05.000Z";
    const LATER: &str = "2026-01-02T03:04:06.000Z";

    /// A job in a state, with what else is to be said of it.
    fn job(state: &str, more: Value) -> Value {
        let mut job = json!({
            "state": state, "attempt": 1, "attempts_max": 8, "holder": null, "wanted": null,
            "due": LATER, "created": CREATED, "finished": null, "failure": null,
            "due_because": {"reason": "backoff", "text": "attempt 1 timed out; waiting 1s"},
            "attempts": [{"attempt": 1, "category": "timeout", "code": null, "decision": "retry"}],
            "audit": [],
        });
        let Value::Object(more) = more else { panic!("{more} is no object") };
        job.as_object_mut().unwrap().extend(more);
        job
    }

    fn attempt(decision: &str) -> Value {
        json!([{"attempt": 1, "category": "rejected", "code": "409", "decision": decision}])
    }

    #[track_caller]
    fn check(state: &str, more: Value, expected: &str) {
        assert_eq!(sentence(&job(state, more), None), expected);
    }

    #[test]
    fn every_state_has_its_sentence() {
        let timed = "waits until 2026-01-02T03:04:06.000Z: attempt 1 timed out; waiting 1s";
        check("scheduled", json!({}), timed);
        let submitted =
            json!({"due": CREATED, "due_because": {"text": "submitted to run at once"}});
        check("scheduled", submitted, "waits for a place: submitted to run at once");
        check(
            "leased",
            json!({"holder": "h"}),
            "waits at holder h until 2026-01-02T03:04:06.000Z: attempt 1 timed out; waiting 1s",
        );
        check("leased", json!({"holder": "h", "attempt": 2}), "runs attempt 2 of 8 at holder h");
        let handler = "paused by its handler; a person must resume it";
        check("paused", json!({}), handler);
        let by_rule = "paused after an attempt ended with rejected 409; a person must resume it";
        check("paused", json!({"attempts": attempt("pause")}), by_rule);
        let finished = json!({"finished": LATER});
        check(
            "succeeded",
            finished.clone(),
            "succeeded with attempt 1 at 2026-01-02T03:04:06.000Z",
        );
        let failure = json!({"failure": {"category": "rejected", "code": "409", "message": "no"}});
        check(
            "failed",
            failure.clone(),
            "given up after attempt 1 of 8, because of rejected 409: nobody waits for it",
        );
        check(
            "dead",
            failure,
            "given up after attempt 1 of 8, because of rejected 409; a person must retry or cancel it",
        );
        let dead = json!({"failure": {"category": "deadline", "code": null, "message": "late"}});
        check(
            "dead",
            dead,
            "given up after attempt 1 of 8, because of deadline; a person must retry or cancel it",
        );
        let late = json!({"attempt": 0, "failure": {"category": "deadline", "code": null}});
        check(
            "failed",
            late,
            "given up before its first attempt, because of deadline: nobody waits for it",
        );
        check("cancelled", finished, "cancelled by its handler");
    }

    #[test]
    fn who_stopped_it_is_named() {
        let audit = json!([{"what": "edit", "who": "a"}, {"what": "cancel", "who": "token:ops"},
            {"what": "pause", "who": "token:night"}]);
        let by = json!({"audit": audit, "attempts": attempt("retry")});
        check("cancelled", by.clone(), "cancelled by token:ops");
        check("paused", by, "paused by token:night; a person must resume it");
        let rule = json!({"finished": LATER, "attempts": attempt("cancel")});
        check("cancelled", rule, "cancelled after an attempt ended with rejected 409");
    }

    #[test]
    fn what_a_person_wants_of_a_leased_job_is_told() {
        let runs = |wanted: &str| json!({"holder": "h", "attempt": 2, "wanted": wanted});
        let cancel = "runs attempt 2 of 8 at holder h; a person wants it cancelled";
        check("leased", runs("cancel"), cancel);
        let pause = "runs attempt 2 of 8 at holder h; a person wants it paused";
        check("leased", runs("pause"), pause);
    }

    #[test]
    fn an_attempt_that_does_not_count_does_not_hide_that_the_job_runs() {
        let snoozed = attempt("snooze");
        let more = |attempt: u32| json!({"holder": "h", "attempt": attempt, "attempts": snoozed});
        check("leased", more(1), "runs attempt 1 of 8 at holder h");
        assert!(sentence(&job("leased", more(0)), None).starts_with("waits at holder h until"));
    }

    #[test]
    fn a_kind_that_nobody_runs_is_the_reason() {
        let says = |kind: Value| {
            let sentence = sentence(&job("scheduled", json!({})), Some(&kind));
            sentence.rsplit("; ").next().unwrap().to_owned()
        };
        let kind = |paused: bool, parked: bool, runnable: bool| json!({"paused": paused, "parked": parked, "runnable": runnable});
        assert_eq!(
            says(kind(true, true, false)),
            "its kind is paused, and a person must resume it"
        );
        assert_eq!(says(kind(false, true, false)), "its kind is parked until a probe succeeds");
        assert_eq!(says(kind(false, false, false)), "this server does not run its kind");
        assert_eq!(says(kind(false, false, true)), "waiting 1s");
        // Whatever the time is: it does not wait for that.
        let parked = sentence(&job("scheduled", json!({})), Some(&kind(false, true, true)));
        assert!(parked.starts_with("waits and is due 2026-01-02T03:04:06.000Z: "), "{parked}");
    }
}
