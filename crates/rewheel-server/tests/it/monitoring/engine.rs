//! The panels about jobs on the dashboard of the engine.

use super::nodes;
use super::panel::{Dashboard, Row, panel, query};

pub(super) const ENGINE: Dashboard = Dashboard {
    name: "rewheel-engine",
    title: "Rewheel engine",
    about: "Jobs, attempts, nodes and the store of a Rewheel fleet.",
    variable: ("kind", "rewheel_jobs"),
    rows: &[
        BACKLOG,
        THROUGHPUT,
        ATTEMPTS,
        RETRIES,
        PARKING,
        nodes::LEASES,
        nodes::SLOTS,
        nodes::STORE,
        nodes::OTHER,
    ],
};

// Every server reports the values of the store, so they are not added up.
const BACKLOG: Row = Row {
    title: "Backlog",
    panels: &[
        panel(
            ("Waiting jobs", "short"),
            "Scheduled jobs of each kind.",
            &[query(r#"max by (kind) (rewheel_jobs{SELECTED,state="scheduled"})"#, "{{kind}}")],
        ),
        panel(
            ("Age of the oldest due job", "s"),
            "How long the oldest due job of each kind has been due. Runbook: queue-wait-rising.",
            &[query(
                "clamp_min(time() - min by (kind) (rewheel_oldest_due_timestamp_seconds{SELECTED}), 0)",
                "{{kind}}",
            )],
        ),
        panel(
            ("Jobs by state", "short"),
            "Live jobs and dead letters.",
            &[query("sum by (state) (max by (kind, state) (rewheel_jobs{SELECTED}))", "{{state}}")],
        ),
        panel(
            ("Age of the job counts", "s"),
            "Age of the values in this row. It is zero if the jobs were counted for the scrape.",
            &[query(r#"rewheel_jobs_sample_age_seconds{job=~"$job"}"#, "{{instance}}")],
        ),
    ],
};

const THROUGHPUT: Row = Row {
    title: "Throughput by outcome",
    panels: &[
        panel(
            ("Submits", "ops"),
            "Submitted jobs by outcome: created, duplicate, refused.",
            &[query(
                "sum by (outcome) (rate(rewheel_jobs_submitted_total{SELECTED}[$__rate_interval]))",
                "{{outcome}}",
            )],
        ),
        panel(
            ("Results by decision", "ops"),
            "Settled results: succeed, retry, snooze, dead, fail, pause, cancel.",
            &[query(
                "sum by (decision) (rate(rewheel_jobs_settled_total{SELECTED}[$__rate_interval]))",
                "{{decision}}",
            )],
        ),
        panel(
            ("Failures by category", "ops"),
            "Results of failed attempts by the category of the failure.",
            &[query(
                r#"sum by (category) (rate(rewheel_jobs_settled_total{SELECTED,category!="none"}[$__rate_interval]))"#,
                "{{category}}",
            )],
        ),
        panel(
            ("New dead letters", "ops"),
            "Jobs that became dead letters. Runbook: dead-letters-rising.",
            &[query(
                "sum by (kind, category) (rate(rewheel_jobs_dead_total{SELECTED}[$__rate_interval]))",
                "{{kind}} {{category}}",
            )],
        ),
        panel(
            ("Dead letters in the store", "short"),
            "Dead letters stay until an operator acts.",
            &[query(r#"max by (kind) (rewheel_jobs{SELECTED,state="dead"})"#, "{{kind}}")],
        ),
    ],
};

const ATTEMPTS: Row = Row {
    title: "Attempts",
    panels: &[
        panel(
            ("Attempts", "ops"),
            "Started attempts of each kind.",
            &[query(
                "sum by (kind) (rate(rewheel_attempts_total{SELECTED}[$__rate_interval]))",
                "{{kind}}",
            )],
        ),
        panel(
            ("Duration of attempts", "s"),
            "Half, 95 % and 99 % of the attempts take less time than these lines.",
            &[
                query(
                    "histogram_quantile(0.5, sum by (le) (rate(rewheel_attempt_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "p50",
                ),
                query(
                    "histogram_quantile(0.95, sum by (le) (rate(rewheel_attempt_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "p95",
                ),
                query(
                    "histogram_quantile(0.99, sum by (le) (rate(rewheel_attempt_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "p99",
                ),
            ],
        ),
        panel(
            ("Mean duration by kind", "s"),
            "Mean duration of the attempts of each kind.",
            &[query(
                "sum by (kind) (rate(rewheel_attempt_duration_seconds_sum{SELECTED}[$__rate_interval])) / sum by (kind) (rate(rewheel_attempt_duration_seconds_count{SELECTED}[$__rate_interval]))",
                "{{kind}}",
            )],
        ),
        panel(
            ("Lateness of attempts", "s"),
            "Delay between the due time and the start of attempts.",
            &[
                query(
                    "histogram_quantile(0.5, sum by (le) (rate(rewheel_attempt_lateness_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "p50",
                ),
                query(
                    "histogram_quantile(0.99, sum by (le) (rate(rewheel_attempt_lateness_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "p99",
                ),
            ],
        ),
    ],
};

const RETRIES: Row = Row {
    title: "Retries",
    panels: &[
        panel(
            ("Retries per first attempt", "none"),
            "Compare it with the `ratio` of the retry budget of the kind.",
            &[query(
                "sum by (kind) (rate(rewheel_attempts_total{SELECTED}[$__rate_interval])) / sum by (kind) (rate(rewheel_jobs_started_total{SELECTED}[$__rate_interval])) - 1",
                "{{kind}}",
            )],
        ),
        panel(
            ("Attempts per ended job", "none"),
            "Mean number of attempts of the jobs that ended. Runbook: retries-rising.",
            &[query(
                "sum by (kind) (rate(rewheel_job_attempts_sum{SELECTED}[$__rate_interval])) / sum by (kind) (rate(rewheel_job_attempts_count{SELECTED}[$__rate_interval]))",
                "{{kind}}",
            )],
        ),
        panel(
            ("Attempts per ended job, 95 %", "none"),
            "95 % of the ended jobs needed at most this number of attempts.",
            &[query(
                "histogram_quantile(0.95, sum by (kind, le) (rate(rewheel_job_attempts_bucket{SELECTED}[$__rate_interval])))",
                "{{kind}}",
            )],
        ),
    ],
};

const PARKING: Row = Row {
    title: "Circuit breakers and parking",
    panels: &[
        panel(
            ("Parked kinds", "short"),
            "1 if the circuit breaker of the kind is open. Runbook: kind-parked.",
            &[query("max by (kind) (rewheel_kind_parked{SELECTED})", "{{kind}}")],
        ),
        panel(
            ("Parkings", "short"),
            "How often the circuit breaker of each kind opened.",
            &[query(
                "sum by (kind) (increase(rewheel_kind_parkings_total{SELECTED}[$__rate_interval]))",
                "{{kind}}",
            )],
        ),
        panel(
            ("Attempts delayed by parking", "ops"),
            "Attempts that started late because their kind was parked.",
            &[query(
                "sum by (kind) (rate(rewheel_jobs_delayed_by_parking_total{SELECTED}[$__rate_interval]))",
                "{{kind}}",
            )],
        ),
        panel(
            ("Paused kinds", "short"),
            "1 if an operator paused the kind.",
            &[query("max by (kind) (rewheel_kind_paused{SELECTED})", "{{kind}}")],
        ),
    ],
};
