//! Chooses a prefix of Redis keys for a single test.

use rewheel::Random;
use std::thread;

/// The variable with the URL of the server: `cargo xtask test` sets it, `cargo xtask services up` prints it.
const SERVER: &str = "REWHEEL_TEST_REDIS";

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
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!(
                "{SERVER} names no server: run `cargo xtask test`, or see `cargo xtask services up`"
            )
        });
        Prefix::at(&server)
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
        let (server, pattern) = (self.server.clone(), format!("{}*", self.keys()));
        let delete = move || -> redis::RedisResult<()> {
            let mut connection = redis::Client::open(server)?.get_connection()?;
            let mut cursor = 0_u64;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1_000);
                let (next, keys): (u64, Vec<Vec<u8>>) = scan.query(&mut connection)?;
                if !keys.is_empty() {
                    redis::cmd("UNLINK").arg(keys).query::<()>(&mut connection)?;
                }
                cursor = next;
                if cursor == 0 {
                    return Ok(());
                }
            }
        };
        // The server may be gone: some tests stop it.
        let _ = thread::spawn(delete).join();
    }
}
