//! Schemas of the request documents.

use super::schemas::{category, state};
use super::shape::{
    Object, about, between, count, duration_asked, example, flag, id, kind, list, name, one_of,
    or_null, rate, reference, text, time_asked,
};
use rewheel_core::Limits;
use serde_json::{Value, json};

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";

/// Every request body by name, with its schema.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let nothing = Object::new().closed("An empty object.");
    let batch = json!({"jobs": [{"kind": "mail", "payload": {"to": "ada"}}]});
    let edit = json!({"priority": 9});
    let again = json!({"filter": {"kind": "charge-card", "category": "timeout"}, "dry_run": true});
    let paused = json!({"filter": {"tenant": "shop"}, "dry_run": true});
    let all = "Select every job; the filter must then be empty.";
    let filtered = || {
        let filter = json!({"anyOf": [reference("Filter"), {"type": "null"}]});
        Object::new().may("filter", filter).may("all", about(or_null(flag()), all))
    };
    let settings = json!({"attempts_max": 8, "attempt_timeout": "30s"});
    let claim =
        json!({"holder": null, "name": "py-1", "kinds": ["charge-card"], "max": 10, "wait": "0s"});
    let beat = json!({"holder": ID, "jobs": [ID]});
    let extend = json!({"holder": ID, "id": ID, "fence": 1, "timeout": "10m"});
    let kept = json!({"holder": ID, "id": ID, "fence": 1, "payload": {"imported": 300}});
    let leaving = Object::new().has("holder", id()).closed("A worker that deregisters.");
    let settle = json!({"holder": ID, "results": [{"id": ID, "fence": 1, "verdict": "done"}]});
    vec![
        ("Nothing", example(nothing, json!({}))),
        (
            "NewJob",
            example(
                new_job(),
                json!({"kind": "charge-card", "payload": {"order": 17}, "key": "order-17"}),
            ),
        ),
        ("Batch", example(batch_of_jobs(), batch)),
        ("Edit", example(edit_of_job(), edit)),
        ("Filter", filter()),
        ("Order", example(order(filtered()), paused)),
        ("Redrive", example(redrive(filtered()), again)),
        ("IncidentOrder", example(order(Object::new()), json!({"rate": "100/s"}))),
        ("IncidentRedrive", example(redrive(Object::new()), json!({"canary": [1, 10, 100]}))),
        ("KindSettings", example(kind_settings(), settings)),
        ("KindPatch", example(kind_patch(), json!({"attempts_max": 3, "rate": null}))),
        ("Callback", callback()),
        ("Route", route()),
        ("Claim", example(claim_of_work(), claim)),
        ("Heartbeat", example(heartbeat(), beat)),
        ("Settle", example(settling(), settle)),
        ("Extend", example(extending(), extend)),
        ("Checkpoint", example(checkpoint(), kept)),
        ("Leave", example(leaving, json!({"holder": ID}))),
        ("Result", result()),
    ]
}

pub(super) fn runner() -> Value {
    one_of(["handler", "callback", "worker"])
}

fn new_job() -> Value {
    let mut schema = Object::new()
        .has("kind", kind())
        .has("payload", about(json!({}), "Any JSON value."))
        .may(
            "key",
            about(or_null(name(255)), "Idempotency key: submitting it again returns the same job."),
        )
        .may("tenant", or_null(name(128)))
        .may("shard_key", or_null(name(255)))
        .may(
            "priority",
            about(or_null(between(0, 9)), "Priority 0 to 9; 9 runs first (default 5)."),
        )
        .may("delay", about(or_null(duration_asked()), "Delay before the first attempt."))
        .may("due", about(or_null(time_asked()), "Time of the first attempt, instead of `delay`."))
        .may("deadline", about(or_null(time_asked()), "No attempt starts after this time."))
        .may("attempts_max", or_null(between(1, u64::from(u32::MAX))))
        .may("attempt_timeout", or_null(duration_asked()))
        .may(
            "backoff",
            about(or_null(text()), "`exponential 100ms x2 max 30s jitter full`, or a preset."),
        )
        .closed("A job to submit.");
    // Only one of the two may be set.
    schema["dependentSchemas"] = json!({
        "delay": {"if": {"properties": {"delay": {"type": "string"}}}, "then": {"properties": {"due": {"type": "null"}}}},
    });
    schema
}

fn batch_of_jobs() -> Value {
    let mut jobs = list(reference("NewJob"));
    jobs["maxItems"] = Limits::SUBMIT_MAX.into();
    Object::new().has("jobs", jobs).closed("Jobs to submit.")
}

fn edit_of_job() -> Value {
    let mut schema = Object::new()
        .may("payload", about(json!({}), "Any JSON value."))
        .may("priority", between(0, 9))
        .may("due", time_asked())
        .may("deadline", about(or_null(time_asked()), "null removes it."))
        .may("attempts_max", between(1, u64::from(u32::MAX)))
        .closed("The fields to change.");
    schema["minProperties"] = 1.into();
    schema
}

/// A value, or a list of values.
fn some(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "array", "items": schema}, {"type": "null"}]})
}

/// A value, or a list of values that is not empty.
fn one_or_more(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}, {"type": "null"}]})
}

/// A text that must not be empty.
fn word() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn filter() -> Value {
    Object::new()
        .may("state", one_or_more(&state()))
        .may("kind", one_or_more(&kind()))
        .may("tenant", or_null(name(128)))
        .may("key", about(or_null(name(255)), "Exact key of the job."))
        .may("category", or_null(category()))
        .may("q", about(or_null(word()), "Text that the job must contain."))
        .may("due_after", or_null(time_asked()))
        .may("due_before", or_null(time_asked()))
        .may("created_after", or_null(time_asked()))
        .may("created_before", or_null(time_asked()))
        .may("incident", about(or_null(word()), "The id of an incident."))
        .closed("Conditions that jobs must match. Without a condition, set `all`.")
}

fn order(object: Object) -> Value {
    let (nothing, never) =
        (json!({"type": ["array", "null"], "maxItems": 0}), json!({"type": "null"}));
    said(object)
        .may("canary", about(nothing, "Only for redrive."))
        .may("deadline", about(never, "Only for redrive."))
        .closed("A bulk operation.")
}

fn redrive(object: Object) -> Value {
    let deadline = "New deadline of the redriven jobs.";
    said(object)
        .may("canary", about(or_null(list(between(1, 1_000))), "Sizes of the canary steps."))
        .may("deadline", about(or_null(time_asked()), deadline))
        .closed("Options of a redrive.")
}

/// Adds the options of every bulk request.
fn said(object: Object) -> Object {
    object
        .may("dry_run", about(or_null(flag()), "Report what would change, and change nothing."))
        .may("rate", about(or_null(rate()), "How fast."))
}

fn kind_settings() -> Value {
    let ratio = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1});
    let breaker = Object::new()
        .may("window", between(1, 10_000))
        .may("failure_ratio", ratio)
        .may("open_for", duration_asked())
        .closed("When the circuit breaker opens.");
    let budget = Object::new()
        .may("ratio", json!({"type": "number", "minimum": 0, "maximum": 1}))
        .may("floor", rate())
        .closed("How many retries the fleet has.");
    let mut callback = reference("Callback");
    callback["description"] = "Where the jobs of the runner `callback` go.".into();
    Object::new()
        .may("runner", runner())
        .may("attempts_max", between(1, u64::from(u32::MAX)))
        .may("attempt_timeout", duration_asked())
        .may("backoff", about(text(), "`exponential 100ms x2 max 30s jitter full`, or a preset."))
        .may(
            "attempts_ceiling",
            about(
                or_null(between(1, u64::from(u32::MAX))),
                "How many attempts one job may ask for.",
            ),
        )
        .may(
            "attempt_timeout_ceiling",
            about(or_null(duration_asked()), "How long an attempt timeout one job may ask for."),
        )
        .may(
            "delay_floor",
            about(or_null(duration_asked()), "Minimum delay between two attempts of a job."),
        )
        .may("concurrency_max", or_null(between(1, 1_000_000)))
        .may("fleet_concurrency_max", or_null(between(1, u64::from(u32::MAX))))
        .may("rate", or_null(rate()))
        .may("retry_budget", or_null(budget))
        .may("sticky_max", about(duration_asked(), "Shorter retries stay in the wheel."))
        .may("takeovers_max", between(1, u64::from(u32::MAX)))
        .may("on_give_up", one_of(["dead", "fail"]))
        .may("keep_succeeded", duration_asked())
        .may("retry_after_max", duration_asked())
        .may("breaker", or_null(breaker))
        .may("routes", list(reference("Route")))
        .may("callback", json!({"anyOf": [callback, {"type": "null"}]}))
        .closed("The settings of a kind; what is left out has its default.")
}

fn kind_patch() -> Value {
    let mut schema = kind_settings();
    if let Some(fields) = schema["properties"].as_object_mut() {
        for value in fields.values_mut() {
            // Which values a field accepts also depends on the stored settings: the server checks
            // the result.
            *value = json!({});
        }
    }
    let description = "A merge patch of the settings (RFC 7396): what is left out stays, null goes back to the default.";
    schema["description"] = description.into();
    schema
}

fn callback() -> Value {
    let texts = |description| about(list(text()), description);
    let further = Object::new().has("url", text()).may("region", or_null(text()));
    let further = further.closed("One, with where it is.");
    let further = list(json!({"anyOf": [text(), further]}));
    Object::new()
        .has("url", about(text(), "`https://pay.example/hook/{tenant}`"))
        .may("region", about(text(), "Region of the URL: nodes of the same region prefer it."))
        .may("failover", about(further, "Further URLs, in order, each with its breaker."))
        .may("method", text())
        .may("headers", json!({"type": "object", "additionalProperties": {"type": "string"}}))
        .may("success", texts("Statuses that are a success: `2xx`, `200`, `200-204`."))
        .may("secrets", texts("Each signs the request; shown as stars."))
        .may("allow", texts("Private addresses that it may reach, within `server.callback_allow` of the server: `127.0.0.0/8`."))
        .may("ca", about(text(), "The only certificates that may vouch for the callee, as PEM."))
        .may("retry_after_max", duration_asked())
        .closed("An HTTP request for each attempt.")
}

fn route() -> Value {
    let when = Object::new()
        .may("category", some(&category()))
        .may("code", some(&text()))
        .may("status", some(&text()))
        .may("message", some(&text()))
        .closed("Which failures.");
    Object::new()
        .may("when", or_null(when))
        .has(
            "then",
            about(text(), "`retry`, `retry 30s`, `retry x4`, `snooze 5m`, `dead`, `fail`, …"),
        )
        .may("sticky", or_null(flag()))
        .closed("A rule for failures.")
}

fn claim_of_work() -> Value {
    let batch_max = u64::try_from(Limits::BATCH_MAX).unwrap_or(u64::MAX);
    let mut kinds = list(kind());
    kinds["minItems"] = 1.into();
    kinds["maxItems"] = 100.into();
    Object::new()
        .may("holder", about(or_null(id()), "null on the first claim; the response contains it."))
        .may("name", or_null(name(Limits::HOLDER_NAME_BYTES_MAX)))
        .has("kinds", json!({"anyOf": [kinds, kind()]}))
        .may("max", or_null(between(1, batch_max)))
        .may("wait", about(or_null(duration_asked()), "Maximum wait for the first job, up to 60s."))
        .closed("A claim for jobs.")
}

fn heartbeat() -> Value {
    Object::new()
        .has("holder", id())
        .may(
            "jobs",
            about(
                some(&id()),
                "The jobs that the worker holds; jobs that are not listed are given back.",
            ),
        )
        .closed("A heartbeat of a worker.")
}

fn extending() -> Value {
    let mut schema = Object::new()
        .has("holder", id())
        .has("id", id())
        .has("fence", about(count(), "The fence of the claimed job."))
        .has(
            "timeout",
            about(
                duration_asked(),
                "Additional time for the attempt, from now; the total is at most attempt_timeout_ceiling.",
            ),
        )
        .closed("A request for more time for one job.");
    schema["properties"]["fence"]["maximum"] = i64::MAX.into();
    schema
}

fn checkpoint() -> Value {
    let mut schema = Object::new()
        .has("holder", id())
        .has("id", id())
        .has("fence", about(count(), "The fence of the claimed job."))
        .has("payload", about(json!({}), "Payload of the next attempt: any JSON value."))
        .closed("A checkpoint of a job.");
    schema["properties"]["fence"]["maximum"] = i64::MAX.into();
    schema
}

fn settling() -> Value {
    let mut results = list(reference("Result"));
    results["maxItems"] = Limits::BATCH_MAX.into();
    Object::new().has("holder", id()).has("results", results).closed("Results of attempts.")
}

fn result() -> Value {
    let verdicts = ["done", "retry", "stop", "dead", "fail", "pause", "cancel", "snooze"];
    let mut schema = Object::new()
        .has("id", id())
        .has("fence", about(count(), "The fence of the claimed job."))
        .has("verdict", one_of(verdicts))
        .may(
            "after",
            about(or_null(duration_asked()), "Only for retry and snooze; required for snooze."),
        )
        .may("category", or_null(category()))
        .may("code", or_null(text()))
        .may("message", or_null(text()))
        .may("duration", about(or_null(duration_asked()), "Duration of the attempt."))
        .closed("The result of an attempt.");
    schema["properties"]["fence"]["maximum"] = i64::MAX.into();
    schema["allOf"] = json!([
        {
            "if": {"properties": {"verdict": {"const": "snooze"}}},
            "then": {"required": ["after"], "properties": {"after": {"type": "string"}}},
        },
        {
            "if": {"properties": {"verdict": {"enum": ["done", "stop", "dead", "fail", "pause", "cancel"]}}},
            "then": {"properties": {"after": {"type": "null"}}},
        },
    ]);
    schema
}
