//! Helpers for these tests: nodes, other clients, and waiting for a condition.

use rewheel::Random;
use rewheel_core::store::{ClockOffset, StoreError};
use rewheel_stores::{PostgresOptions, PostgresStore};
use rewheel_testkit::{Schema, Subject};
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

/// Timeout for anything in these tests; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns a schema `{s}` to the release before bins.
pub(crate) const WITHOUT_BINS: &str = "
    DROP TABLE {s}.history; DROP VIEW {s}.finished; DROP TABLE {s}.finished_bins, {s}.bins; DROP FUNCTION {s}.empty_bin, {s}.insert_finished, {s}.delete_finished;
    ALTER TABLE {s}.finished_before RENAME TO finished; 
    DELETE FROM {s}.migrations WHERE version >= (SELECT version FROM {s}.migrations WHERE name = 'bins')";

/// The store of one node, with the steps of the conformance suite.
pub(crate) struct Node {
    pub(crate) store: PostgresStore,
    pub(crate) subject: Subject,
}

impl Node {
    pub(crate) async fn of(schema: &Schema) -> Node {
        Node::open(schema.url()).await
    }

    pub(crate) async fn open(url: &str) -> Node {
        Node::with(PostgresOptions::parse(url).expect("a URL")).await
    }

    pub(crate) async fn with(mut options: PostgresOptions) -> Node {
        let clock = ClockOffset::default();
        options.clock = clock.clone();
        let store = PostgresStore::open_with(options).await.expect("the store opens");
        let mut subject = Subject::new(Arc::new(store.clone()), clock);
        // Several nodes of one test must not create the same ids.
        subject.random = Random::thread();
        Node { store, subject }
    }
}

impl Deref for Node {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// A separate database, for tests that need more than a schema.
pub(crate) struct Database {
    schema: Schema,
    name: String,
}

impl Database {
    pub(crate) async fn fresh(more: &str) -> Database {
        let schema = Schema::fresh();
        let name = schema.name().to_owned();
        let sql = format!("CREATE DATABASE {name} {more}");
        schema.connect().await.batch_execute(&sql).await.expect("a database");
        Database { schema, name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> String {
        let mut config = server();
        config.dbname(&self.name);
        url_of(&config, "")
    }

    pub(crate) async fn connect(&self) -> Stranger {
        Stranger::at(&self.url()).await
    }

    /// Deletes the database. A failed test leaves it to the shutdown of the server.
    pub(crate) async fn drop(self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        self.schema.connect().await.batch_execute(&sql).await.expect("nothing keeps it");
    }
}

/// A connection of another client, to any address.
pub(crate) struct Stranger {
    pub(crate) client: Client,
    _connection: JoinSet<()>,
}

impl Stranger {
    pub(crate) async fn at(url: &str) -> Stranger {
        Stranger::try_at(url).await.expect("a connection")
    }

    pub(crate) async fn try_at(url: &str) -> Result<Stranger, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            let _ = connection.await;
        });
        Ok(Stranger { client, _connection: task })
    }
}

impl Deref for Stranger {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// The server of the tests.
pub(crate) fn server() -> Config {
    Schema::fresh().server().parse().expect("a URL of a server")
}

/// Returns the server's host and port for TCP.
pub(crate) fn address() -> (String, u16) {
    let config = server();
    let Some(Host::Tcp(host)) = config.get_hosts().first() else { panic!("a server by TCP") };
    (host.clone(), config.get_ports().first().copied().unwrap_or(5432))
}

/// Returns the URL of the same database with another host and port.
pub(crate) fn url_by(schema: &Schema, host: &str, port: u16, more: &str) -> String {
    let config = server();
    let mut other = Config::new();
    other.host(host).port(port).user(config.get_user().unwrap_or("postgres"));
    other.dbname(config.get_dbname().unwrap_or("postgres"));
    if let Some(password) = config.get_password() {
        other.password(password);
    }
    url_of(&other, &format!("schema={}&{more}", schema.name()))
}

fn url_of(config: &Config, settings: &str) -> String {
    let Some(Host::Tcp(host)) = config.get_hosts().first() else { panic!("a server by TCP") };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or("postgres");
    let password = config
        .get_password()
        .map_or(String::new(), |password| format!(":{}", String::from_utf8_lossy(password)));
    let database = config.get_dbname().unwrap_or("postgres");
    format!("postgres://{user}{password}@{host}:{port}/{database}?{settings}")
}

/// Returns the URL of a schema whose connections have the schema's name.
pub(crate) fn named(schema: &Schema, more: &str) -> String {
    format!("{}&application_name={}&{more}", schema.url(), schema.name())
}

/// Waits for a future, with a timeout.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(answer) => answer,
        Err(_) => panic!("it took too long: {what}"),
    }
}

/// Polls the server until a count has the expected value.
pub(crate) async fn until(client: &Client, sql: &str, count: i64) {
    let look = async {
        while counted(client, sql).await != count {
            tokio::task::yield_now().await;
        }
    };
    soon(sql, look).await;
}

/// Reads one number from the server.
pub(crate) async fn counted(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("a count").get(0)
}

/// An error as `{}` prints it, which must be enough.
pub(crate) fn told(error: &StoreError) -> String {
    error.to_string()
}
