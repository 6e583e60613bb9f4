//! The panels of the dashboard of the library.

use super::panel::{Dashboard, Row, panel, query};

pub(super) const LIBRARY: Dashboard = Dashboard {
    name: "rewheel-library",
    title: "Rewheel library",
    about: "Retries, circuit breakers and limits of the services that use the library, exported with OpenTelemetry.",
    variable: ("name", "request_duration_seconds_count"),
    rows: &[CALLS, RETRIES, BREAKERS, LIMITS, ADAPTIVE, OTHER_SOURCES],
};

const CALLS: Row = Row {
    title: "Calls",
    panels: &[
        panel(
            ("Calls", "ops"),
            "Completed calls, by name and whether they succeeded.",
            &[query(
                "sum by (name, success) (rate(request_duration_seconds_count{SELECTED}[$__rate_interval]))",
                "{{name}} success={{success}}",
            )],
        ),
        panel(
            ("Duration of calls", "s"),
            "Duration of calls, including all attempts and delays.",
            &[
                query(
                    "histogram_quantile(0.5, sum by (name, le) (rate(request_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "{{name}} p50",
                ),
                query(
                    "histogram_quantile(0.99, sum by (name, le) (rate(request_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "{{name}} p99",
                ),
            ],
        ),
    ],
};

const RETRIES: Row = Row {
    title: "Retries",
    panels: &[
        panel(
            ("Retried calls by result", "ops"),
            "Calls with a retry policy that succeeded, and those that gave up, by reason.",
            &[
                query(
                    "sum by (name) (rate(retry_successes_total{SELECTED}[$__rate_interval]))",
                    "{{name}} success",
                ),
                query(
                    "sum by (name, reason) (rate(retry_failures_total{SELECTED}[$__rate_interval]))",
                    "{{name}} {{reason}}",
                ),
            ],
        ),
        panel(
            ("Attempts", "ops"),
            "Attempts of completed calls.",
            &[query(
                "sum by (name) (rate(retry_attempts_total{SELECTED}[$__rate_interval]))",
                "{{name}}",
            )],
        ),
        panel(
            ("Attempts per call", "none"),
            "Mean number of attempts of completed calls.",
            &[query(
                "sum by (name) (rate(retry_final_attempt_sum{SELECTED}[$__rate_interval])) / sum by (name) (rate(retry_final_attempt_count{SELECTED}[$__rate_interval]))",
                "{{name}}",
            )],
        ),
        panel(
            ("Delays before retries", "s"),
            "Half and 99 % of the delays are shorter than these lines.",
            &[
                query(
                    "histogram_quantile(0.5, sum by (name, le) (rate(retry_backoff_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "{{name}} p50",
                ),
                query(
                    "histogram_quantile(0.99, sum by (name, le) (rate(retry_backoff_duration_seconds_bucket{SELECTED}[$__rate_interval])))",
                    "{{name}} p99",
                ),
            ],
        ),
    ],
};

const BREAKERS: Row = Row {
    title: "Circuit breakers",
    panels: &[
        panel(
            ("State", "short"),
            "0 closed, 1 open, 2 half open.",
            &[query(
                "max by (name, instance) (circuit_breaker_state{SELECTED})",
                "{{name}} {{instance}}",
            )],
        ),
        panel(
            ("State changes", "short"),
            "Changes of the state of each breaker.",
            &[query(
                "sum by (name, from, to) (increase(circuit_breaker_transitions_total{SELECTED}[$__rate_interval]))",
                "{{name}} {{from}} to {{to}}",
            )],
        ),
        panel(
            ("Rejected calls", "ops"),
            "Calls rejected by an open breaker.",
            &[query(
                "sum by (name) (rate(circuit_breaker_rejections_total{SELECTED}[$__rate_interval]))",
                "{{name}}",
            )],
        ),
    ],
};

const LIMITS: Row = Row {
    title: "Rate limiters and bulkheads",
    panels: &[
        panel(
            ("Rate limiters", "ops"),
            "Calls allowed and rejected by rate limiters.",
            &[
                query(
                    "sum by (name) (rate(rate_limit_allowed_total{SELECTED}[$__rate_interval]))",
                    "{{name}} allowed",
                ),
                query(
                    "sum by (name) (rate(rate_limit_rejected_total{SELECTED}[$__rate_interval]))",
                    "{{name}} rejected",
                ),
            ],
        ),
        panel(
            ("Calls rejected by bulkheads", "ops"),
            "Calls rejected by a full bulkhead.",
            &[query(
                "sum by (name) (rate(bulkhead_rejected_total{SELECTED}[$__rate_interval]))",
                "{{name}}",
            )],
        ),
        panel(
            ("Waiting time", "s"),
            "Time that calls waited for a rate limiter or a bulkhead; 99 % wait less.",
            &[query(
                "histogram_quantile(0.99, sum by (name, policy, le) (rate(queue_wait_time_seconds_bucket{SELECTED}[$__rate_interval])))",
                "{{name}} {{policy}}",
            )],
        ),
    ],
};

const ADAPTIVE: Row = Row {
    title: "Adaptive limits and client throttles",
    panels: &[
        panel(
            ("Adaptive limit", "short"),
            "Concurrent calls that the limit allows now.",
            &[query(
                "max by (name, instance) (adaptive_limit_limit{SELECTED})",
                "{{name}} {{instance}}",
            )],
        ),
        panel(
            ("Calls rejected", "ops"),
            "Calls rejected because the dependency is overloaded.",
            &[
                query(
                    "sum by (name) (rate(adaptive_limit_rejected_total{SELECTED}[$__rate_interval]))",
                    "{{name}} adaptive limit",
                ),
                query(
                    "sum by (name) (rate(client_throttle_rejected_total{SELECTED}[$__rate_interval]))",
                    "{{name}} client throttle",
                ),
            ],
        ),
        panel(
            ("Chaos", "ops"),
            "Calls changed by a chaos policy. It must be empty in production.",
            &[query(
                "sum by (name, fault) (rate(chaos_injected_total{SELECTED}[$__rate_interval]))",
                "{{name}} {{fault}}",
            )],
        ),
    ],
};

const OTHER_SOURCES: Row = Row {
    title: "Results from other sources",
    panels: &[
        panel(
            ("Hedges", "ops"),
            "Extra attempts, and how many of them had a result first.",
            &[
                query(
                    "sum by (name) (rate(hedge_started_total{SELECTED}[$__rate_interval]))",
                    "{{name}} started",
                ),
                query(
                    "sum by (name) (rate(hedge_won_total{SELECTED}[$__rate_interval]))",
                    "{{name}} won",
                ),
            ],
        ),
        panel(
            ("Fallbacks", "ops"),
            "Calls that used their fallback, and fallbacks that failed, too.",
            &[
                query(
                    "sum by (name, reason) (rate(fallback_used_total{SELECTED}[$__rate_interval]))",
                    "{{name}} {{reason}}",
                ),
                query(
                    "sum by (name) (rate(fallback_failed_total{SELECTED}[$__rate_interval]))",
                    "{{name}} failed",
                ),
            ],
        ),
        panel(
            ("Values of caches", "ops"),
            "Values returned by last-good caches: fetched, shared, cached or stale.",
            &[query(
                "sum by (name, freshness) (rate(last_good_served_total{SELECTED}[$__rate_interval]))",
                "{{name}} {{freshness}}",
            )],
        ),
        panel(
            ("Failovers", "ops"),
            "Calls that went to another target, and targets that were left out.",
            &[
                query(
                    "sum by (name, target) (rate(failover_switches_total{SELECTED}[$__rate_interval]))",
                    "{{name}} from {{target}}",
                ),
                query(
                    "sum by (name, target) (rate(failover_ejections_total{SELECTED}[$__rate_interval]))",
                    "{{name}} left out {{target}}",
                ),
            ],
        ),
    ],
};
