//! Lists all settings of the config file, with their defaults.

use std::fmt::Write;

/// The default of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value, as written in the file.
    Is(&'static str),
    /// No default; an example, as written in the file.
    Unset(&'static str),
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The section, such as `engine`; `*` stands for a name that users choose.
    pub section: &'static str,
    /// The name within the section.
    pub name: &'static str,
    /// Its default.
    pub default: DefaultValue,
    /// What it does.
    pub meaning: &'static str,
}

/// The description of each section.
const SECTIONS: &[(&str, &str)] = &[
    ("server", "HTTP server: address, shutdown, tokens and TLS."),
    ("server.limits", "Limits that protect the server from its clients."),
    ("store", "The database that stores the jobs."),
    ("engine", "The engine of this node. It runs jobs in the process of the server."),
    ("retention", "Retention of ended jobs, keys and the audit log."),
    (
        "defaults.kind",
        "Default values for the settings of all kinds. A value in the section of a kind overrides the default value. The keys are the same as in `kinds.…`, including `callback`. See docs/limits.md.",
    ),
    (
        "kinds.*",
        "One section per kind of job, for example `[kinds.charge-card]`. `PUT /v1/kinds/{kind}` has the same settings.",
    ),
    ("kinds.*.callback", "The HTTP callback of a kind with `runner = \"callback\"`."),
    (
        "tenants.*",
        "One section per tenant, for example `[tenants.acme]`; `[tenants.\"*\"]` applies to all other tenants.",
    ),
    (
        "telemetry",
        "Export of traces and metrics by OpenTelemetry, see docs/telemetry.md. The standard `OTEL_*` environment variables set the keys that are not set here.",
    ),
    (
        "schedules.*",
        "One section per schedule, for example `[schedules.nightly-report]`, see docs/guide/schedules.md. `PUT /v1/schedules/{name}` has the same settings.",
    ),
    ("notify", "Limits for sending notifications."),
    ("notify.route.*", "Notification targets. Each target has its own section `[[notify.route]]`."),
];

const fn is(
    section: &'static str,
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { section, name, default: DefaultValue::Is(default), meaning }
}

const fn unset(
    section: &'static str,
    name: &'static str,
    example: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { section, name, default: DefaultValue::Unset(example), meaning }
}

/// Every setting, section by section.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    is("server", "listen", "\"127.0.0.1:7420\"", "Address to listen on."),
    is("server", "shutdown_grace", "\"30s\"", "Maximum time for running attempts to finish at shutdown."),
    is("server", "body_bytes_max", "33_554_432", "Maximum size of a request body in bytes. The server keeps the whole body in memory."),
    unset("server", "admin_token", "\"…\"", "Set this only with the environment variable REWHEEL__SERVER__ADMIN_TOKEN, never in the config file. A token with the role `admin`, to create the first tokens."),
    unset("server", "admin_token_file", "\"/run/secrets/rewheel\"", "Path of a file that contains the admin token."),
    unset("server", "tls", "{ certificate = \"server.pem\", key = \"server.key\" }", "PEM files with the TLS certificate and the private key of the server (default: plain HTTP)."),
    unset("server", "public_url", "\"https://ops.example.com/rewheel\"", "URL under which browsers reach this server, if a proxy is in front of it. Its path is the base path of the dashboard (the proxy may remove this path or not), `https` marks the cookies of the dashboard as `Secure`, and the server accepts changes from web pages of this origin. See docs/dashboard.md."),
    is("server", "disk_free_bytes_min", "536_870_912", "Minimum free space in bytes on the disk of the SQLite file. Below this value, `/health` reports `degraded` for the disk."),
    is("server", "callback_env", "[]", "Names of the environment variables that kinds created by REST may use as `${NAME}` in callbacks."),
    is("server", "callback_allow", "[]", "Private networks that kinds created by REST may list in `callback.allow`. Link-local and cloud metadata addresses stay forbidden for these kinds."),

    is("server.limits", "connections_max", "4_096", "Maximum number of open connections. At this limit, the server closes the connection that has been idle longest, and accepts a new connection. If no connection is idle, it rejects the new connection."),
    is("server.limits", "requests_max", "1_024", "Maximum number of concurrent requests. Health checks, event streams and workers that wait for jobs do not count."),
    is("server.limits", "bodies_bytes_max", "268_435_456", "Maximum memory in bytes for the bodies of all concurrent requests, including their parsed copies."),
    is("server.limits", "headers_max", "100", "Maximum number of headers of a request."),
    is("server.limits", "head_bytes_max", "32_768", "Maximum size of the request line and all headers, in bytes."),
    is("server.limits", "url_bytes_max", "8_192", "Maximum length of a path with its query string, in bytes."),
    is("server.limits", "head_timeout", "\"10s\"", "Maximum time for a client to send the request headers."),
    is("server.limits", "body_timeout", "\"30s\"", "Period over which the server measures how fast a client sends a request body (see `body_rate_min`)."),
    is("server.limits", "body_rate_min", "1_024", "Minimum rate at which a client must send a request body, in bytes per second."),
    is("server.limits", "idle_timeout", "\"75s\"", "Time after which the server closes an idle connection."),
    is("server.limits", "write_timeout", "\"30s\"", "Time after which the server closes a connection if the client does not read the response."),

    is("store", "url", "\"sqlite://rewheel.db\"", "URL of the database: `sqlite://file`, `postgres://user@host/database`, `mysql://user@host/database`, `redis://host:6379/0`, `redis+cluster://host:6379,host:6380`, or `memory://` for experiments (jobs are lost when the process ends)."),
    unset("store", "pool_max", "16", "Maximum number of database connections of this node for its work, 2 to 1,000 (default: `pool_max` in the URL, or 8). The node opens one or two more connections, for heartbeats and notifications. Only for PostgreSQL, MariaDB and MySQL."),

    is("engine", "name", "\"rewheel\"", "Name of this node."),
    unset("engine", "region", "\"eu\"", "Region of this node. The node calls the callback URLs of its own region first."),
    is("engine", "concurrency", "256", "Maximum number of attempts that run at the same time in this node."),
    is("engine", "lease_ttl", "\"10s\"", "Lease duration: if this node does not renew its lease for this time, other nodes take over its jobs."),
    is("engine", "horizon", "\"5s\"", "How long before the due time of a job this node may claim the job. Until the due time, the job waits in the memory of the node."),
    is("engine", "wheel_max", "20_000", "Maximum number of claimed jobs that wait in memory until they are due."),
    is("engine", "poll", "\"1s\"", "Maximum time between two polls of the store for due jobs."),
    is("engine", "overdue_grace", "\"30s\"", "Extra time for a running job. The time of a job counts from its due time, or from its claim if the claim is later. After its attempt timeout plus this extra time, the job is overdue, and another node may run it."),
    is("engine", "statement_timeout", "\"10s\"", "Timeout of one call to the store, including its retries."),
    is("engine", "payload_bytes_max", "262_144", "Maximum size of a job payload in bytes."),
    is("engine", "result_bytes_max", "65_536", "Maximum size of the result of a job in bytes, up to 1_048_576. A larger result is dropped; the job still succeeds."),
    is("engine", "waiters_max", "10_000", "Maximum number of callers that wait for the end of a job at the same time."),
    is("engine", "housekeeping", "\"5s\"", "Interval of the housekeeping tasks: end jobs whose deadline has passed, take over jobs of dead nodes, delete jobs after their retention."),

    is("retention", "ended", "\"7d\"", "Retention of failed and cancelled jobs."),
    is("retention", "keys", "\"7d\"", "Time for which the key of an ended job stays reserved. During this time, a submit with the same key creates no new job."),
    is("retention", "audit", "\"90d\"", "Retention of the audit log."),

    is("kinds.*", "runner", "\"handler\"", "What runs the jobs of this kind: `handler` (Rust code in this process), `callback` (an HTTP request) or `worker` (a separate process that claims jobs by REST)."),
    is("kinds.*", "attempts_max", "8", "Maximum number of attempts per job."),
    is("kinds.*", "attempt_timeout", "\"30s\"", "Timeout of one attempt."),
    is("kinds.*", "backoff", "\"exponential 100ms x2 max 30s jitter full\"", "Delays between attempts: a formula, or the name of a preset."),
    unset("kinds.*", "attempts_ceiling", "1000", "Upper limit for the `attempts_max` that a job can set for itself (default: 1000, or `attempts_max` of the kind if that is higher). Must not be lower than `attempts_max` of the kind."),
    unset("kinds.*", "attempt_timeout_ceiling", "\"1h\"", "Upper limit for the `attempt_timeout` that a job can set for itself (default: 1h, or `attempt_timeout` of the kind if that is longer). Must not be shorter than `attempt_timeout` of the kind."),
    unset("kinds.*", "delay_floor", "\"10ms\"", "Minimum delay between two attempts of a job (default: 10ms, or the first delay of `backoff` if that is shorter)."),
    unset("kinds.*", "concurrency_max", "64", "Maximum number of concurrent attempts of this kind in one node or one worker."),
    unset("kinds.*", "fleet_concurrency_max", "8", "Maximum number of concurrent attempts of this kind in all nodes and workers together."),
    unset("kinds.*", "rate", "\"500/s\"", "Maximum rate of attempts of this kind in all nodes and workers together."),
    unset("kinds.*", "retry_budget", "{ ratio = 0.1, floor = \"10/s\" }", "Retry budget of all nodes and workers together. `ratio`: retries as a share of first attempts (0.1 allows one retry for ten first attempts). `floor`: rate of retries that is always allowed."),
    is("kinds.*", "sticky_max", "\"10s\"", "Longest retry delay for which a job stays on its node. If the delay is not longer than this, the job stays leased to the node and waits in its memory. If the delay is longer, the job goes back to the store, and any node can claim it."),
    is("kinds.*", "takeovers_max", "3", "Protection against jobs that crash their nodes: a job becomes a dead letter when it was taken over this many times while it was running. The first takeover of a job does not count."),
    is("kinds.*", "on_give_up", "\"dead\"", "What happens to a job when its last attempt has failed or when a retry cannot help: `dead` (it becomes a dead letter) or `fail` (it ends as failed)."),
    is("kinds.*", "keep_succeeded", "\"7d\"", "Retention of succeeded jobs. `0s` deletes a job as soon as it succeeds."),
    is("kinds.*", "result", "false", "Keep the result of each succeeded job, as long as the job itself. Requires a `keep_succeeded` longer than `0s`."),
    is("kinds.*", "retry_after_max", "\"1h\"", "Maximum delay that the called service can request with the Retry-After header."),
    is("kinds.*", "hold", "\"host\"", "Which calls wait if the called service answers 429 with a Retry-After header. `host`: all calls to this host by the node that got the answer. `kind`: all calls of the kind, on all nodes. `off`: only the job that got the answer. See docs/limits.md."),
    is("kinds.*", "on_dead", "\"continue\"", "What a dead letter does to its group: `continue` (the next job of the group runs) or `block` (the group waits until the dead letter is redriven or cancelled). See docs/guide/groups.md."),
    unset("kinds.*", "breaker", "{ window = 20, failure_ratio = 0.5, open_for = \"30s\" }", "Circuit breaker (default: none). While the called service is down, Rewheel parks the kind: its jobs wait in the store. See docs/failures.md."),
    unset("kinds.*", "failure_rules", "[{ when = { status = \"409\" }, then = \"dead\" }]", "Rules that define what follows certain failures, instead of the default. The first matching rule applies. See docs/failures.md."),

    unset("kinds.*.callback", "url", "\"https://pay.example/hook/{tenant}\"", "URL to call. Required. The server replaces `{id}`, `{kind}`, `{tenant}` and payload fields such as `{payload.order}`; `${NAME}` is an environment variable."),
    unset("kinds.*.callback", "region", "\"eu\"", "Region of `url`. Nodes call the URLs of their own region first."),
    is("kinds.*.callback", "failover", "[]", "Other URLs to call if `url` fails, in the order of this list (URLs in the region of the node come first). Each entry is `\"https://…\"` or `{ url = \"https://…\", region = \"us\" }`. Each host has its own circuit breaker."),
    is("kinds.*.callback", "method", "\"POST\"", "HTTP method of the request."),
    unset("kinds.*.callback", "headers", "{ x-shop = \"north\" }", "Additional request headers. `${NAME}` in a value is an environment variable."),
    is("kinds.*.callback", "success", "[\"2xx\"]", "Status codes that count as success."),
    unset("kinds.*.callback", "secrets", "[\"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]", "Secrets that sign the request (Standard Webhooks). To rotate a secret, list the old and the new one."),
    unset("kinds.*.callback", "allow", "[\"127.0.0.0/8\"]", "Private networks that the callback may call (default: none). A kind created by REST may list only networks that are part of `server.callback_allow`."),
    unset("kinds.*.callback", "ca", "\"-----BEGIN CERTIFICATE-----…\"", "Trusted CA certificates for the called service, as PEM (default: the CA certificates of the system)."),
    unset("kinds.*.callback", "retry_after_max", "\"1h\"", "Maximum delay that the called service can request with the Retry-After header (default: `retry_after_max` of the kind)."),

    unset("tenants.*", "jobs_max", "100_000", "Maximum number of live jobs of the tenant (scheduled, leased or paused). At this limit, the server rejects submits."),
    unset("tenants.*", "rate", "\"50/s\"", "Maximum rate of attempts of the tenant in all nodes and workers together."),
    unset("tenants.*", "concurrency_max", "16", "Maximum number of concurrent attempts of the tenant in one node or one worker."),
    unset("tenants.*", "fleet_concurrency_max", "32", "Maximum number of concurrent attempts of the tenant in all nodes and workers together."),
    is("tenants.*", "weight", "1", "Relative share of the attempts, 1 to 100, when several tenants have due jobs of the same priority. A tenant with weight 2 gets twice as many attempts as a tenant with weight 1."),

    unset("schedules.*", "cron", "\"0 3 * * *\"", "Cron expression: minute, hour, day of month, month, day of week. Either `cron` or `every` is required."),
    unset("schedules.*", "zone", "\"Europe/Berlin\"", "Time zone of the cron expression (default: UTC)."),
    unset("schedules.*", "every", "\"15m\"", "Period, such as `15m`. The instants are the multiples of the period since 1970-01-01 UTC."),
    unset("schedules.*", "job", "{ kind = \"report\", payload = { of = \"sales\" } }", "The job to submit at each instant: the fields of `POST /v1/jobs`, except `key`, `due`, `deadline` and the fields that need a key. Required."),
    unset("schedules.*", "overlap", "\"skip\"", "What happens at an instant if an earlier job of the schedule has not ended: `skip` (default; the instant submits no job) or `allow`."),
    unset("schedules.*", "catch_up", "\"one\"", "What happens to instants that passed while no node could fire. `one` (default): the latest of them fires, however late. `none`: the latest of them fires only if it is at most one minute late. The others do not fire."),

    unset("telemetry", "otlp", "\"http://127.0.0.1:4318\"", "URL of the OpenTelemetry collector (default: no export)."),
    unset("telemetry", "protocol", "\"http\"", "Protocol to the collector: `http` (protobuf over HTTP) or `grpc`."),
    is("telemetry", "traces", "true", "Whether to export traces."),
    is("telemetry", "metrics", "true", "Whether to export metrics."),
    is("telemetry", "sample", "1.0", "Share of new traces to export, 0 to 1. Does not apply to traces that a client started (header `traceparent`)."),
    is("telemetry", "rate", "\"200/s\"", "Maximum rate of new traces. Traces above this rate are not exported. Does not apply to traces that a client started."),
    is("telemetry", "interval", "\"15s\"", "Interval at which metrics are exported, 1s to 1h."),
    unset("telemetry", "service_name", "\"rewheel\"", "Service name in the exported telemetry."),

    is("notify", "window", "\"30s\"", "Length of a window (see `window_max`). At the end of a window, Rewheel sends one summary, which counts the notifications that were not sent."),
    is("notify", "window_max", "50", "Maximum number of notifications that a route sends in one window. Does not apply to routes to jobs."),
    is("notify", "queue_max", "1_000", "Maximum number of notifications of a route that wait for delivery. If so many are waiting, a new notification is not sent; the next summary only counts it. Does not apply to routes to jobs."),
    is("notify", "timeout", "\"10s\"", "Timeout of one delivery attempt."),

    unset("notify.route.*", "to", "\"webhook\"", "Type of the target: `log`, `webhook`, `slack`, `feishu`, `dingtalk`, or `job:KIND`, which submits a job of that kind for each dead letter. Required."),
    unset("notify.route.*", "url", "\"https://ops.example/rewheel\"", "URL of the target. Required, except for `log` and `job:KIND`. `${NAME}` is an environment variable."),
    unset("notify.route.*", "secrets", "[\"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]", "Secrets that sign the request. To rotate a secret, list the old and the new one; `feishu` and `dingtalk` accept only one. `${NAME}` is an environment variable."),
    is("notify.route.*", "events", "[]", "Send only these events (default: all)."),
    is("notify.route.*", "kinds", "[]", "Send only events about jobs of these kinds (default: all)."),
    is("notify.route.*", "tenants", "[]", "Send only events of these tenants (default: all)."),
    is("notify.route.*", "severity", "\"info\"", "Send only events of this severity or higher: `info`, `warning`, `error` or `critical`."),
];

/// Examples of the section that has no keys of its own.
const DEFAULTS_EXAMPLE: &str = "# attempts_max = 5\n# keep_succeeded = \"1d\"\n";

/// Returns a config file with all defaults; settings without a default are commented out.
pub fn example() -> String {
    let mut text = String::from(
        "# All settings of `rewheel serve` with their defaults. Settings without a default are commented out, with an example.\n\
         # Durations are integers with ms, s, m, h or d: \"1h30m\". Environment variables override the file:\n\
         # REWHEEL__ENGINE__LEASE_TTL=2s. Check a config with `rewheel config check`; `rewheel config show` prints the effective values and their source.\n",
    );
    for (section, about) in SECTIONS {
        let header = match *section {
            "notify.route.*" => "# [[notify.route]]".to_owned(),
            "tenants.*" => "[tenants.acme]".to_owned(),
            "schedules.*" => "# [schedules.nightly-report]".to_owned(),
            named => format!("[{}]", named.replace('*', "charge-card")),
        };
        let is_asked_for = header.starts_with('#') || section.ends_with("callback");
        let header = if is_asked_for { header.trim_start_matches("# ") } else { &header };
        let mark = if is_asked_for { "# " } else { "" };
        let _ = write!(text, "\n# {}\n{mark}{header}\n", about.replace('`', ""));
        if *section == "defaults.kind" {
            text.push_str(DEFAULTS_EXAMPLE);
        }
        for setting in SETTINGS.iter().filter(|setting| setting.section == *section) {
            let (mark, value) = match setting.default {
                DefaultValue::Is(value) => (mark, value),
                DefaultValue::Unset(value) => ("# ", value),
            };
            let line = format!("{mark}{} = {value}", setting.name);
            let _ = writeln!(text, "{line:<44} # {}", setting.meaning.replace('`', ""));
        }
    }
    text
}

/// Returns the page `docs/config.md`.
pub fn page() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         `rewheel serve --config FILE` reads a config file; without `--config`, it reads `rewheel.toml` in the current folder if it exists.\n\
         Environment variables (`REWHEEL__ENGINE__LEASE_TTL=2s`) override the file, and flags override both. An unknown key or a bad value is\n\
         an error that names the key and the line. `rewheel config check` checks a config, `rewheel config show` prints the effective values\n\
         and where each comes from. [rewheel.example.toml](../rewheel.example.toml) is a complete file.\n\n\
         Durations are strings of integers with `ms`, `s`, `m`, `h` or `d`, which can be combined: `\"1h30m\"`.\n",
    );
    for (section, about) in SECTIONS {
        let title = section.replace("*", "…");
        let _ = write!(text, "\n## `{title}`\n\n{about}\n");
        if *section == "defaults.kind" {
            continue;
        }
        text.push_str("\n| key | default | meaning |\n| --- | --- | --- |\n");
        for setting in SETTINGS.iter().filter(|setting| setting.section == *section) {
            let default = match setting.default {
                DefaultValue::Is(value) => format!("`{value}`"),
                DefaultValue::Unset(example) => format!("none; example: `{example}`"),
            };
            let (name, meaning) = (setting.name, setting.meaning);
            let _ = writeln!(text, "| `{name}` | {default} | {meaning} |");
        }
    }
    text
}
