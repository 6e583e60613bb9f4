//! Counts the transactions and statements of idle engines.

use anyhow::Result;
use rewheel::seconds;
use rewheel_core::Report;
use rewheel_engine::Engine;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::subject::open;
use crate::server::{Database, Server};

/// Statements per second of each engine.
const TARGET: f64 = 3.0;
/// Sessions report their counters when they are busy, or ten seconds later.
const SETTLED: Duration = Duration::from_secs(15);
const WATCHED: Duration = Duration::from_secs(60);

pub async fn print(server: &Server) -> Result<()> {
    println!("what each idle engine asks in a second, over {WATCHED:?}");
    println!("{:<12}{:>14}{:>14}", "", "transactions", "statements");
    for engines in [1, 10] {
        let database = server.create("idle").await?;
        let each = measure(server, &database, engines).await;
        server.drop(database).await?;
        let (transactions, statements) = each?;
        let told = statements.map_or("not counted".to_owned(), |each| format!("{each:.2}"));
        let is_reached = statements.unwrap_or(transactions) <= TARGET;
        let reached = if is_reached { "pass" } else { "MISS" };
        println!("{engines:>3} engines {transactions:>14.2}{told:>14}  target {TARGET}  {reached}");
    }
    Ok(())
}

/// Returns transactions, and statements if the server counts them.
async fn measure(server: &Server, database: &Database, count: usize) -> Result<(f64, Option<f64>)> {
    let mut engines = Vec::with_capacity(count);
    for _ in 0..count {
        let store = open(&database.url).await?;
        let engine = Engine::builder(Arc::clone(&store))
            .raw_handler("bench", |_| std::future::ready(Report::Done))
            .start()
            .await?;
        engines.push((engine, store));
    }
    tokio::time::sleep(SETTLED).await;
    let transactions = server.transactions(database).await?;
    let statements = server.statements(database).await;
    tokio::time::sleep(WATCHED).await;
    let transactions = server.transactions(database).await? - transactions;
    let statements = server.statements(database).await.zip(statements);
    for (engine, store) in engines {
        engine.shutdown(seconds(1)).await;
        store.close().await?;
    }
    let each = |asked: i64| asked as f64 / WATCHED.as_secs_f64() / count as f64;
    Ok((each(transactions), statements.map(|(after, before)| each(after - before))))
}
