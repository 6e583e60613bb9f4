//! Creates a database on MariaDB or MySQL for a single test.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use rewheel::Random;
use std::thread;

/// The variable with the URL of the server: `cargo xtask test` sets it, `cargo xtask services up` prints it.
const SERVER: &str = "REWHEEL_TEST_MYSQL";

/// A database for one test. Dropping this value drops the database.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    /// Creates a database on the server of the tests.
    pub fn fresh() -> Database {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!(
                "{SERVER} names no server: run `cargo xtask test`, or see `cargo xtask services up`"
            )
        });
        Database::at(&server)
    }

    /// Creates a database on this server, whose URL names another one.
    pub fn at(server: &str) -> Database {
        let name = format!("test_{:016x}", Random::thread().next());
        let (address, _) = server.rsplit_once('/').expect("the URL names a database");
        let url = format!("{address}/{name}");
        run(server, format!("CREATE DATABASE {name}")).unwrap();
        Database { server: server.to_owned(), name, url }
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

    /// Runs statements for a value that is being dropped. Errors are ignored: the server may be gone.
    pub fn run(&self, sql: String) {
        let _ = run(&self.server, sql);
    }

    /// Connects to it as another client would.
    pub async fn connect(&self) -> Conn {
        Conn::new(Opts::from_url(&self.url).unwrap()).await.unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Locks of an aborted test must not block this for long. The server may be gone: some tests stop it.
        let name = &self.name;
        let drop = format!("SET SESSION lock_wait_timeout = 2; DROP DATABASE IF EXISTS {name}");
        self.run(drop);
    }
}

/// Runs statements in a thread of its own: the caller may be inside a runtime.
fn run(server: &str, sql: String) -> mysql_async::Result<()> {
    let server = server.to_owned();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = Conn::new(Opts::from_url(&server)?).await?;
            connection.query_drop(sql).await?;
            connection.disconnect().await
        })
    };
    thread::spawn(work).join().unwrap()
}
