//! Exports the metrics table to OpenTelemetry.

use super::histogram::Histogram;
use super::kept::{KindMeters, VerbMeters};
use super::{Fleet, METERS, Meter, MeterType, Source, Value};
use crate::engine::Engine;
use crate::shared::Shared;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram as Instrument, Meter as OtelMeter};
use rewheel_core::KindName;
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// The OpenTelemetry copy of a histogram.
#[derive(Debug)]
pub(crate) struct Mirror {
    instrument: Instrument<f64>,
    labels: Vec<KeyValue>,
}

impl Mirror {
    pub(super) fn record(&self, value: f64) {
        self.instrument.record(value, &self.labels);
    }
}

/// The OpenTelemetry histograms, which cannot be read from a callback.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    duration: Instrument<f64>,
    lateness: Instrument<f64>,
    job_attempts: Instrument<f64>,
    claim_batch: Instrument<f64>,
    store_call: Instrument<f64>,
}

impl Instruments {
    fn new(meter: &OtelMeter) -> Instruments {
        let durations = Histogram::of_durations().bounds();
        let histogram = |name: &'static str, bounds: Vec<f64>| {
            let told = METERS.iter().find(|meter| meter.name == name);
            let (unit, help) = told.map_or(("", ""), |told| (told.unit, told.help));
            let builder = meter.f64_histogram(name).with_boundaries(bounds);
            builder.with_unit(unit).with_description(help).build()
        };
        Instruments {
            duration: histogram("rewheel.attempt.duration", durations.clone()),
            lateness: histogram("rewheel.attempt.lateness", durations.clone()),
            job_attempts: histogram("rewheel.job.attempts", Histogram::of_attempts().bounds()),
            claim_batch: histogram("rewheel.claim.batch", Histogram::of_sizes().bounds()),
            store_call: histogram("rewheel.store.call.duration", durations),
        }
    }

    pub(super) fn mirror_kind(&self, name: &KindName, meters: &KindMeters) {
        let labels = vec![KeyValue::new("kind", name.to_string())];
        let instrument = self.duration.clone();
        meters.duration.mirror(Mirror { instrument, labels: labels.clone() });
        let instrument = self.job_attempts.clone();
        meters.job_attempts.mirror(Mirror { instrument, labels: labels.clone() });
        meters.lateness.mirror(Mirror { instrument: self.lateness.clone(), labels });
    }

    pub(super) fn mirror_verb(&self, verb: &'static str, meters: &VerbMeters) {
        let labels = vec![KeyValue::new("verb", verb)];
        meters.duration.mirror(Mirror { instrument: self.store_call.clone(), labels });
    }
}

/// An engine's metrics, exported to OpenTelemetry.
#[derive(Clone, Debug)]
pub struct Exported {
    fleet: Arc<RwLock<Option<Fleet>>>,
}

impl Exported {
    /// Reads the values of the store, for the metrics that need them; those metrics report the last values read. Call it as often
    /// as metrics are collected; before the first call the store counts as unavailable.
    pub async fn refresh(&self, engine: &Engine) {
        let fleet = engine.fleet().await.ok();
        *self.fleet.write().unwrap_or_else(PoisonError::into_inner) = fleet;
    }
}

impl Engine {
    /// Creates an OpenTelemetry instrument for each metric. Call it once per engine: only the first call gets the histograms.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = rewheel_engine::Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .start().await?;
    /// let exported = engine.export_meters(&opentelemetry::global::meter("rewheel"));
    /// exported.refresh(&engine).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_meters(&self, meter: &OtelMeter) -> Exported {
        let exported = Exported { fleet: Arc::default() };
        for told in &METERS {
            let (shared, fleet) = (Arc::downgrade(self.shared_arc()), Arc::clone(&exported.fleet));
            match told.form {
                MeterType::Counter => count(meter, told, shared, fleet),
                MeterType::Gauge => gauge(meter, told, shared, fleet),
                MeterType::Histogram => {}
            }
        }
        let (instruments, meters) = (Instruments::new(meter), &self.shared().reports.meters);
        let claim_batch = instruments.claim_batch.clone();
        meters.claim_batch.mirror(Mirror { instrument: claim_batch, labels: Vec::new() });
        let _ = meters.store.instruments.set(instruments.clone());
        let _ = meters.instruments.set(instruments.clone());
        // Kinds that were added since have done it themselves.
        for (name, kind) in meters.kinds() {
            instruments.mirror_kind(&name, &kind);
        }
        for (verb, called) in meters.store.verbs() {
            instruments.mirror_verb(verb, &called);
        }
        exported
    }
}

fn count(
    meter: &OtelMeter,
    told: &'static Meter,
    shared: Weak<Shared>,
    fleet: Arc<RwLock<Option<Fleet>>>,
) {
    let builder = meter.u64_observable_counter(told.name);
    let builder = builder.with_unit(told.unit).with_description(told.help);
    builder
        .with_callback(move |to| {
            each(told, &shared, &fleet, |value, labels| {
                if let Value::Count(count) = value {
                    to.observe(*count, labels);
                }
            });
        })
        .build();
}

fn gauge(
    meter: &OtelMeter,
    told: &'static Meter,
    shared: Weak<Shared>,
    fleet: Arc<RwLock<Option<Fleet>>>,
) {
    let builder = meter.f64_observable_gauge(told.name);
    let builder = builder.with_unit(told.unit).with_description(told.help);
    builder
        .with_callback(move |to| {
            each(told, &shared, &fleet, |value, labels| match value {
                Value::Count(count) => to.observe(*count as f64, labels),
                Value::Number(number) => to.observe(*number, labels),
                Value::Distribution(_) => {}
            });
        })
        .build();
}

/// Reads a metric, unless the engine is gone.
fn each(
    meter: &'static Meter,
    shared: &Weak<Shared>,
    fleet: &RwLock<Option<Fleet>>,
    mut to: impl FnMut(&Value, &[KeyValue]),
) {
    let Some(shared) = shared.upgrade() else { return };
    let fleet = fleet.read().unwrap_or_else(PoisonError::into_inner);
    let source = Source { shared: &shared, fleet: fleet.as_ref() };
    for sample in (meter.read)(&source) {
        let labels = meter.labels.iter().zip(sample.labels);
        let labels: Vec<KeyValue> =
            labels.map(|(name, value)| KeyValue::new(*name, value.into_owned())).collect();
        to(&sample.value, &labels);
    }
}
