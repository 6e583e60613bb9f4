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
    ("server.limits", "Limits for clients of the server."),
    ("store", "The database that stores the jobs."),
    ("engine", "The engine of this node."),
    ("retention", "Retention of ended jobs, keys and the audit log."),
    (
        "kinds.*",
        "One section per kind, for example `[kinds.charge-card]`. `PUT /v1/kinds/{kind}` uses the same names.",
    ),
    ("kinds.*.callback", "The HTTP callback of a kind with `runner = \"callback\"`."),
    (
        "tenants.*",
        "One section per tenant, for example `[tenants.acme]`; `[tenants.\"*\"]` applies to all other tenants.",
    ),
    (
        "telemetry",
        "Export of spans and metrics, see docs/telemetry.md. `OTEL_*` variables apply to keys that are not set here.",
    ),
    ("notify", "Limits for notifications."),
    ("notify.route.*", "Notification targets: one `[[notify.route]]` each."),
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
    is("server", "shutdown_grace", "\"30s\"", "Time for running attempts to finish at shutdown."),
    is("server", "body_bytes_max", "33_554_432", "Maximum size of a request body; the server holds it in memory."),
    unset("server", "admin_token", "\"…\"", "A token with the role `admin`, to create the other tokens. Set it only by the environment variable REWHEEL__SERVER__ADMIN_TOKEN."),
    unset("server", "admin_token_file", "\"/run/secrets/rewheel\"", "File that contains the admin token."),
    unset("server", "tls", "{ certificate = \"server.pem\", key = \"server.key\" }", "TLS certificate and key of the server (default: plain HTTP)."),
    is("server", "disk_free_bytes_min", "536_870_912", "`/health` reports a degraded disk when less space is free on the disk of the SQLite file."),
    is("server", "callback_env", "[]", "Environment variables that kinds created by REST may use as `${NAME}`."),
    is("server", "callback_allow", "[]", "Networks that kinds created by REST may list in `callback.allow`. Never includes link-local addresses and cloud metadata."),

    is("server.limits", "connections_max", "4_096", "Maximum number of open connections. A new one replaces the connection that has been idle longest; if none is idle, the server rejects it."),
    is("server.limits", "requests_max", "1_024", "Maximum number of concurrent requests, without health checks, event streams and workers that wait for jobs."),
    is("server.limits", "bodies_bytes_max", "268_435_456", "Maximum memory for the bodies of all concurrent requests, parsed copies included."),
    is("server.limits", "headers_max", "100", "Maximum number of request headers."),
    is("server.limits", "head_bytes_max", "32_768", "Maximum size of the request line and headers."),
    is("server.limits", "url_bytes_max", "8_192", "Maximum length of a path with its query."),
    is("server.limits", "head_timeout", "\"10s\"", "Time for a client to send the request headers."),
    is("server.limits", "body_timeout", "\"30s\"", "Period over which `body_rate_min` is measured."),
    is("server.limits", "body_rate_min", "1_024", "Minimum rate of a request body, in bytes per second."),
    is("server.limits", "idle_timeout", "\"75s\"", "Time until the server closes an idle connection."),
    is("server.limits", "write_timeout", "\"30s\"", "Time until the server closes a connection whose client reads nothing."),

    is("store", "url", "\"sqlite://rewheel.db\"", "The store: `sqlite://file`, `postgres://user@host/database`, or `memory://` for experiments."),
    unset("store", "pool_max", "16", "Size of the connection pool of a database server, 2 to 1,000."),

    is("engine", "name", "\"rewheel\"", "Name of this node."),
    unset("engine", "region", "\"eu\"", "Region of this node: callbacks prefer URLs of the same region."),
    is("engine", "concurrency", "256", "Maximum number of attempts that run at the same time."),
    is("engine", "lease_ttl", "\"10s\"", "Time without a heartbeat after which other nodes take over the jobs of this node."),
    is("engine", "horizon", "\"5s\"", "How long before its due time a job is claimed; it then waits in the timing wheel."),
    is("engine", "wheel_max", "20_000", "Maximum number of jobs in the timing wheel."),
    is("engine", "poll", "\"1s\"", "Interval at which the engine polls the store when nothing wakes it."),
    is("engine", "overdue_grace", "\"30s\"", "Extra time before a leased job counts as overdue: due time + attempt timeout + this."),
    is("engine", "statement_timeout", "\"10s\"", "Timeout of one store call, retries included."),
    is("engine", "payload_bytes_max", "262_144", "Maximum size of a payload."),
    is("engine", "housekeeping", "\"5s\"", "Interval of housekeeping: deadlines, lost leases, retention."),

    is("retention", "ended", "\"7d\"", "Retention of failed and cancelled jobs."),
    is("retention", "keys", "\"7d\"", "How long the key of an ended job stays reserved."),
    is("retention", "audit", "\"90d\"", "Retention of the audit log."),

    is("kinds.*", "runner", "\"handler\"", "What runs its jobs: `handler` (Rust code in the process), `callback` (HTTP request) or `worker` (remote process)."),
    is("kinds.*", "attempts_max", "8", "Maximum number of attempts per job."),
    is("kinds.*", "attempt_timeout", "\"30s\"", "Timeout of one attempt."),
    is("kinds.*", "backoff", "\"exponential 100ms x2 max 30s jitter full\"", "Delays between attempts, or the name of a preset."),
    unset("kinds.*", "attempts_ceiling", "1000", "Upper limit for `attempts_max` of a single job; at least the kind's `attempts_max`."),
    unset("kinds.*", "attempt_timeout_ceiling", "\"1h\"", "Upper limit for `attempt_timeout` of a single job; at least the kind's `attempt_timeout`."),
    unset("kinds.*", "delay_floor", "\"10ms\"", "Minimum delay between two attempts of a job."),
    unset("kinds.*", "concurrency_max", "64", "Maximum number of concurrent attempts in one engine or one worker."),
    unset("kinds.*", "fleet_concurrency_max", "8", "Maximum number of concurrent jobs in the whole fleet, workers included."),
    unset("kinds.*", "rate", "\"500/s\"", "Rate limit for attempts in the whole fleet."),
    unset("kinds.*", "retry_budget", "{ ratio = 0.1, floor = \"10/s\" }", "Retry budget of the whole fleet: retries per first attempt."),
    is("kinds.*", "sticky_max", "\"10s\"", "A retry with a shorter delay stays on the same node, in memory."),
    is("kinds.*", "takeovers_max", "3", "Maximum number of process deaths while the job runs; then it becomes a dead letter."),
    is("kinds.*", "on_give_up", "\"dead\"", "State of a job after its last attempt: `dead` or `fail`."),
    is("kinds.*", "keep_succeeded", "\"7d\"", "Retention of succeeded jobs; `0s` deletes them at once."),
    is("kinds.*", "retry_after_max", "\"1h\"", "Maximum delay that a callee can request with Retry-After."),
    unset("kinds.*", "breaker", "{ window = 20, failure_ratio = 0.5, open_for = \"30s\" }", "Circuit breaker: when it opens, the kind is parked."),
    unset("kinds.*", "failure_rules", "[{ when = { status = \"409\" }, then = \"dead\" }]", "Rules for failures that need something else than a retry; the first matching rule applies."),

    unset("kinds.*.callback", "url", "\"https://pay.example/hook/{tenant}\"", "URL to call. `{id}`, `{kind}`, `{tenant}` and `{payload.order}` are replaced; `${NAME}` is an environment variable. Required."),
    unset("kinds.*.callback", "region", "\"eu\"", "Region of the URL: nodes of the same region prefer it."),
    is("kinds.*.callback", "failover", "[]", "Further URLs in order, each with its own breaker: `\"https://…\"` or `{ url = \"https://…\", region = \"us\" }`."),
    is("kinds.*.callback", "method", "\"POST\"", "How."),
    unset("kinds.*.callback", "headers", "{ x-shop = \"north\" }", "Additional headers; `${NAME}` in a value is an environment variable."),
    is("kinds.*.callback", "success", "[\"2xx\"]", "Status codes that count as success."),
    unset("kinds.*.callback", "secrets", "[\"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]", "Secrets that sign the request. Use several while you rotate them."),
    unset("kinds.*.callback", "allow", "[\"127.0.0.0/8\"]", "Private networks that the callback may call. For kinds created by REST, server.callback_allow limits them."),
    unset("kinds.*.callback", "ca", "\"-----BEGIN CERTIFICATE-----…\"", "Trusted CA certificates for the callee, as PEM (default: the system's)."),
    unset("kinds.*.callback", "retry_after_max", "\"1h\"", "Maximum delay that this callee can request with Retry-After (default: the kind's)."),

    unset("tenants.*", "jobs_max", "100_000", "Maximum number of live jobs in the whole fleet; further submits are rejected."),
    unset("tenants.*", "rate", "\"50/s\"", "Rate limit for attempts in the whole fleet."),
    unset("tenants.*", "concurrency_max", "16", "Maximum number of concurrent attempts in one engine or one worker."),
    unset("tenants.*", "fleet_concurrency_max", "32", "Maximum number of concurrent jobs in the whole fleet, workers included."),
    is("tenants.*", "weight", "1", "Share of the slots beside other tenants with due jobs of the same priority, 1 to 100."),

    unset("telemetry", "otlp", "\"http://127.0.0.1:4318\"", "URL of the OpenTelemetry collector (default: no export)."),
    unset("telemetry", "protocol", "\"http\"", "Protocol: `http` (protobuf over HTTP) or `grpc`."),
    is("telemetry", "traces", "true", "Export spans."),
    is("telemetry", "metrics", "true", "Export metrics."),
    is("telemetry", "sample", "1.0", "Share of the traces that start here and are exported, 0 to 1."),
    is("telemetry", "rate", "\"200/s\"", "Maximum rate of traces that start here; further ones are not exported."),
    is("telemetry", "interval", "\"15s\"", "Export interval of metrics, 1s to 1h."),
    unset("telemetry", "service_name", "\"rewheel\"", "Service name in the exported telemetry."),

    is("notify", "window", "\"30s\"", "A route gets at most `window_max` notifications in this time, then a summary."),
    is("notify", "window_max", "50", "Maximum number of notifications per route and window."),
    is("notify", "queue_max", "1_000", "Maximum number of waiting notifications per route."),
    is("notify", "timeout", "\"10s\"", "Timeout of one delivery attempt."),

    unset("notify.route.*", "to", "\"webhook\"", "Target: `log`, `webhook`, `slack`, `feishu` or `dingtalk`. Required."),
    unset("notify.route.*", "url", "\"https://ops.example/rewheel\"", "URL of the target; `${NAME}` is an environment variable."),
    unset("notify.route.*", "secrets", "[\"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]", "Secrets that sign the request. Use several while you rotate them; `feishu` and `dingtalk` accept one. `${NAME}` is an environment variable."),
    is("notify.route.*", "events", "[]", "Only these events (default: all)."),
    is("notify.route.*", "kinds", "[]", "Only these kinds (default: all)."),
    is("notify.route.*", "tenants", "[]", "Only these tenants (default: all)."),
    is("notify.route.*", "severity", "\"info\"", "Minimum severity."),
];

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
            named => format!("[{}]", named.replace('*', "charge-card")),
        };
        let is_asked_for = header.starts_with('#') || section.ends_with("callback");
        let header = if is_asked_for { header.trim_start_matches("# ") } else { &header };
        let mark = if is_asked_for { "# " } else { "" };
        let _ = write!(text, "\n# {}\n{mark}{header}\n", about.replace('`', ""));
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
        let _ = write!(
            text,
            "\n## `{title}`\n\n{about}\n\n| key | default | meaning |\n| --- | --- | --- |\n"
        );
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
