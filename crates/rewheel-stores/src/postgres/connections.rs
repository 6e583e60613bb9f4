//! Makes the connections of a pool, and logs why one ended.

use super::error::DriverError;
use deadpool_postgres::Connect;
use std::future::Future;
use std::pin::Pin;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections to one server. The pool's own way logs a lost connection as "db error" only.
pub(super) struct Connections {
    pub(super) tls: MakeRustlsConnect,
    pub(super) address: String,
}

type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

impl Connect for Connections {
    #[expect(
        clippy::disallowed_methods,
        reason = "the pool ends this task when it closes the connection"
    )]
    fn connect(&self, server: &Config) -> Connecting<'_> {
        let (server, address) = (server.clone(), self.address.clone());
        Box::pin(async move {
            let (client, connection) = server.connect(self.tls.clone()).await?;
            let task = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::warn!(address, error = %DriverError(error), "connection to PostgreSQL lost: the pool opens a new one");
                }
            });
            Ok((client, task))
        })
    }
}
