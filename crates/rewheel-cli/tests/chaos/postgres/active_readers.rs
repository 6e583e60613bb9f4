//! `active-readers`: other clients scan the hot tables again and again, each in one long transaction.

use super::database::Connection;
use super::pressure::Pressure;
use crate::cell::Settings;
use crate::{alone, fault_lasts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const READERS: usize = 4;

/// What a report or a dashboard of another team might ask.
const SCAN: &str = "SELECT count(*), sum(length(payload)) FROM chaos.jobs;
                    SELECT count(*), sum(length(payload)) FROM chaos.finished";

/// Between two scans of a reader.
const PAUSE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_the_hot_tables_lose_nothing_and_slow_no_statement() {
    let _alone = alone().await;
    let settings = Settings::default();
    let Some(pressure) = Pressure::start("active-readers", settings).await else { return };
    let quiet = pressure.trickle("quiet", fault_lasts() / 2).await;
    pressure.check_pages("quiet").await;

    let enough = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let connection = pressure.database.connect().await;
        connection.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
        // The first scan takes the snapshot of all.
        connection.client.batch_execute(SCAN).await.unwrap();
        readers.spawn(read(connection, Arc::clone(&enough)));
    }
    pressure.age().await;
    println!("{} dead rows that vacuum keeps", pressure.keeps_dead_rows().await);
    pressure.count_afresh().await;
    let beside = pressure.trickle("beside", fault_lasts() / 2).await;
    enough.store(true, Ordering::Relaxed);
    let scans = readers.join_all().await;
    println!("{scans:?} scans of the hot tables");
    assert!(scans.iter().all(|scans| *scans > 0), "a reader read nothing");
    pressure.check_pages("beside readers").await;
    pressure.balance(&[("quiet", &quiet), ("beside readers", &beside)]).await;
}

/// Reads the hot tables until it is enough; returns how often.
async fn read(connection: Connection, enough: Arc<AtomicBool>) -> usize {
    let mut scans = 0;
    while !enough.load(Ordering::Relaxed) {
        connection.client.batch_execute(SCAN).await.unwrap();
        scans += 1;
        tokio::time::sleep(PAUSE).await;
    }
    connection.client.batch_execute("COMMIT").await.unwrap();
    scans
}
