//! Measures the same operations on a small and on a large store, to show what the size costs.

mod fill;
mod fleet;

use self::fill::fill;
use self::fleet::Fleet;
use super::BenchArgs;
use super::store_location::Place;
use super::subject::{now, open};
use anyhow::{Context, Result, bail, ensure};
use rewheel::seconds;
use rewheel_core::store::{Claim, Store, Visit};
use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Maximum growth of a cost from the small to the large store, with room for variation.
const FACTOR_MAX: f64 = 3.0;

/// Costs below this are noise.
const NOISE_MS: f64 = 1.0;

/// The small store has a hundredth of the jobs, tenants and kinds, and a tenth of the nodes and workers.
const SMALLER: usize = 100;
const FEWER: usize = 10;

/// Number of measured calls.
const CALLS: usize = 20;

/// Lanes that an engine reads at once.
const LANES: usize = 1_000;

/// The size of a store.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Size {
    jobs: usize,
    tenants: usize,
    kinds: usize,
    nodes: usize,
    workers: usize,
}

impl Size {
    fn small(self) -> Size {
        let part = |count: usize, by: usize| (count / by).max(1);
        Size {
            jobs: part(self.jobs, SMALLER),
            tenants: part(self.tenants, SMALLER),
            kinds: part(self.kinds, SMALLER),
            nodes: part(self.nodes, FEWER),
            workers: part(self.workers, FEWER),
        }
    }
}

/// What a cost may grow with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum With {
    Nothing,
    Kinds,
    Holders,
    Jobs,
}

/// The measurements on both stores.
#[derive(Debug, Serialize)]
pub(crate) struct Scale {
    small: Size,
    large: Size,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    unit: &'static str,
    small: f64,
    large: f64,
    ratio: f64,
    ratio_max: Option<f64>,
}

/// One cost on one store.
struct Cost {
    name: &'static str,
    unit: &'static str,
    value: f64,
    with: With,
}

/// Measures both stores.
pub(super) async fn run(args: &BenchArgs, place: &Place) -> Result<Scale> {
    let jobs = args.jobs.unwrap_or(10_000_000);
    let (tenants, kinds) = (args.tenants, args.kinds);
    let large = Size { jobs, tenants, kinds, nodes: args.nodes, workers: args.workers };
    if [jobs, tenants, kinds, large.nodes].contains(&0) {
        bail!("--jobs, --tenants, --kinds and --nodes must be 1 or more");
    }
    let small = large.small();
    let before = measured(place, "small", small, args.idle).await?;
    let after = measured(place, "large", large, args.idle).await?;
    let kinds = large.kinds as f64 / small.kinds as f64;
    let holders = (large.nodes + large.workers) as f64 / (small.nodes + small.workers) as f64;
    let line = |(one, other): (Cost, Cost)| {
        let floor = if one.unit == "ms" { NOISE_MS } else { 1.0 };
        let ratio_max = match one.with {
            With::Nothing => Some(FACTOR_MAX),
            With::Kinds => Some(FACTOR_MAX * kinds),
            With::Holders => Some(FACTOR_MAX * holders),
            With::Jobs => None,
        };
        let ratio = other.value.max(floor) / one.value.max(floor);
        let (small, large) = (one.value, other.value);
        Line { name: one.name, unit: one.unit, small, large, ratio, ratio_max }
    };
    let lines = before.into_iter().zip(after).map(line).collect();
    Ok(Scale { small, large, lines })
}

/// The place and the duration for watching idle nodes.
struct Watch<'a> {
    place: &'a Place,
    name: &'a str,
    time: Duration,
}

async fn measured(place: &Place, name: &str, size: Size, time: Duration) -> Result<Vec<Cost>> {
    let url = place.make(name).await?;
    let store = open(&url).await?;
    let costs = measure(&store, size, &Watch { place, name, time }).await;
    store.close().await?;
    place.clear(name).await?;
    costs
}

async fn measure(store: &Arc<dyn Store>, size: Size, watch: &Watch<'_>) -> Result<Vec<Cost>> {
    let mut costs = Vec::new();
    let mut add = |name, unit, value, with| costs.push(Cost { name, unit, value, with });
    let filled = fill(store, size).await?;
    add("write all kinds", "ms", filled.kinds_ms, With::Kinds);
    add("insert 1,000 jobs", "ms", filled.insert_ms, With::Nothing);
    add("count all jobs (background)", "ms", timed(1, || store.take_sample()).await?, With::Jobs);
    let kinds: Vec<KindName> = (0..size.kinds).map(kind).collect::<Result<_>>()?;
    let lanes = timed(CALLS, || store.lanes(&kinds, None, LANES)).await?;
    add("list a page of lanes", "ms", lanes, With::Kinds);
    add("claim 10 jobs", "ms", claim(store, &filled).await?, With::Nothing);
    let at = store.kinds_since(0).await?.at;
    let unchanged = timed(CALLS, || store.kinds_since(at)).await?;
    add("read kinds, none changed", "ms", unchanged, With::Nothing);
    add("read holders", "ms", timed(CALLS, || store.holders()).await?, With::Holders);
    add("stats: read the sample", "ms", timed(CALLS, || store.sample()).await?, With::Kinds);
    let started = now();
    let mut fleet = Fleet::start(store).await?;
    add("start an engine", "ms", millis(started), With::Kinds);
    let started = now();
    fleet.scrape().await?;
    add("metrics: one scrape", "ms", millis(started), With::Kinds);
    fleet.grow(size.nodes).await?;
    let idle = fleet.watch(watch).await?;
    add("store calls of an idle node", "/s", idle.calls, With::Nothing);
    fleet.wait_for_jobs(&filled.workers);
    let waiting = fleet.watch(watch).await?;
    add("the same, workers wait there", "/s", waiting.calls, With::Nothing);
    let trickle = fleet.trickle(size, watch).await?;
    add("the same, 50 jobs a second", "/s", trickle.calls, With::Nothing);
    let rows = [
        ("rows read by an idle node", idle.rows),
        ("the same, workers wait there", waiting.rows),
        ("the same, 50 jobs a second", trickle.rows),
    ];
    for (name, rows) in rows {
        if let Some(rows) = rows {
            add(name, "/s", rows, With::Holders);
        }
    }
    fleet.stop().await;
    Ok(costs)
}

/// Returns the median duration of some calls, in milliseconds.
async fn timed<T, F>(calls: usize, mut call: impl FnMut() -> F) -> Result<f64>
where
    F: Future<Output = rewheel_core::store::StoreResult<T>>,
{
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let started = now();
        call().await?;
        times.push(millis(started));
    }
    times.sort_by(f64::total_cmp);
    times.get(calls / 2).copied().context("nothing was measured")
}

fn millis(started: std::time::Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn kind(nth: usize) -> Result<KindName> {
    Ok(KindName::parse(&format!("kind-{nth}"))?)
}

/// Claims from one lane among all lanes.
async fn claim(store: &Arc<dyn Store>, filled: &fill::Filled) -> Result<f64> {
    let tenant = Some(Tenant::parse(fill::DUE)?);
    let shard = Shard::of(tenant.as_ref(), None);
    let lane = Lane { kind: kind(0)?, tenant, priority: Priority::DEFAULT, shard };
    let (attempt_timeout, grace) = (seconds(30), seconds(5));
    let visits = [Visit {
        lane,
        limit: 10,
        attempt_timeout,
        attempt_timeout_ceiling: attempt_timeout,
        grace,
    }];
    let claim =
        Claim { holder: filled.holder, visits: &visits, horizon: Duration::ZERO, limit: 10 };
    let took = timed(CALLS, || store.claim(&claim)).await?;
    ensure!(store.claim(&claim).await?.len() == 10, "there was nothing to claim");
    Ok(took)
}

impl Line {
    fn is_too_much(&self) -> bool {
        self.ratio_max.is_some_and(|most| self.ratio > most)
    }
}

impl Scale {
    /// Names the costs that grew beyond their factor.
    pub(super) fn failure(&self) -> Option<String> {
        let grown: Vec<&str> =
            self.lines.iter().filter(|line| line.is_too_much()).map(|line| line.name).collect();
        (!grown.is_empty())
            .then(|| format!("costs grow with the size of the store: {}", grown.join(", ")))
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, size) in [("small", self.small), ("large", self.large)] {
            let Size { jobs, tenants, kinds, nodes, workers } = size;
            writeln!(
                f,
                "{name}: {jobs} waiting jobs, {tenants} tenants, {kinds} kinds, {nodes} nodes, {workers} workers"
            )?;
        }
        writeln!(
            f,
            "{:<30}{:>12}{:>12}  {:<5}{:>8}{:>8}",
            "cost", "small", "large", "unit", "ratio", "limit"
        )?;
        for line in &self.lines {
            let Line { name, unit, small, large, ratio, ratio_max } = line;
            let limit = ratio_max.map_or_else(|| "none".to_owned(), |most| format!("{most:.0}"));
            let verdict = if line.is_too_much() { "  too much" } else { "" };
            writeln!(
                f,
                "{name:<30}{small:>12.2}{large:>12.2}  {unit:<5}{ratio:>8.2}{limit:>8}{verdict}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Scale, Size};

    fn line(name: &'static str, ratio: f64, ratio_max: Option<f64>) -> Line {
        Line { name, unit: "ms", small: 1.0, large: ratio, ratio, ratio_max }
    }

    #[test]
    fn a_cost_that_grows_beyond_its_factor_is_named() {
        let large = Size { jobs: 50, tenants: 5_000, kinds: 100, nodes: 5, workers: 0 };
        let small = large.small();
        assert_eq!((small.jobs, small.tenants, small.kinds, small.nodes), (1, 50, 1, 1));
        let lines = vec![line("claim", 2.9, Some(3.0)), line("count", 99.0, None)];
        let mut scale = Scale { small, large, lines };
        assert_eq!(scale.failure(), None);
        scale.lines.push(line("lanes", 3.1, Some(3.0)));
        assert_eq!(
            scale.failure().as_deref(),
            Some("costs grow with the size of the store: lanes")
        );
        assert!(scale.to_string().contains("too much"), "{scale}");
    }
}
