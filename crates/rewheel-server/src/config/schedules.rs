//! The section `schedules`: schedules that the file defines.

use super::ConfigError;
use crate::schedule;
use rewheel_core::KindName;
use rewheel_engine::Schedule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Table;

/// One entry of `schedules`, with the names of `PUT /v1/schedules/{name}`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<Table>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catch_up: Option<String>,
}

/// Checks the schedules of the file, as those of requests are checked.
pub(super) fn read(
    section: &BTreeMap<String, ScheduleConfig>,
    payload_bytes_max: usize,
    wrong: &dyn Fn(&str, &str) -> ConfigError,
) -> Result<BTreeMap<KindName, Schedule>, ConfigError> {
    let mut schedules = BTreeMap::new();
    for (name, config) in section {
        let key = format!("schedules.{name}");
        let parsed = KindName::parse(name).map_err(|error| {
            wrong(&key, &format!("`{name}` is not a valid name: the name of a schedule {error}"))
        })?;
        let text =
            serde_json::to_string(config).map_err(|error| wrong(&key, &error.to_string()))?;
        let schedule =
            schedule::parse(&text, payload_bytes_max).map_err(|problem| {
                match problem.errors.first() {
                    Some(error) => {
                        wrong(&format!("{key}{}", error.field.replace('/', ".")), &error.message)
                    }
                    None => wrong(&key, &problem.detail),
                }
            })?;
        schedules.insert(parsed, schedule);
    }
    Ok(schedules)
}
