//! What a server must do to keep locks.

use crate::name::LockName;
use crate::token::FencingToken;
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use rewheel::Random;
use rewheel_core::store::BoxError;
use std::fmt;
use std::time::Duration;

/// How long a waiting request keeps its place in line without asking again. If the process of the first request in line is killed, a
/// free lock stays unused for at most this time.
pub const PLACE_TTL: Duration = Duration::from_secs(6);

/// Maximum number of requests that wait for one lock. Each look at the lock reads the whole line, so a longer line would slow down
/// everybody in it.
pub const LINE_MAX: usize = 256;

/// Identifies one request, from its first call to its release. No two requests have the same id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u128);

impl RequestId {
    /// Creates a new id.
    pub fn new(random: &Random) -> RequestId {
        RequestId(u128::from(random.next()) << 64 | u128::from(random.next()))
    }

    /// Reads what [`Display`](fmt::Display) wrote: 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<RequestId> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { u128::from_str_radix(text, 16).ok().map(RequestId) } else { None }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A request for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Name of the lock.
    pub name: &'a LockName,
    /// The request. Asking again with the same id never takes a second lock or a second place.
    pub id: RequestId,
    /// Who asks, for people.
    pub owner: &'a str,
    /// How long the lock is kept without a renewal.
    pub lease: Duration,
    /// What to do if the lock is not free.
    pub if_held: IfHeld,
}

/// What a request does if it does not get the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfHeld {
    /// It gives up.
    Refuse,
    /// It takes a place in line, or keeps the one it has for another [`PLACE_TTL`].
    Wait,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The request has the lock.
    Acquired {
        /// The token of this lock.
        token: FencingToken,
    },
    /// The request has a place in line.
    Waiting {
        /// The number of requests before it.
        ahead: usize,
        /// The time after which the answer may be different although no other request did anything: a lease or a place expires.
        look_again: Duration,
        /// The holder; none if another request may take the lock first.
        holder: Option<Holder>,
    },
    /// The lock is not free for this request, which does not wait.
    Busy {
        /// The holder; none if other requests are first in line.
        holder: Option<Holder>,
    },
    /// [`LINE_MAX`] requests wait already.
    LineFull,
}

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Who holds it, for people.
    pub owner: String,
    /// The token of its lock.
    pub token: FencingToken,
    /// How long it keeps the lock without a renewal.
    pub lease_left: Duration,
}

impl Holder {
    /// Creates the description of a holder, for a backend.
    pub fn new(owner: impl Into<String>, token: FencingToken, lease_left: Duration) -> Holder {
        Holder { owner: owner.into(), token, lease_left }
    }
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease starts again. This also applies to an expired lease, if no other request has taken the lock.
    Renewed,
    /// Another request has the lock, or it was released.
    Lost,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Whether the request had the lock.
    pub was_held: bool,
    /// The request that may take the lock now: the first in line, if the lock is free.
    pub next: Option<RequestId>,
}

/// Whether the server has answered every call that a request made before its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierCalls {
    /// It has.
    Answered,
    /// A call may still be on its way, and may reach the server after the release.
    Unanswered,
}

/// A lock as its server sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockState {
    /// The holder, if its lease has not expired.
    pub holder: Option<Holder>,
    /// The number of requests that wait.
    pub waiting: usize,
}

impl LockState {
    /// Creates the description of a lock, for a backend.
    pub fn new(holder: Option<Holder>, waiting: usize) -> LockState {
        LockState { holder, waiting }
    }
}

/// A call to the server failed.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The call may or may not have had its effect. Trying again may succeed.
    #[error("{0}")]
    Unavailable(#[source] BoxError),
    /// Trying again does not help: an operator must act.
    #[error("{what}")]
    Broken {
        /// What is wrong, and what to do.
        what: String,
        /// The cause.
        #[source]
        source: Option<BoxError>,
    },
}

/// A server that keeps locks.
///
/// Each verb is atomic, and the server's clock decides what has expired. A clock that goes back never makes a lease or a place longer than
/// it was asked for. The conformance suite in `tests/it` checks all of this for every backend.
#[async_trait]
pub trait LockBackend: fmt::Debug + Send + Sync {
    /// Returns the name of the kind of server.
    fn name(&self) -> &'static str;

    /// Takes the lock if it is free and no other request is first in line. Otherwise the request waits or gives up, as it says itself.
    ///
    /// The token is larger than every earlier token of this name, and at least the server's time in microseconds.
    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError>;

    /// Starts the lease again, unless another request has the lock.
    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError>;

    /// Gives up what the request has: the lock or its place in line. Wakes the request that is next.
    ///
    /// After [`EarlierCalls::Unanswered`], an [`acquire`](LockBackend::acquire) of this request that was sent before has no effect, also
    /// if it reaches the server later.
    async fn release(
        &self,
        name: &LockName,
        id: RequestId,
        earlier: EarlierCalls,
    ) -> Result<Release, BackendError>;

    /// Reads the state of a lock.
    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError>;

    /// Returns where requests of this process wait. The backend wakes them when another process releases a lock.
    fn wakeups(&self) -> &Wakeups;
}
