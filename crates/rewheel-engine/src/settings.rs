//! Settings of an engine and of a kind.

mod texts;

use self::texts::{give_up, on_dead, some_duration, stored_backoff};
use crate::budget::BudgetSettings;
use crate::rate::Rate;
use rewheel::{Backoff, duration};
use rewheel_core::{FailureRules, GiveUp, Limits, OnDead, Policy};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// Upper limit of concurrent attempts in one process: each takes a few kilobytes and usually a connection.
pub(crate) const CONCURRENCY_MAX: usize = 1_000_000;

/// Settings of one engine, including every limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Display name of this node.
    pub name: String,
    /// Region of this node. If a callback has several URLs, the node calls the URLs of its own region first.
    pub region: Option<String>,
    /// Maximum number of concurrent attempts.
    pub concurrency: usize,
    /// Lease duration: if this node does not renew its lease within this time, other nodes take over its jobs.
    #[serde(with = "duration::serde")]
    pub lease_ttl: Duration,
    /// How long before the due time of a job this node may claim the job. Until the due time, the job waits in the timing wheel.
    #[serde(with = "duration::serde")]
    pub horizon: Duration,
    /// Maximum number of jobs in the timing wheel.
    pub wheel_max: u32,
    /// Maximum time between two polls of the store for due jobs.
    #[serde(with = "duration::serde")]
    pub poll: Duration,
    /// Additional time after the attempt timeout, which counts from the due time, or from the claim if that is later. When it has passed, a job is overdue, and another node may run it.
    #[serde(with = "duration::serde")]
    pub overdue_grace: Duration,
    /// Timeout of a store call including retries; a later response is considered lost.
    #[serde(with = "duration::serde")]
    pub statement_timeout: Duration,
    /// The largest payload that may be submitted.
    pub payload_bytes_max: usize,
    /// The largest result of a job that is kept: a larger one is dropped, and the job still succeeds.
    pub result_bytes_max: usize,
    /// Maximum number of callers that wait for the end of a job at the same time.
    pub waiters_max: usize,
    /// Interval of the search for deadlines, lost jobs and expired data.
    #[serde(with = "duration::serde")]
    pub housekeeping: Duration,
    /// Retention of failed and cancelled jobs. In a config file this setting is in the section `retention`, together with the retention of keys and of the audit log.
    #[serde(skip)]
    pub retention_ended: Duration,
    /// Retention of the key of an ended job.
    #[serde(skip)]
    pub retention_keys: Duration,
    /// Retention of the audit log.
    #[serde(skip)]
    pub retention_audit: Duration,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            name: "rewheel".to_owned(),
            region: None,
            concurrency: 256,
            // The jobs of a killed node run elsewhere within 15 s: one lease duration, a third of one until its last renewal is
            // noticed, and time to sweep.
            lease_ttl: Duration::from_secs(10),
            horizon: Duration::from_secs(5),
            wheel_max: 20_000,
            poll: Duration::from_secs(1),
            overdue_grace: Duration::from_secs(30),
            statement_timeout: Duration::from_secs(10),
            payload_bytes_max: Limits::PAYLOAD_BYTES_MAX_DEFAULT,
            result_bytes_max: Limits::RESULT_BYTES_MAX_DEFAULT,
            // Each holds a connection and a few hundred bytes.
            waiters_max: 10_000,
            housekeeping: Duration::from_secs(5),
            retention_ended: Limits::KEEP_DEFAULT,
            retention_keys: Limits::KEEP_DEFAULT,
            retention_audit: Duration::from_secs(90 * 24 * 3_600),
        }
    }
}

/// The rule for region names, as text for users.
pub const REGION_RULE: &str = "must have 1 to 63 characters (a-z, 0-9, `-`), such as eu-west-1";

/// Returns whether a text is a valid region name.
pub fn is_region(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_plain)
}

impl EngineSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Fails with the first invalid setting.
    ///
    /// ```
    /// use rewheel_engine::EngineSettings;
    ///
    /// let none = EngineSettings { concurrency: 0, ..EngineSettings::default() };
    /// assert_eq!(none.check().unwrap_err().to_string(), "concurrency: must be 1 or more");
    /// ```
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.name.is_empty() || self.name.len() > Limits::HOLDER_NAME_BYTES_MAX {
            return wrong("name", "must be 1 to 128 bytes");
        }
        if self.region.as_deref().is_some_and(|region| !is_region(region)) {
            return wrong("region", REGION_RULE);
        }
        if self.concurrency == 0 {
            return wrong("concurrency", "must be 1 or more");
        }
        if self.concurrency > CONCURRENCY_MAX {
            return wrong("concurrency", "must be 1000000 or fewer");
        }
        if self.wheel_max == 0 {
            return wrong("wheel_max", "must be 1 or more");
        }
        if self.lease_ttl < Duration::from_millis(300) {
            return wrong(
                "lease_ttl",
                "must be 300ms or longer, because the node renews its lease three times in this time",
            );
        }
        if self.result_bytes_max == 0 || self.result_bytes_max > Limits::RESULT_BYTES_CEILING {
            return wrong("result_bytes_max", "must be 1 to 1048576");
        }
        if self.statement_timeout < Duration::from_millis(1) {
            return wrong("statement_timeout", "must be 1ms or longer");
        }
        for (name, time) in [("poll", self.poll), ("housekeeping", self.housekeeping)] {
            if time.is_zero() {
                return wrong(name, "must be longer than 0s");
            }
        }
        check_durations(&[
            ("lease_ttl", self.lease_ttl),
            ("horizon", self.horizon),
            ("poll", self.poll),
            ("overdue_grace", self.overdue_grace),
            ("statement_timeout", self.statement_timeout),
            ("housekeeping", self.housekeeping),
            ("retention_ended", self.retention_ended),
            ("retention_keys", self.retention_keys),
            ("retention_audit", self.retention_audit),
        ])
    }
}

/// Rejects durations whose sums could overflow.
fn check_durations(durations: &[(&'static str, Duration)]) -> Result<(), SettingError> {
    match durations.iter().find(|(_, duration)| *duration > Limits::DURATION_MAX) {
        Some((name, _)) => Err(SettingError { name, why: "must be 36500d or shorter".into() }),
        None => Ok(()),
    }
}

/// Error: a setting is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {why}")]
pub struct SettingError {
    pub(crate) name: &'static str,
    pub(crate) why: Cow<'static, str>,
}

/// What runs the jobs of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// A handler inside an engine.
    #[default]
    Handler,
    /// An HTTP call.
    Callback,
    /// A remote worker that requests jobs from a server.
    Worker,
}

/// Which calls wait if a called service refuses a call with 429 and a `Retry-After` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// All calls of this node to the same host.
    #[default]
    Host,
    /// The whole kind, on all nodes: for a kind whose calls share one account.
    Kind,
    /// Only the job whose call was refused.
    Off,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_off(setting: &bool) -> bool {
    !setting
}

impl Hold {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_default(&self) -> bool {
        *self == Hold::default()
    }
}

/// Settings of a kind, shared by the fleet.
///
/// ```
/// use rewheel_engine::KindSettings;
///
/// let settings: KindSettings = serde_json::from_str(r#"{"attempts_max":3,"sticky_max":"2s"}"#)?;
/// assert_eq!(settings.attempts_max, 3);
/// let error = serde_json::from_str::<KindSettings>(r#"{"atempts_max":3}"#).unwrap_err();
/// assert!(error.to_string().contains("unknown field `atempts_max`"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KindSettings {
    /// What runs its jobs.
    pub runner: RunnerKind,
    /// Maximum number of attempts.
    pub attempts_max: u32,
    /// Timeout of one attempt.
    #[serde(with = "duration::serde")]
    pub attempt_timeout: Duration,
    /// Delays between attempts. A custom backoff is stored by its name: register it on every node, with
    /// [`EngineBuilder::backoffs`](crate::EngineBuilder::backoffs).
    #[serde(with = "stored_backoff")]
    pub backoff: Backoff,
    /// Maximum `attempts_max` that one job may ask for (default 1000, or `attempts_max` if that is more).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_ceiling: Option<u32>,
    /// Maximum attempt timeout that one job may ask for (default 1h, or `attempt_timeout` if that is longer).
    #[serde(with = "some_duration", skip_serializing_if = "Option::is_none")]
    pub attempt_timeout_ceiling: Option<Duration>,
    /// Minimum delay between two attempts (default 10ms, or the first delay of `backoff` if that is shorter).
    #[serde(with = "some_duration", skip_serializing_if = "Option::is_none")]
    pub delay_floor: Option<Duration>,
    /// Maximum number of concurrent attempts of this kind in one engine (default: only the limit of the engine).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<usize>,
    /// Maximum number of concurrent jobs in the whole fleet (default: no limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_concurrency_max: Option<u32>,
    /// Maximum rate of attempts in the whole fleet. If the rate is more than one start per second, each live engine gets an equal
    /// share. The store enforces slower rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Retry budget in the whole fleet: limits retries to a share of the first attempts. Retries
    /// beyond the budget wait (default: no limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<BudgetSettings>,
    /// A retry with at most this delay stays leased to its node and waits in the memory of the node.
    #[serde(with = "duration::serde")]
    pub sticky_max: Duration,
    /// A job becomes a dead letter when it was taken over this many times while it was running. The first takeover of a job does not count.
    pub takeovers_max: u32,
    /// What happens to a job that is given up.
    #[serde(with = "give_up")]
    pub on_give_up: GiveUp,
    /// Retention of succeeded jobs; `0s`: not kept.
    #[serde(with = "duration::serde")]
    pub keep_succeeded: Duration,
    /// Whether results of succeeded jobs are kept with them. Not written if it is off, so that nodes of an earlier release can
    /// read the settings.
    #[serde(skip_serializing_if = "is_off")]
    pub result: bool,
    /// Maximum delay that a called service may ask for.
    #[serde(with = "duration::serde")]
    pub retry_after_max: Duration,
    /// Which calls wait if the called service answers 429 with `Retry-After`, for at most `retry_after_max`. The default is not
    /// written to the store, so that nodes of an earlier release can read the settings.
    #[serde(skip_serializing_if = "Hold::is_default")]
    pub hold: Hold,
    /// What a dead letter does to its group. Not written if it is the default, so that nodes of an earlier release can read the
    /// settings.
    #[serde(with = "on_dead", skip_serializing_if = "is_default")]
    pub on_dead: OnDead,
    /// Circuit breaker of the kind: defines when its dependency counts as down, so that the kind is parked (default: never).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerSettings>,
    /// Rules for failures that need another action than a retry by these settings: the first matching rule applies; without a
    /// match, the settings above apply.
    #[serde(with = "crate::failure_rules", skip_serializing_if = "FailureRules::is_empty")]
    pub failure_rules: FailureRules,
    /// Settings of callbacks, interpreted by the callback runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<serde_json::Value>,
}

impl Default for KindSettings {
    fn default() -> KindSettings {
        let policy = Policy::default();
        KindSettings {
            runner: RunnerKind::Handler,
            attempts_max: policy.attempts_max,
            attempt_timeout: Limits::ATTEMPT_TIMEOUT_DEFAULT,
            backoff: policy.backoff,
            attempts_ceiling: None,
            attempt_timeout_ceiling: None,
            delay_floor: None,
            concurrency_max: None,
            fleet_concurrency_max: None,
            rate: None,
            retry_budget: None,
            sticky_max: policy.sticky_max,
            takeovers_max: Limits::TAKEOVERS_MAX_DEFAULT,
            on_give_up: policy.on_give_up,
            keep_succeeded: Limits::KEEP_DEFAULT,
            result: false,
            retry_after_max: policy.retry_after_max,
            hold: Hold::Host,
            on_dead: OnDead::Continue,
            breaker: None,
            failure_rules: FailureRules::new(),
            callback: None,
        }
    }
}

impl KindSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Fails with the first invalid setting.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.attempts_max == 0 {
            return wrong("attempts_max", "must be 1 or more");
        }
        if self.attempt_timeout.is_zero() {
            return wrong("attempt_timeout", "must be longer than 0s");
        }
        if self.backoff.unknown_name().is_some() {
            // Says which shapes and names there are.
            let parsed = self.backoff.to_string().parse::<Backoff>();
            let why = parsed.err().map_or_else(String::new, |error| error.to_string());
            return Err(SettingError { name: "backoff", why: why.into() });
        }
        self.check_ceilings()?;
        check_durations(&[
            ("attempt_timeout", self.attempt_timeout),
            ("attempt_timeout_ceiling", self.attempt_timeout_ceiling.unwrap_or_default()),
            ("delay_floor", self.delay_floor.unwrap_or_default()),
            ("sticky_max", self.sticky_max),
            ("keep_succeeded", self.keep_succeeded),
            ("retry_after_max", self.retry_after_max),
            ("breaker.open_for", self.breaker.unwrap_or_default().open_for),
        ])?;
        if self.concurrency_max.is_some_and(|most| most > CONCURRENCY_MAX) {
            return wrong("concurrency_max", "must be 1000000 or fewer");
        }
        if self.concurrency_max == Some(0) {
            return wrong("concurrency_max", "must be 1 or more; pause the kind to stop it");
        }
        if self.fleet_concurrency_max == Some(0) {
            return wrong("fleet_concurrency_max", "must be 1 or more; pause the kind to stop it");
        }
        if self.result && self.keep_succeeded.is_zero() {
            return wrong(
                "result",
                "needs succeeded jobs to be kept: set keep_succeeded, or remove result",
            );
        }
        if self.takeovers_max == 0 {
            return wrong("takeovers_max", "must be 1 or more");
        }
        if let Some(breaker) = self.breaker {
            breaker.check()?;
        }
        if let Some(budget) = self.retry_budget {
            budget.check()?;
        }
        let failure_rules = self
            .failure_rules
            .check()
            .and_then(|()| self.failure_rules.check_waits(&self.policy()));
        failure_rules
            .map_err(|error| SettingError { name: "failure_rules", why: error.to_string().into() })
    }

    /// Shortens durations that [`KindSettings::check`] rejects, for settings that were stored without that check.
    pub(crate) fn clamp_durations(&mut self) {
        let limit = |duration: &mut Duration| *duration = (*duration).min(Limits::DURATION_MAX);
        limit(&mut self.attempt_timeout);
        limit(&mut self.sticky_max);
        limit(&mut self.keep_succeeded);
        limit(&mut self.retry_after_max);
        self.attempt_timeout_ceiling.as_mut().map(limit);
        self.delay_floor.as_mut().map(limit);
        if let Some(breaker) = &mut self.breaker {
            limit(&mut breaker.open_for);
        }
    }

    /// Returns the retry policy of a job without its own settings.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            attempts_max: self.attempts_max,
            backoff: self.backoff,
            retry_after_max: self.retry_after_max,
            sticky_max: self.sticky_max,
            on_give_up: self.on_give_up,
            ..Policy::default()
        }
    }
}

/// When the dependency of a kind counts as down, and when to probe it.
///
/// ```
/// use rewheel_engine::BreakerSettings;
///
/// let breaker: BreakerSettings = serde_json::from_str(r#"{"window":50,"open_for":"5s"}"#)?;
/// assert_eq!((breaker.window, breaker.failure_ratio), (50, 0.5));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// Number of latest attempts of a node that the breaker counts.
    pub window: u32,
    /// The breaker opens if this share of these attempts failed, above 0 and up to 1.
    pub failure_ratio: f64,
    /// How long the breaker stays open before a probe tests whether the dependency is back.
    #[serde(with = "duration::serde")]
    pub open_for: Duration,
}

impl Default for BreakerSettings {
    fn default() -> BreakerSettings {
        BreakerSettings { window: 20, failure_ratio: 0.5, open_for: Duration::from_secs(30) }
    }
}

impl BreakerSettings {
    /// The largest window: it is one allocation.
    const WINDOW_MAX: u32 = 10_000;

    fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.window == 0 || self.window > BreakerSettings::WINDOW_MAX {
            return wrong("breaker.window", "must be 1 to 10000");
        }
        if !(self.failure_ratio > 0.0 && self.failure_ratio <= 1.0) {
            return wrong("breaker.failure_ratio", "must be above 0 and at most 1");
        }
        if self.open_for < Duration::from_millis(1) {
            return wrong("breaker.open_for", "must be 1ms or longer");
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_default(on_dead: &OnDead) -> bool {
    *on_dead == OnDead::default()
}
