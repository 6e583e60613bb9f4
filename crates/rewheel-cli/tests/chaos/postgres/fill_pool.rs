//! `fill-pool`: another client takes every connection of the database server.

use super::database::{Connection, Database};
use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

/// Enough connections for three nodes and little else.
const OPTIONS: [&str; 2] = ["max_connections=40", "superuser_reserved_connections=0"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_while_the_server_has_no_connection_left() {
    let _alone = alone().await;
    let Some(server) = Server::start("fill-pool", &OPTIONS).await else { return };
    let database = Database::on(&server.url, "fill-pool").await;
    let cell = Cell::start(&format!("{}&pool_max=6", database.store), Settings::default()).await;
    let submitter = cell.submit_on();
    tokio::time::sleep(Duration::from_secs(1)).await;

    let mut taken = Vec::new();
    let free = take_all(&database, &mut taken).await;
    println!("{free} free connections taken");
    assert!(free > 0, "the nodes left none");
    let started = Instant::now();
    let mut robbed = false;
    while started.elapsed() < fault_lasts() / 2 {
        if !robbed && started.elapsed() > fault_lasts() / 4 {
            // Nodes could continue with their open connections, so those are closed, too.
            println!("{} connections of nodes taken", taken[0].end_all_of_nodes().await);
            robbed = true;
        }
        take_all(&database, &mut taken).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(taken);
    let probes = cell.recover("fill-pool").await;
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    cell.balance(&acknowledged).await;
    drop(cell);
    database.remove().await;
}

/// Opens connections until none is left; returns how many.
async fn take_all(database: &Database, taken: &mut Vec<Connection>) -> usize {
    let before = taken.len();
    while let Ok(connection) = Connection::open(&database.url).await {
        taken.push(connection);
    }
    taken.len() - before
}
