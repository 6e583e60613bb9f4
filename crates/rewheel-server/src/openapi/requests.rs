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
    let all = "Select all jobs. Cannot be combined with filter conditions.";
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
    let leaving = Object::new().has("holder", id()).closed("The worker to deregister.");
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
        ("FailureRule", failure_rule()),
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
            about(or_null(name(255)), "Idempotency key. A second submit with the same key returns the existing job."),
        )
        .may("tenant", about(or_null(name(128)), "Tenant that the job belongs to."))
        .may("shard_key", about(or_null(name(255)), "Key that assigns the job to a shard."))
        .may(
            "priority",
            about(or_null(between(0, 9)), "Priority from 0 to 9. Jobs with priority 9 run first (default 5)."),
        )
        .may("delay", about(or_null(duration_asked()), "Delay before the first attempt."))
        .may("due", about(or_null(time_asked()), "Time of the first attempt. Cannot be combined with `delay`."))
        .may("deadline", about(or_null(time_asked()), "No attempt starts after this time."))
        .may("attempts_max", about(or_null(between(1, u64::from(u32::MAX))), "Maximum number of attempts (default: the setting of the kind)."))
        .may("attempt_timeout", about(or_null(duration_asked()), "Timeout of one attempt (default: the setting of the kind)."))
        .may(
            "backoff",
            about(or_null(text()), "Delays between attempts, for example `exponential 100ms x2 max 30s jitter full`, or the name of a preset (default: the setting of the kind)."),
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
    Object::new().has("jobs", jobs).closed("A list of jobs to submit.")
}

fn edit_of_job() -> Value {
    let mut schema = Object::new()
        .may("payload", about(json!({}), "Any JSON value."))
        .may("priority", between(0, 9))
        .may("due", time_asked())
        .may("deadline", about(or_null(time_asked()), "New deadline. `null` removes the deadline."))
        .may("attempts_max", between(1, u64::from(u32::MAX)))
        .closed("The fields of the job to change, with their new values.");
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
        .may("key", about(or_null(name(255)), "Only the job with exactly this key."))
        .may("category", or_null(category()))
        .may("q", about(or_null(word()), "Only jobs whose text contains this string."))
        .may("due_after", or_null(time_asked()))
        .may("due_before", or_null(time_asked()))
        .may("created_after", or_null(time_asked()))
        .may("created_before", or_null(time_asked()))
        .may("incident", about(or_null(word()), "Only jobs of the incident with this id."))
        .closed("Conditions that select jobs. A job must match all of them. To select all jobs, leave out the filter and set `all`.")
}

fn order(object: Object) -> Value {
    let (nothing, never) =
        (json!({"type": ["array", "null"], "maxItems": 0}), json!({"type": "null"}));
    said(object)
        .may("canary", about(nothing, "Applies only to redrive. Must be empty here."))
        .may("deadline", about(never, "Applies only to redrive. Must be null here."))
        .closed("A bulk operation to start.")
}

fn redrive(object: Object) -> Value {
    let deadline = "New deadline of the redriven jobs. Required if their old deadline has passed.";
    said(object)
        .may("canary", about(or_null(list(between(1, 1_000))), "Numbers of jobs to redrive first, step by step: `[1, 10, 100]`. The operation continues only if the jobs of a step succeed."))
        .may("deadline", about(or_null(time_asked()), deadline))
        .closed("A redrive of dead letters to start.")
}

/// Adds the options of every bulk request.
fn said(object: Object) -> Object {
    object
        .may(
            "dry_run",
            about(
                or_null(flag()),
                "Return the number of jobs that would change, without changing them.",
            ),
        )
        .may(
            "rate",
            about(
                or_null(rate()),
                "Maximum number of jobs to change per unit of time, for example `100/s`.",
            ),
        )
}

fn kind_settings() -> Value {
    let ratio = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1});
    let breaker = Object::new()
        .may("window", between(1, 10_000))
        .may("failure_ratio", ratio)
        .may("open_for", duration_asked())
        .closed("Settings of the circuit breaker: it opens when the share of failures in the window reaches `failure_ratio`.");
    let budget = Object::new()
        .may("ratio", json!({"type": "number", "minimum": 0, "maximum": 1}))
        .may("floor", rate())
        .closed(
            "Retry budget of all nodes together: `ratio` retries per first attempt; `floor` retries are always allowed.",
        );
    let mut callback = reference("Callback");
    callback["description"] = "The HTTP callback of a kind with the runner `callback`.".into();
    Object::new()
        .may("runner", runner())
        .may("attempts_max", between(1, u64::from(u32::MAX)))
        .may("attempt_timeout", duration_asked())
        .may("backoff", about(text(), "Delays between attempts, for example `exponential 100ms x2 max 30s jitter full`, or the name of a preset."))
        .may(
            "attempts_ceiling",
            about(
                or_null(between(1, u64::from(u32::MAX))),
                "Upper limit for `attempts_max` of a single job.",
            ),
        )
        .may(
            "attempt_timeout_ceiling",
            about(or_null(duration_asked()), "Upper limit for `attempt_timeout` of a single job."),
        )
        .may(
            "delay_floor",
            about(or_null(duration_asked()), "Minimum delay between two attempts of a job."),
        )
        .may("concurrency_max", or_null(between(1, 1_000_000)))
        .may("fleet_concurrency_max", or_null(between(1, u64::from(u32::MAX))))
        .may("rate", or_null(rate()))
        .may("retry_budget", or_null(budget))
        .may("sticky_max", about(duration_asked(), "A retry whose delay is not longer than this stays on the same node and waits in its memory. Longer retries go back to the store, where any node can claim them."))
        .may("takeovers_max", between(1, u64::from(u32::MAX)))
        .may("on_give_up", one_of(["dead", "fail"]))
        .may("keep_succeeded", duration_asked())
        .may("retry_after_max", duration_asked())
        .may("hold", about(one_of(["host", "kind", "off"]), "What waits if the called service answers 429 with a Retry-After header: calls of this node to this host (the default), the kind on all nodes, or only the job."))
        .may("breaker", or_null(breaker))
        .may("failure_rules", list(reference("FailureRule")))
        .may("callback", json!({"anyOf": [callback, {"type": "null"}]}))
        .closed("The settings of a kind. Settings that are left out have their defaults.")
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
    let description = "A merge patch of the settings (RFC 7396). Settings that are left out stay unchanged; `null` resets a setting to its default.";
    schema["description"] = description.into();
    schema
}

fn callback() -> Value {
    let texts = |description| about(list(text()), description);
    let further = Object::new().has("url", text()).may("region", or_null(text()));
    let further = further.closed("A URL and its region.");
    let further = list(json!({"anyOf": [text(), further]}));
    Object::new()
        .has("url", about(text(), "URL to call, for example `https://pay.example/hook/{tenant}`."))
        .may("region", about(text(), "Region of `url`. Nodes call the URLs of their own region first."))
        .may("failover", about(further, "Other URLs to call when the first one fails, in this order. Each URL has its own circuit breaker."))
        .may("method", about(text(), "HTTP method of the request."))
        .may("headers", json!({"type": "object", "additionalProperties": {"type": "string"}}))
        .may("success", texts("Status codes that count as success: `2xx`, `200` or `200-204`."))
        .may("secrets", texts("Secrets that sign the request. Each adds a signature. Responses show them masked."))
        .may("allow", texts("Private networks that the callback may call, for example `127.0.0.0/8`. Each must be part of `server.callback_allow` in the config of the server."))
        .may("ca", about(text(), "Trusted CA certificates for the callee, as PEM. They replace the CA certificates of the system."))
        .may("retry_after_max", duration_asked())
        .closed("The HTTP request that the server sends for each attempt.")
}

fn failure_rule() -> Value {
    let when = Object::new()
        .may("category", some(&category()))
        .may("code", some(&text()))
        .may("status", some(&text()))
        .may("message", some(&text()))
        .closed("Conditions on the failure. The rule applies if all of them match.");
    Object::new()
        .may("when", or_null(when))
        .has(
            "then",
            about(text(), "What to do with the job: `retry`, `retry 30s`, `retry x4`, `snooze 5m`, `dead`, `fail`, …"),
        )
        .may("sticky", or_null(flag()))
        .closed("A rule that decides what to do after a failure.")
}

fn claim_of_work() -> Value {
    let batch_max = u64::try_from(Limits::BATCH_MAX).unwrap_or(u64::MAX);
    let mut kinds = list(kind());
    kinds["minItems"] = 1.into();
    kinds["maxItems"] = 100.into();
    Object::new()
        .may("holder", about(or_null(id()), "Holder id of the worker, from the response to its first claim. `null` in the first claim."))
        .may("name", or_null(name(Limits::HOLDER_NAME_BYTES_MAX)))
        .has("kinds", json!({"anyOf": [kinds, kind()]}))
        .may("max", or_null(between(1, batch_max)))
        .may("wait", about(or_null(duration_asked()), "Maximum time to wait for the first job, up to 60s."))
        .closed("A request for jobs to run.")
}

fn heartbeat() -> Value {
    Object::new()
        .has("holder", id())
        .may(
            "jobs",
            about(
                some(&id()),
                "Ids of all jobs that the worker is running. The server gives other jobs of this worker back to the queue.",
            ),
        )
        .closed("A heartbeat of a worker.")
}

fn extending() -> Value {
    Object::new()
        .has("holder", id())
        .has("id", id())
        .has("fence", fence())
        .has(
            "timeout",
            about(
                duration_asked(),
                "New time limit of the attempt, counted from now. The whole attempt may take at most `attempt_timeout_ceiling` of the kind.",
            ),
        )
        .closed("A request for more time for one job.")
}

fn checkpoint() -> Value {
    Object::new()
        .has("holder", id())
        .has("id", id())
        .has("fence", fence())
        .has(
            "payload",
            about(
                json!({}),
                "New payload of the job: any JSON value. The next attempt gets this payload.",
            ),
        )
        .closed("A checkpoint of a running job.")
}

/// The fence of a claimed job, as a worker sends it back.
fn fence() -> Value {
    let mut schema = about(
        count(),
        "Fencing token of the lease. Send the `fence` of the claimed job; the server ignores results of an older lease.",
    );
    schema["maximum"] = i64::MAX.into();
    schema
}

fn settling() -> Value {
    let mut results = list(reference("Result"));
    results["maxItems"] = Limits::BATCH_MAX.into();
    Object::new()
        .has("holder", id())
        .has("results", results)
        .closed("Results of attempts to report.")
}

fn result() -> Value {
    let verdicts = ["done", "retry", "stop", "dead", "fail", "pause", "cancel", "snooze"];
    let mut schema = Object::new()
        .has("id", id())
        .has("fence", fence())
        .has("verdict", one_of(verdicts))
        .may(
            "after",
            about(or_null(duration_asked()), "Delay before the next attempt. Allowed only with the verdicts `retry` and `snooze`, and required with `snooze`."),
        )
        .may("category", or_null(category()))
        .may("code", or_null(text()))
        .may("message", or_null(text()))
        .may("duration", about(or_null(duration_asked()), "Duration of the attempt."))
        .closed("The result of an attempt.");
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
