//! Wakes other nodes, and is woken by them, with LISTEN and NOTIFY.

mod notification;

use super::CONNECT_TIMEOUT;
use super::connections::RECONNECT;
use super::error::DriverError;
use super::hosts::{Connected, Hosts};
use crate::wakeup::Wakeup;
use rewheel::Random;
use rewheel_core::store::StoreChange;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

/// Minimum time between two notifications. PostgreSQL commits transactions with a notification one at a time, and every node that
/// receives one polls the store. Under load this is often enough.
const PAUSE: Duration = Duration::from_millis(5);

/// A connection that sends and receives notifications.
pub(super) struct Fleet {
    news: Arc<News>,
    stop: AbortHandle,
    /// The background task; it ends when this value is dropped.
    _listens: JoinSet<()>,
}

impl Fleet {
    pub(super) fn listen(hosts: Hosts, schema: &str, woken: Wakeup) -> Fleet {
        let news = Arc::new(News::default());
        // A sender id, so that a node ignores its own notifications.
        let me = uuid::Uuid::from_u128(Random::thread().next().into()).simple().to_string();
        let line = Line {
            hosts,
            listen: format!("LISTEN \"{schema}\""),
            notify: format!("NOTIFY \"{schema}\""),
            me,
            news: Arc::clone(&news),
            woken,
        };
        let mut listens = JoinSet::new();
        let stop = listens.spawn(line.run());
        Fleet { news, stop, _listens: listens }
    }

    /// Closes the connection permanently.
    pub(super) fn close(&self) {
        self.stop.abort();
    }

    /// Notifies all nodes soon. Several calls in the meantime become one notification.
    pub(super) fn tell(&self, change: StoreChange) {
        self.news.add(change);
        self.news.told.notify_one();
    }

    /// Returns whether changes that other nodes report are heard.
    pub(super) fn is_listening(&self) -> bool {
        self.news.is_listening.load(Ordering::Relaxed)
    }
}

/// What to tell other nodes.
#[derive(Debug, Default)]
struct News {
    change: Mutex<Option<StoreChange>>,
    told: Notify,
    is_listening: AtomicBool,
}

impl News {
    fn add(&self, change: StoreChange) {
        let mut news = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        news.get_or_insert_default().merge(change);
    }

    fn take(&self) -> Option<StoreChange> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_empty(&self) -> bool {
        self.change.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

struct Line {
    hosts: Hosts,
    listen: String,
    notify: String,
    me: String,
    news: Arc<News>,
    woken: Wakeup,
}

impl Line {
    /// Listens until the task is stopped. Nothing depends on it, because all nodes also poll.
    async fn run(self) {
        let (mut failures, random) = (0_u32, Random::thread());
        loop {
            let heard = self.once().await;
            self.news.is_listening.store(false, Ordering::Relaxed);
            failures = match heard {
                // The connection worked, and broke.
                Ok(true) => 1,
                Ok(false) => failures.saturating_add(1),
                Err(error) => {
                    tracing::debug!(error = %DriverError(error), "failed to listen for store notifications: polling only");
                    failures.saturating_add(1)
                }
            };
            tokio::time::sleep(RECONNECT.delay(failures, &random)).await;
        }
    }

    /// Listens until the connection breaks. Returns whether a connection was made.
    async fn once(&self) -> Result<bool, tokio_postgres::Error> {
        // A server may accept the connection and never answer.
        let connecting = timeout(CONNECT_TIMEOUT, self.hosts.connect());
        let Ok(connected) = connecting.await else { return Ok(false) };
        let Connected { client, mut connection, host } = connected?;
        let mut end = self.hosts.end_of(host);
        let hear = async {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(heard)) => {
                        if let Some(change) = notification::read(heard.payload(), &self.me) {
                            self.woken.wake(change);
                        }
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
        self.news.is_listening.store(true, Ordering::Relaxed);
        self.woken.wake(StoreChange::AnyLane);
        if !self.news.is_empty() {
            self.news.told.notify_one();
        }
        tokio::select! {
            () = hear => Ok(true),
            // A server that has stopped closes no connection: it would be listened to for ever.
            () = end.wait() => Ok(true),
            told = self.tell(&client) => told.map(|()| true),
        }
    }

    async fn tell(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        loop {
            self.news.told.notified().await;
            let Some(change) = self.news.take() else { continue };
            let text = notification::write(&self.me, &change);
            if let Err(error) = client.batch_execute(&format!("{}, '{text}'", self.notify)).await {
                // The next connection sends it.
                self.news.add(change);
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
