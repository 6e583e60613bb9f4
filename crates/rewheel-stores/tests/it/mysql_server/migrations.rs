//! Tests that the tables are created once if several nodes start at the same time, or die in the middle.

use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use rewheel_core::store::ReadStore;
use rewheel_stores::{MysqlStore, connect_existing};
use rewheel_testkit::Database;
use std::sync::atomic::{AtomicBool, Ordering};

/// Connections that are killed in the middle of a migration.
const KILLS: usize = 40;

async fn tables(database: &Database) -> Vec<String> {
    let mut connection = database.connect().await;
    connection.query("SHOW TABLES").await.expect("the names of the tables")
}

async fn assert_works(database: &Database) {
    let store = MysqlStore::open(database.url()).await.expect("the database opens");
    assert_eq!(store.books().await.expect("books").missing(), 0);
    let fresh = Database::fresh();
    drop(MysqlStore::open(fresh.url()).await.expect("a fresh database opens"));
    assert_eq!(tables(database).await, tables(&fresh).await);
}

#[tokio::test]
async fn ten_nodes_start_on_an_empty_database_at_once() {
    let database = Database::fresh();
    let opened = join_all((0..10).map(|_| MysqlStore::open(database.url()))).await;
    for store in opened {
        store.expect("each of them opens");
    }
    assert_works(&database).await;
}

#[tokio::test]
async fn a_program_that_only_looks_changes_no_tables() {
    let database = Database::fresh();
    let error = connect_existing(database.url()).await.expect_err("no tables").to_string();
    assert!(error.contains("has no tables of Rewheel"), "{error}");
    assert_eq!(tables(&database).await, [""; 0]);
    drop(MysqlStore::open(database.url()).await.expect("a fresh database opens"));
    let store = connect_existing(database.url()).await.expect("current tables");
    assert_eq!(store.books().await.expect("books").missing(), 0);
    let mut connection = database.connect().await;
    let newest = "SELECT MAX(version) FROM rewheel_steps";
    let current: Option<i64> = connection.query_first(newest).await.expect("a version");
    let current = current.expect("a row");
    let older = format!("DELETE FROM rewheel_steps WHERE version = {current}");
    connection.query_drop(older).await.expect("an older version");
    let error = connect_existing(database.url()).await.expect_err("older tables").to_string();
    let older = current - 1;
    let wanted = format!("version {older}, and this version of Rewheel needs version {current}");
    assert!(error.contains(&wanted) && error.contains("run `rewheel migrate`"), "{error}");
    let now: Option<i64> = connection.query_first(newest).await.expect("a version");
    assert_eq!(now, Some(older), "the tables were migrated");
}

/// The notes of the last steps are missing, as after a crash between a step and its note; and so are tables that come after it.
#[tokio::test]
async fn a_migration_goes_on_where_it_ended() {
    let database = Database::fresh();
    drop(MysqlStore::open(database.url()).await.expect("a fresh database opens"));
    let mut connection = database.connect().await;
    let steps: Option<u32> =
        connection.query_first("SELECT COUNT(*) FROM rewheel_steps").await.expect("a number");
    let steps = steps.expect("a row");
    assert!(steps > 20, "{steps}");
    for kept in [0, 1, steps / 2, steps - 1] {
        let forget = format!("DELETE FROM rewheel_steps WHERE step > {kept}");
        connection.query_drop(forget).await.expect("forgotten");
        if kept < steps / 2 + 1 {
            connection.query_drop("DROP TABLE rewheel_results, rewheel_audit").await.expect("gone");
        }
        assert_works(&database).await;
    }
}

#[tokio::test]
async fn killed_connections_leave_a_migration_to_the_next_node() {
    let database = Database::fresh();
    let mut connection = database.connect().await;
    let own: Option<u64> = connection.query_first("SELECT CONNECTION_ID()").await.expect("an id");
    let others = format!(
        "SELECT id FROM information_schema.processlist WHERE db = '{}' AND id <> {}",
        database.name(),
        own.expect("a row")
    );
    let done = AtomicBool::new(false);
    let opening = async {
        while MysqlStore::open(database.url()).await.is_err() {}
        done.store(true, Ordering::Relaxed);
    };
    let killing = async {
        let mut kills = 0;
        while kills < KILLS && !done.load(Ordering::Relaxed) {
            let ids: Vec<u64> = connection.query(others.as_str()).await.expect("connections");
            for id in ids {
                // It may have ended by itself.
                let _ = connection.query_drop(format!("KILL CONNECTION {id}")).await;
                kills += 1;
            }
        }
    };
    tokio::join!(opening, killing);
    assert_works(&database).await;
}
