//! `idle-in-tx`: a client leaves a transaction open, whose snapshot keeps every dead row, while jobs trickle.

use super::pressure::Pressure;
use crate::cell::Settings;
use crate::{alone, fault_lasts};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_transaction_loses_nothing_and_costs_no_more_with_time() {
    let _alone = alone().await;
    let Some(pressure) = Pressure::start("idle-in-tx", Settings::default()).await else { return };
    let quiet = pressure.trickle("quiet", fault_lasts() / 2).await;
    pressure.check_pages("quiet").await;

    let idle = pressure.database.connect().await;
    // With a transaction number, as after any write: it keeps more than a snapshot alone.
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id(), count(*) FROM chaos.jobs";
    idle.client.batch_execute(begin).await.unwrap();
    pressure.age().await;
    println!("{} dead rows that vacuum keeps", pressure.keeps_dead_rows().await);
    pressure.count_afresh().await;
    let beside = pressure.trickle("beside", fault_lasts() / 2).await;
    pressure.check_pages("beside an idle transaction").await;
    idle.client.batch_execute("COMMIT").await.unwrap();
    let phases = [("quiet", &quiet), ("beside an idle transaction", &beside)];
    pressure.balance(&phases).await;
}
