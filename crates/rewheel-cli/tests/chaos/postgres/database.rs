//! Creates a database for one cell.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

/// The application name of the cell's own connections, to tell them from those of the nodes.
pub(crate) const CELL: &str = "chaos-cell";

/// A new database on the server that `REWHEEL_TEST_POSTGRES` names.
///
/// A database, not only a schema: one cell closes every connection to its database.
#[derive(Debug)]
pub(crate) struct Database {
    server: String,
    name: String,
    /// The URL for the nodes.
    pub(crate) store: String,
    /// The URL for the cell.
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn new(cell: &str) -> Database {
        let server = std::env::var("REWHEEL_TEST_POSTGRES");
        let server = server.expect("REWHEEL_TEST_POSTGRES: `cargo xtask services up` prints it");
        Database::on(&server, cell).await
    }

    /// Creates a database on a given server.
    pub(crate) async fn on(server: &str, cell: &str) -> Database {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("chaos_{}_{}_{count}", cell.replace('-', "_"), std::process::id());
        let connection = Connection::open(server).await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        connection.client.batch_execute(&create).await.unwrap();
        let url = with_database(server, &name);
        let mark = if url.contains('?') { '&' } else { '?' };
        Database {
            server: server.to_owned(),
            name,
            store: format!("{url}{mark}schema=chaos"),
            url: format!("{url}{mark}application_name={CELL}"),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The URL for nodes that know several servers: this database on each of these hosts and ports.
    pub(crate) fn on_hosts(&self, hosts: &[String]) -> String {
        let (_, rest) = self.store.split_once('@').expect("a user");
        let (_, database) = rest.split_once('/').expect("a database");
        format!("postgres://postgres@{}/{database}", hosts.join(","))
    }

    /// Removes the database at the end of a cell. A failed cell keeps it for inspection.
    pub(crate) async fn remove(self) {
        let connection = Connection::open(&self.server).await.unwrap();
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        connection.client.batch_execute(&drop).await.unwrap();
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(&self.url).await.unwrap()
    }
}

/// Returns the URL of another database of the same server.
fn with_database(server: &str, name: &str) -> String {
    let (address, settings) = server.split_once('?').unwrap_or((server, ""));
    let (address, _) = address.rsplit_once('/').expect("the address names a database");
    let mark = if settings.is_empty() { "" } else { "?" };
    format!("{address}/{name}{mark}{settings}")
}

/// An open connection.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Drives the connection; it ends with it.
    _driver: JoinSet<()>,
}

impl Connection {
    pub(crate) async fn open(url: &str) -> Result<Connection, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // Cells expect that the server closes connections.
            let _ = connection.await;
        });
        Ok(Connection { client, _driver: driver })
    }

    /// Closes every connection of the nodes, and returns how many there were.
    pub(crate) async fn end_all_of_nodes(&self) -> usize {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND application_name <> $1";
        self.client.query(sql, &[&CELL]).await.unwrap().len()
    }
}

/// Retries until a server accepts connections.
pub(crate) async fn wait_until_open(url: &str, within: Duration) {
    let tries = async {
        while Connection::open(url).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(within, tries).await.expect("the server accepts connections");
}

#[test]
fn another_database_of_the_same_server_is_named() {
    let check = |server, expected: &str| assert_eq!(with_database(server, "x"), expected);
    check("postgres://me:pw@host:1/postgres", "postgres://me:pw@host:1/x");
    check("postgres://host/postgres?sslmode=disable", "postgres://host/x?sslmode=disable");
}
