//! Tests what `rewheel bench` reports about the store.

use serde_json::Value;
use std::process::Command;

/// Runs the smallest benchmark with a raw limit.
fn bench(args: &[&str]) -> Value {
    run(&[&["--raw"], args].concat()).unwrap()
}

/// Runs the smallest benchmark, in a folder that is empty before and after. Returns the report, or the error.
fn run(args: &[&str]) -> Result<Value, String> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rewheel"))
        .current_dir(folder.path())
        .args(["bench", "drain", "--jobs", "20", "--rounds", "2", "--json"])
        .args(args)
        .output()
        .unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

fn drained(document: &Value) -> Vec<(&str, usize)> {
    let rows = document["rows"].as_array().unwrap().iter().filter(|row| row["bench"] == "drain");
    let drained =
        rows.map(|row| (row["subject"].as_str().unwrap(), row["rounds"].as_array().unwrap().len()));
    drained.collect()
}

/// The scale benchmark reports the sizes it measured, and each cost on both.
#[test]
fn a_scale_says_what_it_measured_on_which_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = ["--jobs", "500", "--tenants", "100", "--kinds", "20", "--nodes", "2"];
    let output = Command::new(env!("CARGO_BIN_EXE_rewheel"))
        .current_dir(folder.path())
        .args(["bench", "scale", "--workers", "3", "--idle", "10ms", "--rounds", "1", "--json"])
        .args(sizes)
        .output()
        .unwrap();
    // Whether a cost grew depends on the machine.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let scale = &document["scale"];
    assert_eq!((&scale["small"]["jobs"], &scale["large"]["tenants"]), (&5.into(), &100.into()));
    let lines = scale["lines"].as_array().unwrap();
    for name in ["list a page of lanes", "claim 10 jobs", "store calls of an idle node"] {
        let line = lines.iter().find(|line| line["name"] == name).unwrap();
        assert!(line["ratio"].is_number() && line["ratio_max"].is_number(), "{line}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_bench_names_the_store_beside_its_limit() {
    let document = bench(&[]);
    assert_eq!(document["store"]["name"], "sqlite");
    assert_eq!(document["store"]["settings"]["synchronous"], "full");
    assert_eq!(drained(&document), [("rewheel", 2), ("raw", 2)]);
}

/// A benchmark of one store must not report the figures of another.
fn names_its_store(url: &str, name: &str) {
    let document = run(&["--store", url]).unwrap();
    assert_eq!(document["store"]["name"], name);
    assert_eq!(drained(&document), [("rewheel", 2)]);
    let error = run(&["--store", url, "--raw"]).unwrap_err();
    assert!(error.contains("--raw cannot measure a plain table beside this store"), "{error}");
    assert!(error.contains("use --raw with SQLite or PostgreSQL"), "{error}");
}

#[test]
fn a_bench_in_memory_has_no_raw_limit() {
    names_its_store("memory://", "memory");
}

#[cfg(feature = "test-mysql")]
#[test]
fn a_bench_on_mysql_names_it_and_has_no_raw_limit() {
    names_its_store(rewheel_testkit::Database::fresh().url(), "mysql");
}

#[cfg(feature = "test-redis")]
#[test]
fn a_bench_on_redis_names_it_and_has_no_raw_limit() {
    let folder = tempfile::tempdir().unwrap();
    let server = rewheel_testkit::RedisProcess::start(folder.path(), "");
    names_its_store(&server.url(), "redis");
}

#[cfg(feature = "test-postgres")]
mod postgres {
    use super::{bench, drained};
    use rewheel_testkit::Schema;

    #[tokio::test]
    async fn a_bench_leaves_a_server_as_it_was() {
        // The name of a raw table, in the schema that a store would have.
        let schema = Schema::fresh();
        let visitor = schema.connect().await;
        let make = format!("CREATE SCHEMA {0}; CREATE TABLE {0}.jobs (id int)", schema.name());
        visitor.batch_execute(&make).await.unwrap();
        visitor
            .batch_execute(&format!("INSERT INTO {}.jobs VALUES (7)", schema.name()))
            .await
            .unwrap();
        let document = bench(&["--store", schema.server()]);
        assert_eq!(document["store"]["name"], "postgres");
        assert!(
            document["store"]["version"].as_str().unwrap().starts_with(|c: char| c.is_numeric())
        );
        assert_eq!(document["store"]["settings"]["fsync"], "on");
        assert_eq!(drained(&document), [("rewheel", 2), ("raw", 2)]);
        let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rewheel_bench%'";
        assert_eq!(visitor.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
        let kept = format!("SELECT count(*) FROM {}.jobs", schema.name());
        assert_eq!(visitor.query_one(&kept, &[]).await.unwrap().get::<_, i64>(0), 1);
    }
}
