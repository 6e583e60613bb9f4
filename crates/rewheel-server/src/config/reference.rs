//! Every setting there is, with what it is unless set.

use std::fmt::Write;

/// What a setting is where nobody sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unless {
    /// This, as the file would write it.
    Is(&'static str),
    /// Nothing; it could be this, as the file would write it.
    Unset(&'static str),
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its section: `engine`; `*` stands for a name that users choose.
    pub section: &'static str,
    /// Its name in there.
    pub name: &'static str,
    /// What it is unless set.
    pub unless: Unless,
    /// What it does.
    pub meaning: &'static str,
}

/// What a section is about.
const SECTIONS: &[(&str, &str)] = &[
    ("server", "How others reach the server."),
    ("server.limits", "How much of the server clients may take up."),
    ("store", "Where jobs are kept."),
    ("engine", "How this node runs jobs."),
    ("retention", "How long what has ended is kept."),
    (
        "kinds.*",
        "One section for each kind, named after it: `[kinds.charge-card]`. The same names are those of `PUT /v1/kinds/{kind}`.",
    ),
    ("kinds.*.callback", "Where `runner = \"callback\"` sends the jobs of a kind."),
    (
        "tenants.*",
        "One section for each tenant, named after it: `[tenants.acme]`; `[tenants.\"*\"]` is that of all others.",
    ),
    (
        "telemetry",
        "Where spans and meters are sent, see docs/telemetry.md. `OTEL_*` variables say what is not set here.",
    ),
    ("notify", "How much people are told."),
    ("notify.route.*", "Who is told what: one `[[notify.route]]` for each."),
];

const fn is(
    section: &'static str,
    name: &'static str,
    unless: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { section, name, unless: Unless::Is(unless), meaning }
}

const fn unset(
    section: &'static str,
    name: &'static str,
    example: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { section, name, unless: Unless::Unset(example), meaning }
}

/// Every setting, section by section.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    is("server", "listen", "\"127.0.0.1:7420\"", "The address to listen on."),
    is("server", "shutdown_grace", "\"30s\"", "How long running attempts may take to end when the server shuts down."),
    is("server", "body_bytes_max", "33_554_432", "The largest body of a request: it is held in memory as a whole."),
    unset("server", "admin_token", "\"…\"", "A token with the role `admin`, for whoever makes the others. Only the environment can say it: REWHEEL__SERVER__ADMIN_TOKEN."),
    unset("server", "admin_token_file", "\"/run/secrets/rewheel\"", "A file that has it."),
    unset("server", "tls", "{ certificate = \"server.pem\", key = \"server.key\" }", "What the server proves itself with; without it, it speaks plain HTTP."),
    is("server", "disk_free_bytes_min", "536_870_912", "`/health` says that the disk is degraded when less is free where the SQLite file is."),
    is("server", "callback_env", "[]", "Variables of the environment that kinds may name which are not in this file: `${NAME}`."),
    is("server", "callback_allow", "[]", "Networks that kinds which are not in this file may list in `callback.allow`. Link-local addresses and cloud metadata are never among them."),

    is("server.limits", "connections_max", "4_096", "Connections at a time. One more takes the place of whoever has waited longest without a request; where nobody waits, it is refused."),
    is("server.limits", "requests_max", "1_024", "Requests being answered at a time, apart from health, events and workers that wait for jobs."),
    is("server.limits", "bodies_bytes_max", "268_435_456", "Bytes of the bodies of all requests at a time, with what is parsed from them."),
    is("server.limits", "headers_max", "100", "Headers of a request."),
    is("server.limits", "head_bytes_max", "32_768", "Bytes of a request before its body."),
    is("server.limits", "url_bytes_max", "8_192", "Bytes of a path with its parameters."),
    is("server.limits", "head_timeout", "\"10s\"", "How long a client may take to send everything before the body."),
    is("server.limits", "body_timeout", "\"30s\"", "A stretch of time in which enough of a body must come."),
    is("server.limits", "body_rate_min", "1_024", "How many bytes a second are enough."),
    is("server.limits", "idle_timeout", "\"75s\"", "How long a connection may stay open without a request."),
    is("server.limits", "write_timeout", "\"30s\"", "How long a client may take no byte of what is sent to it."),

    is("store", "url", "\"sqlite://rewheel.db\"", "Which store: `sqlite://file`, `postgres://user@host/database`, or `memory://` to try things out."),
    unset("store", "pool_max", "16", "Connections for the work, where the store is a server: 2 to 1,000."),

    is("engine", "name", "\"rewheel\"", "What people call this node."),
    unset("engine", "region", "\"eu\"", "Where this node is: of several URLs, callbacks take those of its region first."),
    is("engine", "places", "256", "How many attempts run at the same time."),
    is("engine", "lease_ttl", "\"10s\"", "How long the node may be silent before others take its jobs."),
    is("engine", "horizon", "\"5s\"", "How far ahead of its due a job is claimed, to wait in the wheel for its millisecond."),
    is("engine", "wheel_max", "20_000", "How many jobs wait in the wheel at most."),
    is("engine", "poll", "\"1s\"", "How long to rest between two looks into the store when nothing wakes the engine."),
    is("engine", "grace", "\"30s\"", "How long after its due and its attempt timeout a job is overdue."),
    is("engine", "statement_timeout", "\"10s\"", "A call of the store whose answer takes longer than this, repeats included, is taken to be lost."),
    is("engine", "payload_bytes_max", "262_144", "The largest payload that may be submitted."),
    is("engine", "housekeeping", "\"5s\"", "How often to look for deadlines, forgotten jobs and what need not be kept."),

    is("retention", "keep_ended", "\"7d\"", "How long failed and cancelled jobs are kept."),
    is("retention", "keep_keys", "\"7d\"", "How long the key of an ended job stays taken."),
    is("retention", "keep_audit", "\"90d\"", "How long the audit log is kept."),

    is("kinds.*", "runner", "\"handler\"", "Who runs its jobs: `handler` inside a program, `callback` over HTTP, `worker` elsewhere."),
    is("kinds.*", "attempts_max", "8", "How many attempts a job gets."),
    is("kinds.*", "attempt_timeout", "\"30s\"", "How long one attempt may take."),
    is("kinds.*", "backoff", "\"exponential 100ms x2 max 30s jitter full\"", "How long to wait between attempts; also the name of a preset."),
    unset("kinds.*", "attempts_ceiling", "1000", "How many attempts one job may ask for; at least `attempts_max`."),
    unset("kinds.*", "attempt_timeout_ceiling", "\"1h\"", "How long an attempt timeout one job may ask for; at least `attempt_timeout`."),
    unset("kinds.*", "delay_floor", "\"10ms\"", "How long each job waits at least between two attempts."),
    unset("kinds.*", "concurrency_max", "64", "How many attempts of it run at the same time in one engine, or in one worker."),
    unset("kinds.*", "fleet_concurrency_max", "8", "How many jobs of it run at the same time in the whole fleet, workers included."),
    unset("kinds.*", "rate", "\"500/s\"", "How many attempts of it start in a time, in the whole fleet."),
    unset("kinds.*", "retry_budget", "{ ratio = 0.1, floor = \"10/s\" }", "How many retries of it there are, in the whole fleet, for its first attempts."),
    is("kinds.*", "sticky_max", "\"10s\"", "Shorter retries stay in the wheel of the node that tried."),
    is("kinds.*", "takeovers_max", "3", "How many processes a job may take with it."),
    is("kinds.*", "on_give_up", "\"dead\"", "What becomes of a job that is given up: `dead` or `fail`."),
    is("kinds.*", "keep_succeeded", "\"7d\"", "How long succeeded jobs are kept; `0s`: not at all."),
    is("kinds.*", "retry_after_max", "\"1h\"", "How long a callee may make a job wait."),
    unset("kinds.*", "breaker", "{ window = 20, failure_ratio = 0.5, open_for = \"30s\" }", "When its dependency is taken to be down, so that it is parked."),
    unset("kinds.*", "routes", "[{ when = { status = \"409\" }, then = \"dead\" }]", "What is done about failures that deserve something else than a retry: the first rule that fits."),

    unset("kinds.*.callback", "url", "\"https://pay.example/hook/{tenant}\"", "Where to, with `{id}`, `{kind}`, `{tenant}` and `{payload.order}` filled in; `${NAME}` is a variable of the environment. Required."),
    unset("kinds.*.callback", "region", "\"eu\"", "Where that is: nodes of the same region prefer it."),
    is("kinds.*.callback", "failover", "[]", "Further URLs, in order, each with its breaker: `\"https://…\"` or `{ url = \"https://…\", region = \"us\" }`."),
    is("kinds.*.callback", "method", "\"POST\"", "How."),
    unset("kinds.*.callback", "headers", "{ x-shop = \"north\" }", "Further headers; `${NAME}` in a value is a variable of the environment."),
    is("kinds.*.callback", "success", "[\"2xx\"]", "Which answers mean that it is done."),
    unset("kinds.*.callback", "secrets", "[\"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]", "What signs the request, each of them: several while one is replaced."),
    unset("kinds.*.callback", "allow", "[\"127.0.0.0/8\"]", "Addresses that it may reach although they are not public. For a kind that is not in this file, server.callback_allow limits them."),
    unset("kinds.*.callback", "ca", "\"-----BEGIN CERTIFICATE-----…\"", "The only certificates that may vouch for the callee, as PEM; those that this machine trusts if not set."),
    unset("kinds.*.callback", "retry_after_max", "\"1h\"", "How long this callee may make a job wait; that of the kind if not set."),

    unset("tenants.*", "jobs_max", "100_000", "How many live jobs it may have in the whole fleet: others are refused."),
    unset("tenants.*", "rate", "\"50/s\"", "How many attempts of it start in a time, in the whole fleet."),
    unset("tenants.*", "concurrency_max", "16", "How many attempts of it run at the same time in one engine, or in one worker."),
    unset("tenants.*", "fleet_concurrency_max", "32", "How many jobs of it run at the same time in the whole fleet, workers included."),
    is("tenants.*", "weight", "1", "How much it is given beside others that have as urgent jobs due, up to 100."),

    unset("telemetry", "otlp", "\"http://127.0.0.1:4318\"", "The collector of OpenTelemetry; without one nothing is sent."),
    unset("telemetry", "protocol", "\"http\"", "How it is spoken to: `http`, which is protobuf over HTTP, or `grpc`."),
    is("telemetry", "traces", "true", "Whether it gets spans."),
    is("telemetry", "metrics", "true", "Whether it gets meters."),
    is("telemetry", "sample", "1.0", "How many of the traces that begin here are kept, 0 to 1."),
    is("telemetry", "rate", "\"200/s\"", "How many traces begin here in a time, at most: the rest is not kept, so that a busy server stays fast."),
    is("telemetry", "interval", "\"15s\"", "How often meters are sent, 1s to 1h."),
    unset("telemetry", "service_name", "\"rewheel\"", "What this server is called there."),

    is("notify", "window", "\"30s\"", "Within this time a route is told no more than `window_max`; a summary follows at its end."),
    is("notify", "window_max", "50", "How much a route is told within a window."),
    is("notify", "queue_max", "1_000", "How many notices wait for one route."),
    is("notify", "timeout", "\"10s\"", "How long one attempt to tell somebody may take."),

    unset("notify.route.*", "to", "\"webhook\"", "Where to: `log`, `webhook`, `slack`, `feishu` or `dingtalk`. Required."),
    unset("notify.route.*", "url", "\"https://ops.example/rewheel\"", "To which URL; `${NAME}` is a variable of the environment."),
    unset("notify.route.*", "secrets", "[\"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]", "What signs it, each of them: several while one is replaced. `feishu` and `dingtalk` take one. `${NAME}` is a variable of the environment."),
    is("notify.route.*", "events", "[]", "Of which events; all if there is none."),
    is("notify.route.*", "kinds", "[]", "Of which kinds; all if there is none."),
    is("notify.route.*", "tenants", "[]", "On whose behalf; all if there is none."),
    is("notify.route.*", "severity", "\"info\"", "As urgent as this, or more."),
];

/// Returns a config file that says what is so anyway, and what could be otherwise behind `#`.
pub fn example() -> String {
    let mut text = String::from(
        "# Every setting of `rewheel serve`, as it is unless set. What is behind `#` is not set, and shows what it could be.\n\
         # Durations are integers with ms, s, m, h, d: \"1h30m\". A variable of the environment comes before the file:\n\
         # REWHEEL__ENGINE__LEASE_TTL=2s. `rewheel config check` tells what is wrong, `rewheel config show` what is in force, and from where.\n",
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
            let (mark, value) = match setting.unless {
                Unless::Is(value) => (mark, value),
                Unless::Unset(value) => ("# ", value),
            };
            let line = format!("{mark}{} = {value}", setting.name);
            let _ = writeln!(text, "{line:<44} # {}", setting.meaning.replace('`', ""));
        }
    }
    text
}

/// Returns all settings as a page for people.
pub fn page() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         `rewheel serve --config rewheel.toml`; without it, the `rewheel.toml` of the folder, if there is one. Defaults < file < environment\n\
         (`REWHEEL__ENGINE__LEASE_TTL=2s`) < flags. Unknown keys and bad values are errors that name key and place. `rewheel config check`\n\
         tells what is wrong, `rewheel config show` what is in force, and from where. [rewheel.example.toml](../rewheel.example.toml) has all of it.\n\n\
         Durations are strings of integers with `ms`, `s`, `m`, `h`, `d`, joinable: `\"1h30m\"`.\n",
    );
    for (section, about) in SECTIONS {
        let title = section.replace("*", "…");
        let _ = write!(
            text,
            "\n## `{title}`\n\n{about}\n\n| key | unless set | |\n| --- | --- | --- |\n"
        );
        for setting in SETTINGS.iter().filter(|setting| setting.section == *section) {
            let unless = match setting.unless {
                Unless::Is(value) => format!("`{value}`"),
                Unless::Unset(example) => format!("not set; such as `{example}`"),
            };
            let (name, meaning) = (setting.name, setting.meaning);
            let _ = writeln!(text, "| `{name}` | {unless} | {meaning} |");
        }
    }
    text
}
