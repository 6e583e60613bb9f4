//! Parses the URL of a MySQL or MariaDB store.

use mysql_async::{Opts, OptsBuilder, SslOpts};
use rewheel::duration;
use rewheel_core::store::ClockOffset;
use rewheel_core::{SecretUrl, redact_setting};
use std::path::PathBuf;
use std::time::Duration;

/// Options for a MySQL or MariaDB store.
///
/// ```
/// use rewheel_stores::MysqlOptions;
///
/// let options = MysqlOptions::parse("mysql://ops@db.internal/shop?pool_max=16")?;
/// assert_eq!(options.pool_max, 16);
///
/// let error = MysqlOptions::parse("mariadb://db/shop?pool=16").unwrap_err();
/// assert!(error.to_string().contains("pool"));
/// # Ok::<_, rewheel_stores::MysqlOptionsError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MysqlOptions {
    /// The address of the server, the user and the database.
    pub server: Opts,
    /// Maximum number of connections for work, in addition to two connections for heartbeats.
    pub pool_max: usize,
    /// Maximum time for one statement.
    pub statement_timeout: Duration,
    /// Moves the store's clock, in tests.
    pub clock: ClockOffset,
}

/// The URL of a MySQL or MariaDB store is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid store URL: {0}")]
pub struct MysqlOptionsError(String);

/// How connections are encrypted.
#[derive(Default)]
struct Tls {
    required: bool,
    verify: bool,
    roots: Option<PathBuf>,
}

impl MysqlOptions {
    /// Default number of connections for work: one claims, one settles, the others submit and read.
    pub const POOL_MAX_DEFAULT: usize = 8;

    /// The default statement timeout, the same as the engine's own timeout for store calls.
    pub const STATEMENT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

    /// Parses `mysql://USER:PASSWORD@HOST:PORT/DATABASE` (or `mariadb://`), followed by the settings `pool_max`, `statement_timeout`,
    /// `tls=off|on|verify` and `tls_ca=FILE`.
    ///
    /// # Errors
    /// Says which part of the URL is wrong.
    pub fn parse(url: &str) -> Result<MysqlOptions, MysqlOptionsError> {
        let (server, settings) = url.split_once('?').unwrap_or((url, ""));
        let form = || {
            let shown = SecretUrl::new(server);
            MysqlOptionsError(format!(
                "`{shown}`: use mysql://HOST/DATABASE, if needed with USER:PASSWORD@ before HOST and :PORT after it"
            ))
        };
        let rest = server.strip_prefix("mysql://").or_else(|| server.strip_prefix("mariadb://"));
        let rest = rest.ok_or_else(form)?;
        let opts = Opts::from_url(&format!("mysql://{rest}")).map_err(|_| form())?;
        if opts.db_name().is_none_or(str::is_empty) {
            return Err(form());
        }
        let mut options = MysqlOptions {
            server: opts.clone(),
            pool_max: MysqlOptions::POOL_MAX_DEFAULT,
            statement_timeout: MysqlOptions::STATEMENT_TIMEOUT_DEFAULT,
            clock: ClockOffset::default(),
        };
        let mut tls = Tls::default();
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            match name {
                "pool_max" => options.pool_max = pool_max(value)?,
                "statement_timeout" => options.statement_timeout = timeout(value)?,
                "tls" => tls.set(value)?,
                "tls_ca" => tls.roots = Some(PathBuf::from(value)),
                _ => {
                    return Err(MysqlOptionsError(format!(
                        "`{}` is not a setting of the MySQL store: use pool_max, statement_timeout, tls or tls_ca",
                        redact_setting(setting)
                    )));
                }
            }
        }
        options.server = OptsBuilder::from_opts(opts).ssl_opts(tls.opts()?).into();
        Ok(options)
    }
}

impl Tls {
    fn set(&mut self, value: &str) -> Result<(), MysqlOptionsError> {
        (self.required, self.verify) = match value {
            "off" => (false, false),
            "on" => (true, false),
            "verify" => (true, true),
            _ => return Err(MysqlOptionsError(format!("tls={value}: use off, on or verify"))),
        };
        Ok(())
    }

    fn opts(self) -> Result<Option<SslOpts>, MysqlOptionsError> {
        if !self.required {
            return match self.roots {
                Some(_) => Err(MysqlOptionsError("tls_ca needs tls=verify".to_owned())),
                None => Ok(None),
            };
        }
        let mut opts = SslOpts::default()
            .with_danger_accept_invalid_certs(!self.verify)
            .with_danger_skip_domain_validation(!self.verify);
        if let Some(file) = self.roots {
            opts = opts.with_root_certs(vec![file.into()]).with_disable_built_in_roots(true);
        }
        Ok(Some(opts))
    }
}

fn pool_max(value: &str) -> Result<usize, MysqlOptionsError> {
    match value.parse() {
        Ok(max @ 2..=1_000) => Ok(max),
        Ok(_) | Err(_) => {
            Err(MysqlOptionsError(format!("pool_max={value}: must be a number from 2 to 1000")))
        }
    }
}

fn timeout(value: &str) -> Result<Duration, MysqlOptionsError> {
    match duration::parse(value) {
        Ok(timeout) if timeout >= Duration::from_millis(100) => Ok(timeout),
        Ok(_) => {
            Err(MysqlOptionsError(format!("statement_timeout={value}: must be at least 100ms")))
        }
        Err(error) => Err(MysqlOptionsError(format!("statement_timeout={value}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::MysqlOptions;

    fn wrong(url: &str) -> String {
        MysqlOptions::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        assert!(wrong("mysql://h/d?pool_max=1").contains("pool_max=1"));
        assert!(wrong("mysql://h/d?statement_timeout=1ms").contains("at least 100ms"));
        assert!(wrong("mysql://h/d?tls=maybe").contains("tls=maybe"));
        assert!(wrong("mysql://h/d?tls_ca=/a.pem").contains("tls=verify"));
        for url in ["mysql://ops:hunter2@h", "mysql://ops:hunter2@h:port/d"] {
            let text = wrong(url);
            assert!(
                text.contains("use mysql://HOST/DATABASE") && !text.contains("hunter2"),
                "{text}"
            );
        }
    }

    #[test]
    fn both_schemes_name_the_same_server() {
        for scheme in ["mysql", "mariadb"] {
            let options = MysqlOptions::parse(&format!("{scheme}://a:b@h:3307/d")).unwrap();
            assert_eq!((options.server.tcp_port(), options.server.db_name()), (3307, Some("d")));
            assert_eq!(options.pool_max, MysqlOptions::POOL_MAX_DEFAULT);
        }
    }
}
