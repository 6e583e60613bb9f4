//! Schemas of the request documents.

use super::schemas::{category, reason, state};
use super::shape::{
    Object, between, duration_asked, example, flag, id, kind, list, name, one_of, or_null, rate,
    reference, text, time_asked,
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
        Object::new()
            .may("filter", or_null(reference("Filter")), "Conditions that select jobs.")
            .may("all", or_null(flag()), all)
    };
    let settings = json!({"attempts_max": 8, "attempt_timeout": "30s"});
    let schedule = json!({"cron": "0 3 * * *", "zone": "Europe/Berlin", "job": {"kind": "report", "payload": {}}});
    let claim =
        json!({"holder": null, "name": "py-1", "kinds": ["charge-card"], "max": 10, "wait": "0s"});
    let beat = json!({"holder": ID, "jobs": [ID]});
    let extend = json!({"holder": ID, "id": ID, "fence": 1, "timeout": "10m"});
    let kept = json!({"holder": ID, "id": ID, "fence": 1, "payload": {"imported": 300}});
    let leaving = Object::new()
        .has("holder", id(), "Holder id of the worker.")
        .closed("The worker to deregister.");
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
        (
            "FollowUp",
            example(
                follow_up(),
                json!({"kind": "mail-receipt", "payload": {"order": 17}, "key": "receipt-17"}),
            ),
        ),
        ("Batch", example(batch_of_jobs(), batch)),
        ("Edit", example(edit_of_job(), edit)),
        ("Filter", filter()),
        ("Order", example(order(filtered()), paused)),
        ("Redrive", example(redrive(filtered()), again)),
        ("IncidentOrder", example(order(Object::new()), json!({"rate": "100/s"}))),
        ("IncidentRedrive", example(redrive(Object::new()), json!({"canary": [1, 10, 100]}))),
        ("NewSchedule", example(new_schedule(), schedule)),
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
        (
            "JobResult",
            example(
                job_result(),
                json!({"content_type": "application/json", "body": {"receipt": 17}}),
            ),
        ),
    ]
}

pub(super) fn runner() -> Value {
    one_of(["handler", "callback", "worker"])
}

fn new_job() -> Value {
    let mut schema = Object::new()
        .has("kind", kind(), "Kind of the job.")
        .has("payload", json!({}), "Any JSON value.")
        .may("key", or_null(name(255)), "Idempotency key. A second submit with the same key returns the existing job.")
        .may("unique_until", or_null(one_of(["ended", "claimed"])), "Until when the existing job keeps the key: `ended` (default): until it has ended and the key has expired; `claimed`: until it is claimed for the first time or ends. Needs a key.")
        .may("on_duplicate", or_null(one_of(["answer", "replace"])), "What happens if another job has the same key and was never claimed. `answer` (default): the response is that job. `replace`: this submit replaces the payload and the other fields of that job. Needs a key.")
        .may("debounce", or_null(debounce()), "Run the job when no submit with its key has arrived for this long. Needs a key. Cannot be combined with `delay` and `due`.")
        .may("tenant", or_null(name(128)), "Tenant that the job belongs to.")
        .may("shard_key", or_null(name(255)), "Key that assigns the job to a shard.")
        .may("group_key", or_null(name(255)), "Key of a group. Jobs of the same kind and tenant with this key run one at a time, in the order of their submits.")
        .may("priority", or_null(between(0, 9)), "Priority from 0 to 9. Jobs with priority 9 run first (default 5).")
        .may("delay", or_null(duration_asked()), "Delay before the first attempt.")
        .may("due", or_null(time_asked()), "Time of the first attempt. Cannot be combined with `delay`.")
        .may("deadline", or_null(time_asked()), "No attempt starts after this time.")
        .may("attempts_max", or_null(between(1, u64::from(u32::MAX))), "Maximum number of attempts (default: the setting of the kind).")
        .may("attempt_timeout", or_null(duration_asked()), "Timeout of one attempt (default: the setting of the kind).")
        .may("backoff", or_null(text()), "Delays between attempts, for example `exponential 100ms x2 max 30s jitter full`, or the name of a preset (default: the setting of the kind).")
        .closed("A job to submit.");
    // Fields that exclude each other.
    schema["dependentSchemas"] = json!({
        "delay": {"if": {"properties": {"delay": {"type": "string"}}}, "then": {"properties": {"due": {"type": "null"}}}},
        "debounce": {"if": {"properties": {"debounce": {"type": ["string", "object"]}}}, "then": {"properties": {
            "delay": {"type": "null"}, "due": {"type": "null"},
            "unique_until": {"enum": ["claimed", null]}, "on_duplicate": {"enum": ["replace", null]},
        }}},
    });
    schema
}

fn debounce() -> Value {
    let both = Object::new()
        .has("delay", duration_asked(), "The job runs when no submit with its key has arrived for this time.")
        .may("max", or_null(duration_asked()), "How long submits can delay the job, counted from its creation (default: ten times `delay`). Must not be shorter than `delay`.")
        .closed("Delay and limit.");
    json!({"anyOf": [duration_asked(), both]})
}

fn new_schedule() -> Value {
    let mut job = new_job();
    if let Some(fields) = job["properties"].as_object_mut() {
        ["key", "due", "deadline", "unique_until", "on_duplicate", "debounce"]
            .iter()
            .for_each(|name| drop(fields.remove(*name)));
    }
    if let Some(schema) = job.as_object_mut() {
        schema.remove("dependentSchemas");
    }
    job["description"] = "The job to submit at each instant.".into();
    Object::new()
        .may("cron", or_null(text()), "Cron expression: minute, hour, day of month, month, day of week. Cannot be combined with `every`.")
        .may("zone", or_null(text()), "Time zone of the cron expression, such as `Europe/Berlin` (default `UTC`).")
        .may("every", or_null(duration_asked()), "Period, such as `15m`. The instants are the multiples of the period since 1970-01-01 UTC.")
        .has("job", job, "The job to submit at each instant.")
        .may("overlap", or_null(one_of(["skip", "allow"])), "What happens at an instant if an earlier job of the schedule has not ended. `skip` (default): the instant submits no job. `allow`: it submits its job.")
        .may("catch_up", or_null(one_of(["none", "one"])), "What happens to instants that passed while no node could fire. `one` (default): the latest of them fires, however late. `none`: the latest of them fires only if it is at most one minute late. The others do not fire.")
        .closed("A job and the times at which to submit it. Either `cron` or `every` is required.")
}

/// A job that is submitted together with the result of another job: it has the tenant of that job.
fn follow_up() -> Value {
    let mut schema = new_job();
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.remove("tenant");
    }
    schema["description"] =
        "A follow-up: a job to submit together with the result of another job (its parent), in one transaction. The follow-up has the tenant of its parent."
            .into();
    schema
}

fn batch_of_jobs() -> Value {
    let mut jobs = list(reference("NewJob"));
    jobs["maxItems"] = Limits::SUBMIT_MAX.into();
    Object::new()
        .has("jobs", jobs, "The jobs to submit. The `results` of the response have the same order.")
        .closed("A list of jobs to submit.")
}

fn edit_of_job() -> Value {
    let mut schema = Object::new()
        .may("payload", json!({}), "Any JSON value.")
        .may("priority", between(0, 9), "New priority. Jobs with priority 9 run first.")
        .may("due", time_asked(), "New time of the next attempt.")
        .may("deadline", or_null(time_asked()), "New deadline. `null` removes the deadline.")
        .may("attempts_max", between(1, u64::from(u32::MAX)), "New maximum number of attempts.")
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
        .may("state", one_or_more(&state()), "Only jobs in this state, or in one of these states.")
        .may("kind", one_or_more(&kind()), "Only jobs of this kind, or of one of these kinds.")
        .may("tenant", or_null(name(128)), "Only jobs of this tenant.")
        .may("key", or_null(name(255)), "Only the job with exactly this key.")
        .may("parent", or_null(id()), "Only follow-ups of this job: jobs that were submitted together with its result.")
        .may("group_key", or_null(name(255)), "Only jobs of the group with this key.")
        .may("category", or_null(category()), "Only jobs whose latest failure has this category.")
        .may("incident", or_null(word()), "Only jobs of the incident with this id.")
        .may("code", or_null(word()), "Only jobs whose latest failure has this code.")
        .may("reason", or_null(reason()), "Only jobs that wait, or waited, for this reason.")
        .may("attempt", or_null(word()), "Only jobs with this number of used attempts: `3`, `>3`, `>=3`, `<3` or `<=3`.")
        .may("q", or_null(word()), "Only jobs with this text in the id, the key or the latest failure.")
        .may("due_after", or_null(time_asked()), "Only jobs that are due at this time or later.")
        .may("due_before", or_null(time_asked()), "Only jobs that are due before this time.")
        .may("created_after", or_null(time_asked()), "Only jobs that were created at this time or later.")
        .may("created_before", or_null(time_asked()), "Only jobs that were created before this time.")
        .closed("Conditions that select jobs. A job must match all of them. To select all jobs, leave out the filter and set `all`.")
}

fn order(object: Object) -> Value {
    let (nothing, never) =
        (json!({"type": ["array", "null"], "maxItems": 0}), json!({"type": "null"}));
    said(object)
        .may("canary", nothing, "Only for a redrive. Must be empty for this operation.")
        .may("deadline", never, "Only for a redrive. Must be null for this operation.")
        .closed("A bulk operation to start.")
}

fn redrive(object: Object) -> Value {
    let deadline = "New deadline of the redriven jobs. Required if their old deadline has passed.";
    said(object)
        .may("canary", or_null(list(between(1, 1_000))), "How many jobs to redrive in each of the first steps, for example `[1, 10, 100]`. The next step starts when all jobs of a step have ended. The operation is aborted if one job of a step becomes dead or failed again, or if an attempt fails in a tenth of the jobs of a step.")
        .may("deadline", or_null(time_asked()), deadline)
        .closed("A redrive of dead letters to start.")
}

/// Adds the options of every bulk request.
fn said(object: Object) -> Object {
    object
        .may(
            "dry_run",
            or_null(flag()),
            "Return the number of jobs that would change, without changing them.",
        )
        .may(
            "rate",
            or_null(rate()),
            "Maximum number of jobs to change per unit of time, for example `100/s`.",
        )
}

fn kind_settings() -> Value {
    let ratio = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1});
    let breaker = Object::new()
        .may("window", between(1, 10_000), "Number of latest attempts that the breaker counts.")
        .may("failure_ratio", ratio, "Share of failures in the window at which the breaker opens.")
        .may("open_for", duration_asked(), "How long the breaker stays open before a probe attempt.")
        .closed("Settings of the circuit breaker: it opens when the share of failures in the window reaches `failure_ratio`.");
    let budget = Object::new()
        .may("ratio", json!({"type": "number", "minimum": 0, "maximum": 1}), "Allowed retries as a share of first attempts, over all jobs of the kind: 0.1 allows 10 retries for 100 first attempts.")
        .may("floor", rate(), "Rate of retries that is always allowed.")
        .closed(
            "Retry budget of all nodes and workers together: up to `ratio` retries per first attempt; retries up to the rate `floor` are always allowed.",
        );
    Object::new()
        .may("runner", runner(), "What runs the jobs: a handler in Rust, an HTTP callback, or a worker.")
        .may("attempts_max", between(1, u64::from(u32::MAX)), "Maximum number of attempts.")
        .may("attempt_timeout", duration_asked(), "Timeout of one attempt.")
        .may("backoff", text(), "Delays between attempts, for example `exponential 100ms x2 max 30s jitter full`, or the name of a preset.")
        .may("attempts_ceiling", or_null(between(1, u64::from(u32::MAX))), "Upper limit for `attempts_max` of a single job (default: 1000, or `attempts_max` of the kind if that is higher).")
        .may("attempt_timeout_ceiling", or_null(duration_asked()), "Upper limit for `attempt_timeout` of a single job (default: 1h, or `attempt_timeout` of the kind if that is longer).")
        .may("delay_floor", or_null(duration_asked()), "Minimum delay between two attempts of a job (default: 10ms, or the first delay of `backoff` if that is shorter).")
        .may("concurrency_max", or_null(between(1, 1_000_000)), "Maximum number of concurrent attempts in one node or one worker.")
        .may("fleet_concurrency_max", or_null(between(1, u64::from(u32::MAX))), "Maximum number of concurrent attempts in all nodes and workers together.")
        .may("rate", or_null(rate()), "Maximum rate at which attempts start, in all nodes and workers together.")
        .may("retry_budget", or_null(budget), "Limit of retries, of all nodes and workers together.")
        .may("sticky_max", duration_asked(), "Longest retry delay for which a job stays on its node. If the delay is not longer than this, the job stays leased to the node and waits in its memory. If the delay is longer, the job goes back to the store, and any node can claim it.")
        .may("takeovers_max", between(1, u64::from(u32::MAX)), "Protection against jobs that crash their nodes: a job becomes a dead letter when it was taken over this many times while it was running. The first takeover of a job does not count.")
        .may("on_give_up", one_of(["dead", "fail"]), "What happens to a job when its last attempt has failed or when a retry cannot help: with `dead` the job becomes a dead letter and waits for an operator, with `fail` the job ends as failed.")
        .may("keep_succeeded", duration_asked(), "Retention of succeeded jobs. `0s` deletes a job as soon as it succeeds.")
        .may("result", flag(), "Keep the result of each succeeded job, as long as the job itself. Requires a `keep_succeeded` longer than `0s`.")
        .may("retry_after_max", duration_asked(), "Longest delay that the called service may request with the Retry-After header.")
        .may("hold", one_of(["host", "kind", "off"]), "Which calls wait if the called service answers 429 with a Retry-After header. `host` (default): all calls to this host by the node that got the answer. `kind`: all calls of the kind, on all nodes. `off`: only the job that got the answer.")
        .may("on_dead", one_of(["continue", "block"]), "What a dead letter does to its group: with `continue` (the default) the next job of the group runs, with `block` the group waits until the dead letter is redriven or cancelled.")
        .may("breaker", or_null(breaker), "Circuit breaker. After too many attempts have failed, no attempts start until a test attempt succeeds.")
        .may("failure_rules", list(reference("FailureRule")), "Rules that decide what to do after a failure. The first rule that matches applies.")
        .may("callback", or_null(reference("Callback")), "The HTTP callback of a kind with the runner `callback`.")
        .closed("The settings of a kind. Settings that are left out have their defaults.")
}

fn kind_patch() -> Value {
    let mut schema = kind_settings();
    if let Some(fields) = schema["properties"].as_object_mut() {
        for value in fields.values_mut() {
            // Which values a field accepts also depends on the stored settings: the server checks
            // the result.
            *value = json!({"description": value["description"]});
        }
    }
    let description = "A merge patch of the settings (RFC 7396). Settings that are left out stay unchanged; `null` resets a setting to its default.";
    schema["description"] = description.into();
    schema
}

fn callback() -> Value {
    let further = Object::new().has("url", text(), "URL to call.").may(
        "region",
        or_null(text()),
        "Region of the URL. Nodes call the URLs of their own region first.",
    );
    let further = further.closed("A URL and its region.");
    let further = list(json!({"anyOf": [text(), further]}));
    Object::new()
        .has("url", text(), "URL to call, for example `https://pay.example/hook/{tenant}`.")
        .may("region", text(), "Region of `url`. Nodes call the URLs of their own region first.")
        .may("failover", further, "Other URLs to call if `url` fails, in the order of this list. URLs in the region of the node come first. Each host has its own circuit breaker.")
        .may("method", text(), "HTTP method of the request.")
        .may("headers", json!({"type": "object", "additionalProperties": {"type": "string"}}), "Headers of the request. In responses of this API, the header values are masked.")
        .may("success", list(text()), "Status codes that count as success: `2xx`, `200` or `200-204`.")
        .may("secrets", list(text()), "Secrets that sign the request. Each secret adds a signature. Responses show the secrets masked.")
        .may("allow", list(text()), "Private networks that the callback may call, for example `127.0.0.0/8`. Each must be part of `server.callback_allow` in the config of the server.")
        .may("ca", text(), "Trusted CA certificates for the called service, as PEM. They replace the CA certificates of the system.")
        .may("retry_after_max", duration_asked(), "Longest delay that the called service may request with the Retry-After header.")
        .closed("The HTTP request that the server sends for each attempt.")
}

fn failure_rule() -> Value {
    let when = Object::new()
        .may("category", some(&category()), "Categories of the failure.")
        .may("code", some(&text()), "Codes of the failure.")
        .may("status", some(&text()), "HTTP statuses of the response, for example `503` or `5xx`.")
        .may("message", some(&text()), "Texts to look for in the message; one match is enough, and upper and lower case do not matter.")
        .closed("Conditions on the failure. The rule applies if all of them match.");
    Object::new()
        .may("when", or_null(when), "Conditions on the failure. Without conditions, the rule matches every failure.")
        .has("then", text(), "What to do with the job, for example `retry`, `retry 30s`, `retry x4`, `snooze 5m`, `dead` or `fail`.")
        .may("sticky", or_null(flag()), "True if the retry stays on the same node.")
        .closed("A rule that decides what to do after a failure.")
}

fn claim_of_work() -> Value {
    let batch_max = u64::try_from(Limits::BATCH_MAX).unwrap_or(u64::MAX);
    let mut kinds = list(kind());
    kinds["minItems"] = 1.into();
    kinds["maxItems"] = 100.into();
    Object::new()
        .may("holder", or_null(id()), "Holder id of the worker, from the response to its first claim. `null` in the first claim.")
        .may("name", or_null(name(Limits::HOLDER_NAME_BYTES_MAX)), "Name of the worker, for lists of holders.")
        .has("kinds", json!({"anyOf": [kinds, kind()]}), "Kinds of jobs that the worker can run.")
        .may("max", or_null(between(1, batch_max)), "Maximum number of jobs.")
        .may("wait", or_null(duration_asked()), "Maximum time to wait for the first job, up to 60s.")
        .closed("A request for jobs to run.")
}

fn heartbeat() -> Value {
    Object::new()
        .has("holder", id(), "Holder id of the worker.")
        .may("jobs", some(&id()), "Ids of all jobs that the worker is running. If the server gave a job to the worker before its previous heartbeat, and the job is not in this list, the server takes the job away and schedules it again.")
        .closed("A heartbeat of a worker.")
}

fn extending() -> Value {
    Object::new()
        .has("holder", id(), "Holder id of the worker.")
        .has("id", id(), "Id of the job.")
        .has("fence", fence(), FENCE)
        .has("timeout", duration_asked(), "New time limit of the attempt, counted from now. The whole attempt may take at most `attempt_timeout_ceiling` of the kind.")
        .closed("A request for more time for one job.")
}

fn checkpoint() -> Value {
    Object::new()
        .has("holder", id(), "Holder id of the worker.")
        .has("id", id(), "Id of the job.")
        .has("fence", fence(), FENCE)
        .has(
            "payload",
            json!({}),
            "New payload of the job: any JSON value. The next attempt gets this payload.",
        )
        .closed("A checkpoint of a running job.")
}

const FENCE: &str = "Fencing token of the lease. Send the `fence` of the claimed job; the server ignores results of an older lease.";

/// The fence of a claimed job, as a worker sends it back.
fn fence() -> Value {
    between(0, i64::MAX.unsigned_abs())
}

fn settling() -> Value {
    let mut results = list(reference("Result"));
    results["maxItems"] = Limits::BATCH_MAX.into();
    Object::new()
        .has("holder", id(), "Holder id of the worker.")
        .has("results", results, "The results of attempts.")
        .closed("A report with the results of attempts.")
}

fn job_result() -> Value {
    let mut schema = Object::new()
        .may("content_type", or_null(text()), "Media type (default `application/json` for `body`, `application/octet-stream` for `body_base64`).")
        .may("body", json!({}), "The result as JSON: any value. `content_type` must be a JSON type.")
        .may("body_base64", or_null(text()), "The result as bytes, in Base64.")
        .closed("The result of a job: either `body` or `body_base64`. A result above `engine.result_bytes_max` is dropped, and the job still succeeds.");
    schema["oneOf"] = json!([{"required": ["body"]}, {"required": ["body_base64"]}]);
    schema
}

fn result() -> Value {
    let mut submit = list(reference("FollowUp"));
    submit["maxItems"] = Limits::FOLLOW_UPS_MAX.into();
    let verdicts = ["done", "retry", "stop", "dead", "fail", "pause", "cancel", "snooze"];
    let mut schema = Object::new()
        .has("id", id(), "Id of the job.")
        .has("fence", fence(), FENCE)
        .has("verdict", one_of(verdicts), "How the attempt ended, and what to do with the job.")
        .may("after", or_null(duration_asked()), "Delay before the next attempt. Allowed only with the verdicts `retry` and `snooze`, and required with `snooze`.")
        .may("category", or_null(category()), "Category of the failure.")
        .may("code", or_null(text()), "Error code of the failure.")
        .may("message", or_null(text()), "Human-readable description of the failure.")
        .may("duration", or_null(duration_asked()), "Duration of the attempt.")
        .may("result", or_null(reference("JobResult")), "The result of the job, kept if the kind has the setting `result`. Allowed only with the verdict `done`.")
        .may("submit", or_null(submit), "Jobs to submit in the same transaction as this result. The server stores them only if it accepts the result. Allowed only with the verdicts `done` and `snooze`. The payloads of these jobs may have at most 256 KiB together.")
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
