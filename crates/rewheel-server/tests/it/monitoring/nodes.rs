//! The panels about nodes and the store on the dashboard of the engine.

use super::panel::{Row, panel, query};

pub(super) const LEASES: Row = Row {
    title: "Leases and takeovers",
    panels: &[
        panel(
            ("Live holders", "short"),
            "Nodes and workers that can run jobs.",
            &[query(r#"max by (role) (rewheel_holders{job=~"$job"})"#, "{{role}}")],
        ),
        panel(
            ("Jobs taken over", "ops"),
            "Jobs of dead holders, and overdue jobs. Runbook: takeover.",
            &[query(
                "sum by (kind) (rate(rewheel_takeovers_total{SELECTED}[$__rate_interval]))",
                "{{kind}}",
            )],
        ),
        panel(
            ("Lease renewals", "ops"),
            "Renewals by outcome: renewed, failed, dead. Runbook: lease-renewal-failed.",
            &[query(
                r#"sum by (outcome) (rate(rewheel_lease_renewals_total{job=~"$job"}[$__rate_interval]))"#,
                "{{outcome}}",
            )],
        ),
        panel(
            ("Nodes that start no attempts", "short"),
            "1 if the lease of the node expired, or its engine failed. Runbooks: lease-renewal-failed, engine-failed.",
            &[
                query(r#"rewheel_lease_expired{job=~"$job"}"#, "{{instance}} lease expired"),
                query(r#"rewheel_engine_failed{job=~"$job"}"#, "{{instance}} engine failed"),
            ],
        ),
        panel(
            ("Restarts of engine loops", "short"),
            "Loops that panicked. Runbook: engine-failed.",
            &[query(
                r#"sum by (instance, loop) (increase(rewheel_engine_loop_restarts_total{job=~"$job"}[$__rate_interval]))"#,
                "{{instance}} {{loop}}",
            )],
        ),
        panel(
            ("Builds", "short"),
            "Number of nodes of each version and commit.",
            &[query(
                r#"count by (version, commit) (rewheel_build_info{job=~"$job"})"#,
                "{{version}} {{commit}}",
            )],
        ),
    ],
};

pub(super) const SLOTS: Row = Row {
    title: "Concurrency",
    panels: &[
        panel(
            ("Slots in use", "percentunit"),
            "Share of the slots of each node that run an attempt.",
            &[query(
                r#"1 - rewheel_concurrency_free{job=~"$job"} / rewheel_concurrency_max{job=~"$job"}"#,
                "{{instance}}",
            )],
        ),
        panel(
            ("Jobs in memory", "short"),
            "Claimed jobs that wait until they are due, and due jobs that wait for a slot.",
            &[
                query(r#"rewheel_wheel_jobs{job=~"$job"}"#, "{{instance}} not due"),
                query(r#"rewheel_ready_jobs{job=~"$job"}"#, "{{instance}} due"),
            ],
        ),
        panel(
            ("Jobs per claim", "short"),
            "Mean size of the batches that each node claims.",
            &[query(
                r#"rate(rewheel_claim_batch_sum{job=~"$job"}[$__rate_interval]) / rate(rewheel_claim_batch_count{job=~"$job"}[$__rate_interval])"#,
                "{{instance}}",
            )],
        ),
    ],
};

pub(super) const STORE: Row = Row {
    title: "Store",
    panels: &[
        panel(
            ("Store is up", "short"),
            "1 if the store answered when the node last read from it. Runbook: store-unavailable.",
            &[query(r#"rewheel_store_up{job=~"$job"}"#, "{{instance}}")],
        ),
        panel(
            ("Store calls", "ops"),
            "Calls of each operation.",
            &[query(
                r#"sum by (verb) (rate(rewheel_store_calls_total{job=~"$job"}[$__rate_interval]))"#,
                "{{verb}}",
            )],
        ),
        panel(
            ("Failed store calls", "ops"),
            "Calls that failed after their retries.",
            &[query(
                r#"sum by (verb) (rate(rewheel_store_calls_total{job=~"$job",outcome="error"}[$__rate_interval]))"#,
                "{{verb}}",
            )],
        ),
        panel(
            ("Duration of store calls, 99 %", "s"),
            "99 % of the calls of each operation take less time, retries included.",
            &[query(
                r#"histogram_quantile(0.99, sum by (verb, le) (rate(rewheel_store_call_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                "{{verb}}",
            )],
        ),
    ],
};

pub(super) const OTHER: Row = Row {
    title: "Schedules and notifications",
    panels: &[
        panel(
            ("Missed instants of schedules", "short"),
            "Instants that submitted no job, by reason: late, overlap.",
            &[query(
                "sum by (kind, reason) (increase(rewheel_schedules_missed_total{SELECTED}[$__rate_interval]))",
                "{{kind}} {{reason}}",
            )],
        ),
        panel(
            ("Notifications", "ops"),
            "Notifications by outcome: sent, suppressed, failed. Runbook: notification-failed.",
            &[query(
                r#"sum by (notifier, outcome) (rate(rewheel_notices_total{job=~"$job"}[$__rate_interval]))"#,
                "{{notifier}} {{outcome}}",
            )],
        ),
    ],
};
