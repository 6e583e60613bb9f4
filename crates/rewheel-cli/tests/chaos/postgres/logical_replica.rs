//! `logical-replica`: a database is replicated to another server while jobs run, and then the nodes move there.

use super::database::{Connection, Database};
use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use serde_json::json;
use std::process::Stdio;
use std::time::{Duration, Instant};

const OPTIONS: [&str; 1] = ["wal_level=logical"];

/// Timeout for anything in this cell; only a failing cell waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Jobs that the nodes leave to the new server.
const LEFT: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_has_every_row_and_nodes_move_to_it() {
    let _alone = alone().await;
    let Some(old_server) = Server::start("logical-replica", &OPTIONS).await else { return };
    let Some(new_server) = Server::start_next("logical-replica", &[]).await else { return };
    let old = Database::on(&old_server.url, "replica-old").await;
    let new = Database::on(&new_server.url, "replica-new").await;
    let (from, to) = (old.connect().await, new.connect().await);
    println!("{} to {}", version(&from).await, version(&to).await);

    let mut cell = Cell::start(&old.store, Settings::default()).await;
    let submitter = cell.submit_on();
    replicate(&old, (&from, &to), &new).await;
    tokio::time::sleep(fault_lasts() / 2).await;
    let mut acknowledged = submitter.end().await;
    control(&cell, "pause").await;
    for n in 0..LEFT {
        let job = json!({"kind": "steady", "payload": {}, "key": format!("left-{n}")});
        acknowledged.push(cell.submit_to(0, job, PATIENCE).await);
    }
    for node in &mut cell.nodes {
        assert!(node.terminate().await.success(), "{:?}", node.said());
    }

    caught_up(&from, &to).await;
    let (rows, copied) = (contents(&from).await, contents(&to).await);
    for ((table, theirs), (_, ours)) in rows.iter().zip(&copied) {
        assert_eq!(theirs, ours, "the rows of {table} differ");
    }
    println!("{} tables are the same", rows.len());
    to.client.batch_execute("DROP SUBSCRIPTION rewheel").await.unwrap();
    drop(cell);

    let cell = Cell::start(&new.store, Settings::default()).await;
    control(&cell, "resume").await;
    let probes = cell.recover("moved").await;
    let drained = cell.drain().await;
    let jobs = cell.jobs("").await;
    for id in acknowledged.iter().chain(&probes) {
        assert_eq!(jobs[id]["state"], "succeeded", "{}", jobs[id]);
    }
    let (well, found) = cell.doctor().await;
    assert!(well, "{found}");
    assert_eq!(found["books"]["submitted"], acknowledged.len() + probes.len(), "{found}");
    println!("{} jobs moved, drained in {:.1} s", jobs.len(), drained.as_secs_f64());
    drop((cell, from, to));
    old.remove().await;
    new.remove().await;
}

async fn version(connection: &Connection) -> String {
    connection.client.query_one("SELECT version()", &[]).await.unwrap().get(0)
}

/// Makes the tables on the new server, and replicates all rows, as the documentation says.
async fn replicate(old: &Database, (from, to): (&Connection, &Connection), new: &Database) {
    let mut migrate = tokio::process::Command::new(env!("CARGO_BIN_EXE_rewheel"));
    migrate.args(["migrate", "--store", &new.store]).stdout(Stdio::null());
    assert!(migrate.status().await.unwrap().success(), "no tables on the new server");
    let empty = "DO $$ BEGIN EXECUTE (SELECT format('TRUNCATE %s', string_agg(oid::regclass::text, ', '))
        FROM pg_class WHERE relnamespace = 'chaos'::regnamespace AND relkind IN ('r', 'p')); END $$";
    to.client.batch_execute(empty).await.unwrap();
    // Publishes partitions, not their root: only so the emptying of a bin is replicated.
    let publish = "CREATE PUBLICATION rewheel FOR ALL TABLES";
    from.client.batch_execute(publish).await.unwrap();
    let address = old.url.split('?').next().unwrap();
    let subscribe =
        format!("CREATE SUBSCRIPTION rewheel CONNECTION '{address}' PUBLICATION rewheel");
    to.client.batch_execute(&subscribe).await.unwrap();
}

/// Waits until the replica has everything that was written.
async fn caught_up(from: &Connection, to: &Connection) {
    let started = Instant::now();
    let written = "SELECT pg_current_wal_lsn()::text";
    let written: String = from.client.query_one(written, &[]).await.unwrap().get(0);
    let copied = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'";
    let applied = format!(
        "SELECT confirmed_flush_lsn >= '{written}'::pg_lsn FROM pg_replication_slots WHERE slot_name = 'rewheel'"
    );
    loop {
        let left: i64 = to.client.query_one(copied, &[]).await.unwrap().get(0);
        let is_applied: Option<bool> = from.client.query_one(&applied, &[]).await.unwrap().get(0);
        if left == 0 && is_applied == Some(true) {
            println!("caught up in {:.1} s", started.elapsed().as_secs_f64());
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{left} tables are not copied, {is_applied:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the number of rows and a digest of each table.
async fn contents(connection: &Connection) -> Vec<(String, (i64, String))> {
    connection.client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    let tables = "SELECT relname::text FROM pg_class
         WHERE relnamespace = 'chaos'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1";
    let mut contents = Vec::new();
    for row in connection.client.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let digest = format!(
            "SELECT count(*), coalesce(md5(string_agg(row_md5, '' ORDER BY row_md5)), '')
               FROM (SELECT md5(t::text) AS row_md5 FROM chaos.{table} AS t) AS rows"
        );
        let row = connection.client.query_one(&digest, &[]).await.unwrap();
        contents.push((table, (row.get(0), row.get(1))));
    }
    contents
}

/// Pauses or resumes the kind `steady`, on one node.
async fn control(cell: &Cell, verb: &str) {
    let url = format!("{}/v1/kinds/steady/{verb}", cell.nodes[0].url);
    let answer = cell.client.post(url).json(&json!({})).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}
