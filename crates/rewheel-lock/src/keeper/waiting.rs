//! Waits in line for a lock.

use super::{CALL_TIMEOUT, Granted, Keeper, Plan, RETRY};
use crate::backend::{Ask, BackendError, Holder, IfHeld, PLACE_TTL, Turn};
use crate::error::LockError;
use crate::guard::Hold;
use crate::observer::LockEvent;
use rewheel::{Backoff, Jitter, Moment, millis, seconds};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a waiting request looks at the lock if releases wake it. A look keeps the place if less than two thirds of its time are
/// left; so the second look does at the latest, when a third is left.
const REFRESH: Backoff =
    Backoff::fixed(Duration::from_secs(PLACE_TTL.as_secs() / 3)).jitter(Jitter::proportional(0.2));

/// How often it looks if nothing wakes it.
const POLL: Backoff = Backoff::exponential(millis(5)).max(millis(250)).jitter(Jitter::EQUAL);

/// Time that a call gets even if the wait is over before: less is not enough to reach a server.
const CALL_TIMEOUT_MIN: Duration = seconds(1);

/// What a request knows when it must wait.
struct Look {
    /// When to look again at the latest.
    rest: Duration,
    /// What to report if the wait is over.
    reason: Reason,
}

enum Reason {
    Busy(Option<Holder>),
    Unavailable(LockError),
}

impl Keeper {
    /// Waits for the lock. Returns `None` if the request was dropped.
    pub(super) async fn wait(&self, granted: &mut Granted) -> Option<Result<Arc<Hold>, LockError>> {
        let Plan { locks, name, wait, .. } = &self.plan;
        let (clock, woken) = (&locks.clock, locks.backend.wakeups().register(self.id));
        let started = clock.now();
        let give_up = started.plus(*wait);
        let (mut looks, mut failures) = (0, 0);
        let outcome = loop {
            let look = match self.look(give_up, &mut looks, &mut failures).await {
                Ok(look) => look,
                Err(outcome) => break outcome,
            };
            let left = give_up.since(clock.now());
            if left.is_zero() {
                break Err(self.over(look.reason, clock.now().since(started)));
            }
            tokio::select! {
                biased;
                () = granted.closed() => return None,
                () = woken.woken() => {}
                () = clock.sleep(look.rest.min(left)) => {}
            }
        };
        let waited = clock.now().since(started);
        match &outcome {
            Ok(hold) => self.tell(&LockEvent::Acquired { name, token: hold.token, waited }),
            Err(error) => self.tell(&LockEvent::NotAcquired { name, error, waited }),
        }
        Some(outcome)
    }

    /// Asks for the lock once. `Err` is the end of the wait.
    async fn look(
        &self,
        give_up: Moment,
        looks: &mut u32,
        failures: &mut u32,
    ) -> Result<Look, Result<Arc<Hold>, LockError>> {
        let Plan { locks, name, wait, lease } = &self.plan;
        let asked = locks.clock.now();
        let timeout = match wait.is_zero() {
            true => CALL_TIMEOUT,
            false => CALL_TIMEOUT.min(give_up.since(asked).max(CALL_TIMEOUT_MIN)),
        };
        let if_held = if wait.is_zero() { IfHeld::Refuse } else { IfHeld::Wait };
        let ask = Ask { name, id: self.id, owner: &locks.owner, lease: *lease, if_held };
        let answer = self.call(timeout, locks.backend.acquire(&ask)).await;
        if answer.is_err() {
            self.is_unanswered.store(true, Ordering::Relaxed);
        }
        match answer {
            Ok(Turn::Acquired { token }) => {
                let hold =
                    Hold::new(name.clone(), token, locks.clock.clone(), self.lease_end(asked));
                if hold.is_lost() {
                    // Asking again starts the lease again, if the lock is still there. It is not "busy", so that `fail` gives it back.
                    let late = "the answer took longer than the lease".into();
                    let reason = Reason::Unavailable(LockError::Unavailable(late));
                    return Ok(Look { rest: Duration::ZERO, reason });
                }
                Err(Ok(hold))
            }
            Ok(Turn::Waiting { look_again, holder, .. }) => {
                (*looks, *failures) = (looks.saturating_add(1), 0);
                let is_woken = locks.backend.wakeups().is_listening();
                let poll = if is_woken { REFRESH } else { POLL }.delay(*looks, &locks.random);
                // Servers count in milliseconds: the next one is after the expiry.
                let rest = poll.min(look_again.saturating_add(millis(1)));
                Ok(Look { rest, reason: Reason::Busy(holder) })
            }
            Ok(Turn::Busy { holder }) => Err(Err(self.over(Reason::Busy(holder), Duration::ZERO))),
            Ok(Turn::LineFull) => Err(Err(LockError::LineFull { name: name.clone() })),
            Err(error @ BackendError::Broken { .. }) => Err(Err(error.into())),
            Err(error) => {
                *failures = failures.saturating_add(1);
                tracing::debug!(lock = %name, %error, "lock request failed: it is repeated until the wait is over");
                let rest = RETRY.delay(*failures, &locks.random);
                Ok(Look { rest, reason: Reason::Unavailable(error.into()) })
            }
        }
    }

    fn over(&self, reason: Reason, waited: Duration) -> LockError {
        match reason {
            // Milliseconds are exact enough in a log line.
            Reason::Busy(holder) => LockError::Busy {
                name: self.plan.name.clone(),
                waited: Duration::from_millis(waited.as_millis() as u64),
                holder,
            },
            Reason::Unavailable(error) => error,
        }
    }

    /// Reports that the request failed, and gives up what the server may have given to it.
    pub(super) async fn fail(&self, granted: Granted, error: LockError) {
        let is_busy = matches!(error, LockError::Busy { .. });
        if is_busy && !self.plan.wait.is_zero() {
            return self.give_back(Some((granted, error))).await;
        }
        // The server may not answer: the caller does not wait for that.
        drop(granted.send(Err(error)));
        // The server told a request that does not wait "busy": it has nothing.
        if !is_busy {
            self.give_back(None).await;
        }
    }

    /// Leaves the queue, or releases a lock whose request has ended. Reports the outcome of the request after the first attempt, so
    /// that a request that was told "busy" is usually not in the line any more.
    pub(super) async fn give_back(&self, mut report: Option<(Granted, LockError)>) {
        let Plan { locks, name, lease, .. } = &self.plan;
        // By then, the server has dropped all of it.
        let until = locks.clock.now().plus((*lease).max(PLACE_TTL));
        for failures in 1.. {
            let left = self.leave().await;
            if let Some((granted, error)) = report.take() {
                drop(granted.send(Err(error)));
            }
            match left {
                Ok(released) => return locks.backend.wakeups().wake_next(released),
                Err(_) if locks.clock.now() >= until => return,
                Err(error) => {
                    tracing::debug!(lock = %name, %error, "failed to leave the line of a lock: repeating it")
                }
            }
            locks.clock.sleep(RETRY.delay(failures, &locks.random)).await;
        }
    }
}
