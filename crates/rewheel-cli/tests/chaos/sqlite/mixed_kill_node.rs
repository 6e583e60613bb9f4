//! `mixed-kill-node`: one server is killed repeatedly, with jobs that use every feature.

use crate::alone;
use crate::cell::Cell;
use crate::mixed::Mixed;
use std::time::Duration;

const KILLS_DEFAULT: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_feature_survives_killing_the_server() {
    let _alone = alone().await;
    let kills = std::env::var("REWHEEL_KILLS").ok();
    let kills = kills.map_or(KILLS_DEFAULT, |kills| kills.parse().expect("REWHEEL_KILLS"));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    let mixed = Mixed::start(&store, 1).await;
    mixed
        .run(async |cell: &mut Cell| {
            for round in 0..kills {
                let after = Duration::from_millis(300 + (round as u64 * 167) % 700);
                tokio::time::sleep(after).await;
                cell.nodes[0].kill().await;
                cell.restart(0).await;
            }
        })
        .await;
    println!("{kills} kills");
}
