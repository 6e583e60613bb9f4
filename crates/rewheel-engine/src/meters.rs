//! What an engine measures: one table, from which all that shows it is made.

mod histogram;
mod kept;
mod table;
#[cfg(feature = "otel")]
mod otel;

pub use self::histogram::Distribution;
#[cfg(feature = "otel")]
pub use self::otel::Exported;
pub use self::table::METERS;

pub(crate) use self::kept::{KindMeters, Meters, Renewal, StoreMeters};

use crate::engine::Engine;
use crate::job_counts::JobCounts;
use crate::shared::Shared;
use rewheel_core::store::Answer;
use rewheel_core::{Holder, Kind};
use std::borrow::Cow;
use std::sync::Arc;

/// What a meter does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It only grows, until the process starts anew.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts values by their size.
    Histogram,
}

impl Form {
    /// Returns its name, as Prometheus has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Form::Counter => "counter",
            Form::Gauge => "gauge",
            Form::Histogram => "histogram",
        }
    }
}

/// Something that is measured, with everything that is said of it anywhere.
///
/// ```
/// use rewheel_engine::meters::{Form, METERS};
///
/// let settled = METERS.iter().find(|meter| meter.name == "rewheel.jobs.settled").unwrap();
/// assert_eq!((settled.form, settled.unit), (Form::Counter, "{result}"));
/// assert_eq!(settled.prometheus_name(), "rewheel_jobs_settled_total");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// What OpenTelemetry calls it.
    pub name: &'static str,
    /// What it does over time.
    pub form: Form,
    /// Its unit, in the words of UCUM: `s`, or what is counted in braces.
    pub unit: &'static str,
    /// What tells its values apart. Each has few values: kinds, states, verbs; never tenants or jobs.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence.
    pub help: &'static str,
    read: fn(&Source<'_>) -> Vec<Sample>,
}

impl Meter {
    /// Returns its name for Prometheus: with underscores, its unit where it has one, and `total` where it only grows.
    pub fn prometheus_name(&self) -> String {
        let unit = if self.unit == "s" { "_seconds" } else { "" };
        let total = if self.form == Form::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }
}

/// A value of a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// One for each label of its meter, in order.
    pub labels: Vec<Cow<'static, str>>,
    /// How much.
    pub value: Value,
}

/// How much.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// So many.
    Count(u64),
    /// So much.
    Number(f64),
    /// So many of each size.
    Distribution(Distribution),
}

/// All values of a meter.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Of which meter.
    pub meter: &'static Meter,
    /// None where nothing happened yet, or nobody knows.
    pub samples: Vec<Sample>,
}

/// What all engines on a store have together, as it was when it was read.
#[derive(Clone, Debug)]
pub struct Fleet {
    counts: Arc<JobCounts>,
    kinds: Vec<Kind>,
    holders: Vec<Holder>,
}

/// Where values come from.
struct Source<'a> {
    shared: &'a Shared,
    fleet: Option<&'a Fleet>,
}

impl Engine {
    /// Reads what the store has, for the meters that tell it.
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn fleet(&self) -> Answer<Fleet> {
        let store = self.store();
        let (counts, kinds) = (self.job_counts().await?, store.kinds().await?);
        Ok(Fleet { counts, kinds, holders: store.holders().await? })
    }

    /// Reads every meter: what this engine did since it started, and what the fleet has where that is known.
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
