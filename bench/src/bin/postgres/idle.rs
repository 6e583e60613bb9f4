//! Counts what engines ask while nothing happens.

use anyhow::Result;
use rewheel::seconds;
use rewheel_core::Report;
use rewheel_engine::Engine;
use std::sync::Arc;
use std::time::Duration;

use crate::server::{Database, Server};
use crate::subject::open;

/// Statements per second of each.
const TARGET: f64 = 3.0;
/// Sessions tell what they counted when they are busy, or ten seconds later.
const SETTLED: Duration = Duration::from_secs(15);
const WATCHED: Duration = Duration::from_secs(60);

pub async fn print(server: &Server) -> Result<()> {
    println!("transactions per second of each idle engine, over {WATCHED:?}");
    for engines in [1, 10] {
        let database = server.create("idle").await?;
        let each = measure(server, &database, engines).await;
        server.drop(database).await?;
        let each = each?;
        let reached = if each <= TARGET { "pass" } else { "MISS" };
        println!("{engines:>3} engines  {each:>6.2}  target {TARGET}  {reached}");
    }
    Ok(())
}

async fn measure(server: &Server, database: &Database, count: usize) -> Result<f64> {
    let mut engines = Vec::with_capacity(count);
    for _ in 0..count {
        let store = open(database).await?;
        let engine = Engine::builder(Arc::clone(&store))
            .raw_handler("bench", |_| std::future::ready(Report::Done))
            .start()
            .await?;
        engines.push((engine, store));
    }
    tokio::time::sleep(SETTLED).await;
    let before = server.transactions(database).await?;
    tokio::time::sleep(WATCHED).await;
    let after = server.transactions(database).await?;
    for (engine, store) in engines {
        engine.shutdown(seconds(1)).await;
        store.close().await?;
    }
    Ok((after - before) as f64 / WATCHED.as_secs_f64() / count as f64)
}
