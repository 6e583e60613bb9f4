//! Keeps jobs in the memory of one process.

mod world;
mod verbs;
mod insert;
mod reserve;
mod lanes;
mod claim;
mod limits;
mod groups;
mod settle;
mod results;
mod lease;
mod sweep;
mod kinds;
mod tokens;
mod sample;
mod history;
mod change;
mod deadlines;
mod prune;
mod read;
mod simulation;

pub use self::simulation::Weakness;

use crate::clock;
use crate::wakeup::Wakeup;
use rewheel_core::Timestamp;
use rewheel_core::store::{ClockOffset, StoreError, StoreResult};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use world::World;

/// A store for tests, and for jobs that need not survive the process. Clones share the jobs.
///
/// It is the reference for all other stores, so it implements the contract in the simplest way: plain tables behind one lock.
///
/// ```
/// use rewheel::Random;
/// use rewheel_core::store::{
///     Claim, Insert, KindStore, LeaseStore, Outcome, ReadStore, Settled, Settlement, SubmitStore,
///     Visit, WorkStore,
/// };
/// use rewheel_core::{Actor, HolderId, JobId, KindName, NewHolder, NewJob, NewKind, Role, State};
/// use rewheel_stores::MemoryStore;
/// use std::time::Duration;
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let store = MemoryStore::new();
///     let random = Random::thread();
///     let now = store.now().await?;
///     let (seconds, name) = (Duration::from_secs, KindName::parse("charge-card")?);
///
///     let kind = NewKind { name: name.clone(), settings: "{}".to_owned(), takeovers_max: 3, on_dead: Default::default() };
///     store.put_kinds(&[kind], &Actor::new("example")).await?;
///     let job = NewJob::new(JobId::new(now, &random), name, b"{\"order\":17}".to_vec());
///     store.insert(&Insert::new(std::slice::from_ref(&job))).await?;
///
///     let holder = HolderId::new(now, &random);
///     let new = NewHolder { id: holder, name: "node-1".to_owned(), role: Role::Engine, lease_ttl: seconds(15), format: rewheel_core::Format::CURRENT };
///     store.join(&new).await?;
///     let visits = [Visit {
///         lane: job.lane(),
///         limit: 10,
///         attempt_timeout: seconds(30),
///         attempt_timeout_ceiling: seconds(3_600),
///         grace: seconds(5),
///     }];
///     let claim = Claim { holder, visits: &visits, horizon: seconds(1), limit: 10 };
///     let claimed = store.claim(&claim).await?;
///
///     let settled = store.settle(holder, &[Settlement::succeed(claimed[0].lease())]).await?;
///     assert_eq!(settled, [Settled::Applied(Outcome::LetGo(State::Succeeded))]);
///     Ok(())
/// }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    clock: ClockOffset,
    time: Option<simulation::Time>,
    world: Mutex<World>,
    /// Wakes watchers when something in the store has changed.
    changes: Wakeup,
    #[cfg(feature = "test-faults")]
    panics_in_settle: bool,
}

impl MemoryStore {
    /// Opens an empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Opens an empty store whose clock a test can move.
    pub fn with_clock(clock: ClockOffset) -> MemoryStore {
        let shared = Shared { clock, ..Shared::default() };
        MemoryStore { shared: Arc::new(shared) }
    }

    /// Opens an empty store with a bug in `settle`, for tests of what a process does then.
    #[cfg(feature = "test-faults")]
    pub(crate) fn that_panics_in_settle() -> MemoryStore {
        let shared = Shared { panics_in_settle: true, ..Shared::default() };
        MemoryStore { shared: Arc::new(shared) }
    }

    /// Runs a verb as one transaction: a verb that fails writes nothing.
    fn run<T>(&self, verb: impl FnOnce(&mut World, Timestamp) -> StoreResult<T>) -> StoreResult<T> {
        let mut world = self.lock()?;
        if world.closed {
            return Err(StoreError::Closed);
        }
        // Read the time under the lock: a later write never has an earlier time, unless the clock itself goes back.
        world.verbs += 1;
        let answer = verb(&mut world, self.shared.now());
        world.note_deaths();
        world.append_to_ledger();
        let report = world.report.take();
        drop(world);
        if let Some(report) = report {
            self.shared.changes.wake(report);
        }
        answer
    }

    fn lock(&self) -> StoreResult<MutexGuard<'_, World>> {
        self.shared.world.lock().map_err(|_| StoreError::Broken {
            what: "the memory store panicked during a write and is unusable: restart the process"
                .to_owned(),
            source: None,
        })
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        if let Some(time) = &self.time {
            return self.clock.apply(time());
        }
        clock::now(&self.clock)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
