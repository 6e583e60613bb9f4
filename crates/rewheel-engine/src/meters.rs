//! Metrics of an engine: one table that all exporters read.

mod histogram;
mod kept;
mod table;
#[cfg(feature = "otel")]
mod otel;

pub use self::histogram::Distribution;
#[cfg(feature = "otel")]
pub use self::otel::Exported;
pub use self::table::METERS;

pub(crate) use self::kept::{KindMeters, MISSED, Meters, Renewal, StoreMeters};

use crate::engine::Engine;
use crate::job_counts::JobCounts;
use crate::shared::Shared;
use rewheel_core::store::StoreResult;
use rewheel_core::{Holder, Kind};
use std::borrow::Cow;
use std::sync::Arc;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterType {
    /// Only increases, until the process restarts.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts values by size.
    Histogram,
}

impl MeterType {
    /// Returns its name in Prometheus.
    pub fn as_str(self) -> &'static str {
        match self {
            MeterType::Counter => "counter",
            MeterType::Gauge => "gauge",
            MeterType::Histogram => "histogram",
        }
    }
}

/// The program that contains an engine, as the metric `rewheel_build_info` shows it.
///
/// ```
/// use rewheel_engine::meters::Build;
///
/// let build = Build { version: "2.1.0", commit: "4f2a9c1" };
/// assert_eq!(Build::default().commit, "unknown");
/// # let _ = build;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// The version of the program.
    pub version: &'static str,
    /// The commit that it was built from.
    pub commit: &'static str,
}

impl Default for Build {
    fn default() -> Build {
        Build { version: env!("CARGO_PKG_VERSION"), commit: "unknown" }
    }
}

/// A metric with its complete description.
///
/// ```
/// use rewheel_engine::meters::{MeterType, METERS};
///
/// let settled = METERS.iter().find(|meter| meter.name == "rewheel.jobs.settled").unwrap();
/// assert_eq!((settled.form, settled.unit), (MeterType::Counter, "{result}"));
/// assert_eq!(settled.prometheus_name(), "rewheel_jobs_settled_total");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The name in OpenTelemetry.
    pub name: &'static str,
    /// The type.
    pub form: MeterType,
    /// Its unit in UCUM notation: `s`, or the name of the counted items in braces.
    pub unit: &'static str,
    /// Its labels. Each has few values: kinds, states, verbs; never tenants or jobs.
    pub labels: &'static [&'static str],
    /// The help text.
    pub help: &'static str,
    read: fn(&Source<'_>) -> Vec<Sample>,
}

impl Meter {
    /// Returns its name in Prometheus: with underscores, its unit if it has one, and `total` for a counter.
    pub fn prometheus_name(&self) -> String {
        let unit = if self.unit == "s" { "_seconds" } else { "" };
        let total = if self.form == MeterType::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// One value for each label of the metric, in order.
    pub labels: Vec<Cow<'static, str>>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A number.
    Number(f64),
    /// A histogram.
    Distribution(Distribution),
}

/// All values of a metric.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The metric.
    pub meter: &'static Meter,
    /// The values. Empty if there are no values yet, or if they are not known.
    pub samples: Vec<Sample>,
}

/// Values shared by all engines of a store, at the time they were read.
#[derive(Clone, Debug)]
pub struct Fleet {
    counts: Arc<JobCounts>,
    kinds: Vec<Kind>,
    holders: Vec<Holder>,
}

/// The sources of values.
struct Source<'a> {
    shared: &'a Shared,
    fleet: Option<&'a Fleet>,
}

impl Engine {
    /// Reads the values of the store, for the metrics that need them.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn fleet(&self) -> StoreResult<Fleet> {
        let store = self.store();
        let (counts, kinds) = (self.job_counts().await?, store.kinds().await?);
        Ok(Fleet { counts, kinds, holders: store.holders().await? })
    }

    /// Reads every metric: the metrics of this engine since it started, and the metrics of the fleet if they are known.
    ///
    /// ```
    /// # use rewheel_engine::Report;
    /// # use rewheel_engine::{Engine, meters::Value};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("mail", |_| async { Report::Done }).start().await?;
    /// engine.submit_raw("mail", Vec::new()).await?;
    /// let readings = engine.meters(engine.fleet().await.ok().as_ref());
    /// let submitted = readings.iter().find(|one| one.meter.name == "rewheel.jobs.submitted").unwrap();
    /// assert_eq!(submitted.samples[0].labels, ["mail", "created"]);
    /// assert_eq!(submitted.samples[0].value, Value::Count(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn meters(&self, fleet: Option<&Fleet>) -> Vec<Reading> {
        let source = Source { shared: self.shared(), fleet };
        METERS.iter().map(|meter| Reading { meter, samples: (meter.read)(&source) }).collect()
    }
}

#[cfg(test)]
mod tests;
