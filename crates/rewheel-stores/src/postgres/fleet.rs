//! Tells other processes that they should look, and hears it from them.

use super::CONNECT_TIMEOUT;
use super::error::DriverError;
use crate::wakeup::Wakeup;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Shortest time between two words to the fleet. PostgreSQL lets one transaction at a time tell something, and everybody who
/// hears it looks into the store: under load that is often enough.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits before the next try to connect: the first, and the longest.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A connection that listens, and tells.
pub(super) struct Fleet {
    told: Arc<Notify>,
    stop: AbortHandle,
    /// Ends with this.
    _listens: JoinSet<()>,
}

impl Fleet {
    pub(super) fn listen(
        server: Config,
        tls: MakeRustlsConnect,
        schema: &str,
        woken: Wakeup,
    ) -> Fleet {
        let told = Arc::new(Notify::new());
        // So that nobody is woken by their own word.
        let me =
            uuid::Uuid::from_u128(rewheel::Random::thread().next().into()).simple().to_string();
        let line = Line {
            server,
            tls,
            listen: format!("LISTEN \"{schema}\""),
            notify: format!("NOTIFY \"{schema}\", '{me}'"),
            me,
            told: Arc::clone(&told),
            untold: AtomicBool::new(false),
            woken,
        };
        let mut listens = JoinSet::new();
        let stop = listens.spawn(line.run());
        Fleet { told, stop, _listens: listens }
    }

    /// Lets go of the connection, for good.
    pub(super) fn close(&self) {
        self.stop.abort();
    }

    /// Tells everybody, soon. What is told meanwhile is told with it.
    pub(super) fn tell(&self) {
        self.told.notify_one();
    }
}

struct Line {
    server: Config,
    tls: MakeRustlsConnect,
    listen: String,
    notify: String,
    me: String,
    told: Arc<Notify>,
    /// Something is on its way to the others.
    untold: AtomicBool,
    woken: Wakeup,
}

impl Line {
    /// Listens for ever. Nothing depends on it: everybody polls as well.
    async fn run(self) {
        let mut wait = RECONNECT.0;
        loop {
            match self.once().await {
                Ok(true) => wait = RECONNECT.0,
                Ok(false) => wait = (wait * 2).min(RECONNECT.1),
                Err(error) => {
                    tracing::debug!(error = %DriverError(error), "failed to listen for store notifications: polling only");
                    wait = (wait * 2).min(RECONNECT.1);
                }
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Listens until the connection breaks. Returns whether there was one.
    async fn once(&self) -> Result<bool, tokio_postgres::Error> {
        // Whoever takes the connection may never answer.
        let connecting = timeout(CONNECT_TIMEOUT, self.server.connect(self.tls.clone()));
        let Ok(connected) = connecting.await else { return Ok(false) };
        let (client, mut connection) = connected?;
        let hear = async {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(heard)) if heard.payload() != self.me => {
                        self.woken.wake();
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(error = %DriverError(error), "store notifications stopped: reconnecting");
                        return;
                    }
                }
            }
        };
        let mut hear = pin!(hear);
        tokio::select! {
            biased;
            () = &mut hear => return Ok(false),
            listening = timeout(CONNECT_TIMEOUT, client.batch_execute(&self.listen)) => match listening {
                Ok(listening) => listening?,
                Err(_) => return Ok(false),
            },
        }
        // What happened meanwhile was not heard, nor told if the connection broke at that moment.
        self.woken.wake();
        if self.untold.load(Ordering::Relaxed) {
            self.told.notify_one();
        }
        tokio::select! {
            () = hear => Ok(true),
            told = self.tell(&client) => told.map(|()| true),
        }
    }

    async fn tell(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        loop {
            self.told.notified().await;
            self.untold.store(true, Ordering::Relaxed);
            client.batch_execute(&self.notify).await?;
            self.untold.store(false, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
    }
}
