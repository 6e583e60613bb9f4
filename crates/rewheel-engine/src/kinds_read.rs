//! Caches the kinds of the store: after the first read, only changes are read.

use rewheel_core::store::{Answer, KindsSince, Store};
use rewheel_core::{Kind, KindName};
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// The kinds read so far.
#[derive(Debug, Default)]
pub(crate) struct KindsRead(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    at: u64,
    kinds: BTreeMap<KindName, Kind>,
}

impl KindsRead {
    /// Reads the changes. Returns every kind as it is now, or `None` if nothing changed.
    pub(crate) async fn refresh(&self, store: &dyn Store) -> Answer<Option<Vec<Kind>>> {
        // Held during the request to the store: a late response must not undo a newer one.
        let mut known = self.0.lock().await;
        let KindsSince { at, all, kinds } = store.kinds_since(known.at).await?;
        known.at = at;
        if all {
            known.kinds.clear();
        }
        let mut changed = all;
        for kind in kinds {
            changed |= known.kinds.get(&kind.name) != Some(&kind);
            known.kinds.insert(kind.name.clone(), kind);
        }
        Ok(changed.then(|| known.kinds.values().cloned().collect()))
    }
}
