//! Settings of an engine and of a kind.

use crate::budget::BudgetSettings;
use crate::rate::Rate;
use rewheel::{Backoff, duration};
use rewheel_core::{GiveUp, Limits, Policy, Router};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// Attempts that one process could run at the same time: each takes a few kilobytes and, if it calls
/// somebody, a connection.
pub(crate) const PLACES_MAX: usize = 1_000_000;

/// The settings of one engine. Every limit is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// What people call this node.
    pub name: String,
    /// Where this node is: of several URLs, callbacks take those of its region first.
    pub region: Option<String>,
    /// How many attempts run at the same time.
    pub places: usize,
    /// How long the node may be silent before others take its jobs.
    #[serde(with = "duration::serde")]
    pub lease_ttl: Duration,
    /// How far ahead of its due a job is claimed, to wait in the wheel for its millisecond.
    #[serde(with = "duration::serde")]
    pub horizon: Duration,
    /// How many jobs wait in the wheel at most.
    pub wheel_max: u32,
    /// How long to rest between two looks into the store when nothing wakes the engine.
    #[serde(with = "duration::serde")]
    pub poll: Duration,
    /// How long after its due and its attempt timeout a job is overdue.
    #[serde(with = "duration::serde")]
    pub grace: Duration,
    /// A call of the store whose answer takes longer than this, repeats included, is taken to be
    /// lost.
    #[serde(with = "duration::serde")]
    pub statement_timeout: Duration,
    /// The largest payload that may be submitted.
    pub payload_bytes_max: usize,
    /// How often to look for deadlines, forgotten jobs and what need not be kept.
    #[serde(with = "duration::serde")]
    pub housekeeping: Duration,
    /// How long failed and cancelled jobs are kept.
    #[serde(with = "duration::serde")]
    pub keep_ended: Duration,
    /// How long the key of an ended job stays taken.
    #[serde(with = "duration::serde")]
    pub keep_keys: Duration,
    /// How long the audit log is kept.
    #[serde(with = "duration::serde")]
    pub keep_audit: Duration,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            name: "rewheel".to_owned(),
            region: None,
            places: 256,
            // A killed node's jobs run elsewhere within 15 s: a life of silence, the third of one in
            // which it was last seen alive, and time to sweep.
            lease_ttl: Duration::from_secs(10),
            horizon: Duration::from_secs(5),
            wheel_max: 20_000,
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(30),
            statement_timeout: Duration::from_secs(10),
            payload_bytes_max: Limits::PAYLOAD_BYTES_MAX_DEFAULT,
            housekeeping: Duration::from_secs(5),
            keep_ended: Limits::KEEP_DEFAULT,
            keep_keys: Limits::KEEP_DEFAULT,
            keep_audit: Duration::from_secs(90 * 24 * 3_600),
        }
    }
}

/// What a region looks like, for people.
pub const REGION_RULE: &str = "must be 1 to 63 of a-z, 0-9 and -, such as eu-west-1";

/// Returns whether a text can be the name of a region.
pub fn is_region(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_plain)
}

impl EngineSettings {
    /// Says what makes no sense, with the name of the setting.
    ///
    /// # Errors
    /// The first setting that cannot work.
    ///
    /// ```
    /// use rewheel_engine::EngineSettings;
    ///
    /// let none = EngineSettings { places: 0, ..EngineSettings::default() };
    /// assert_eq!(none.check().unwrap_err().to_string(), "places: must be 1 or more");
    /// ```
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.name.is_empty() || self.name.len() > Limits::HOLDER_NAME_BYTES_MAX {
            return wrong("name", "must be 1 to 128 bytes");
        }
        if self.region.as_deref().is_some_and(|region| !is_region(region)) {
            return wrong("region", REGION_RULE);
        }
        if self.places == 0 {
            return wrong("places", "must be 1 or more");
        }
        if self.places > PLACES_MAX {
            return wrong("places", "must be 1000000 or fewer");
        }
        if self.wheel_max == 0 {
            return wrong("wheel_max", "must be 1 or more");
        }
        if self.lease_ttl < Duration::from_millis(300) {
            return wrong(
                "lease_ttl",
                "must be 300ms or longer: it is renewed three times per period",
            );
        }
        if self.statement_timeout < Duration::from_millis(1) {
            return wrong("statement_timeout", "must be 1ms or longer");
        }
        if self.poll.is_zero() || self.housekeeping.is_zero() {
            return wrong("poll", "must be longer than 0s, and so must housekeeping");
        }
        check_durations(&[
            ("lease_ttl", self.lease_ttl),
            ("horizon", self.horizon),
            ("poll", self.poll),
            ("grace", self.grace),
            ("statement_timeout", self.statement_timeout),
            ("housekeeping", self.housekeeping),
            ("keep_ended", self.keep_ended),
            ("keep_keys", self.keep_keys),
            ("keep_audit", self.keep_audit),
        ])
    }
}

/// Refuses durations so long that sums of them overflow.
fn check_durations(durations: &[(&'static str, Duration)]) -> Result<(), SettingError> {
    match durations.iter().find(|(_, duration)| *duration > Limits::DURATION_MAX) {
        Some((name, _)) => Err(SettingError { name, why: "must be 36500d or shorter".into() }),
        None => Ok(()),
    }
}

/// A setting that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {why}")]
pub struct SettingError {
    pub(crate) name: &'static str,
    pub(crate) why: Cow<'static, str>,
}

/// Who runs the jobs of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// A handler inside an engine.
    #[default]
    Handler,
    /// An HTTP call to somebody.
    Callback,
    /// A worker elsewhere, that asks a server for jobs.
    Worker,
}

/// The settings of a kind, shared by the fleet.
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
    /// Who runs its jobs.
    pub runner: RunnerKind,
    /// How many attempts a job gets.
    pub attempts_max: u32,
    /// How long one attempt may take.
    #[serde(with = "duration::serde")]
    pub attempt_timeout: Duration,
    /// How long to wait between attempts.
    pub backoff: Backoff,
    /// How many attempts one job may ask for; 1000, or `attempts_max` where that is more, if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_ceiling: Option<u32>,
    /// How long an attempt timeout one job may ask for; 1h, or `attempt_timeout` where that is longer, if not set.
    #[serde(with = "some_duration", skip_serializing_if = "Option::is_none")]
    pub attempt_timeout_ceiling: Option<Duration>,
    /// How long each job waits at least between two attempts; 10ms, or the first delay of `backoff` where that is shorter, if
    /// not set.
    #[serde(with = "some_duration", skip_serializing_if = "Option::is_none")]
    pub delay_floor: Option<Duration>,
    /// How many attempts of it run at the same time in one engine; as many as fit if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<usize>,
    /// How many jobs of it run at the same time in the whole fleet; any number if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_concurrency_max: Option<u32>,
    /// How many attempts of it start in a time, in the whole fleet. Each living engine has the same share of a fast rate; a slow
    /// one, a start a second or fewer, is kept by the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many retries of it there are, in the whole fleet, for its first attempts: the others wait. As many as its jobs need if not
    /// set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<BudgetSettings>,
    /// Shorter retries stay in the wheel.
    #[serde(with = "duration::serde")]
    pub sticky_max: Duration,
    /// How many processes a job may take with it.
    pub takeovers_max: u32,
    /// What becomes of a job that is given up.
    #[serde(with = "give_up")]
    pub on_give_up: GiveUp,
    /// How long succeeded jobs are kept; `0s`: not at all.
    #[serde(with = "duration::serde")]
    pub keep_succeeded: Duration,
    /// How long a callee may make a job wait.
    #[serde(with = "duration::serde")]
    pub retry_after_max: Duration,
    /// When its dependency is taken to be down, so that it is parked; never if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerSettings>,
    /// What is done about failures that deserve something else than a retry by these settings: the
    /// first rule that fits, and the policy above for what none fits.
    #[serde(with = "crate::routes", skip_serializing_if = "Router::is_empty")]
    pub routes: Router,
    /// What a callback needs to know. Whoever makes callbacks reads it.
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
            retry_after_max: policy.retry_after_max,
            breaker: None,
            routes: Router::new(),
            callback: None,
        }
    }
}

impl KindSettings {
    /// Says what makes no sense, with the name of the setting.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.attempts_max == 0 {
            return wrong("attempts_max", "must be 1 or more");
        }
        if self.attempt_timeout.is_zero() {
            return wrong("attempt_timeout", "must be longer than 0s");
        }
        if self.backoff.is_custom() {
            // Its text is only a name, which no node could read back from the store.
            return wrong("backoff", "must not be custom: a function cannot be stored");
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
        if self.concurrency_max.is_some_and(|most| most > PLACES_MAX) {
            return wrong("concurrency_max", "must be 1000000 or fewer");
        }
        if self.concurrency_max == Some(0) {
            return wrong("concurrency_max", "must be 1 or more; pause the kind to stop it");
        }
        if self.fleet_concurrency_max == Some(0) {
            return wrong("fleet_concurrency_max", "must be 1 or more; pause the kind to stop it");
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
        let routes = self.routes.check().and_then(|()| self.routes.check_waits(&self.policy()));
        routes.map_err(|error| SettingError { name: "routes", why: error.to_string().into() })
    }

    /// Shortens durations that [`KindSettings::check`] refuses, for settings that were stored without that check.
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

    /// Returns how a job is retried that has no settings of its own.
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

/// When the dependency of a kind is taken to be down, and when to try it again.
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
    /// How many of a node's latest attempts it goes by.
    pub window: u32,
    /// Which share of them must have failed, above 0 and up to 1.
    pub failure_ratio: f64,
    /// How long it is left alone before one attempt finds out whether it is back.
    #[serde(with = "duration::serde")]
    pub open_for: Duration,
}

impl Default for BreakerSettings {
    fn default() -> BreakerSettings {
        BreakerSettings { window: 20, failure_ratio: 0.5, open_for: Duration::from_secs(30) }
    }
}

impl BreakerSettings {
    /// The longest window: it is one allocation.
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

mod some_duration {
    //! A duration that may be left out.

    use rewheel::duration;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    #[derive(Deserialize)]
    struct Wrapped(#[serde(with = "duration::serde")] Duration);

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => duration::serde::serialize(value, to),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(from)?.map(|Wrapped(duration)| duration))
    }
}

mod give_up {
    //! `on_give_up` as the wire says it.

    use rewheel_core::GiveUp;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &GiveUp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match value {
            GiveUp::Dead => "dead",
            GiveUp::Fail => "fail",
        })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<GiveUp, D::Error> {
        match String::deserialize(from)?.as_str() {
            "dead" => Ok(GiveUp::Dead),
            "fail" => Ok(GiveUp::Fail),
            other => Err(D::Error::custom(format!("`{other}` is not `dead` or `fail`"))),
        }
    }
}
