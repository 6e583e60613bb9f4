//! A store in a database of its own, and numbers that are read from its tables.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rewheel::Random;
use rewheel_core::store::ClockOffset;
use rewheel_stores::{MysqlOptions, MysqlStore};
use rewheel_testkit::{Database, Subject};
use std::sync::Arc;

pub(super) async fn open(database: &Database) -> Subject {
    open_at(database.url()).await
}

pub(super) async fn open_at(url: &str) -> Subject {
    let clock = ClockOffset::default();
    let mut options = MysqlOptions::parse(url).expect("a URL");
    (options.clock, options.pool_max) = (clock.clone(), 3);
    let store = MysqlStore::open_with(options).await.expect("a database opens");
    let mut subject = Subject::new(Arc::new(store), clock);
    // Several nodes must not choose the same ids.
    subject.random = Random::thread();
    subject
}

/// Reads one number.
pub(super) async fn number(connection: &mut Conn, sql: &str) -> i64 {
    let number: Option<Option<i64>> = connection.query_first(sql).await.expect("a row");
    number.flatten().expect("a number")
}
