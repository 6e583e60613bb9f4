//! Reads the config: defaults, file, environment variables, flags.

mod credentials;
mod warnings;
mod environment;
mod kind_defaults;
mod limits;
mod location;
mod public_url;
mod reference;
mod schedules;
mod show;

pub use self::credentials::{AdminToken, TlsFiles};
pub use self::kind_defaults::KindDefaults;
pub use self::limits::LimitSettings;
pub use self::location::ConfigError;
pub use self::public_url::{PublicUrl, PublicUrlError};
pub use self::reference::{DefaultValue, SETTINGS, Setting, example, page};
pub use self::show::EffectiveSetting;
pub use self::warnings::ConfigWarning;

use self::environment::Overrides;
use self::location::File;
use self::schedules::ScheduleConfig;
use crate::callback::Ceiling;
use crate::notify::NotifyConfig;
use crate::runners;
use crate::telemetry::{TelemetryError, TelemetrySettings};
use rewheel::duration;
use rewheel_core::{KindName, Tenant};
use rewheel_engine::{EngineSettings, KindSettings, Schedule, TenantSettings};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::{Table, Value};

/// The complete, checked config.
///
/// Precedence: defaults < file < environment (`REWHEEL__SECTION__KEY`) < flags. The caller writes flags into the fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// HTTP server: address, limits, tokens and TLS.
    pub server: ServerSettings,
    /// The store for jobs.
    pub store: StoreSettings,
    /// How jobs run, and their retention.
    pub engine: EngineSettings,
    /// The kinds in the file, including the defaults.
    pub kinds: BTreeMap<KindName, KindSettings>,
    /// Default values for the settings of kinds.
    pub kind_defaults: KindDefaults,
    /// The tenants in the file; `*` stands for all others.
    pub tenants: BTreeMap<String, TenantSettings>,
    /// The schedules in the file.
    pub schedules: BTreeMap<KindName, Schedule>,
    /// Notification routes.
    pub notify: NotifyConfig,
    /// Where spans and metrics are sent.
    pub telemetry: TelemetrySettings,
}

/// The section `server`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The address to listen on.
    #[serde(deserialize_with = "listen")]
    pub listen: SocketAddr,
    /// How long running attempts may take to finish at shutdown.
    #[serde(with = "duration::serde")]
    pub shutdown_grace: Duration,
    /// Maximum size of a request body; bodies are held in memory.
    pub body_bytes_max: usize,
    /// `/health` reports the disk as degraded below this free space (SQLite only).
    pub disk_free_bytes_min: u64,
    /// Limits on what clients may use: the section `server.limits`.
    pub limits: LimitSettings,
    /// A token with the role `admin`, to create the other tokens. It can only be set in the environment: `REWHEEL__SERVER__ADMIN_TOKEN`.
    pub admin_token: Option<AdminToken>,
    /// A file that contains this token.
    pub admin_token_file: Option<PathBuf>,
    /// The TLS certificate; without it the server uses plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The URL under which browsers reach the server, if a proxy is in front of it.
    pub public_url: Option<PublicUrl>,
    /// Environment variables that kinds set over REST may use: `${NAME}`.
    pub callback_env: Vec<String>,
    /// Networks that kinds set over REST may list in `callback.allow`.
    pub callback_allow: Ceiling,
}

impl ServerSettings {
    /// Returns whether only this machine can reach the server.
    pub(crate) fn is_private(&self) -> bool {
        self.listen.ip().is_loopback()
    }
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            shutdown_grace: Duration::from_secs(30),
            body_bytes_max: 32 * 1024 * 1024,
            admin_token: None,
            admin_token_file: None,
            tls: None,
            public_url: None,
            callback_env: Vec::new(),
            callback_allow: Ceiling::default(),
            limits: LimitSettings::default(),
            disk_free_bytes_min: 512 * 1024 * 1024,
        }
    }
}

/// The shortest timeout that the Redis store accepts in its URL.
const REDIS_TIMEOUT_MIN: Duration = Duration::from_millis(100);

/// The section `store`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The URL of the store.
    pub url: String,
    /// Maximum number of connections for work, if the store is PostgreSQL, MariaDB or MySQL: 2 to 1,000.
    pub pool_max: Option<usize>,
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        StoreSettings { url: "sqlite://rewheel.db".to_owned(), pool_max: None }
    }
}

impl StoreSettings {
    /// Returns whether nodes reach the store through a network.
    fn is_server(&self) -> bool {
        self.is_sql_server() || self.is_redis()
    }

    /// Returns whether the store is a database server with a pool of connections.
    fn is_sql_server(&self) -> bool {
        self.has_scheme(&["postgres", "postgresql", "mysql", "mariadb"])
    }

    fn is_redis(&self) -> bool {
        self.has_scheme(&["redis", "rediss", "redis+cluster", "rediss+cluster"])
    }

    fn has_scheme(&self, schemes: &[&str]) -> bool {
        self.url.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
    }
}

/// The sections of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sections {
    server: ServerSettings,
    store: StoreSettings,
    engine: EngineSettings,
    retention: Retention,
    defaults: Defaults,
    kinds: BTreeMap<String, KindSettings>,
    tenants: BTreeMap<String, TenantSettings>,
    schedules: BTreeMap<String, ScheduleConfig>,
    notify: NotifyConfig,
    telemetry: TelemetrySettings,
}

/// The section `defaults`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Defaults {
    kind: KindSettings,
}

/// The section `retention`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Retention {
    #[serde(with = "duration::serde")]
    ended: Duration,
    #[serde(with = "duration::serde")]
    keys: Duration,
    #[serde(with = "duration::serde")]
    audit: Duration,
}

impl Default for Retention {
    fn default() -> Retention {
        let engine = EngineSettings::default();
        Retention {
            ended: engine.retention_ended,
            keys: engine.retention_keys,
            audit: engine.retention_audit,
        }
    }
}

impl Config {
    /// Reads the file, if there is one, and the environment.
    ///
    /// # Errors
    /// Names the invalid key, and its line in the file or its variable.
    pub fn load(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let file = match path {
            None => File::empty(),
            Some(path) => File::read(path)?,
        };
        Config::assemble(&file, &Overrides::of(env)?)
    }

    /// Returns the URL of the store including all settings. Settings in the URL itself take precedence.
    ///
    /// ```
    /// use rewheel_server::config::Config;
    ///
    /// let mut config = Config::default();
    /// config.store.url = "postgres://shop@db/shop?statement_timeout=5s".to_owned();
    /// config.store.pool_max = Some(16);
    /// assert_eq!(config.store_url(), "postgres://shop@db/shop?statement_timeout=5s&pool_max=16");
    /// ```
    pub fn store_url(&self) -> String {
        let mut url = self.store.url.clone();
        let timeout = self.engine.statement_timeout;
        let settings = if self.store.is_sql_server() {
            let timeout = duration::text(timeout).to_string();
            let pool_max = self.store.pool_max.map(|most| most.to_string());
            vec![("statement_timeout", Some(timeout)), ("pool_max", pool_max)]
        } else if self.store.is_redis() {
            vec![("timeout", Some(duration::text(timeout.max(REDIS_TIMEOUT_MIN)).to_string()))]
        } else {
            Vec::new()
        };
        for (name, value) in settings {
            let known = url
                .split(['?', '&'])
                .skip(1)
                .any(|setting| setting.split_once('=').is_some_and(|(known, _)| known == name));
            if let Some(value) = value.filter(|_| !known) {
                let mark = if url.contains('?') { '&' } else { '?' };
                url = format!("{url}{mark}{name}={value}");
            }
        }
        url
    }

    fn assemble(file: &File, env: &Overrides) -> Result<Config, ConfigError> {
        // Check the file alone first: its errors have a line, errors of the merged config have none.
        let alone: Sections = file.sections()?;
        if alone.server.admin_token.is_some() {
            let why = "must not be in the config file: set the environment variable REWHEEL__SERVER__ADMIN_TOKEN, or set server.admin_token_file to a file with the token";
            return Err(file.error("server.admin_token").because(why));
        }
        let mut sections = if env.is_empty() { alone } else { env.over(file)? };
        let wrong = |key: &str, why: &str| match env.error(key) {
            Some(error) => error.because(why),
            None => file.at_rule(file.error(key).because(why)),
        };
        let engine = with_retention(sections.engine, &sections.retention);
        let checked = engine.check().map_err(|error| error.to_string());
        checked.map_err(|error| match error.strip_prefix("retention_") {
            Some(error) => setting(error, "retention", &wrong),
            None => setting(&error, "engine", &wrong),
        })?;
        check_pool(&sections.store).map_err(|why| wrong("store.pool_max", why))?;
        if sections.server.body_bytes_max == 0 {
            return Err(wrong("server.body_bytes_max", "must be 1 or more"));
        }
        let limits = sections.server.limits.check();
        limits.map_err(|(key, why)| wrong(&format!("server.limits.{key}"), &why))?;
        let body_max = sections.server.body_bytes_max.max(engine.payload_bytes_max);
        if sections.server.limits.bodies_bytes_max / 3 < body_max {
            let why = "must be at least 3 times as large as server.body_bytes_max, and 3 times as large as engine.payload_bytes_max: raise it, or lower those settings";
            return Err(wrong("server.limits.bodies_bytes_max", why));
        }
        credentials::take(&mut sections.server).map_err(|(key, why)| wrong(key, &why))?;
        if let Err(TelemetryError::Setting { key, why }) = sections.telemetry.check() {
            return Err(wrong(&format!("telemetry.{key}"), &why));
        }
        let variable = |name: &str| std::env::var(name).ok();
        let notify = sections.notify;
        notify.check(&variable).map_err(|(key, why)| wrong(&format!("notify.{key}"), &why))?;
        let table = env.table(file)?;
        let kind_defaults = KindDefaults::of(&table);
        let checked = sections.defaults.kind.check();
        checked.map_err(|error| setting(&error.to_string(), "defaults.kind", &wrong))?;
        if let Some(error) = kind_defaults.check_callback() {
            let key = format!("defaults.kind{}", error.field.replace('/', "."));
            return Err(wrong(&key, &error.message));
        }
        let mut kinds = BTreeMap::new();
        for name in sections.kinds.into_keys() {
            let kind = KindName::parse(&name).map_err(|error| {
                let why = format!("`{name}` is not a valid kind name: a kind name {error}");
                wrong(&format!("kinds.{name}"), &why)
            })?;
            kinds.insert(kind, kind_settings(&table, &name, &kind_defaults, &wrong)?);
        }
        let tenants = sections.tenants;
        for (name, settings) in &tenants {
            let key = format!("tenants.{name}");
            Tenant::parse(name).map_err(|error| {
                wrong(&key, &format!("`{name}` is not a valid tenant: a tenant {error}"))
            })?;
            settings.check().map_err(|error| setting(&error.to_string(), &key, &wrong))?;
        }
        let payload_max = engine.payload_bytes_max;
        Ok(Config {
            schedules: schedules::read(&sections.schedules, payload_max, &wrong)?,
            server: sections.server,
            store: sections.store,
            engine,
            kinds,
            kind_defaults,
            tenants,
            notify,
            telemetry: sections.telemetry,
        })
    }
}

/// Returns the settings of a kind of the file, including the defaults.
fn kind_settings(
    config: &Table,
    name: &str,
    defaults: &KindDefaults,
    wrong: &dyn Fn(&str, &str) -> ConfigError,
) -> Result<KindSettings, ConfigError> {
    let key = format!("kinds.{name}");
    let own = config.get("kinds").and_then(|kinds| kinds.get(name)).and_then(Value::as_table);
    let own = own.cloned().unwrap_or_default();
    let settings = location::kind(defaults.filled(&own)).map_err(|why| wrong(&key, &why))?;
    let error = match (settings.check(), runners::check(&settings)) {
        (Ok(()), None) => return Ok(settings),
        (Err(error), _) => setting(&error.to_string(), &key, wrong),
        (Ok(()), Some(error)) => {
            wrong(&format!("{key}{}", error.field.replace('/', ".")), &error.message)
        }
    };
    let blamed = defaults.blamed(&own);
    if blamed.is_empty() {
        return Err(error);
    }
    let sources: Vec<String> = blamed
        .iter()
        .map(|name| {
            let key = format!("defaults.kind.{name}");
            wrong(&key, "").place.map_or(key.clone(), |place| format!("{key} ({place})"))
        })
        .collect();
    let why = format!(
        "{}; this kind conflicts with the default {}: set {} in [kinds.{name}], or change the default",
        error.why,
        sources.join(" and "),
        blamed.join(" and ")
    );
    Err(error.because(&why))
}

/// Checks the size of the connection pool.
fn check_pool(store: &StoreSettings) -> Result<(), &'static str> {
    match store.pool_max {
        Some(_) if !store.is_sql_server() => Err(
            "applies only to PostgreSQL, MariaDB and MySQL: other stores use a fixed number of connections; remove this setting",
        ),
        Some(most) if !(2..=1_000).contains(&most) => Err("must be 2 to 1000"),
        Some(_) | None => Ok(()),
    }
}

/// Parses an address to listen on.
///
/// # Errors
/// Says which form is expected.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    // Host names are not resolved: the machine's name resolution must not decide who can reach the server.
    let plain = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    plain
        .parse()
        .map_err(|_| format!("`{text}` is not an IP address with a port, such as 127.0.0.1:7420"))
}

fn listen<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    parse_listen(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// Finds the location of an invalid setting: the error starts with its name.
fn setting(error: &str, section: &str, wrong: &dyn Fn(&str, &str) -> ConfigError) -> ConfigError {
    let (name, why) = error.split_once(": ").unwrap_or(("", error));
    wrong(&format!("{section}.{name}"), why)
}

/// Adds the settings of the section `retention` to those of the engine.
fn with_retention(engine: EngineSettings, retention: &Retention) -> EngineSettings {
    EngineSettings {
        retention_ended: retention.ended,
        retention_keys: retention.keys,
        retention_audit: retention.audit,
        ..engine
    }
}

#[cfg(test)]
mod tests;
