//! Finds requests for a lock that the same task holds already: they would wait for themselves.

use crate::guard::Hold;
use crate::name::LockName;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;
use tokio::task;

tokio::task_local! {
    /// The locks of the calls of [`run`](crate::LockRequest::run) that this code is inside of. Other branches of the task do not see it.
    static INSIDE: Vec<(usize, LockName)>;
}

/// The guards of one `Locks` value, with the task that acquired each.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    held: Mutex<Held>,
}

type Held = HashMap<LockName, Vec<(Caller, Weak<Hold>)>>;

/// Who runs the code: a task, or a thread outside of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Task(task::Id),
    Thread(ThreadId),
}

impl Caller {
    fn current() -> Caller {
        match task::try_id() {
            Some(id) => Caller::Task(id),
            None => Caller::Thread(std::thread::current().id()),
        }
    }
}

impl Guards {
    /// Returns whether this code runs inside `run` with the lock, or this task has a guard of it.
    pub(crate) fn is_held_here(self: &Arc<Guards>, name: &LockName) -> bool {
        let me = self.address();
        let is_inside = |inside: &Vec<_>| inside.iter().any(|(of, held)| *of == me && held == name);
        if INSIDE.try_with(is_inside).unwrap_or(false) {
            return true;
        }
        let caller = Caller::current();
        let held = self.held();
        let mut guards = held.get(name).into_iter().flatten();
        guards.any(|(by, hold)| *by == caller && hold.upgrade().is_some_and(|hold| !hold.is_lost()))
    }

    /// Remembers that this task has a guard.
    pub(crate) fn add(&self, hold: &Arc<Hold>) {
        let entry = (Caller::current(), Arc::downgrade(hold));
        self.held().entry(hold.name.clone()).or_default().push(entry);
    }

    pub(crate) fn remove(&self, hold: &Arc<Hold>) {
        let mut held = self.held();
        let Some(guards) = held.get_mut(&hold.name) else { return };
        guards.retain(|(_, other)| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(hold)));
        if guards.is_empty() {
            held.remove(&hold.name);
        }
    }

    /// Runs work that counts as inside `run` with the lock.
    pub(crate) async fn inside<W: Future>(
        self: &Arc<Guards>,
        name: &LockName,
        work: W,
    ) -> W::Output {
        let mut inside = INSIDE.try_with(Clone::clone).unwrap_or_default();
        inside.push((self.address(), name.clone()));
        INSIDE.scope(inside, work).await
    }

    /// Tells `Locks` values apart: an entry exists only while its value does.
    fn address(self: &Arc<Guards>) -> usize {
        Arc::as_ptr(self).addr()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
