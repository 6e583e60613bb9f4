//! The steps of a canary as a ladder: what succeeded, what runs, what stopped, and what is untouched.

use super::documents::{Canary, Operation};
use super::shown::{Number, short};

/// A step of a canary, or the jobs that follow after the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepRow {
    /// `10`, or `rest 269`.
    pub(super) size: String,
    pub(super) class: &'static str,
    pub(super) word: String,
    /// A job that failed again: its id, and the end of its id.
    pub(super) failed_job: Option<(String, String)>,
}

/// Returns the ladder of an operation; empty if it has no canary.
pub(super) fn steps(operation: &Operation) -> Vec<StepRow> {
    let Some(canary) = &operation.canary else { return Vec::new() };
    let current = canary.step.unwrap_or(canary.sizes.len() + 1);
    let row = |(place, size): (usize, &u64)| match (place + 1).cmp(&current) {
        std::cmp::Ordering::Less => plain(Number(*size).to_string(), "l-done", "succeeded"),
        std::cmp::Ordering::Equal => now(operation, canary, *size),
        std::cmp::Ordering::Greater if operation.state == "done" => {
            plain(Number(*size).to_string(), "", "not needed")
        }
        std::cmp::Ordering::Greater => plain(Number(*size).to_string(), "", "untouched"),
    };
    let mut rows: Vec<StepRow> = canary.sizes.iter().enumerate().map(row).collect();
    if canary.rest > 0 {
        rows.push(rest(operation, canary));
    }
    rows
}

fn plain(size: String, class: &'static str, word: &str) -> StepRow {
    StepRow { size, class, word: word.to_owned(), failed_job: None }
}

/// The current step.
fn now(operation: &Operation, canary: &Canary, size: u64) -> StepRow {
    let (ok, failed) = (Number(canary.ok), Number(canary.failed));
    let figures = match canary.failed {
        0 => format!("{ok} ok"),
        _ => format!("{ok} ok, {failed} failed again"),
    };
    let (class, word) = match operation.state.as_str() {
        // There were fewer jobs than the steps take.
        "done" if canary.redriven == 0 => ("", "not needed".to_owned()),
        "done" => ("l-done", "succeeded".to_owned()),
        "aborted" => ("l-stopped", format!("stopped: {figures}")),
        "paused" => ("", format!("paused: {figures}")),
        _ if canary.redriven < size => ("l-now", format!("{} redriven", Number(canary.redriven))),
        _ => ("l-now", format!("waits for its jobs: {figures}")),
    };
    let failed_job = canary.failed_job.as_ref().map(|id| (id.clone(), short(id)));
    StepRow { size: Number(size).to_string(), class, word, failed_job }
}

/// The jobs after the last step.
fn rest(operation: &Operation, canary: &Canary) -> StepRow {
    let size = format!("rest {}", Number(canary.rest));
    if canary.step.is_some() {
        return plain(size, "", "untouched");
    }
    let in_steps: u64 = canary.sizes.iter().sum();
    let worked = (operation.done + operation.failed).saturating_sub(in_steps).min(canary.rest);
    match operation.state.as_str() {
        "done" => plain(size, "l-done", "redriven"),
        "aborted" => plain(size, "l-stopped", &format!("stopped: {} redriven", Number(worked))),
        "paused" => plain(size, "", &format!("paused: {} redriven", Number(worked))),
        _ => plain(size, "l-now", &format!("{} redriven", Number(worked))),
    }
}

#[cfg(test)]
mod tests {
    use super::steps;
    use serde_json::json;

    /// Shows the ladder of an operation on 412 jobs with the steps 1, 10 and 100.
    #[track_caller]
    fn check(state: &str, done: u64, canary: serde_json::Value, expected: &[&str]) {
        let mut operation = json!({
            "id": "0193a5f0-1111-7000-8000-000000000001", "verb": "redrive", "state": state,
            "total": 412, "done": done, "failed": 0, "refused": {}, "reason": null, "incident": null,
            "by": "rest", "created": "2026-01-01T00:00:00.000Z", "finished": null,
            "canary": { "step": 1, "sizes": [1, 10, 100], "redriven": 0, "ok": 0, "failed": 0,
                        "failed_job": null, "rest": 301 },
        });
        for (name, value) in canary.as_object().unwrap() {
            operation["canary"][name] = value.clone();
        }
        let rows = steps(&serde_json::from_value(operation).unwrap());
        let shown: Vec<String> = rows
            .iter()
            .map(|row| {
                let job = row.failed_job.as_ref().map(|(_, short)| format!(" {short}"));
                format!("{} {} {}{}", row.class, row.size, row.word, job.unwrap_or_default())
            })
            .map(|text| text.trim().to_owned())
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn each_phase_of_a_canary_is_shown() {
        let untouched = ["10 untouched", "100 untouched", "rest 301 untouched"];
        check("running", 0, json!({}), &[&["l-now 1 0 redriven"][..], &untouched].concat());
        let waits = "l-now 1 waits for its jobs: 0 ok";
        check("running", 1, json!({ "redriven": 1 }), &[&[waits][..], &untouched].concat());
        let second = json!({ "step": 2, "redriven": 10, "ok": 6 });
        check(
            "running",
            11,
            second.clone(),
            &[
                "l-done 1 succeeded",
                "l-now 10 waits for its jobs: 6 ok",
                "100 untouched",
                "rest 301 untouched",
            ],
        );
        check(
            "paused",
            11,
            second,
            &["l-done 1 succeeded", "10 paused: 6 ok", "100 untouched", "rest 301 untouched"],
        );
        let steps = ["l-done 1 succeeded", "l-done 10 succeeded", "l-done 100 succeeded"];
        let over = json!({ "step": null });
        check(
            "running",
            231,
            over.clone(),
            &[&steps[..], &["l-now rest 301 120 redriven"]].concat(),
        );
        check(
            "aborted",
            231,
            over.clone(),
            &[&steps[..], &["l-stopped rest 301 stopped: 120 redriven"]].concat(),
        );
        check("done", 412, over, &[&steps[..], &["l-done rest 301 redriven"]].concat());
    }

    #[test]
    fn a_step_that_failed_names_its_job_and_what_stays_untouched() {
        let failed = json!({
            "step": 2, "redriven": 10, "ok": 7, "failed": 3,
            "failed_job": "0193a5f0-1111-7000-8000-00000000beef",
        });
        check(
            "aborted",
            11,
            failed,
            &[
                "l-done 1 succeeded",
                "l-stopped 10 stopped: 7 ok, 3 failed again 0000beef",
                "100 untouched",
                "rest 301 untouched",
            ],
        );
    }

    #[test]
    fn steps_without_jobs_are_not_needed() {
        let few = json!({ "step": 2, "rest": 0 });
        check("done", 1, few, &["l-done 1 succeeded", "10 not needed", "100 not needed"]);
    }
}
