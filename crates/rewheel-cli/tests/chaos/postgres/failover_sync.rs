//! `failover-sync`: the primary is lost, its synchronous standby is promoted, and the old primary comes back as a standby, repeatedly.

use super::database::{CELL, Database};
use super::server::{REPLICATED, Server};
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long a node may take to look for another server; only a failing cell waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the primary is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// Its machine loses power: connections break.
    Killed,
    /// Its machine hangs: connections are accepted, and nothing answers.
    Hangs,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_a_synchronous_standby() {
    let _alone = alone().await;
    let Some(mut primary) = Server::start("failover-sync", &REPLICATED).await else { return };
    let database = Database::on(&primary.url, "failover-sync").await;
    let mut standby = primary.standby().await;
    primary.commit_synchronously().await;
    let store = database.on_hosts(&[primary.address(), standby.address()]);
    let cell = Cell::start(&store, Settings::default()).await;
    let submitter = cell.submit_on();
    let (started, mut failovers, mut probes) = (Instant::now(), 0_usize, Vec::new());
    while failovers < 2 || started.elapsed() < fault_lasts() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let loss = [Loss::Killed, Loss::Hangs][failovers % 2];
        match loss {
            Loss::Killed => primary.kill().await,
            Loss::Hangs => primary.pause(),
        }
        standby.promote().await;
        failovers += 1;
        println!("failover {failovers}: {loss:?}");
        probes.extend(cell.recover(&format!("failover-{failovers}")).await);
        if let Loss::Hangs = loss {
            primary.kill().await;
        }
        primary.follow(&standby).await;
        std::mem::swap(&mut primary, &mut standby);
        primary.commit_synchronously().await;
    }
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    cell.balance(&acknowledged).await;
    println!("{failovers} failovers");
    // With this setting it would not hold, and the doctor knows.
    let local = format!("ALTER DATABASE {} SET synchronous_commit = local", database.name());
    primary.tell(&local).await;
    let (_, found) = cell.doctor().await;
    let checks = found["checks"].as_array().unwrap();
    let is_named = |check: &Value| check["name"] == "synchronous_commit" && check["ok"] == false;
    assert!(checks.iter().any(is_named), "{found}");
}

/// The old primary is started again as it was, and accepts writes. When the new one does not answer for a while, no node goes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_comes_back_is_not_used() {
    let _alone = alone().await;
    let Some(mut old) = Server::start("failover-sync", &REPLICATED).await else { return };
    let database = Database::on(&old.url, "old-primary").await;
    let primary = old.standby().await;
    let store = database.on_hosts(&[old.address(), primary.address()]);
    let cell = Cell::start(&store, Settings::default()).await;
    old.commit_synchronously().await;
    let submitter = cell.submit_on();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // From its next start on.
    old.tell("ALTER SYSTEM SET log_connections = on").await;
    old.kill().await;
    primary.promote().await;
    let mut probes = cell.recover("promoted").await;

    old.go_on().await;
    old.tell("ALTER SYSTEM RESET synchronous_standby_names").await;
    old.tell("SELECT pg_reload_conf()").await;
    let before = flushes(&database).await;
    primary.pause();
    visit(&old, &database).await;
    primary.go_on_after_pause();
    probes.extend(cell.recover("resumed").await);
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    assert_eq!(flushes(&database).await, before, "a node wrote to the old primary");
    // The doctor starts now, and has never seen the new primary: it would use the old one.
    old.kill().await;
    cell.balance(&acknowledged).await;
}

/// Waits until a node connects to the old primary. The cell's own connections are told apart by their application name.
async fn visit(old: &Server, database: &Database) {
    let visits = || {
        let log = old.log();
        let of_nodes = log.lines().filter(|line| {
            line.contains("connection authorized")
                && line.contains(database.name())
                && !line.contains(CELL)
        });
        of_nodes.count()
    };
    let (started, before) = (Instant::now(), visits());
    while visits() == before {
        assert!(started.elapsed() < PATIENCE, "no node looked for another server");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns how many flushes the first server of the cell has stored.
async fn flushes(database: &Database) -> i64 {
    let count = "SELECT count(*) FROM chaos.ledger";
    database.connect().await.client.query_one(count, &[]).await.unwrap().get(0)
}
