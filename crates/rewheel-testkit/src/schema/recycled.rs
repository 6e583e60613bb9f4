//! Schemas that many tests use in turn: most of a short test's time would be spent on creating and dropping its tables.

use super::{SERVER_VARIABLE, Schema, Visitor};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// How the names of these schemas begin.
const PREFIX: &str = "recycled_";

/// More tests than this at the same time get schemas of their own.
const SCHEMAS_MAX: usize = 64;

/// Makes a schema as it was after its creation: all rows are deleted, and those of the copy are inserted. Triggers and references are
/// off for this.
const EMPTY: &str = "
    DO $$ DECLARE found record; BEGIN
        SET LOCAL session_replication_role = replica;
        SET LOCAL lock_timeout = '20s';
        FOR found IN SELECT relname AS name FROM pg_class
                      WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition LOOP
            EXECUTE format('DELETE FROM {schema}.%I', found.name);
            IF to_regclass(format('{schema}_copy.%I', found.name)) IS NOT NULL THEN
                EXECUTE format('INSERT INTO {schema}.%1$I OVERRIDING SYSTEM VALUE TABLE {schema}_copy.%1$I', found.name);
            END IF;
        END LOOP;
    END $$";

/// Copies the tables that are not empty after their creation.
const COPY: &str = "
    DROP SCHEMA IF EXISTS {schema}_copy CASCADE;
    CREATE SCHEMA {schema}_copy;
    DO $$ DECLARE found record; filled boolean; BEGIN
        FOR found IN SELECT relname AS name FROM pg_class
                      WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition LOOP
            EXECUTE format('SELECT EXISTS (SELECT FROM {schema}.%I)', found.name) INTO filled;
            IF filled THEN EXECUTE format('CREATE TABLE {schema}_copy.%1$I AS TABLE {schema}.%1$I', found.name); END IF;
        END LOOP;
    END $$";

/// Ends the connections that a killed test left behind.
const END_OTHERS: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}'";

impl Schema {
    /// Takes a schema that no other test uses, as it was after its creation. `create` gets a URL, and creates the tables there; it is
    /// called for the first test only. The schema stays for the next test, and until a newer program of tests removes it.
    ///
    /// For tests of what a store does with rows. A test that changes tables, or counts pages or dead rows, uses [`Schema::fresh`].
    pub async fn recycled(create: impl AsyncFnOnce(&str)) -> Schema {
        let mut schema = Schema::fresh();
        let guard = Visitor::at(&schema.server).await;
        let program = program();
        for nth in 0..SCHEMAS_MAX {
            let name = format!("{PREFIX}{program:016x}_{nth}");
            if !lock(&guard, &name).await {
                continue;
            }
            let mark = if schema.server.contains('?') { '&' } else { '?' };
            schema.url = format!("{}{mark}schema={name}&application_name={name}", schema.server);
            schema.name = name;
            let sql = |text: &str| text.replace("{schema}", &schema.name);
            if exists(&guard, &sql("{schema}_copy")).await {
                guard.batch_execute(&sql(END_OTHERS)).await.unwrap();
                guard.batch_execute(&sql(EMPTY)).await.unwrap();
            } else {
                remove_old(&guard, program).await;
                guard.batch_execute(&sql("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.unwrap();
                create(&schema.url).await;
                guard.batch_execute(&sql(COPY)).await.unwrap();
            }
            schema.guard = Some(guard);
            return schema;
        }
        panic!(
            "{SCHEMAS_MAX} tests run at the same time on the server of {SERVER_VARIABLE}: run fewer"
        )
    }
}

/// Identifies this program of tests: another one may create other tables.
fn program() -> u64 {
    let mut hasher = DefaultHasher::new();
    let path = std::env::current_exe().unwrap();
    path.hash(&mut hasher);
    std::fs::metadata(&path).unwrap().modified().unwrap().hash(&mut hasher);
    hasher.finish()
}

/// Locks a schema until the connection ends. Returns `false` if another test has it.
async fn lock(client: &Visitor, name: &str) -> bool {
    let sql = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))";
    client.query_one(sql, &[&name]).await.unwrap().get(0)
}

async fn exists(client: &Visitor, name: &str) -> bool {
    let sql = "SELECT to_regnamespace($1) IS NOT NULL";
    client.query_one(sql, &[&name]).await.unwrap().get(0)
}

/// Drops the schemas that other programs of tests left behind, unless one is in use.
async fn remove_old(client: &Visitor, program: u64) {
    let ours = format!("{PREFIX}{program:016x}_%");
    let sql = "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE $1 AND nspname NOT LIKE $2 AND nspname NOT LIKE '%\\_copy'";
    for row in client.query(sql, &[&format!("{PREFIX}%"), &ours]).await.unwrap() {
        let name: String = row.get(0);
        if lock(client, &name).await {
            let drop = format!(
                "DROP SCHEMA IF EXISTS {name} CASCADE; DROP SCHEMA IF EXISTS {name}_copy CASCADE"
            );
            client.batch_execute(&drop).await.unwrap();
        }
    }
}
