//! Reads incidents from the store, one read at a time; requests that wait for the same incidents share one read.

use rewheel_core::store::{FailureScan, Store, StoreResult};
use rewheel_core::{Incident, Incidents, KindName, Tenant};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// Maximum number of rows per read, for dead letters and for live jobs each: milliseconds of the store's time.
pub(crate) const ROWS_MAX: usize = 10_000;

/// Maximum number of message bytes per read, for dead letters and for live jobs each.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum number of results kept for waiting requests.
const KEPT_MAX: usize = 4;

/// The filter of a read.
type Subject = (Vec<KindName>, Option<Tenant>);

/// Serializes and shares reads of incidents.
#[derive(Debug, Default)]
pub(crate) struct IncidentDesk {
    /// Numbers requests and reads in order.
    events: AtomicU64,
    /// Locked while the store is read.
    readings: Mutex<HashMap<Subject, Reading>>,
}

#[derive(Clone, Debug)]
struct Reading {
    began: u64,
    found: Arc<Found>,
}

/// The result of one read.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) incidents: Vec<Incident>,
    /// Whether every job was read; otherwise only the newest were.
    pub(crate) complete: bool,
}

impl IncidentDesk {
    /// Returns the incidents of these kinds and this tenant, from a read that started after this call.
    pub(crate) async fn ask(&self, store: &dyn Store, about: Subject) -> StoreResult<Arc<Found>> {
        let asked = self.events.fetch_add(1, Ordering::SeqCst);
        let mut readings = self.readings.lock().await;
        if let Some(reading) = readings.get(&about).filter(|reading| reading.began > asked) {
            return Ok(Arc::clone(&reading.found));
        }
        let began = self.events.fetch_add(1, Ordering::SeqCst);
        let (kinds, tenant) = about.clone();
        let scan = FailureScan { kinds, tenant, rows_max: ROWS_MAX, bytes_max: BYTES_MAX };
        let failures = store.failures(&scan).await?;
        let mut incidents = Incidents::default();
        failures.jobs.iter().for_each(|job| incidents.add(job));
        let incidents = incidents.into_list();
        let found = Arc::new(Found { incidents, complete: failures.complete });
        if readings.len() >= KEPT_MAX {
            readings.clear();
        }
        readings.insert(about, Reading { began, found: Arc::clone(&found) });
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::IncidentDesk;
    use rewheel_core::store::Store;
    use rewheel_stores::MemoryStore;
    use rewheel_testkit::{FaultyStore, Verb};
    use std::sync::Arc;

    #[tokio::test]
    async fn those_who_wait_share_one_reading_and_none_gets_an_old_one() {
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let store = FaultyStore::with_faults(memory, |verb| {
            Box::pin(async move {
                assert!(matches!(verb, Verb::Failures), "{verb:?} is not needed");
                tokio::task::yield_now().await;
                None
            })
        });
        let desk = IncidentDesk::default();
        let ask = || desk.ask(&store, (Vec::new(), None));
        let (first, second, third) = tokio::join!(ask(), ask(), ask());
        let (first, second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
        // Whether or not the first read had begun when the others asked, they share the next one.
        assert!(Arc::ptr_eq(&second, &third));
        let later = ask().await.unwrap();
        assert!(!Arc::ptr_eq(&later, &third) && !Arc::ptr_eq(&later, &first));
    }
}
