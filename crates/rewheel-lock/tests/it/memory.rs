//! Runs the conformance suite on memory, and tests of guards with a server that does not answer.

use crate::subject::{LEASE, LONG, Subject, eventually, in_time};
use async_trait::async_trait;
use rewheel::{Clock, ManualClock, seconds};
use rewheel_core::store::ClockOffset;
use rewheel_lock::{
    Ask, BackendError, EarlierCalls, LockBackend, LockError, LockEvent, LockName, LockObserver,
    LockState, Locks, MemoryBackend, Release, Renewal, RequestId, RunError, Turn, Wakeups,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

async fn open() -> Subject {
    let clock = ClockOffset::default();
    let backend = MemoryBackend::with_clock(clock.clone());
    Subject::new(backend.clone(), backend, clock, ())
}

lock_conformance!(open);

/// A server that stops answering, fails or panics when it is told to.
#[derive(Clone, Debug, Default)]
struct Flaky {
    inner: MemoryBackend,
    hangs: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
    panics: Arc<AtomicBool>,
    /// Makes the answer to a request arrive when its lease has ended by this clock.
    late: Arc<Mutex<Option<ManualClock>>>,
    /// Loses the answer to the next release, after its effect.
    loses_release: Arc<AtomicBool>,
    /// What each release said about earlier calls.
    released: Arc<Mutex<Vec<(LockName, EarlierCalls)>>>,
}

impl Flaky {
    async fn pass(&self) -> Result<(), BackendError> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        assert!(!self.panics.load(Ordering::SeqCst), "the backend has a bug");
        if self.fails.load(Ordering::SeqCst) {
            return Err(BackendError::Unavailable("the server is down".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl LockBackend for Flaky {
    fn name(&self) -> &'static str {
        "flaky"
    }

    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError> {
        self.pass().await?;
        let turn = self.inner.acquire(ask).await;
        if let Some(clock) = &*self.late.lock().unwrap() {
            clock.advance(ask.lease);
        }
        turn
    }

    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError> {
        self.pass().await?;
        self.inner.renew(name, id, lease).await
    }

    async fn release(
        &self,
        name: &LockName,
        id: RequestId,
        earlier: EarlierCalls,
    ) -> Result<Release, BackendError> {
        self.released.lock().unwrap().push((name.clone(), earlier));
        self.pass().await?;
        let released = self.inner.release(name, id, earlier).await;
        if self.loses_release.swap(false, Ordering::SeqCst) {
            return Err(BackendError::Unavailable("the answer was lost".into()));
        }
        released
    }

    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError> {
        self.inner.inspect(name).await
    }

    fn wakeups(&self) -> &Wakeups {
        self.inner.wakeups()
    }
}

/// Notes the names of events.
#[derive(Debug, Default)]
struct Events(Mutex<Vec<&'static str>>);

impl LockObserver for Events {
    fn observe(&self, event: &LockEvent<'_>) {
        let name = match event {
            LockEvent::Acquired { .. } => "acquired",
            LockEvent::NotAcquired { .. } => "not acquired",
            LockEvent::RenewalFailed { .. } => "renewal failed",
            LockEvent::Lost { .. } => "lost",
            LockEvent::Released { .. } => "released",
            LockEvent::ReleaseFailed { .. } => "release failed",
            _ => "another",
        };
        self.0.lock().unwrap().push(name);
    }
}

impl Events {
    fn seen(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains(&name)
    }
}

struct World {
    backend: Flaky,
    clock: ManualClock,
    events: Arc<Events>,
    locks: Locks,
}

fn world() -> World {
    let (backend, clock, events) =
        (Flaky::default(), ManualClock::new(), Arc::new(Events::default()));
    let locks = Locks::new(backend.clone()).clock(Clock::from(&clock)).observer(events.clone());
    World { backend, clock, events, locks }
}

#[tokio::test]
async fn a_guard_knows_that_it_is_lost_although_the_server_does_not_answer() {
    let World { backend, clock, events, locks } = world();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    backend.hangs.store(true, Ordering::SeqCst);
    clock.advance(LEASE - LEASE / 50);
    assert!(!guard.is_lost());
    clock.advance(LEASE / 50);
    assert!(guard.is_lost());
    in_time(guard.lost()).await;
    eventually(async || events.seen("lost")).await;
    // The server, whose clock did not move, still keeps it: the guard gives up first.
    assert!(backend.inner.inspect(&crate::subject::name("a")).await.unwrap().holder.is_some());
    assert!(matches!(guard.release().await, Err(LockError::Lost { .. })));
}

#[tokio::test]
async fn a_renewal_is_repeated_until_it_succeeds() {
    let World { backend, clock, events, locks } = world();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    backend.fails.store(true, Ordering::SeqCst);
    clock.advance(LEASE / 3);
    eventually(async || events.seen("renewal failed")).await;
    backend.fails.store(false, Ordering::SeqCst);
    let before = guard.lease_left();
    eventually(async || {
        clock.advance(seconds(1));
        guard.lease_left() > before
    })
    .await;
    assert!(!guard.is_lost() && !events.seen("lost"));
}

#[tokio::test]
async fn a_renewal_that_gets_no_answer_is_repeated() {
    let World { backend, clock, events, locks } = world();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    backend.hangs.store(true, Ordering::SeqCst);
    clock.advance(LEASE / 3);
    eventually(async || {
        clock.advance(seconds(1));
        events.seen("renewal failed")
    })
    .await;
    backend.hangs.store(false, Ordering::SeqCst);
    let before = guard.lease_left();
    eventually(async || {
        clock.advance(seconds(1));
        guard.lease_left() > before
    })
    .await;
    assert!(!guard.is_lost());
}

#[tokio::test]
async fn a_backend_that_panics_is_a_call_that_failed() {
    let World { backend, clock, events, locks } = world();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    backend.panics.store(true, Ordering::SeqCst);
    let error = in_time(locks.lock("b").acquire()).await.unwrap_err().to_string();
    assert!(error.ends_with("the backend flaky panicked: the backend has a bug"), "{error}");
    clock.advance(LEASE / 3);
    eventually(async || events.seen("renewal failed")).await;
    backend.panics.store(false, Ordering::SeqCst);
    let before = guard.lease_left();
    eventually(async || {
        clock.advance(seconds(1));
        guard.lease_left() > before
    })
    .await;
    in_time(guard.release()).await.unwrap();
}

/// An observer with a bug.
#[derive(Debug)]
struct Panics;

impl LockObserver for Panics {
    fn observe(&self, event: &LockEvent<'_>) {
        panic!("{event:?}");
    }
}

#[tokio::test]
async fn an_observer_that_panics_has_no_effect_on_the_lock() {
    let locks = Locks::memory().observer(Arc::new(Panics));
    let guard = in_time(locks.lock("a").lease(LEASE).acquire()).await.unwrap();
    assert!(!guard.is_lost());
    in_time(guard.release()).await.unwrap();
    assert_eq!(locks.inspect("a").await.unwrap().holder, None);
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

#[test]
fn a_lock_is_lost_with_the_runtime_that_renews_it() {
    let (first, second) = (runtime(), runtime());
    let guard = first.block_on(Locks::memory().lock("a").lease(LEASE).acquire()).unwrap();
    drop(first);
    second.block_on(async { in_time(guard.lost()).await });
    assert!(guard.is_lost() && guard.cancel_token().is_cancelled());
    let error = second.block_on(async { in_time(guard.release()).await }).unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
}

#[test]
fn a_lock_is_lost_at_the_end_of_its_lease_although_its_runtime_does_not_run() {
    let (first, second, World { clock, locks, .. }) = (runtime(), runtime(), world());
    let guard = first.block_on(locks.lock("a").lease(LEASE).acquire()).unwrap();
    let ends = async { clock.advance(LEASE) };
    second.block_on(async { in_time(async { tokio::join!(guard.lost(), ends) }).await });
    assert!(guard.is_lost() && guard.cancel_token().is_cancelled());
}

#[tokio::test]
async fn work_that_ended_counts_although_the_release_failed() {
    let World { backend, clock, events, locks } = world();
    let value = locks.lock("a").lease(LEASE).run(async |_| {
        backend.fails.store(true, Ordering::SeqCst);
        Ok::<_, std::io::Error>(7)
    });
    assert_eq!(in_time(value).await.unwrap(), 7);
    assert!(events.seen("release failed"));
    // The release is repeated in the background.
    backend.fails.store(false, Ordering::SeqCst);
    eventually(async || {
        clock.advance(seconds(1));
        locks.inspect("a").await.unwrap().holder.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_does_not_count_as_a_lost_lock() {
    let World { backend, clock, events, locks } = world();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    backend.loses_release.store(true, Ordering::SeqCst);
    assert!(matches!(guard.release().await, Err(LockError::Unavailable(_))));
    eventually(async || {
        clock.advance(seconds(1));
        events.seen("released") || events.seen("lost")
    })
    .await;
    assert!(!events.seen("lost"));
}

#[tokio::test]
async fn a_request_waits_for_a_server_that_is_down_but_not_without_end() {
    let World { backend, clock, events, locks } = world();
    backend.fails.store(true, Ordering::SeqCst);
    let error = in_time(clock.drive(locks.lock("a").wait(LONG).acquire())).await.unwrap_err();
    assert_eq!(error.to_string(), "the lock server is unavailable: the server is down");
    assert!(clock.elapsed() >= LONG && events.seen("not acquired"));

    let waiting = locks.lock("a").wait(LONG).acquire();
    let recovery = async {
        tokio::task::yield_now().await;
        backend.fails.store(false, Ordering::SeqCst);
    };
    let (guard, ()) = in_time(clock.drive(async { tokio::join!(waiting, recovery) })).await;
    guard.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_request_that_does_not_wait_reports_a_server_that_is_down() {
    let World { backend, clock, locks, .. } = world();
    backend.hangs.store(true, Ordering::SeqCst);
    let error = in_time(clock.drive(locks.try_lock("a"))).await.unwrap_err();
    assert_eq!(error.to_string(), "the lock server is unavailable: no answer from flaky within 5s");
}

#[tokio::test]
async fn a_release_says_whether_an_earlier_call_got_no_answer() {
    let World { backend, clock, locks, .. } = world();
    let said = |lock: &str| {
        let released = backend.released.lock().unwrap();
        released.iter().find(|(of, _)| of.as_str() == lock).map(|(_, earlier)| *earlier)
    };
    locks.try_lock("a").await.unwrap().release().await.unwrap();
    assert_eq!(said("a"), Some(EarlierCalls::Answered));

    // The request gives up, and gets no answer either when it leaves.
    backend.hangs.store(true, Ordering::SeqCst);
    in_time(clock.drive(locks.try_lock("b"))).await.unwrap_err();
    eventually(async || said("b") == Some(EarlierCalls::Unanswered)).await;
    backend.hangs.store(false, Ordering::SeqCst);

    // The request asks again, and gets the lock.
    backend.fails.store(true, Ordering::SeqCst);
    let waiting = locks.lock("c").wait(LONG).lease(LEASE).acquire();
    let recovery = async {
        tokio::task::yield_now().await;
        backend.fails.store(false, Ordering::SeqCst);
    };
    let (guard, ()) = in_time(clock.drive(async { tokio::join!(waiting, recovery) })).await;
    guard.unwrap().release().await.unwrap();
    assert_eq!(said("c"), Some(EarlierCalls::Unanswered));
}

#[tokio::test]
async fn a_lock_whose_grant_arrives_after_its_lease_is_given_back() {
    let World { backend, clock, locks, .. } = world();
    *backend.late.lock().unwrap() = Some(clock);
    let error = in_time(locks.lock("a").wait(seconds(0)).lease(LEASE).acquire()).await.unwrap_err();
    assert!(error.to_string().ends_with("the answer took longer than the lease"), "{error}");
    eventually(async || locks.inspect("a").await.unwrap().holder.is_none()).await;
}

#[tokio::test]
async fn a_run_that_is_refused_does_not_start_its_work() {
    let World { locks, .. } = world();
    let other = Locks::new(MemoryBackend::default());
    let outcome =
        other.lock("").run(async |_| -> Result<(), std::io::Error> { panic!("it must not start") });
    assert!(matches!(
        outcome.await,
        Err(RunError::Lock(LockError::Invalid { argument: "name", .. }))
    ));
    let guard = locks.try_lock("a").await.unwrap();
    assert!(format!("{guard:?}").contains("\"a\""));
}

#[tokio::test]
async fn a_wrong_url_is_named_without_its_password() {
    let error = Locks::connect("mongodb://ops:hunter2@db").await.unwrap_err().to_string();
    assert!(error.starts_with("invalid `url`: ") && error.contains("sqlite://locks.db"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}
