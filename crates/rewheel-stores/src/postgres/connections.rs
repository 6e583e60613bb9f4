//! Makes the connections of a pool, with waits after failures, and logs why one ended.

use super::epoch::{Epochs, Unusable};
use super::error::DriverError;
use super::hosts::{Connected, Hosts};
use deadpool_postgres::Connect;
use rewheel::{Backoff, Clock, Jitter, Moment, Random, millis, seconds};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};

/// The waits between failed attempts to connect. When a server comes back, or a standby is promoted, the nodes of a fleet come at
/// different times within two seconds.
pub(super) const RECONNECT: Backoff =
    Backoff::exponential(millis(100)).max(seconds(2)).jitter(Jitter::FULL);

/// Makes connections to a server. The pool's own way logs a lost connection as "db error" only.
pub(super) struct Connections {
    hosts: Arc<Hosts>,
    epochs: Arc<Epochs>,
    clock: Clock,
    random: Random,
    /// One connection at a time is made: after a failover, a fleet of nodes with full pools must not come at once.
    turn: Mutex<Turn>,
}

/// What the next attempt to connect must know.
#[derive(Debug, Default)]
struct Turn {
    /// The number of failed attempts since the last successful one.
    failures: u32,
    /// The next attempt must not be made before.
    next: Option<Moment>,
}

type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

impl Connections {
    pub(super) fn new(hosts: Arc<Hosts>, epochs: Arc<Epochs>) -> Connections {
        let (clock, random) = (Clock::system(), Random::thread());
        Connections { hosts, epochs, clock, random, turn: Mutex::default() }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the pool ends this task when it closes the connection"
    )]
    async fn make(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let mut turn = self.turn.lock().await;
        if let Some(next) = turn.next {
            self.clock.sleep(next.since(self.clock.now())).await;
        }
        let connected = self.checked().await;
        *turn = turn.after(connected.is_ok(), self.clock.now(), &self.random);
        drop(turn);
        let Connected { client, connection, host } = connected?;
        self.hosts.accept(host);
        let (mut end, address) = (self.hosts.end_of(host), self.hosts.address());
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                // Statements that wait for a server that has stopped fail at once, and are repeated at the new primary.
                () = end.wait() => {}
                ended = connection => if let Err(error) = ended {
                    tracing::warn!(address, error = %DriverError(error), "connection to PostgreSQL lost: the pool opens a new one");
                },
            }
        });
        Ok((client, task))
    }

    /// Connects, and checks that the server is not an old primary. If it was promoted or restored, a new epoch begins.
    async fn checked(&self) -> Result<Connected, Error> {
        let Connected { client, mut connection, host } = self.hosts.connect().await?;
        let checked = {
            let mut check = pin!(self.epochs.check(&client));
            tokio::select! {
                biased;
                checked = &mut check => checked,
                ended = &mut connection => {
                    ended?;
                    // The server closed it: the check fails now.
                    check.await
                }
            }
        };
        match checked {
            Ok(()) => Ok(Connected { client, connection, host }),
            Err(Unusable::Failed(error)) => Err(error),
            Err(Unusable::Refused(why)) => {
                self.hosts.refuse(host, why);
                drop(connection);
                // The driver offers no way to make an error: a statement on a closed connection returns one.
                loop {
                    client.batch_execute("").await?;
                }
            }
        }
    }
}

impl Turn {
    fn after(&self, succeeded: bool, now: Moment, random: &Random) -> Turn {
        if succeeded {
            return Turn::default();
        }
        let failures = self.failures.saturating_add(1);
        Turn { failures, next: Some(now.plus(RECONNECT.delay(failures, random))) }
    }
}

impl Connect for Connections {
    fn connect(&self, _: &Config) -> Connecting<'_> {
        Box::pin(self.make())
    }
}

#[cfg(test)]
mod tests {
    use super::Turn;
    use rewheel::{Clock, ManualClock, Random, millis, seconds};

    #[test]
    fn attempts_wait_longer_after_each_failure_and_nodes_come_at_different_times() {
        let now = Clock::from(&ManualClock::new()).now();
        let waits = |seed: u64, failures: u32| {
            let random = Random::seeded(seed);
            let turn =
                (0..failures).fold(Turn::default(), |turn, _| turn.after(false, now, &random));
            turn.next.expect("it failed").since(now)
        };
        let all = |failures: u32| (0..50).map(move |seed| waits(seed, failures));
        assert!(all(1).all(|wait| wait <= millis(100)));
        assert!(all(3).any(|wait| wait > millis(200)));
        assert!(all(100).all(|wait| wait <= seconds(2)));
        let (early, late) = (all(100).min(), all(100).max());
        assert!(early < Some(millis(500)) && late > Some(millis(1_500)), "{early:?} {late:?}");
    }

    #[test]
    fn a_success_ends_the_waits() {
        let now = Clock::from(&ManualClock::new()).now();
        let random = Random::seeded(1);
        let failed = Turn::default().after(false, now, &random).after(false, now, &random);
        let turn = failed.after(true, now, &random);
        assert_eq!((turn.failures, turn.next), (0, None));
    }
}
