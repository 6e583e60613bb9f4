//! Reads the kinds from the store: all of them at first and once a minute, otherwise only those that changed.

use rewheel::{Clock, Moment};
use rewheel_core::store::{KindsSince, Store, StoreResult};
use rewheel_core::{Kind, KindName};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;

/// How often all kinds are read. A store that was restored from a backup, or that failed over to a server that lagged behind, may
/// have older kinds than this engine has read, and none of them looks changed.
const ALL_EVERY: Duration = Duration::from_secs(60);

/// The kinds as the store had them when they were last read.
#[derive(Debug, Default)]
pub(crate) struct KindsRead(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    at: u64,
    all_read: Option<Moment>,
    kinds: BTreeMap<KindName, Kind>,
}

impl KindsRead {
    /// Reads what changed. If anything did, calls `learn` with every kind as it is now, and with the time of the question.
    pub(crate) async fn refresh(
        &self,
        store: &dyn Store,
        clock: &Clock,
        learn: impl FnOnce(&[Kind], Moment),
    ) -> StoreResult<()> {
        // Held until the kinds are learned: an older answer must not undo a newer one.
        let mut known = self.0.lock().await;
        let asked = clock.now();
        let read = store.kinds_since(known.since(asked)).await?;
        if let Some(kinds) = known.take(read, asked) {
            learn(&kinds, asked);
        }
        Ok(())
    }
}

impl Known {
    /// Returns what to ask the store with; 0 reads every kind.
    fn since(&self, now: Moment) -> u64 {
        match self.all_read {
            Some(read) if now.since(read) < ALL_EVERY => self.at,
            Some(_) | None => 0,
        }
    }

    /// Takes an answer of the store. Returns every kind, or `None` if nothing changed.
    fn take(&mut self, read: KindsSince, asked: Moment) -> Option<Vec<Kind>> {
        let KindsSince { at, all, kinds } = read;
        self.at = at;
        let mut changed = false;
        if all {
            self.all_read = Some(asked);
            let before = std::mem::take(&mut self.kinds);
            self.kinds = kinds.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
            changed |= before != self.kinds;
        } else {
            for kind in kinds {
                changed |= self.kinds.get(&kind.name) != Some(&kind);
                self.kinds.insert(kind.name.clone(), kind);
            }
        }
        changed.then(|| self.kinds.values().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL_EVERY, Known};
    use rewheel::{Clock, ManualClock};
    use rewheel_core::store::{KindStore, KindsSince};
    use rewheel_core::{Actor, Kind, KindName, NewKind};
    use rewheel_stores::MemoryStore;

    async fn kind() -> Kind {
        let store = MemoryStore::new();
        let name = KindName::parse("work").unwrap();
        let new = NewKind {
            name,
            settings: "{}".to_owned(),
            takeovers_max: 3,
            on_dead: Default::default(),
        };
        store.put_kinds(&[new], &Actor::new("test")).await.unwrap();
        store.kinds().await.unwrap().remove(0)
    }

    #[tokio::test]
    async fn all_kinds_are_read_once_a_minute_and_an_older_one_is_believed() {
        let manual = ManualClock::new();
        let clock = Clock::from(&manual);
        let mut known = Known::default();
        assert_eq!(known.since(clock.now()), 0, "the first reading is of all kinds");
        let paused = Kind { paused: true, generation: 7, ..kind().await };
        let all = |kind: &Kind| KindsSince { at: 40, all: true, kinds: vec![kind.clone()] };
        assert_eq!(known.take(all(&paused), clock.now()), Some(vec![paused.clone()]));
        assert_eq!(known.since(clock.now()), 40);
        let nothing = KindsSince { at: 41, all: false, kinds: Vec::new() };
        assert_eq!(known.take(nothing, clock.now()), None);
        manual.advance(ALL_EVERY);
        assert_eq!(known.since(clock.now()), 0, "changes are not enough after a restore");
        assert_eq!(known.take(all(&paused), clock.now()), None, "nothing changed");
        let restored = Kind { paused: false, generation: 2, ..paused };
        assert_eq!(known.take(all(&restored), clock.now()), Some(vec![restored]));
    }
}
