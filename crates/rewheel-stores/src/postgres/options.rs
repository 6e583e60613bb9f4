//! Parses the URL of a PostgreSQL store.

use rewheel::{Clock, duration};
use rewheel_core::store::ClockOffset;
use rewheel_core::{SecretUrl, redact_setting};
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// Maximum number of hosts in a URL: more than any cluster has. A connection may have to try each of them.
const HOSTS_MAX: usize = 16;

/// Options for a PostgreSQL store.
///
/// ```
/// use rewheel_stores::PostgresOptions;
///
/// let options = PostgresOptions::parse("postgres://ops@db.internal/shop?schema=retries&pool_max=16")?;
/// assert_eq!((options.schema.as_str(), options.pool_max), ("retries", 16));
///
/// let error = PostgresOptions::parse("postgres://db/shop?pool=16").unwrap_err();
/// assert!(error.to_string().contains("pool"));
/// # Ok::<_, rewheel_stores::OptionsError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The addresses of the server, and the user. With several hosts, connections are made to the one that accepts writes.
    pub server: Config,
    /// The schema that contains Rewheel's tables. A database can have several such schemas.
    pub schema: String,
    /// Maximum number of connections for work, in addition to one connection for heartbeats and one
    /// that listens for notifications.
    pub pool_max: usize,
    /// Maximum time for one statement.
    pub statement_timeout: Duration,
    /// The connection pooler between this process and the server, if any.
    pub pooler: Pooler,
    /// Whether and how the server's certificate is checked.
    pub verify: Verify,
    /// Minimum number of jobs of a claim that is stored as a list of ids. It affects only the speed.
    pub listed_min: usize,
    /// Minimum number of finished jobs that expire at about the same time, for which this process opens a bin: a table that is emptied
    /// at once. Fewer jobs are deleted one by one, each when its own retention ends.
    pub binned_min: u64,
    /// Number of rows of live jobs that this process replaces or deletes before it vacuums their table; `None` leaves the table to autovacuum.
    pub vacuumed_after: Option<u64>,
    /// Moves the store's clock, in tests.
    pub clock: ClockOffset,
    /// The clock for the age of cached values of this process. Tests use another clock than the system clock.
    pub timer: Clock,
}

/// The URL of a PostgreSQL store is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid store URL: {0}")]
pub struct OptionsError(String);

/// The connection pooler between a process and its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooler {
    /// No pooler, or one that gives each client its own connection.
    #[default]
    None,
    /// A pooler that assigns a connection per transaction, such as pgbouncer in transaction mode. No prepared statements and no session
    /// settings outlast a transaction, and changes by other nodes are found by polling only.
    Transaction,
}

/// Whether and how the server's certificate is checked, if the connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Not checked, as with libpq's `require` and `prefer`.
    #[default]
    No,
    /// Must be trusted by this system and be valid for the URL's host.
    System,
    /// Must be signed by a certificate in this file and be valid for the URL's host.
    File(PathBuf),
}

impl PostgresOptions {
    /// Default number of connections for work: one claims, one settles, the others submit and read.
    pub const POOL_MAX_DEFAULT: usize = 8;

    /// The default statement timeout, the same as the engine's own timeout for store calls.
    pub const STATEMENT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

    /// The default of `listed_min`. For fewer jobs, single writes cost less than a list.
    pub const LISTED_MIN_DEFAULT: usize = 32;

    /// The default of `binned_min`. Vacuum removes so few deleted rows within a moment.
    pub const BINNED_MIN_DEFAULT: u64 = 5_000;

    /// The default of `vacuumed_after`: about 5,000 jobs.
    pub const VACUUMED_AFTER_DEFAULT: u64 = 10_000;

    /// Parses a URL as libpq does, with additional settings: `schema`, `pool_max`, `statement_timeout`, `pooler=transaction`, `vacuum=off`.
    ///
    /// # Errors
    /// Says which part of the URL is wrong.
    pub fn parse(url: &str) -> Result<PostgresOptions, OptionsError> {
        let (base, settings) = url.split_once('?').unwrap_or((url, ""));
        let mut options = PostgresOptions {
            server: Config::new(),
            schema: "rewheel".to_owned(),
            pool_max: PostgresOptions::POOL_MAX_DEFAULT,
            statement_timeout: PostgresOptions::STATEMENT_TIMEOUT_DEFAULT,
            pooler: Pooler::None,
            verify: Verify::No,
            listed_min: PostgresOptions::LISTED_MIN_DEFAULT,
            binned_min: PostgresOptions::BINNED_MIN_DEFAULT,
            vacuumed_after: Some(PostgresOptions::VACUUMED_AFTER_DEFAULT),
            clock: ClockOffset::default(),
            timer: Clock::system(),
        };
        // The other settings belong to the server and are parsed by the driver.
        let mut theirs = Vec::new();
        let (mut must_encrypt, mut writes) = (false, None);
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            match (name, value) {
                ("schema", _) => options.schema = schema(value)?,
                ("pool_max", _) => options.pool_max = pool_max(value)?,
                ("statement_timeout", _) => options.statement_timeout = timeout(value)?,
                ("pooler", "transaction") => options.pooler = Pooler::Transaction,
                ("pooler", "none") => options.pooler = Pooler::None,
                ("pooler", _) => {
                    return Err(wrong(name, value, "pooler must be `transaction` or `none`"));
                }
                ("vacuum", "on") => {
                    options.vacuumed_after = Some(PostgresOptions::VACUUMED_AFTER_DEFAULT);
                }
                ("vacuum", "off") => options.vacuumed_after = None,
                ("vacuum", _) => return Err(wrong(name, value, "vacuum must be `on` or `off`")),
                ("sslmode", "verify-ca" | "verify-full") => {
                    must_encrypt = true;
                    if options.verify == Verify::No {
                        options.verify = Verify::System;
                    }
                }
                ("sslrootcert", _) => options.verify = Verify::File(PathBuf::from(value)),
                ("target_session_attrs", _) => writes = Some(must_write(value)?),
                _ => theirs.push(setting),
            }
        }
        let url = format!("{base}?{}", theirs.join("&"));
        options.server = url.parse().map_err(|error: tokio_postgres::Error| {
            let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            OptionsError(format!(
                "{why}; use postgres://USER:PASSWORD@HOST:PORT/DATABASE, followed by URL parameters: connection settings of PostgreSQL, or `schema`, `pool_max`, `statement_timeout`, `pooler`, `vacuum`"
            ))
        })?;
        if must_encrypt {
            options.server.ssl_mode(SslMode::Require);
        }
        check_hosts(&options.server, base)?;
        let several = options.server.get_hosts().len() > 1;
        if several && writes == Some(TargetSessionAttrs::Any) {
            let why = "with several hosts, set it to `read-write` or `primary`: each node must find the host that accepts writes";
            return Err(wrong("target_session_attrs", "any", why));
        }
        let by_default =
            if several { TargetSessionAttrs::ReadWrite } else { TargetSessionAttrs::Any };
        options.server.target_session_attrs(writes.unwrap_or(by_default));
        Ok(options)
    }
}

/// Parses `target_session_attrs`. Every node writes, so a standby is of no use.
fn must_write(value: &str) -> Result<TargetSessionAttrs, OptionsError> {
    match value {
        "any" => Ok(TargetSessionAttrs::Any),
        // Both name the server that accepts writes.
        "read-write" | "primary" => Ok(TargetSessionAttrs::ReadWrite),
        _ => {
            let why = "target_session_attrs must be `read-write` or `any`: Rewheel writes to the database";
            Err(wrong("target_session_attrs", value, why))
        }
    }
}

/// Checks that each host of a URL has a name and a port.
fn check_hosts(server: &Config, base: &str) -> Result<(), OptionsError> {
    let (hosts, addresses, ports) =
        (server.get_hosts(), server.get_hostaddrs(), server.get_ports());
    let fail = |why: String| Err(OptionsError(format!("`{}`: {why}", SecretUrl::new(base))));
    // The driver reads `postgres:///d` as a URL without a host, and `postgres://a,/d` as one with an empty host.
    let is_empty = |host: &Host| matches!(host, Host::Tcp(name) if name.is_empty());
    if hosts.is_empty() {
        return fail("the host is missing".to_owned());
    }
    if hosts.iter().any(is_empty) {
        return fail("a host is missing: write several hosts as a:5432,b:5432".to_owned());
    }
    if hosts.iter().any(|host| matches!(host, Host::Tcp(name) if name.contains(','))) {
        return fail(
            "the setting `host` takes one host: write several hosts before the database, as a:5432,b:5432"
                .to_owned(),
        );
    }
    if hosts.len() > HOSTS_MAX {
        return fail(format!("{} hosts are too many: use at most {HOSTS_MAX}", hosts.len()));
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        let (ports, hosts) = (ports.len(), hosts.len());
        return fail(format!(
            "{ports} ports for {hosts} hosts: give each host its port, or all hosts one port"
        ));
    }
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        let (addresses, hosts) = (addresses.len(), hosts.len());
        return fail(format!(
            "{addresses} addresses in `hostaddr` for {hosts} hosts: give each host its address"
        ));
    }
    Ok(())
}

/// Accepts only names that need no quotes, so that they are safe in a statement.
fn schema(value: &str) -> Result<String, OptionsError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let good = value.len() <= 63
        && value.bytes().next().is_some_and(plain)
        && value.bytes().all(|byte| plain(byte) || byte.is_ascii_digit());
    if good {
        Ok(value.to_owned())
    } else {
        Err(wrong("schema", value, "schema must be 1 to 63 characters of a-z, 0-9 and `_`"))
    }
}

fn pool_max(value: &str) -> Result<usize, OptionsError> {
    match value.parse() {
        Ok(count @ 2..=1_000) => Ok(count),
        Ok(_) | Err(_) => Err(wrong("pool_max", value, "pool_max must be 2 to 1000")),
    }
}

fn timeout(value: &str) -> Result<Duration, OptionsError> {
    match duration::parse(value) {
        Ok(timeout) if timeout >= Duration::from_millis(100) => Ok(timeout),
        Ok(_) | Err(_) => {
            let why = "statement_timeout must be a duration such as `10s`, at least 100ms";
            Err(wrong("statement_timeout", value, why))
        }
    }
}

fn wrong(name: &str, value: &str, why: &str) -> OptionsError {
    OptionsError(format!("`{}`: {why}", redact_setting(&format!("{name}={value}"))))
}

#[cfg(test)]
mod tests {
    use super::{Pooler, PostgresOptions, Verify};
    use std::time::Duration;
    use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

    #[test]
    fn settings_of_both_sides_are_told_apart() {
        let url = "postgres://u:p@h:5433/d?schema=a_1&sslmode=verify-full&statement_timeout=3s&pooler=transaction\
                   &application_name=shop";
        let options = PostgresOptions::parse(url).expect("a good URL");
        assert_eq!(options.schema, "a_1");
        assert_eq!(options.statement_timeout, Duration::from_secs(3));
        assert_eq!((options.pooler, options.verify), (Pooler::Transaction, Verify::System));
        assert_eq!(options.server.get_ssl_mode(), SslMode::Require);
        assert_eq!(options.server.get_application_name(), Some("shop"));
        assert_eq!(options.server.get_ports(), [5433]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (setting, named) in [
            ("schema=A", "schema must be"),
            ("schema=a;drop", "schema must be"),
            ("schema=", "schema must be"),
            ("pool_max=0", "pool_max must be"),
            ("pool_max=x", "pool_max must be"),
            ("statement_timeout=0s", "statement_timeout must be"),
            ("pooler=session", "pooler must be"),
            ("vacuum=never", "vacuum must be"),
            ("sslmode=maybe", "sslmode"),
            ("unknown=1", "unknown"),
        ] {
            let error =
                PostgresOptions::parse(&format!("postgres://h/d?{setting}")).expect_err(setting);
            assert!(error.to_string().contains(named), "{setting}: {error}");
        }
        assert!(PostgresOptions::parse("postgres:///d").is_err());
    }

    #[test]
    fn vacuum_is_on_unless_it_is_switched_off() {
        let after = |url: &str| PostgresOptions::parse(url).expect(url).vacuumed_after;
        let default = Some(PostgresOptions::VACUUMED_AFTER_DEFAULT);
        assert_eq!(after("postgres://h/d"), default);
        assert_eq!(after("postgres://h/d?vacuum=on"), default);
        assert_eq!(after("postgres://h/d?vacuum=off"), None);
    }

    fn hosts(url: &str) -> (Vec<Host>, Vec<u16>, TargetSessionAttrs) {
        let server = PostgresOptions::parse(url).expect(url).server;
        let attributes = server.get_target_session_attrs();
        (server.get_hosts().to_vec(), server.get_ports().to_vec(), attributes)
    }

    #[test]
    fn of_several_hosts_the_one_that_accepts_writes_is_used() {
        let named = |names: &[&str]| -> Vec<Host> {
            names.iter().map(|name| Host::Tcp((*name).to_owned())).collect()
        };
        let (any, writes) = (TargetSessionAttrs::Any, TargetSessionAttrs::ReadWrite);
        for (url, expected) in [
            (
                "postgres://a:5433,b,[::1]:5434/d",
                (named(&["a", "b", "::1"]), vec![5433, 5432, 5434], writes),
            ),
            (
                "postgres://a,b/d?target_session_attrs=read-write",
                (named(&["a", "b"]), vec![5432, 5432], writes),
            ),
            (
                "postgres://a,b/d?target_session_attrs=primary",
                (named(&["a", "b"]), vec![5432, 5432], writes),
            ),
            ("postgres://a/d", (named(&["a"]), vec![5432], any)),
            ("postgres://a/d?target_session_attrs=any", (named(&["a"]), vec![5432], any)),
            ("postgres://a/d?target_session_attrs=read-write", (named(&["a"]), vec![5432], writes)),
        ] {
            assert_eq!(hosts(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_with_several_hosts_is_named() {
        let many = format!("postgres://{}/d", vec!["h"; 17].join(","));
        for (url, named) in [
            ("postgres://a,,b/d", "a host is missing"),
            ("postgres://a,/d", "a host is missing"),
            ("postgres://:5432,b/d", "a host is missing"),
            ("postgres://a:x,b/d", "port"),
            ("postgres://a:99999,b/d", "port"),
            ("postgres://a,b/d?port=1", "3 ports for 2 hosts"),
            ("postgres://a,b/d?hostaddr=127.0.0.1", "1 addresses in `hostaddr` for 2 hosts"),
            ("postgres:///d?host=a,b", "takes one host"),
            ("postgres://a,b/d?target_session_attrs=any", "set it to `read-write` or `primary`"),
            ("postgres://a,b/d?target_session_attrs=read-only", "must be `read-write` or `any`"),
            ("postgres://a/d?target_session_attrs=standby", "must be `read-write` or `any`"),
            ("postgres://a/d?target_session_attrs=", "must be `read-write` or `any`"),
            (many.as_str(), "17 hosts are too many: use at most 16"),
        ] {
            let error = PostgresOptions::parse(url).expect_err(url);
            assert!(error.to_string().contains(named), "{url}: {error}");
        }
    }

    #[test]
    fn a_password_is_not_part_of_an_error() {
        for url in [
            "postgres://u:hunter2@/d",
            "postgres://u:hunter2@h/d?pooler=session",
            "postgres://u:hunter2@h:x/d",
            "postgres://u:hunter2",
            "postgres://h/d?password=hunter2&unknown=1",
            "postgres://h/d?passwrod=hunter2",
            "postgres://h/d?schema=a;password=hunter2",
            "postgres://h/d?pool_max=2;password=hunter2",
            "postgres://h/d?statement_timeout=1s;password=hunter2",
            "postgres://u:hunter2@a,/d",
            "postgres://u:hunter2@a,b/d?target_session_attrs=any",
            "postgres://u:x@a,u:hunter2@b/d",
            "postgres://h/d?target_session_attrs=standby;password=hunter2",
        ] {
            let error = PostgresOptions::parse(url).expect_err(url);
            let printed = format!("{error} {error:?}");
            assert!(!printed.contains("hunter2"), "{url}: {printed}");
        }
        let good = PostgresOptions::parse("postgres://u:hunter2@h/d").expect("a good URL");
        assert!(!format!("{good:?}").contains("hunter2"), "{good:?}");
    }
}
