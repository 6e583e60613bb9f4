//! Creates PostgreSQL schemas for tests.

mod recycled;

use rewheel::Random;
use std::ops::{Deref, DerefMut};
use std::thread;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

/// The variable with the URL of the server: `cargo xtask test` sets it, `cargo xtask services up` prints it.
const SERVER_VARIABLE: &str = "REWHEEL_TEST_POSTGRES";

/// A schema for one test. Dropping this value drops the schema, unless it is [recycled](Schema::recycled).
#[derive(Debug)]
pub struct Schema {
    server: String,
    name: String,
    url: String,
    /// The connection that has a recycled schema locked.
    guard: Option<Visitor>,
}

impl Schema {
    /// Chooses a name; opening the store creates the schema.
    pub fn fresh() -> Schema {
        let server = std::env::var(SERVER_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "{SERVER_VARIABLE} names no server: run `cargo xtask test`, or see `cargo xtask services up`"
            )
        });
        let name = format!("test_{:016x}", Random::thread().next());
        let mark = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{mark}schema={name}");
        Schema { server, name, url, guard: None }
    }

    /// Returns the URL of a store in it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connects to the server as another client would.
    pub async fn connect(&self) -> Visitor {
        Visitor::at(&self.server).await
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if self.guard.is_some() {
            return;
        }
        let (server, name) = (self.server.clone(), self.name.clone());
        let drop = move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = Visitor::at(&server).await;
                // Locks of an aborted test must not block this for long.
                let sql = format!("SET lock_timeout = '2s'; DROP SCHEMA IF EXISTS {name} CASCADE");
                let _ = client.batch_execute(&sql).await;
            });
        };
        let _ = thread::spawn(drop).join();
    }
}

/// A connection of another client.
#[derive(Debug)]
pub struct Visitor {
    client: Client,
    _connection: JoinSet<()>,
}

impl Visitor {
    async fn at(server: &str) -> Visitor {
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let _ = connection.await;
        });
        Visitor { client, _connection: task }
    }
}

impl Deref for Visitor {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Visitor {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}
