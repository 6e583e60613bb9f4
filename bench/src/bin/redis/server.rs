//! The server that all subjects share, and what is known of it.

use anyhow::{Context, Result, ensure};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, cmd};
use std::time::Duration;

/// A call that takes longer has failed.
const CALL_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Server {
    client: Client,
    pub url: String,
    /// Its version and the settings that decide about its speed.
    pub about: String,
}

impl Server {
    /// # Errors
    /// Fails if the database has keys: they would be deleted.
    pub async fn connect(url: &str) -> Result<Server> {
        let client = Client::open(url).context("the URL is not one of Redis")?;
        let mut server = Server { client, url: url.to_owned(), about: String::new() };
        let mut connection = server.open().await?;
        let keys: u64 = cmd("DBSIZE").query_async(&mut connection).await?;
        ensure!(keys == 0, "the database has {keys} keys: use an empty one, such as /9");
        let info: String = cmd("INFO").arg("server").query_async(&mut connection).await?;
        let name = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let version = name("valkey_version:").map(|version| format!("Valkey {version}"));
        let version = version.or(name("redis_version:").map(|version| format!("Redis {version}")));
        let mut about = version.unwrap_or_default();
        for setting in ["appendonly", "appendfsync"] {
            let value: Vec<String> =
                cmd("CONFIG").arg("GET").arg(setting).query_async(&mut connection).await?;
            about += &format!(", {}", value.join(" "));
        }
        server.about = about;
        Ok(server)
    }

    pub async fn open(&self) -> Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(CALL_MAX));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        connection.context("cannot connect to the server")
    }

    /// Deletes what the last subject has left.
    pub async fn empty(&self) -> Result<()> {
        Ok(cmd("FLUSHDB").query_async(&mut self.open().await?).await?)
    }
}
