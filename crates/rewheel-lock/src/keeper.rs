//! The task that keeps a lock: it waits for the lock, renews it, and releases it.
//!
//! One task makes all calls of a request, one after the other. So a request that is dropped while its call is on the way does not leave a
//! lock behind: the task waits for the answer, and releases what it got.

mod waiting;

use crate::backend::{BackendError, EarlierCalls, Release, Renewal, RequestId};
use crate::error::{LockError, panic_text};
use crate::guard::{EndOnDrop, EndReply, Grant, Hold};
use crate::locks::Locks;
use crate::name::LockName;
use crate::observer::{LockEvent, tell};
use futures_util::FutureExt;
use rewheel::{Backoff, Jitter, Moment, duration, millis, seconds};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Maximum time for one call to the server. A server that needs longer counts as unavailable.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// A renewal gets less time, so that it can be repeated on a new connection before the lease ends; but never less than this.
const RENEWAL_TIMEOUT_MIN: Duration = Duration::from_millis(250);

/// The waits between failed calls.
const RETRY: Backoff = Backoff::exponential(millis(20)).max(seconds(1)).jitter(Jitter::EQUAL);

/// A checked request.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) locks: Locks,
    pub(crate) name: LockName,
    pub(crate) wait: Duration,
    pub(crate) lease: Duration,
}

/// Starts the task, and waits until it has the lock.
#[expect(
    clippy::disallowed_methods,
    reason = "the guard owns this task: dropping the guard, or the request before, ends it"
)]
pub(crate) async fn start(plan: Plan) -> Result<Grant, LockError> {
    let (granted, grant) = oneshot::channel();
    let id = RequestId::new(&plan.locks.random);
    tokio::spawn(Keeper { plan, id, is_unanswered: AtomicBool::new(false) }.run(granted));
    match grant.await {
        Ok(grant) => grant,
        Err(_) => Err(LockError::Unavailable("the runtime shuts down".into())),
    }
}

#[derive(Debug)]
struct Keeper {
    plan: Plan,
    id: RequestId,
    /// Whether a call that asks for the lock failed: it may reach the server later.
    is_unanswered: AtomicBool,
}

/// Where the outcome of a request is reported. It is closed if the request was dropped.
type Granted = oneshot::Sender<Result<Grant, LockError>>;

/// How holding a lock ended.
enum End {
    /// The guard is released, or dropped.
    Released(Option<EndReply>),
    Lost,
}

impl Keeper {
    async fn run(self, mut granted: Granted) {
        let Some(outcome) = self.wait(&mut granted).await else {
            // The request was dropped.
            return self.give_back(None).await;
        };
        let hold = match outcome {
            Ok(hold) => hold,
            Err(error) => return self.fail(granted, error).await,
        };
        let _end = EndOnDrop(&hold);
        let (end, ended) = oneshot::channel();
        let grant = Grant { hold: Arc::clone(&hold), end };
        // If the request was dropped just now, the guard in it is dropped here, and ends the next line.
        drop(granted.send(Ok(grant)));
        match self.hold(&hold, ended).await {
            End::Released(reply) if !hold.is_lost() => {
                hold.ended.cancel();
                self.release(&hold, reply).await;
            }
            End::Released(reply) => self.lose(&hold, reply).await,
            End::Lost => self.lose(&hold, None).await,
        }
    }

    /// Renews the lock until it is released or lost.
    async fn hold(&self, hold: &Hold, mut ended: oneshot::Receiver<EndReply>) -> End {
        let clock = &self.plan.locks.clock;
        loop {
            // At a third of the lease: two thirds are left to repeat what fails.
            let next = hold.deadline().since(clock.now()).saturating_sub(self.plan.lease * 2 / 3);
            tokio::select! {
                biased;
                reply = &mut ended => return End::Released(reply.ok()),
                () = clock.sleep(next) => {}
            }
            tokio::select! {
                biased;
                reply = &mut ended => return End::Released(reply.ok()),
                () = clock.sleep(hold.deadline().since(clock.now())) => return End::Lost,
                renewed = self.renew(hold) => match renewed {
                    Renewal::Renewed => {}
                    Renewal::Lost => return End::Lost,
                },
            }
        }
    }

    /// Renews the lock, with as many attempts as it takes.
    async fn renew(&self, hold: &Hold) -> Renewal {
        let Plan { locks, name, lease, .. } = &self.plan;
        let timeout = CALL_TIMEOUT.min((*lease / 6).max(RENEWAL_TIMEOUT_MIN));
        for failures in 1.. {
            let asked = locks.clock.now();
            let error = match self.call(timeout, locks.backend.renew(name, self.id, *lease)).await {
                Ok(Renewal::Renewed) if hold.extend(self.lease_end(asked)) => {
                    return Renewal::Renewed;
                }
                Ok(Renewal::Renewed | Renewal::Lost) => return Renewal::Lost,
                Err(error) => LockError::from(error),
            };
            let lease_left = hold.deadline().since(locks.clock.now());
            self.tell(&LockEvent::RenewalFailed {
                name,
                token: hold.token,
                error: &error,
                lease_left,
            });
            locks.clock.sleep(RETRY.delay(failures, &locks.random)).await;
        }
        Renewal::Lost
    }

    /// Returns when this process stops trusting a lease that it asked for at this moment.
    ///
    /// The server's lease starts later, when it handles the request. One percent is left for clocks that run at different speeds, which is
    /// far more than those of computers differ.
    fn lease_end(&self, asked: Moment) -> Moment {
        asked.plus(self.plan.lease - self.plan.lease / 100)
    }

    /// Releases a lock that was held, until the server confirms it or the lease has ended.
    async fn release(&self, hold: &Hold, mut reply: Option<EndReply>) {
        let Plan { locks, name, .. } = &self.plan;
        for failures in 1.. {
            let error = match self.leave().await {
                Ok(released) => {
                    locks.backend.wakeups().wake_next(released);
                    let (token, held) = (hold.token, hold.held_for());
                    // If the answer to an earlier attempt was lost, that attempt has released the lock.
                    let answer = if released.was_held || failures > 1 {
                        self.tell(&LockEvent::Released { name, token, held });
                        Ok(())
                    } else {
                        self.tell(&LockEvent::Lost { name, token, held });
                        Err(hold.lost())
                    };
                    if let Some(reply) = reply {
                        drop(reply.send(answer));
                    }
                    return;
                }
                Err(error) => LockError::from(error),
            };
            self.tell(&LockEvent::ReleaseFailed { name, error: &error });
            if let Some(reply) = reply.take() {
                drop(reply.send(Err(error)));
            }
            if locks.clock.now() >= hold.deadline() {
                return;
            }
            locks.clock.sleep(RETRY.delay(failures, &locks.random)).await;
        }
    }

    /// Tells the server that the request has ended.
    async fn leave(&self) -> Result<Release, BackendError> {
        let earlier = match self.is_unanswered.load(Ordering::Relaxed) {
            true => EarlierCalls::Unanswered,
            false => EarlierCalls::Answered,
        };
        let Plan { locks, name, .. } = &self.plan;
        self.call(CALL_TIMEOUT, locks.backend.release(name, self.id, earlier)).await
    }

    /// Reports that the lock is lost. If the server does not know that yet, others get the lock sooner.
    async fn lose(&self, hold: &Hold, reply: Option<EndReply>) {
        hold.ended.cancel();
        let held = hold.held_for();
        self.tell(&LockEvent::Lost { name: &hold.name, token: hold.token, held });
        if let Some(reply) = reply {
            drop(reply.send(Err(hold.lost())));
        }
        self.give_back(None).await;
    }

    /// Makes a call to the server, which may take this long. A panic of the backend is a failed call.
    async fn call<T>(
        &self,
        timeout: Duration,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let server = self.plan.locks.backend.name();
        tokio::select! {
            biased;
            answer = AssertUnwindSafe(call).catch_unwind() => answer.unwrap_or_else(|panic| {
                let what = format!("the backend {server} panicked: {}", panic_text(&*panic));
                Err(BackendError::Broken { what, source: None })
            }),
            () = self.plan.locks.clock.sleep(timeout) => {
                let timeout = duration::text(timeout);
                Err(BackendError::Unavailable(format!("no answer from {server} within {timeout}").into()))
            }
        }
    }

    fn tell(&self, event: &LockEvent<'_>) {
        tell(self.plan.locks.observer.as_ref(), event);
    }
}
