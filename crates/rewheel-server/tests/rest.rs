//! Tests the REST interface over a real listener.

#[path = "rest/served.rs"]
mod served;
#[path = "rest/documented.rs"]
mod documented;
#[path = "rest/submit.rs"]
mod submit;
#[path = "rest/tenants.rs"]
mod tenants;
#[path = "rest/jobs.rs"]
mod jobs;
#[path = "rest/kinds.rs"]
mod kinds;
#[path = "rest/kind_defaults.rs"]
mod kind_defaults;
#[path = "rest/audit.rs"]
mod audit;
#[path = "rest/incidents.rs"]
mod incidents;
#[path = "rest/events.rs"]
mod events;
#[path = "rest/fleet.rs"]
mod fleet;
#[path = "rest/metrics.rs"]
mod metrics;
#[path = "rest/workers.rs"]
mod workers;
#[path = "rest/operations.rs"]
mod operations;
#[path = "rest/gzip.rs"]
mod gzip;
#[path = "rest/room.rs"]
mod room;
#[path = "rest/problems.rs"]
mod problems;
#[path = "rest/life.rs"]
mod life;
#[path = "rest/tokens.rs"]
mod tokens;
#[path = "rest/callback_tls.rs"]
mod callback_tls;
#[path = "rest/callback.rs"]
mod callback;
