//! Calls a bank; a call that runs out of attempts becomes a durable job.

use rewheel::{Retry, Retryable, SpillOutcome, millis, seconds};
use rewheel_engine::{Engine, EngineSettings, JobContext, JobKind, KindSettings};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// At most 5 attempts, and at most 10 seconds in total.
const POLICY: Retry = Retry::exponential(millis(100)).attempts_max(5).deadline(seconds(10));

/// Stands for a network call: the bank is available while the file `bank-is-up` exists.
async fn charge(order: u64) -> io::Result<()> {
    if Path::new("bank-is-up").exists() {
        println!("order {order}: charged");
        Ok(())
    } else {
        println!("order {order}: the bank refuses connections");
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

#[derive(Serialize, Deserialize)]
struct ChargeCard {
    order: u64,
}

impl JobKind for ChargeCard {
    const NAME: &'static str = "charge-card";
}

async fn handle(_: JobContext, job: ChargeCard) -> io::Result<()> {
    charge(job.order).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = rewheel_stores::connect("sqlite://shop.db").await?;
    let engine = Engine::builder(store)
        .settings(EngineSettings { lease_ttl: seconds(2), ..EngineSettings::default() })
        .kind("charge-card", KindSettings { attempts_max: 50, ..KindSettings::default() })
        .handler(handle)
        .start()
        .await?;

    for order in std::env::args().skip(1) {
        let (job, key) = (ChargeCard { order: order.parse()? }, format!("order-{order}"));
        let number = job.order;
        let call = (|| charge(number)).retry(POLICY).or_spill_to(&engine, (job, key.as_str()));
        if let SpillOutcome::Spilled(receipt) = call.await? {
            println!("order {order}: continues as job {}", receipt.id);
        }
    }

    tokio::signal::ctrl_c().await?;
    println!("{}", engine.shutdown(seconds(30)).await);
    Ok(())
}
