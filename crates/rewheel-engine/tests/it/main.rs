//! Tests of the engine from outside, in one binary: linking one is faster than linking thirty.

mod still;
mod flood;
mod adaptive;
mod ageing;
mod caps;
mod checkpoint;
mod durations;
mod engine;
mod fairness;
mod fleet;
mod follow_ups;
mod gather;
mod held;
mod hold;
mod job_counts;
mod many_kinds;
mod many_lanes;
mod meters;
mod misfortune;
mod notify;
mod operations;
mod outage;
mod overload;
mod parking;
mod rate;
mod retention;
mod retry_budget;
mod routing;
mod shards;
mod submit;
mod supervision;
mod targets;
mod tenants;
#[cfg(feature = "otel")]
mod worker_spans;
mod workers;
