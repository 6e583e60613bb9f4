//! Fills a store with scheduled jobs.

use super::super::subject::now;
use super::{Size, kind, millis};
use anyhow::{Context, Result, ensure};
use rewheel::{Random, seconds};
use rewheel_core::store::{Insert, Inserted, Store};
use rewheel_core::{
    Actor, Format, HolderId, JobId, KindName, NewHolder, NewJob, NewKind, Role, Tenant, Timestamp,
    When, WorkerOwner,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The tenant whose jobs are due.
pub(super) const DUE: &str = "due";

const BATCH: usize = 1_000;

/// Concurrent inserts.
const HANDS: usize = 4;

/// The delay of jobs that must not become due during the measurement.
const LATER: Duration = Duration::from_secs(86_400);

/// The filled store.
pub(super) struct Filled {
    /// A holder that stays alive during the measurement, and is none of the workers.
    pub(super) holder: HolderId,
    /// The registered workers.
    pub(super) workers: Vec<HolderId>,
    pub(super) kinds_ms: f64,
    /// The duration of the last inserts, a thousand jobs each.
    pub(super) insert_ms: f64,
}

pub(super) async fn fill(store: &Arc<dyn Store>, size: Size) -> Result<Filled> {
    let random = Random::thread();
    let kinds: Vec<KindName> = (0..size.kinds).map(kind).collect::<Result<_>>()?;
    let new = |name: &KindName| NewKind {
        name: name.clone(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    let started = now();
    for part in kinds.chunks(BATCH) {
        let part: Vec<NewKind> = part.iter().map(new).collect();
        store.put_kinds(&part, &Actor::new("bench")).await?;
    }
    let kinds_ms = millis(started);
    let mut workers = Vec::new();
    for nth in 0..=size.workers {
        let id = HolderId::new(store.now().await?, &random);
        let (name, lease_ttl) = (format!("worker-{nth}"), LATER);
        let role = Role::Worker { owner: WorkerOwner::Unknown };
        store.join(&NewHolder { id, name, role, lease_ttl, format: Format::CURRENT }).await?;
        workers.push(id);
    }
    let holder = workers.pop().context("no holder was registered")?;
    let created = store.now().await?;
    let mut inserting = JoinSet::new();
    for first in (0..size.jobs).step_by(BATCH) {
        let jobs = batch(first..size.jobs.min(first + BATCH), size, &kinds, created, &random)?;
        if inserting.len() >= HANDS
            && let Some(inserted) = inserting.join_next().await
        {
            inserted??;
        }
        inserting.spawn(insert(Arc::clone(store), jobs));
    }
    while let Some(inserted) = inserting.join_next().await {
        inserted??;
    }
    let due = |_| {
        let id = JobId::new(created, &random);
        let tenant = Some(Tenant::parse(DUE)?);
        Ok(NewJob { tenant, ..NewJob::new(id, kinds[0].clone(), Vec::new()) })
    };
    let mut times = Vec::new();
    for _ in 0..5 {
        let jobs: Vec<NewJob> = (0..BATCH).map(due).collect::<Result<_>>()?;
        let started = now();
        insert(Arc::clone(store), jobs).await?;
        times.push(millis(started));
    }
    times.sort_by(f64::total_cmp);
    Ok(Filled { holder, workers, kinds_ms, insert_ms: times[times.len() / 2] })
}

fn batch(
    numbers: std::ops::Range<usize>,
    size: Size,
    kinds: &[KindName],
    created: Timestamp,
    random: &Random,
) -> Result<Vec<NewJob>> {
    let job = |nth: usize| {
        let id = JobId::new(created, random);
        let tenant = Some(Tenant::parse(&format!("tenant-{}", nth % size.tenants))?);
        let due = When::In(LATER + seconds((nth % 3_600) as u64));
        Ok(NewJob { tenant, due, ..NewJob::new(id, kinds[nth % kinds.len()].clone(), Vec::new()) })
    };
    numbers.map(job).collect()
}

async fn insert(store: Arc<dyn Store>, jobs: Vec<NewJob>) -> Result<()> {
    let answers = store.insert(&Insert::new(&jobs)).await?;
    let stored = answers.iter().all(|answer| matches!(answer, Inserted::Created { .. }));
    ensure!(stored, "a job was not stored: check that the store is empty");
    Ok(())
}
