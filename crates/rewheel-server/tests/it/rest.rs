//! Tests the REST interface over a real listener.

mod served;
mod documented;
mod submit;
mod duplicates;
mod tenants;
mod jobs;
mod kinds;
mod kind_defaults;
mod schedules;
mod audit;
mod incidents;
mod events;
mod fleet;
mod metrics;
mod workers;
mod results;
mod groups;
mod operations;
mod gzip;
mod room;
mod problems;
mod life;
mod tokens;
mod callback_tls;
mod callback;
