//! A held lock.

use crate::error::LockError;
use crate::lease_clock::LeaseClock;
use crate::name::LockName;
use crate::reentrancy::Guards;
use crate::token::FencingToken;
use rewheel::{CancelToken, Moment};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// What the holder of a lock and the task that keeps it share.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) name: LockName,
    pub(crate) token: FencingToken,
    pub(crate) acquired: Moment,
    clock: LeaseClock,
    /// When the lease ends by the clock of this process, which started before the server's.
    deadline: Mutex<Moment>,
    pub(crate) ended: CancelToken,
}

impl Hold {
    pub(crate) fn new(
        name: LockName,
        token: FencingToken,
        clock: LeaseClock,
        deadline: Moment,
    ) -> Arc<Hold> {
        let (acquired, deadline) = (clock.now(), Mutex::new(deadline));
        Arc::new(Hold { name, token, acquired, clock, deadline, ended: CancelToken::new() })
    }

    pub(crate) fn deadline(&self) -> Moment {
        *self.lock()
    }

    /// Moves the end of the lease, unless it has passed: what was lost stays lost.
    pub(crate) fn extend(&self, to: Moment) -> bool {
        let mut deadline = self.lock();
        let in_time = self.clock.now() < *deadline;
        if in_time {
            *deadline = to.max(*deadline);
        }
        in_time
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.ended.is_cancelled() || self.clock.now() >= self.deadline()
    }

    /// Waits until the lock is lost or released. Cancel safe.
    ///
    /// Also waits for the end of the lease itself: the task that keeps the lock may belong to a runtime that does not run any more.
    pub(crate) async fn until_lost(&self) {
        while !self.is_lost() {
            let left = self.deadline().since(self.clock.now());
            tokio::select! {
                biased;
                () = self.ended.cancelled() => {}
                () = self.clock.sleep(left) => {}
            }
        }
        self.ended.cancel();
    }

    pub(crate) fn held_for(&self) -> Duration {
        self.clock.now().since(self.acquired)
    }

    pub(crate) fn lost(&self) -> LockError {
        LockError::Lost { name: self.name.clone(), token: self.token }
    }

    fn lock(&self) -> MutexGuard<'_, Moment> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the users of a lock that it is lost, if the task that keeps it ends without having told them: by a panic, or with its runtime.
pub(crate) struct EndOnDrop<'h>(pub(crate) &'h Hold);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let Hold { name, token, ended, .. } = self.0;
        if !ended.is_cancelled() {
            tracing::warn!(
                lock = %name, token = token.get(),
                "lock not released: its task panicked or the runtime has ended; the lock is free when its lease ends"
            );
            ended.cancel();
        }
    }
}

/// A lock that is held, for the code that works under it. Clones describe the same lock; none of them releases it.
#[derive(Clone)]
pub struct HeldLock {
    pub(crate) hold: Arc<Hold>,
}

impl HeldLock {
    /// Returns the name of the lock.
    pub fn name(&self) -> &LockName {
        &self.hold.name
    }

    /// Returns the token to send with every write to what the lock protects.
    pub fn token(&self) -> FencingToken {
        self.hold.token
    }

    /// Returns whether the lock is no longer held: lost or released.
    ///
    /// This process measures the lease itself, from before each request was sent. So the answer is right even while the server does not
    /// answer, unless the whole process or machine is paused between this call and what follows: only the token helps then.
    ///
    /// On Linux, the time that the machine is suspended counts. On other systems, and in a virtual machine that its host pauses, it does
    /// not: the next renewal notices, within a third of the lease.
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Waits until the lock is no longer held. Cancel safe.
    ///
    /// Timers do not count the time that the machine is suspended: after it, this returns with the next renewal, within a third of the
    /// lease.
    pub async fn lost(&self) {
        self.hold.until_lost().await;
    }

    /// Returns a token that is cancelled when the lock is no longer held, for calls that take one.
    ///
    /// The task that renews the lock cancels it. If that task does not run, because it belongs to a runtime that runs nothing at the moment,
    /// [`lost`](HeldLock::lost) and [`is_lost`](HeldLock::is_lost) still know when the lease has ended.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.hold.ended
    }

    /// Returns how long the lock is kept if no renewal succeeds from now on.
    pub fn lease_left(&self) -> Duration {
        if self.is_lost() {
            Duration::ZERO
        } else {
            self.hold.deadline().since(self.hold.clock.now())
        }
    }
}

impl fmt::Debug for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hold { name, token, .. } = &*self.hold;
        f.debug_struct("HeldLock").field("name", name).field("token", token).finish_non_exhaustive()
    }
}

/// A lock, just acquired.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) hold: Arc<Hold>,
    /// Ends the task that keeps the lock. Dropping it does the same, without an answer.
    pub(crate) end: oneshot::Sender<EndReply>,
}

/// Where the task that keeps a lock reports the end of it.
pub(crate) type EndReply = oneshot::Sender<Result<(), LockError>>;

/// Holds a lock, and renews it in the background, until it is released.
///
/// The runtime that acquired the lock renews it: when that runtime ends, the lock counts as lost.
///
/// Dropping the guard releases the lock in the background: best effort, without an answer. If the runtime ends before, or the server does not
/// answer, the lock is free when its lease ends. Use [`release`](LockGuard::release) to know. The guard does not stop work when the lock is
/// lost: watch [`lost`](HeldLock::lost), or use [`run`](crate::LockRequest::run), which does.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    held: HeldLock,
    end: Option<oneshot::Sender<EndReply>>,
    guards: Arc<Guards>,
}

impl LockGuard {
    pub(crate) fn new(grant: Grant, guards: &Arc<Guards>) -> LockGuard {
        let Grant { hold, end } = grant;
        guards.add(&hold);
        LockGuard { held: HeldLock { hold }, end: Some(end), guards: Arc::clone(guards) }
    }

    /// Releases the lock, and returns when the server has confirmed it.
    ///
    /// # Errors
    /// - [`LockError::Lost`]: the lock was lost before. The lock of the new holder is not touched.
    /// - [`LockError::Unavailable`], [`LockError::Broken`]: the server has not confirmed. The release is repeated in the background, until
    ///   the lease ends and the lock is free anyway.
    pub async fn release(mut self) -> Result<(), LockError> {
        let end = self.end.take();
        release(&self.held.hold, end).await
    }
}

impl Deref for LockGuard {
    type Target = HeldLock;

    fn deref(&self) -> &HeldLock {
        &self.held
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.guards.remove(&self.held.hold);
    }
}

/// Asks the task that keeps a lock to release it, and waits for the answer.
pub(crate) async fn release(
    hold: &Hold,
    end: Option<oneshot::Sender<EndReply>>,
) -> Result<(), LockError> {
    let (reply, answer) = oneshot::channel();
    let is_sent = end.is_some_and(|end| end.send(reply).is_ok());
    match answer.await {
        Ok(answer) if is_sent => answer,
        // The task has ended, because the lock was lost.
        _ => Err(hold.lost()),
    }
}
