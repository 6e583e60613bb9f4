//! Chooses a prefix of Redis keys for a single test.

use rewheel::Random;
use std::thread;

/// The variable with the URL of the server: `cargo xtask test` sets it, `cargo xtask services up` prints it.
const SERVER: &str = "REWHEEL_TEST_REDIS";

/// The same for the cluster of the tests.
const CLUSTER: &str = "REWHEEL_TEST_REDIS_CLUSTER";

/// A prefix for one test. Dropping this value deletes its keys.
#[derive(Debug)]
pub struct Prefix {
    server: String,
    name: String,
    url: String,
}

impl Prefix {
    /// Chooses a name on the server of the tests.
    pub fn fresh() -> Prefix {
        Prefix::at(&named(SERVER))
    }

    /// Chooses a name in the cluster of the tests.
    pub fn in_cluster() -> Prefix {
        Prefix::at(&named(CLUSTER))
    }

    /// Chooses a name on this server.
    pub fn at(server: &str) -> Prefix {
        let name = format!("test-{:016x}", Random::thread().next());
        let url = format!("{server}?prefix={name}");
        Prefix { server: server.to_owned(), name, url }
    }

    /// Returns the URL of a store with it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the start of all its keys.
    pub fn keys(&self) -> String {
        format!("{{{}}}:", self.name)
    }

    /// Connects to the server as another client would.
    pub fn connect(&self) -> redis::Connection {
        redis::Client::open(self.server.as_str()).unwrap().get_connection().unwrap()
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        let (servers, pattern) = (each_server(&self.server), format!("{}*", self.keys()));
        let delete = move || servers.iter().try_for_each(|server| delete(server, &pattern));
        // The server may be gone: some tests stop it.
        let _ = thread::spawn(delete).join();
    }
}

fn named(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} names no server: run `cargo xtask test`, or see `cargo xtask services up`"
        )
    })
}

/// Returns the URLs of all nodes that the URL of a cluster names, or the URL of the only server.
fn each_server(url: &str) -> Vec<String> {
    match url.split_once("+cluster://") {
        Some((scheme, hosts)) => {
            hosts.split(',').map(|host| format!("{scheme}://{host}")).collect()
        }
        None => vec![url.to_owned()],
    }
}

/// Deletes the keys of a pattern. A node of a cluster has only its own, and a replica rejects deletes.
fn delete(server: &str, pattern: &str) -> redis::RedisResult<()> {
    let mut connection = redis::Client::open(server)?.get_connection()?;
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1_000);
        let (next, keys): (u64, Vec<Vec<u8>>) = scan.query(&mut connection)?;
        if !keys.is_empty() {
            redis::cmd("UNLINK").arg(keys).query::<()>(&mut connection)?;
        }
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}
