//! Tests opening a store in an empty schema, and in one with other or newer tables.

use super::support::{Database, Node, Stranger, WITHOUT_BINS, counted, soon, told};
use rewheel_core::store::{ReadStore, Store, StoreError};
use rewheel_stores::{PostgresStore, connect_existing};
use rewheel_testkit::Schema;
use tokio::task::JoinSet;

#[tokio::test]
async fn ten_nodes_that_start_at_once_migrate_once() {
    let schema = Schema::fresh();
    let mut nodes = JoinSet::new();
    for _ in 0..10 {
        let url = format!("{}&pool_max=2", schema.url());
        nodes.spawn(async move {
            let store = PostgresStore::open(&url).await.expect("each of them opens");
            store.books().await.expect("and finds tables").missing()
        });
    }
    let missing = soon("ten nodes", nodes.join_all()).await;
    assert_eq!(missing, [0; 10]);

    let visitor = schema.connect().await;
    let applied = format!(
        "SELECT string_agg(version || name || applied, ',' ORDER BY version) FROM {}.migrations",
        schema.name()
    );
    let before: String = visitor.query_one(&applied, &[]).await.expect("versions").get(0);
    assert!(before.starts_with("1jobs"), "{before}");
    Node::of(&schema).await;
    let after: String = visitor.query_one(&applied, &[]).await.expect("versions").get(0);
    assert_eq!(before, after, "opening again changed something");
}

#[tokio::test]
async fn tables_of_a_newer_rewheel_are_refused() {
    let schema = Schema::fresh();
    Node::of(&schema).await;
    let newer =
        format!("INSERT INTO {}.migrations (version, name) VALUES (1000, 'future')", schema.name());
    schema.connect().await.batch_execute(&newer).await.expect("a version");
    let error = PostgresStore::open(schema.url()).await.expect_err("tables of the future");
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(told(&error).contains("upgrade"), "{}", told(&error));
    assert!(told(&error).contains("1000"), "{}", told(&error));
}

#[tokio::test]
async fn a_program_that_only_looks_changes_no_tables() {
    let schema = Schema::fresh();
    let visitor = schema.connect().await;
    let has_schema =
        format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", schema.name());
    let error = connect_existing(schema.url()).await.expect_err("no tables").to_string();
    assert!(error.contains("has no tables of Rewheel"), "{error}");
    let created: i64 = visitor.query_one(&has_schema, &[]).await.expect("schemas").get(0);
    assert_eq!(created, 0, "something was created");

    Node::of(&schema).await;
    let store = connect_existing(schema.url()).await.expect("current tables");
    assert_eq!(store.books().await.expect("books").missing(), 0);
    let name = schema.name();
    let version = format!("SELECT max(version) FROM {name}.migrations");
    let current: i32 = visitor.query_one(&version, &[]).await.expect("a version").get(0);
    let older = format!("DELETE FROM {name}.migrations WHERE version = {current}");
    visitor.batch_execute(&older).await.expect("an older version");
    let error = connect_existing(schema.url()).await.expect_err("older tables").to_string();
    let older = current - 1;
    let wanted = format!("version {older}, and this version of Rewheel needs version {current}");
    assert!(error.contains(&wanted) && error.contains("run `rewheel migrate`"), "{error}");
    let now: i32 = visitor.query_one(&version, &[]).await.expect("a version").get(0);
    assert_eq!(now, older, "the tables were migrated");
}

/// Creates a user that owns nothing and may create nothing.
async fn poor_user(schema: &Schema) -> (String, String) {
    let user = format!("{}_user", schema.name());
    let sql = format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'");
    schema.connect().await.batch_execute(&sql).await.expect("a role");
    let mut url = schema.url().to_owned();
    let (start, end) = (url.find("://").expect("a scheme") + 3, url.find('@').expect("a user"));
    url.replace_range(start..end, &format!("{user}:secret"));
    (user, url)
}

async fn drop_user(schema: &Schema, user: &str) {
    let sql = format!("DROP OWNED BY {user} CASCADE; DROP ROLE {user}");
    schema.connect().await.batch_execute(&sql).await.expect("nothing keeps the role");
}

#[tokio::test]
async fn a_user_who_may_not_create_a_schema_is_told_so() {
    let schema = Schema::fresh();
    let (user, url) = poor_user(&schema).await;
    let error = PostgresStore::open(&url).await.expect_err("no right");
    drop_user(&schema, &user).await;
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(told(&error).contains("own Rewheel's schema"), "{}", told(&error));
}

#[tokio::test]
async fn a_schema_that_an_operator_created_is_enough() {
    let schema = Schema::fresh();
    let (user, url) = poor_user(&schema).await;
    let made = format!("CREATE SCHEMA {} AUTHORIZATION {user}", schema.name());
    schema.connect().await.batch_execute(&made).await.expect("a schema");
    let opened = PostgresStore::open(&url).await.map(drop);
    drop_user(&schema, &user).await;
    opened.expect("it owns the schema");
}

#[tokio::test]
async fn a_store_can_be_made_again_after_its_schema_was_dropped() {
    let database = Database::fresh("").await;
    Node::open(&database.url()).await.store.close().await.expect("it closes");
    database.connect().await.batch_execute("DROP SCHEMA rewheel CASCADE").await.expect("dropped");
    let again = PostgresStore::open(&database.url()).await.map(drop);
    database.drop().await;
    again.expect("what stayed behind in `public` is replaced");
}

#[tokio::test]
async fn a_database_that_cannot_keep_every_text_is_refused() {
    let latin = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    let database = Database::fresh(latin).await;
    let error = PostgresStore::open(&database.url()).await.expect_err("an encoding");
    let stranger = Stranger::at(&database.url()).await;
    let left =
        counted(&stranger, "SELECT count(*) FROM pg_namespace WHERE nspname = 'rewheel'").await;
    drop(stranger);
    database.drop().await;
    assert!(told(&error).contains("UTF8"), "{}", told(&error));
    assert_eq!(left, 0, "something was created");
}

/// The doctor reports a missing index, and knows all indexes.
#[tokio::test]
async fn an_index_that_is_gone_is_a_risk() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let (visitor, name) = (schema.connect().await, schema.name());
    let about_indexes = async || {
        let risks = node.store.risks().await.expect("risks");
        risks.into_iter().find(|risk| risk.name == "indexes").map(|risk| risk.message)
    };
    assert_eq!(about_indexes().await, None);
    let all = format!(
        "SELECT indexname FROM pg_indexes WHERE schemaname = '{name}' AND indexdef NOT LIKE '%UNIQUE%' ORDER BY 1"
    );
    let rows = visitor.query(&all, &[]).await.expect("indexes");
    let all: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    for index in &all {
        visitor.batch_execute(&format!("DROP INDEX {name}.{index}")).await.expect("dropped");
    }
    let message = about_indexes().await.expect("a risk");
    assert!(message.starts_with(&format!("{}: missing", all.join(", "))), "{message}\n{all:?}");
}

/// A backup holds locks for its whole duration. A migration that waits for them must not block other nodes.
#[tokio::test]
async fn a_migration_that_waits_for_a_lock_delays_no_node() {
    let schema = Schema::fresh();
    Node::of(&schema).await;
    let (backup, worker) = (schema.connect().await, schema.connect().await);
    let name = schema.name();
    // The state before the last migration that changes a table in use.
    let before = format!(
        "DROP TABLE {name}.limits; DROP TABLE {name}.unreadable; ALTER TABLE {name}.kinds DROP COLUMN version; \
         DROP TABLE {name}.samples, {name}.kind_changes; \
         ALTER TABLE {name}.kinds DROP COLUMN changed, DROP COLUMN parked_until_ms; DROP FUNCTION {name}.change_number(); \
         ALTER TABLE {name}.holders DROP COLUMN format; ALTER TABLE {name}.jobs DROP COLUMN parent, DROP COLUMN instant_ms; \
         ALTER TABLE {name}.dead DROP COLUMN parent, DROP COLUMN instant_ms; \
         ALTER TABLE {name}.finished DROP COLUMN parent, DROP COLUMN instant_ms; \
         ALTER TABLE {name}.audit DROP COLUMN submit; DROP FUNCTION {name}.submit_lane; DROP FUNCTION {name}.rewheel_submit; \
         ALTER TABLE {name}.finished DROP COLUMN ran_by, DROP COLUMN started_ms, DROP COLUMN duration_ms, \
         DROP COLUMN success_code; DROP TABLE {name}.results; \
         DROP TABLE {name}.group_members, {name}.group_heads, {name}.group_checks, {name}.formats_used, {name}.functions; DROP INDEX {name}.jobs_blocked; ALTER TABLE {name}.kinds DROP COLUMN blocks_on_dead; \
         ALTER TABLE {name}.jobs DROP COLUMN group_key, DROP COLUMN turn; \
         ALTER TABLE {name}.dead DROP COLUMN group_key, DROP COLUMN turn; \
         ALTER TABLE {name}.finished DROP COLUMN group_key, DROP COLUMN turn; \
         DROP FUNCTION {name}.fence_floor, {name}.server, {name}.timeline, {name}.begin_epoch, {name}.raise_sequence; DROP TABLE {name}.epochs, {name}.forgotten; \
         DELETE FROM {name}.migrations WHERE version >= 10"
    );
    let without_bins = WITHOUT_BINS.replace("{s}", name);
    backup.batch_execute(&without_bins).await.expect("an older version");
    backup.batch_execute(&before).await.expect("an older version");
    let reading = format!("BEGIN; LOCK TABLE {name}.kinds IN ACCESS SHARE MODE");
    backup.batch_execute(&reading).await.expect("a backup reads");
    let mut opening = JoinSet::new();
    let url = schema.url().to_owned();
    opening.spawn(async move { PostgresStore::open(&url).await.map(drop) });
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' \
                 AND relation = $1::text::regclass";
    let table = format!("{name}.kinds");
    let is_waiting = async {
        while worker.query_one(waits, &[&table]).await.expect("locks").get::<_, i64>(0) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    soon("the migration waits", is_waiting).await;
    // Half of the time that it would have waited.
    worker.batch_execute("SET lock_timeout = '30s'").await.expect("a limit");
    let write = format!("UPDATE {name}.kinds SET paused = paused");
    worker.batch_execute(&write).await.expect("the work goes on while the backup reads");
    backup.batch_execute("COMMIT").await.expect("the backup ends");
    let opened = soon("the migration ends", opening.join_next()).await;
    opened.expect("it was started").expect("no panic").expect("it opens");
}
