//! Wakes other nodes, and is woken by them, with LISTEN and NOTIFY.

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

/// Minimum time between two notifications. PostgreSQL commits transactions with a notification one at a time, and every node that
/// receives one polls the store. Under load this is often enough.
const PAUSE: Duration = Duration::from_millis(5);

/// Wait before reconnecting: initial and maximum.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A connection that sends and receives notifications.
pub(super) struct Fleet {
    told: Arc<Notify>,
    stop: AbortHandle,
    /// The background task; it ends when this value is dropped.
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
        // A sender id, so that a node ignores its own notifications.
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

    /// Closes the connection permanently.
    pub(super) fn close(&self) {
        self.stop.abort();
    }

    /// Notifies all nodes soon. Several calls in the meantime become one notification.
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
    /// A notification is waiting to be sent.
    untold: AtomicBool,
    woken: Wakeup,
}

impl Line {
    /// Listens until the task is stopped. Nothing depends on it, because all nodes also poll.
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

    /// Listens until the connection breaks. Returns whether a connection was made.
    async fn once(&self) -> Result<bool, tokio_postgres::Error> {
        // A server may accept the connection and never answer.
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
        // While disconnected, notifications were missed; one may also have been lost if the connection broke while it was sent.
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
