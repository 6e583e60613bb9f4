//! Opens the store that a URL names.

use crate::memory::MemoryStore;
#[cfg(feature = "mysql")]
use crate::mysql::{MysqlOptions, MysqlOptionsError, MysqlStore};
use crate::open_mode::Tables;
#[cfg(feature = "postgres")]
use crate::postgres::{OptionsError, PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
use crate::redis::{RedisOptions, RedisOptionsError, RedisStore};
#[cfg(feature = "sqlite")]
use crate::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use rewheel_core::SecretUrl;
#[cfg(feature = "sqlite")]
use rewheel_core::redact_setting;
use rewheel_core::store::{Store, StoreError};
use std::sync::Arc;

/// A store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The text is not the URL of a store that this build supports.
    #[error(
        "`{url}` is not the URL of a store: use sqlite://rewheel.db for a file in the current folder, \
         sqlite:///var/lib/rewheel.db for a file elsewhere, postgres://USER@HOST/DATABASE for a \
         PostgreSQL server, mysql://USER@HOST/DATABASE for a MariaDB or MySQL server, redis://HOST:6379/0 for a Redis or Valkey server, redis+cluster://HOST:6379,HOST:6380 for a Redis Cluster, or memory:// for jobs that are lost when the process ends"
    )]
    Url {
        /// The given text; printed without its password.
        url: SecretUrl,
    },
    /// The URL contains a setting that the store does not know.
    #[error(
        "`{setting}` is not a setting of the SQLite store: use synchronous=full or synchronous=normal"
    )]
    Setting {
        /// The name of the setting, without its value, which may be a secret.
        setting: String,
    },
    /// The URL of a PostgreSQL store is not valid.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The URL of a MySQL or MariaDB store is not valid.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    MysqlOptions(#[from] MysqlOptionsError),
    /// The URL of a Redis store is not valid.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    RedisOptions(#[from] RedisOptionsError),
    /// The store could not be opened; the source says why.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens a store by its URL.
///
/// `sqlite://path` is a file, created if it does not exist; `?synchronous=normal` is faster, but a power cut may lose the last jobs.
/// `postgres://user:password@host:port/database` is a database server, with the settings of `PostgresOptions`.
/// `mysql://user:password@host:port/database` is a MariaDB or MySQL server, with the settings of `MysqlOptions`.
/// `redis://user:password@host:port/database` is a Redis or Valkey server, `redis+cluster://host:port,host:port` a cluster, with the
/// settings of `RedisOptions`. `memory://` loses everything when the process ends.
///
/// # Errors
/// Says what is wrong with the URL or the store, and what to do.
///
/// ```
/// use rewheel_stores::connect;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = connect("memory://").await?;
/// assert_eq!(store.capabilities().name, "memory");
///
/// let error = connect("mongodb://localhost").await.unwrap_err();
/// assert!(error.to_string().contains("sqlite://rewheel.db"));
/// # Ok(())
/// # }
/// ```
pub async fn connect(url: &str) -> Result<Arc<dyn Store>, ConnectError> {
    open(url, Tables::Migrate).await
}

/// Opens a store by its URL as it is: neither creates it nor changes its tables. For programs that only look.
///
/// Redis has no tables: there this is the same as [`connect`].
///
/// # Errors
/// As [`connect`]. Also fails if the store does not exist, or if its tables have another version than those of this release; the text names
/// both versions.
///
/// ```
/// use rewheel_stores::connect_existing;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let error = connect_existing("sqlite:///no/such/folder/rewheel.db").await.unwrap_err();
/// assert!(error.to_string().contains("cannot be opened"));
/// # }
/// ```
pub async fn connect_existing(url: &str) -> Result<Arc<dyn Store>, ConnectError> {
    open(url, Tables::Keep).await
}

async fn open(url: &str, tables: Tables) -> Result<Arc<dyn Store>, ConnectError> {
    #[cfg(not(any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
    let _ = tables; // The other stores have none.
    let unknown = || ConnectError::Url { url: SecretUrl::new(url) };
    let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(MemoryStore::new())),
        #[cfg(feature = "test-faults")]
        "memory" if rest == "panics-in-settle" => {
            Ok(Arc::new(MemoryStore::that_panics_in_settle()))
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let (path, settings) = rest.split_once('?').unwrap_or((rest, ""));
            if path.is_empty() {
                return Err(unknown());
            }
            let options = sqlite_options(settings)?;
            Ok(Arc::new(SqliteStore::open_tables(path, options, tables).await?))
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let options = PostgresOptions::parse(url)?;
            Ok(Arc::new(PostgresStore::open_tables(options, tables).await?))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            let options = MysqlOptions::parse(url)?;
            Ok(Arc::new(MysqlStore::open_tables(options, tables).await?))
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => {
            let options = RedisOptions::parse(url)?;
            Ok(Arc::new(RedisStore::open_with(options).await?))
        }
        _ => Err(unknown()),
    }
}

#[cfg(feature = "sqlite")]
fn sqlite_options(settings: &str) -> Result<SqliteOptions, ConnectError> {
    let mut options = SqliteOptions::default();
    for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
        options.synchronous = match setting {
            "synchronous=full" => Synchronous::Full,
            "synchronous=normal" => Synchronous::Normal,
            _ => return Err(ConnectError::Setting { setting: redact_setting(setting) }),
        };
    }
    Ok(options)
}

#[cfg(all(test, any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
mod tests {
    use super::connect;

    #[cfg(feature = "postgres")]
    #[tokio::test]
    async fn a_server_that_is_down_is_named_with_the_cause_and_without_the_password() {
        let error = connect("postgres://shop:hunter2@127.0.0.1:1/shop").await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("the store is unavailable: cannot connect"), "{text}");
        assert!(text.contains("127.0.0.1:1: ") && text.contains("Connection refused"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_file_that_cannot_be_opened_is_named_with_the_cause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("rewheel.db");
        let error = connect(&format!("sqlite://{}", path.display())).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        assert!(text.contains("cannot be opened: check that its folder exists"), "{text}");
        assert!(text.contains("unable to open database file"), "{text}");
    }
}
