//! A shop that charges cards, and tries again while the bank is unavailable.

use rewheel::seconds;
use rewheel_engine::{Engine, EngineSettings, JobContext, JobKind, KindSettings};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The payload of a job. It is stored as JSON.
#[derive(Serialize, Deserialize)]
struct ChargeCard {
    order: u64,
}

impl JobKind for ChargeCard {
    const NAME: &'static str = "charge-card";
}

/// Stands for a network call: the bank is available while the file `bank-is-up` exists.
async fn charge(order: u64, idempotency_key: &str) -> io::Result<()> {
    if Path::new("bank-is-up").exists() {
        println!("order {order}: charged, idempotency key {idempotency_key}");
        Ok(())
    } else {
        println!("order {order}: the bank refuses connections");
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

/// Runs one attempt of one job. The error type says whether a retry can help.
async fn handle(ctx: JobContext, job: ChargeCard) -> io::Result<()> {
    charge(job.order, &ctx.idempotency_key()).await
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
        let job = ChargeCard { order: order.parse()? };
        engine.submit(job).key(&format!("order-{order}")).await?;
        println!("order {order}: accepted");
    }

    tokio::signal::ctrl_c().await?;
    println!("{}", engine.shutdown(seconds(30)).await);
    Ok(())
}
