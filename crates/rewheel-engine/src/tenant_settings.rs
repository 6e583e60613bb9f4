//! Settings of a tenant.

use crate::rate::Rate;
use crate::settings::{CONCURRENCY_MAX, SettingError};
use rewheel_core::{NameError, Tenant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of one tenant. The settings apply to the tenant's jobs of all kinds. Use the same
/// settings on every engine of a fleet.
///
/// ```
/// use rewheel_engine::TenantSettings;
///
/// let settings: TenantSettings = serde_json::from_str(r#"{"jobs_max":100000,"rate":"500/s"}"#)?;
/// assert_eq!((settings.jobs_max, settings.concurrency_max), (Some(100_000), None));
/// let error = serde_json::from_str::<TenantSettings>(r#"{"job_max":1}"#).unwrap_err();
/// assert!(error.to_string().contains("unknown field `job_max`"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantSettings {
    /// Maximum number of live jobs in the whole fleet (default: no limit). Further submits are
    /// refused. Live jobs are scheduled, leased or paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs_max: Option<u64>,
    /// Maximum rate of attempts in the whole fleet. If it is more than one start per second, each
    /// live engine gets an equal share. The store enforces slower rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Maximum number of concurrent attempts of this tenant in one engine (default: only the limit of the engine).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<usize>,
    /// Maximum number of concurrent jobs in the whole fleet (default: no limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_concurrency_max: Option<u32>,
    /// Relative share when several tenants have due jobs of the same priority: a tenant with weight
    /// 2 gets twice as many attempts as a tenant with weight 1. The default is 1, the maximum 100.
    pub weight: u32,
}

impl Default for TenantSettings {
    fn default() -> TenantSettings {
        TenantSettings {
            jobs_max: None,
            rate: None,
            concurrency_max: None,
            fleet_concurrency_max: None,
            weight: 1,
        }
    }
}

impl TenantSettings {
    /// The name for the settings of every tenant that is not named.
    pub const OTHERS: &'static str = "*";

    /// A larger weight would leave almost nothing to a tenant with weight 1.
    const WEIGHT_MAX: u32 = 100;

    /// Checks the settings.
    ///
    /// # Errors
    /// Fails with the first invalid setting.
    ///
    /// ```
    /// use rewheel_engine::TenantSettings;
    ///
    /// let none = TenantSettings { jobs_max: Some(0), ..TenantSettings::default() };
    /// assert!(none.check().unwrap_err().to_string().starts_with("jobs_max: must be 1 or more"));
    /// ```
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.jobs_max == Some(0) {
            return wrong("jobs_max", "must be 1 or more; leave it out for no limit");
        }
        if self.concurrency_max == Some(0) {
            return wrong("concurrency_max", "must be 1 or more; leave it out for no limit");
        }
        if self.fleet_concurrency_max == Some(0) {
            return wrong("fleet_concurrency_max", "must be 1 or more; leave it out for no limit");
        }
        if !(1..=TenantSettings::WEIGHT_MAX).contains(&self.weight) {
            return wrong("weight", "must be 1 to 100");
        }
        if self.concurrency_max.is_some_and(|most| most > CONCURRENCY_MAX) {
            return wrong("concurrency_max", "must be 1000000 or fewer");
        }
        Ok(())
    }
}

/// The settings of every tenant.
#[derive(Clone, Debug, Default)]
pub(crate) struct TenantBook {
    named: BTreeMap<Tenant, TenantSettings>,
    others: TenantSettings,
}

impl TenantBook {
    pub(crate) fn add(&mut self, name: &str, settings: TenantSettings) -> Result<(), NameError> {
        if name == TenantSettings::OTHERS {
            self.others = settings;
        } else {
            self.named.insert(Tenant::parse(name)?, settings);
        }
        Ok(())
    }

    pub(crate) fn of(&self, tenant: &Tenant) -> &TenantSettings {
        self.named.get(tenant).unwrap_or(&self.others)
    }

    /// Returns whether any tenant's settings meet the condition.
    pub(crate) fn says(&self, what: impl Fn(&TenantSettings) -> bool) -> bool {
        what(&self.others) || self.named.values().any(what)
    }
}

#[cfg(test)]
mod tests {
    use super::{TenantBook, TenantSettings};
    use rewheel_core::Tenant;

    #[test]
    fn a_tenant_that_is_not_named_has_what_all_others_have() {
        let settings = |jobs_max| TenantSettings { jobs_max, ..TenantSettings::default() };
        let mut book = TenantBook::default();
        for (name, jobs_max) in [("*", Some(5)), ("acme", None), ("b", Some(7))] {
            book.add(name, settings(jobs_max)).unwrap();
        }
        for (name, jobs_max) in [("acme", None), ("b", Some(7)), ("c", Some(5))] {
            assert_eq!(book.of(&Tenant::parse(name).unwrap()).jobs_max, jobs_max, "{name}");
        }
        assert!(book.says(|of| of.jobs_max.is_some()));
        assert!(!TenantBook::default().says(|of| of.jobs_max.is_some()));
    }
}
