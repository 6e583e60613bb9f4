//! A request for a lock: how long it waits, and how long its lease is.

use crate::error::LockError;
use crate::guard::LockGuard;
use crate::keeper::{self, Plan};
use crate::locks::Locks;
use crate::name::LockName;
use rewheel::duration;
use std::time::Duration;

/// A request for a lock. Created by [`Locks::lock`]; it does nothing until [`acquire`](LockRequest::acquire) or
/// [`run`](LockRequest::run).
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until `acquire` or `run`"]
pub struct LockRequest {
    pub(crate) locks: Locks,
    name: String,
    wait: Duration,
    lease: Duration,
}

impl LockRequest {
    /// The default of [`wait`](LockRequest::wait).
    pub const WAIT_DEFAULT: Duration = Duration::from_secs(30);

    /// Who would wait longer than a day wants a queue of jobs.
    pub const WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);

    /// The default of [`lease`](LockRequest::lease).
    pub const LEASE_DEFAULT: Duration = Duration::from_secs(30);

    /// A renewal every third of a second must have time for a new connection.
    pub const LEASE_MIN: Duration = Duration::from_secs(1);

    /// If a holder crashes, other requests wait for the lock for this long. Work that takes longer does not need a longer lease: the lease is renewed.
    pub const LEASE_MAX: Duration = Duration::from_secs(3_600);

    pub(crate) fn new(locks: Locks, name: &str) -> LockRequest {
        let (wait, lease) = (LockRequest::WAIT_DEFAULT, LockRequest::LEASE_DEFAULT);
        LockRequest { locks, name: name.to_owned(), wait, lease }
    }

    /// Sets how long to wait for the lock; zero does not wait.
    pub const fn wait(mut self, wait: Duration) -> LockRequest {
        self.wait = wait;
        self
    }

    /// Sets how long the lock is kept if this process crashes. While the process runs, it renews the lease at a third of this time.
    pub const fn lease(mut self, lease: Duration) -> LockRequest {
        self.lease = lease;
        self
    }

    /// Waits for the lock, and returns a guard.
    ///
    /// Requests for a name are served in the order in which they reached the server.
    ///
    /// Cancel safe: if the future is dropped, the request leaves the line in the background, and releases the lock if it had just got it.
    ///
    /// # Errors
    /// - [`LockError::Busy`]: the wait is over. The request has left the line.
    /// - [`LockError::Reentrant`]: this task has a guard of the same name, or runs inside [`run`](LockRequest::run) with it.
    /// - [`LockError::Invalid`]: the name, the wait or the lease is not allowed.
    /// - [`LockError::LineFull`], [`LockError::Unavailable`], [`LockError::Broken`].
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        let plan = self.plan()?;
        let grant = keeper::start(plan).await?;
        Ok(LockGuard::new(grant, &self.locks.guards))
    }

    /// Checks the arguments, and that this task does not hold the lock.
    pub(crate) fn plan(&self) -> Result<Plan, LockError> {
        let LockRequest { locks, name, wait, lease } = self;
        let name = LockName::parse(name)?;
        within("wait", *wait, Duration::ZERO, LockRequest::WAIT_MAX)?;
        within("lease", *lease, LockRequest::LEASE_MIN, LockRequest::LEASE_MAX)?;
        if locks.guards.is_held_here(&name) {
            return Err(LockError::Reentrant { name });
        }
        Ok(Plan { locks: locks.clone(), name, wait: *wait, lease: *lease })
    }
}

fn within(
    argument: &'static str,
    value: Duration,
    min: Duration,
    max: Duration,
) -> Result<(), LockError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let [value, min, max] = [value, min, max].map(duration::text);
    let problem = format!("it is {value}; use {min} to {max}");
    Err(LockError::Invalid { argument, problem })
}

#[cfg(test)]
mod tests {
    use crate::locks::Locks;
    use rewheel::{minutes, seconds};

    #[tokio::test]
    async fn a_wait_or_a_lease_beyond_the_limits_is_refused_by_name() {
        let locks = Locks::memory();
        let error = locks.lock("a").lease(seconds(0)).acquire().await.unwrap_err();
        assert_eq!(error.to_string(), "invalid `lease`: it is 0s; use 1s to 1h");
        let error = locks.lock("a").lease(minutes(61)).acquire().await.unwrap_err();
        assert_eq!(error.to_string(), "invalid `lease`: it is 1h1m; use 1s to 1h");
        let error = locks.lock("a").wait(minutes(1_441)).acquire().await.unwrap_err();
        assert!(error.to_string().starts_with("invalid `wait`: it is "), "{error}");
        assert_eq!(locks.inspect("a").await.unwrap().holder, None);
    }
}
