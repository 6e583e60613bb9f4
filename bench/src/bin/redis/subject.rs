//! Measures Rewheel on Redis.

use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::Duration;

use crate::queue::load::{Figures, Load};
use crate::queue::subject::{balance, drain, latency, open, submit};
use crate::server::Server;

pub async fn round(server: &Server, load: &Load, keep: Duration) -> Result<Figures> {
    let url = &server.url;
    let submit = submit(url, load, keep, Duration::ZERO).await?;
    let drain = drain(url, load.jobs, &Arc::default(), async || Ok(())).await?;
    let left = open(url).await?.books().await?.live;
    ensure!(left == 0, "{left} jobs are left");
    let mut figures = Figures { submit: Some(submit), drain: Some(drain), ..Figures::default() };
    if load.samples > 0 {
        latency(url, load, &mut figures).await?;
    }
    balance(url).await?;
    Ok(figures)
}
