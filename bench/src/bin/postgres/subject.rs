//! Measures Rewheel on PostgreSQL.

use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::Duration;

use crate::queue::load::{Figures, Load};
use crate::queue::subject::{balance, drain, latency, submit};
use crate::server::{Database, Server};

pub async fn round(server: &Server, load: &Load, keep: Duration) -> Result<Figures> {
    let database = server.create("rewheel").await?;
    let figures = measure(&database, load, keep).await;
    server.drop(database).await?;
    figures
}

async fn measure(database: &Database, load: &Load, keep: Duration) -> Result<Figures> {
    let url = &database.url;
    let submit = submit(url, load, keep, Duration::ZERO).await?;
    let sql = database.connect().await?;
    sql.batch_execute("VACUUM ANALYZE").await?;
    let none_left = async || {
        let left: i64 = sql.query_one("SELECT count(*) FROM rewheel.jobs", &[]).await?.get(0);
        ensure!(left == 0, "{left} jobs are left");
        Ok(())
    };
    let drain = drain(url, load.jobs, &Arc::default(), none_left).await?;
    let mut figures = Figures { submit: Some(submit), drain: Some(drain), ..Figures::default() };
    if load.samples > 0 {
        latency(url, load, &mut figures).await?;
    }
    balance(url).await?;
    Ok(figures)
}
