//! A test store with slow inserts, and submits that never end.

use rewheel::millis;
use rewheel_core::store::Store;
use rewheel_engine::Engine;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// A store whose inserts take some time.
pub(crate) fn with_slow_inserts(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(FaultyStore::with_faults(store, slow_inserts))
}

fn slow_inserts(verb: Verb) -> Pin<Box<dyn Future<Output = Option<Fault>> + Send>> {
    Box::pin(async move {
        if verb == Verb::Insert {
            tokio::time::sleep(millis(3)).await;
        }
        None
    })
}

/// Four tasks that submit jobs until they are dropped, with a pause after each job.
pub(crate) fn flood(
    engine: &Engine,
    kind: &'static str,
    tenant: Option<&'static str>,
    pause: Duration,
) -> JoinSet<()> {
    let mut submitters = JoinSet::new();
    for nth in 0..4 {
        let engine = engine.clone();
        submitters.spawn(async move {
            tokio::time::sleep(millis(nth)).await;
            loop {
                let job = engine.submit_raw(kind, Vec::new());
                let job = tenant.into_iter().fold(job, |job, tenant| job.tenant(tenant));
                let _ = job.await;
                tokio::time::sleep(pause).await;
            }
        });
    }
    submitters
}
