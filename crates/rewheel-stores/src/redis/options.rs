//! Parses the URL of a Redis store.

use rewheel::duration;
use rewheel_core::store::ClockOffset;
use rewheel_core::{SecretUrl, redact_setting};
use std::time::Duration;

/// Options for a Redis store.
///
/// ```
/// use rewheel_stores::RedisOptions;
///
/// let options = RedisOptions::parse("redis://cache.internal:6379/0?prefix=shop&timeout=3s")?;
/// assert_eq!(options.prefix, "shop");
///
/// let error = RedisOptions::parse("redis://cache.internal?prefx=shop").unwrap_err();
/// assert!(error.to_string().contains("prefx"));
/// # Ok::<_, rewheel_stores::RedisOptionsError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The server, or the known nodes of a cluster: `redis://` or `rediss://`, with user, password, host, port and database.
    pub(super) servers: Vec<SecretUrl>,
    /// Whether the servers are nodes of a Redis Cluster.
    pub(super) is_cluster: bool,
    /// The prefix of all keys. Several stores can share a server.
    pub prefix: String,
    /// Maximum time for one call.
    pub timeout: Duration,
    /// Moves the store's clock, in tests.
    pub clock: ClockOffset,
}

/// The URL of a Redis store is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid store URL: {0}")]
pub struct RedisOptionsError(String);

impl RedisOptions {
    /// The default prefix.
    pub const PREFIX_DEFAULT: &'static str = "rewheel";

    /// The default timeout, the same as the engine's own timeout for store calls.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

    /// Returns the URL of the server without the settings, for other users of the same URL. `None` for a cluster, which has several.
    pub fn server(&self) -> Option<&SecretUrl> {
        self.servers.first().filter(|_| !self.is_cluster)
    }

    /// Parses `redis://USER:PASSWORD@HOST:PORT/DATABASE` or, for a cluster, `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`
    /// (`rediss://` and `rediss+cluster://` encrypt), followed by the settings `prefix` and `timeout`.
    ///
    /// # Errors
    /// Says which part of the URL is wrong.
    pub fn parse(url: &str) -> Result<RedisOptions, RedisOptionsError> {
        let (server, settings) = url.split_once('?').unwrap_or((url, ""));
        let (servers, is_cluster) = servers(server);
        let mut options = RedisOptions {
            servers,
            is_cluster,
            prefix: RedisOptions::PREFIX_DEFAULT.to_owned(),
            timeout: RedisOptions::TIMEOUT_DEFAULT,
            clock: ClockOffset::default(),
        };
        let is_wrong = |server: &SecretUrl| redis::Client::open(server.expose()).is_err();
        if options.servers.iter().any(is_wrong) {
            let shown = SecretUrl::new(server);
            return Err(RedisOptionsError(format!(
                "`{shown}`: use redis://USER:PASSWORD@HOST:PORT/DATABASE, or redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT for a \
                 cluster; USER, PASSWORD, PORT and DATABASE may be left out"
            )));
        }
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            match name {
                "prefix" => options.prefix = prefix(value)?,
                "timeout" => options.timeout = timeout(value)?,
                _ => {
                    return Err(RedisOptionsError(format!(
                        "`{}` is not a setting of the Redis store: use prefix or timeout",
                        redact_setting(setting)
                    )));
                }
            }
        }
        Ok(options)
    }
}

/// Splits the URL of a cluster into the URLs of its nodes.
fn servers(url: &str) -> (Vec<SecretUrl>, bool) {
    let Some((scheme, rest)) = url.split_once("+cluster://") else {
        return (vec![SecretUrl::new(url)], false);
    };
    // A password may contain an `@`.
    let (user, hosts) = rest.rfind('@').map_or(("", rest), |at| rest.split_at(at + 1));
    // A cluster has only database 0.
    let hosts = hosts.strip_suffix("/0").or(hosts.strip_suffix('/')).unwrap_or(hosts);
    let server = |host: &str| SecretUrl::new(format!("{scheme}://{user}{host}"));
    (hosts.split(',').map(server).collect(), true)
}

/// A prefix is part of the hash tag of every key, so it has no braces.
fn prefix(value: &str) -> Result<String, RedisOptionsError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if value.is_empty() || value.len() > 64 || !value.bytes().all(is_plain) {
        let what =
            format!("prefix={value}: must be 1 to 64 of the characters a-z, A-Z, 0-9, - _ . :");
        return Err(RedisOptionsError(what));
    }
    Ok(value.to_owned())
}

fn timeout(value: &str) -> Result<Duration, RedisOptionsError> {
    match duration::parse(value) {
        Ok(timeout) if timeout >= Duration::from_millis(100) => Ok(timeout),
        Ok(_) => Err(RedisOptionsError(format!("timeout={value}: must be at least 100ms"))),
        Err(error) => Err(RedisOptionsError(format!("timeout={value}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::RedisOptions;

    fn wrong(url: &str) -> String {
        RedisOptions::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        assert!(wrong("redis://h?prefix={a}").contains("prefix={a}"));
        assert!(wrong("redis://h?timeout=1").contains("timeout=1"));
        assert!(wrong("redis://h?timeout=1ms").contains("at least 100ms"));
        let text = wrong("redis://ops:hunter2@h:port/0");
        assert!(text.contains("redis://USER") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn the_nodes_of_a_cluster_share_user_and_password() {
        let options = RedisOptions::parse("rediss+cluster://u:p@w@a:1,b/0?prefix=shop").unwrap();
        let servers: Vec<&str> = options.servers.iter().map(|server| server.expose()).collect();
        assert_eq!(servers, ["rediss://u:p@w@a:1", "rediss://u:p@w@b"]);
        assert!(options.is_cluster && options.prefix == "shop");
        let text = wrong("redis+cluster://u:hunter2@a:1,b:port");
        assert!(text.contains("redis+cluster://USER") && !text.contains("hunter2"), "{text}");
        assert!(!RedisOptions::parse("redis://h").unwrap().is_cluster);
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let options = RedisOptions::parse("redis://localhost").unwrap();
        assert_eq!(
            (options.prefix.as_str(), options.timeout),
            ("rewheel", RedisOptions::TIMEOUT_DEFAULT)
        );
    }
}
