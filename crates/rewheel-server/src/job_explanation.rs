//! Explains why a job is in its current state.

use serde_json::Value;

/// Returns a sentence about the job, from its document: the answer to `GET /v1/jobs/{id}`.
///
/// ```
/// let job = serde_json::json!({ "state": "dead", "attempt": 8, "attempts_max": 8 });
/// let sentence = rewheel_server::job_explanation::sentence(&job);
/// assert!(sentence.starts_with("given up after attempt 8 of 8"));
/// ```
pub fn sentence(job: &Value) -> String {
    let (attempt, most) = (&job["attempt"], &job["attempts_max"]);
    let holder = text(&job["holder"]);
    match text(&job["state"]) {
        "scheduled" => match held(job) {
            None => waiting(job, "waits"),
            // The due time is not the reason for the wait, and may have passed.
            Some(held) => {
                let because = text(&job["due_because"]["text"]);
                format!("waits because {held}; due {} ({because})", text(&job["due"]))
            }
        },
        "leased" if runs(job) => {
            format!("running attempt {attempt} of {most} on holder {holder}{}", wanted(job))
        }
        "leased" => waiting(job, &format!("claimed by holder {holder}, waits")) + wanted(job),
        "paused" => {
            format!(
                "{}; the job waits until an operator resumes it",
                stopped(job, "pause", "paused")
            )
        }
        "succeeded" => format!("succeeded with attempt {attempt} at {}", text(&job["finished"])),
        "failed" => format!("{}: final", given_up(job)),
        "dead" => {
            format!("{}; the job waits until an operator retries or cancels it", given_up(job))
        }
        "cancelled" => stopped(job, "cancel", "cancelled"),
        other => format!("is {other}"),
    }
}

fn waiting(job: &Value, waits: &str) -> String {
    let because = text(&job["due_because"]["text"]);
    // Times of one form and length sort as text.
    let is_due = text(&job["due"]) <= text(&job["created"]);
    if is_due {
        format!("{waits} for a slot: {because}")
    } else {
        format!("{waits} until {}: {because}", text(&job["due"]))
    }
}

/// Returns what keeps a due job from running.
fn held(job: &Value) -> Option<String> {
    let held = &job["held_because"];
    let says = held["text"].as_str()?;
    Some(match held["until"].as_str() {
        Some(until) => format!("{says}, until {until}"),
        None => says.to_owned(),
    })
}

fn wanted(job: &Value) -> &'static str {
    match text(&job["wanted"]) {
        "cancel" => "; cancellation requested",
        "pause" => "; pause requested",
        _ => "",
    }
}

/// Returns whether a leased job has started: its current attempt has no record yet, so it is later than the last recorded one.
fn runs(job: &Value) -> bool {
    let counted = |record: &&Value| !matches!(text(&record["decision"]), "snooze" | "pause");
    let used =
        records(job).iter().rev().find(counted).and_then(|record| record["attempt"].as_u64());
    job["attempt"].as_u64() > Some(used.unwrap_or(0))
}

/// Says what stopped a job: a rule (which leaves a record of an attempt), an operator (who is in the
/// audit log), or the handler of the job.
fn stopped(job: &Value, verb: &str, done: &str) -> String {
    let audit = job["audit"].as_array().map_or(&[][..], Vec::as_slice);
    let by = audit.iter().find(|entry| entry["what"] == verb).map(|entry| text(&entry["who"]));
    match (last(job, verb), by) {
        (Some(attempt), _) => format!("{done} after an attempt ended with {}", said(attempt)),
        (None, Some(who)) => format!("{done} by {who}"),
        (None, None) => format!("{done} by its handler"),
    }
}

/// Returns the record of the latest attempt, if the attempt ended with this decision.
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

/// Formats a failure without its message, which may be long and is printed below.
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

    /// A job in a state, with additional fields.
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
        assert_eq!(sentence(&job(state, more)), expected);
    }

    #[test]
    fn every_state_has_its_sentence() {
        let timed = "waits until 2026-01-02T03:04:06.000Z: attempt 1 timed out; waiting 1s";
        check("scheduled", json!({}), timed);
        let submitted =
            json!({"due": CREATED, "due_because": {"text": "submitted to run immediately"}});
        check("scheduled", submitted, "waits for a slot: submitted to run immediately");
        check(
            "leased",
            json!({"holder": "h"}),
            "claimed by holder h, waits until 2026-01-02T03:04:06.000Z: attempt 1 timed out; waiting 1s",
        );
        check("leased", json!({"holder": "h", "attempt": 2}), "running attempt 2 of 8 on holder h");
        let handler = "paused by its handler; the job waits until an operator resumes it";
        check("paused", json!({}), handler);
        let by_rule = "paused after an attempt ended with rejected 409; the job waits until an operator resumes it";
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
            "given up after attempt 1 of 8, because of rejected 409: final",
        );
        check(
            "dead",
            failure,
            "given up after attempt 1 of 8, because of rejected 409; the job waits until an operator retries or cancels it",
        );
        let dead = json!({"failure": {"category": "deadline", "code": null, "message": "late"}});
        check(
            "dead",
            dead,
            "given up after attempt 1 of 8, because of deadline; the job waits until an operator retries or cancels it",
        );
        let late = json!({"attempt": 0, "failure": {"category": "deadline", "code": null}});
        check("failed", late, "given up before its first attempt, because of deadline: final");
        check("cancelled", finished, "cancelled by its handler");
    }

    #[test]
    fn who_stopped_it_is_named() {
        let audit = json!([{"what": "edit", "who": "a"}, {"what": "cancel", "who": "token:ops"},
            {"what": "pause", "who": "token:night"}]);
        let by = json!({"audit": audit, "attempts": attempt("retry")});
        check("cancelled", by.clone(), "cancelled by token:ops");
        check("paused", by, "paused by token:night; the job waits until an operator resumes it");
        let rule = json!({"finished": LATER, "attempts": attempt("cancel")});
        check("cancelled", rule, "cancelled after an attempt ended with rejected 409");
    }

    #[test]
    fn what_a_person_wants_of_a_leased_job_is_told() {
        let runs = |wanted: &str| json!({"holder": "h", "attempt": 2, "wanted": wanted});
        let cancel = "running attempt 2 of 8 on holder h; cancellation requested";
        check("leased", runs("cancel"), cancel);
        let pause = "running attempt 2 of 8 on holder h; pause requested";
        check("leased", runs("pause"), pause);
    }

    #[test]
    fn an_attempt_that_does_not_count_does_not_hide_that_the_job_runs() {
        let snoozed = attempt("snooze");
        let more = |attempt: u32| json!({"holder": "h", "attempt": attempt, "attempts": snoozed});
        check("leased", more(1), "running attempt 1 of 8 on holder h");
        assert!(sentence(&job("leased", more(0))).starts_with("claimed by holder h, waits until"));
    }

    #[test]
    fn what_holds_a_job_up_is_told() {
        let says = |held: Value| {
            let sentence = sentence(&job("scheduled", json!({"held_because": held})));
            let because = format!("; due {LATER} (attempt 1 timed out; waiting 1s)");
            sentence
                .strip_prefix("waits because ")
                .unwrap()
                .strip_suffix(&because)
                .unwrap()
                .to_owned()
        };
        let paused =
            json!({"reason": "paused", "until": null, "text": "an operator paused the kind"});
        assert_eq!(says(paused), "an operator paused the kind");
        let rate = json!({"reason": "rate_limit", "until": LATER, "text": "the rate is used up"});
        assert_eq!(says(rate), format!("the rate is used up, until {LATER}"));
        let parked = json!({"reason": "parked", "until": null, "text": "its kind is parked"});
        check(
            "scheduled",
            json!({"due": CREATED, "held_because": parked}),
            &format!(
                "waits because its kind is parked; due {CREATED} (attempt 1 timed out; waiting 1s)"
            ),
        );
        check(
            "scheduled",
            json!({"held_because": null}),
            "waits until 2026-01-02T03:04:06.000Z: attempt 1 timed out; waiting 1s",
        );
    }
}
