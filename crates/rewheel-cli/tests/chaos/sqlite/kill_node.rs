//! `kill-node`: one server is killed repeatedly.

use crate::alone;
use crate::cell::{Cell, Settings};
use std::time::Duration;

const KILLS_DEFAULT: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_killing_the_server() {
    let _alone = alone().await;
    let kills = std::env::var("REWHEEL_KILLS").ok();
    let kills = kills.map_or(KILLS_DEFAULT, |kills| kills.parse().expect("REWHEEL_KILLS"));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    let settings = Settings { nodes: 1, pause: Duration::ZERO, ..Settings::default() };
    let mut cell = Cell::start(&store, settings).await;
    let submitter = cell.submit_on();
    for round in 0..kills {
        let after = Duration::from_millis(40 + (round as u64 * 67) % 260);
        tokio::time::sleep(after).await;
        cell.nodes[0].kill().await;
        cell.restart(0).await;
    }
    let acknowledged = submitter.end().await;
    cell.balance(&acknowledged).await;
    println!("{kills} kills");
    assert!(acknowledged.len() > 10 * kills, "{} jobs are few", acknowledged.len());
}
