//! Hears what other nodes report, by subscribing to a channel of the server.

use super::connection::Losses;
use super::pack::Packed;
use super::servers::Servers;
use super::values::read_lane;
use crate::wakeup::Wakeup;
use futures_util::StreamExt;
use rewheel_core::store::{BoxError, StoreChange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Wait before subscribing again: initial and maximum.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Maximum time to subscribe, and for the answer to a ping.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// A quiet subscription is tested this often: a server may disappear without closing its connections.
const PING_AFTER: Duration = Duration::from_secs(10);

/// A subscription to the reports of other nodes.
pub(super) struct Hearing {
    listens: Arc<AtomicBool>,
    stop: AbortHandle,
    /// The background task; it ends when this value is dropped.
    _task: JoinSet<()>,
}

impl Hearing {
    pub(super) fn start(
        servers: Arc<Servers>,
        channel: String,
        me: Vec<u8>,
        woken: Wakeup,
        losses: Losses,
    ) -> Hearing {
        let listens = Arc::new(AtomicBool::new(false));
        let line = Line { servers, channel, me, woken, listens: Arc::clone(&listens), losses };
        let mut task = JoinSet::new();
        let stop = task.spawn(line.run());
        Hearing { listens, stop, _task: task }
    }

    /// Returns whether changes that other nodes report are heard.
    pub(super) fn is_listening(&self) -> bool {
        self.listens.load(Ordering::Relaxed)
    }

    /// Ends the subscription permanently.
    pub(super) fn close(&self) {
        self.stop.abort();
        self.listens.store(false, Ordering::Relaxed);
    }
}

struct Line {
    servers: Arc<Servers>,
    channel: String,
    me: Vec<u8>,
    woken: Wakeup,
    listens: Arc<AtomicBool>,
    losses: Losses,
}

impl Line {
    /// Listens until the task is stopped. Nothing depends on it, because all nodes also poll.
    async fn run(self) {
        let mut wait = RECONNECT.0;
        loop {
            let heard = self.once().await;
            let was_listening = self.listens.swap(false, Ordering::Relaxed);
            if was_listening {
                // Whatever ended this connection has probably ended the others.
                self.losses.fetch_add(1, Ordering::Relaxed);
                self.servers.forget();
            }
            if let Err(error) = heard {
                tracing::debug!(%error, "failed to listen for reports of other nodes: polling only");
            }
            wait = if was_listening { RECONNECT.0 } else { (wait * 2).min(RECONNECT.1) };
            tokio::time::sleep(wait).await;
        }
    }

    /// Listens until the connection breaks.
    async fn once(&self) -> Result<(), BoxError> {
        let client = self.servers.find().await?;
        let Ok(connected) = timeout(ANSWER_TIMEOUT, client.get_async_pubsub()).await else {
            return Ok(());
        };
        let (mut sink, mut stream) = connected?.split();
        let Ok(subscribed) = timeout(ANSWER_TIMEOUT, sink.subscribe(&self.channel)).await else {
            return Ok(());
        };
        subscribed?;
        // While disconnected, reports were missed.
        self.listens.store(true, Ordering::Relaxed);
        self.woken.wake(StoreChange::AnyLane);
        loop {
            match timeout(PING_AFTER, stream.next()).await {
                Ok(Some(message)) => {
                    if let Some(change) = read(message.get_payload_bytes(), &self.me) {
                        self.woken.wake(change);
                    }
                }
                Ok(None) => return Ok(()),
                Err(_) => match timeout(ANSWER_TIMEOUT, sink.ping::<redis::Value>()).await {
                    Ok(answer) => drop(answer?),
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}

/// Reads a report; `None` if it is one's own.
fn read(message: &[u8], me: &[u8]) -> Option<StoreChange> {
    let Some(parts) = Packed::read(message).and_then(Packed::list) else {
        return Some(StoreChange::AnyLane);
    };
    let mut parts = parts.into_iter();
    if parts.next().as_ref().and_then(Packed::bytes) == Some(me) {
        return None;
    }
    let Some(lanes) = parts.next().and_then(Packed::list) else {
        return Some(StoreChange::AnyLane);
    };
    Some(changed(lanes.iter().map(|lane| lane.bytes().unwrap_or_default())))
}

/// The report of these lanes. A name that cannot be read is that of a newer version: any lane may have changed.
pub(super) fn changed<'l>(lanes: impl Iterator<Item = &'l [u8]>) -> StoreChange {
    let mut change = StoreChange::default();
    for lane in lanes {
        match read_lane(lane) {
            Ok(lane) => change.add(&lane),
            Err(_) => return StoreChange::AnyLane,
        }
    }
    change
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::redis::pack::Args;
    use crate::redis::values::lane_name;
    use rewheel_core::store::StoreChange;
    use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};

    #[test]
    fn a_report_names_lanes_and_is_not_ones_own() {
        let kind = KindName::parse("charge").unwrap();
        let tenant = Tenant::parse("ä cme").ok();
        let lane = Lane { kind, tenant, priority: Priority::DEFAULT, shard: Shard::new(7) };
        let lanes = Args::texts([lane_name(&lane)]);
        let mut message = vec![0x92, 0xa1, b'a'];
        // The packed list without the offset of the clock.
        message.push(0x91);
        message.extend_from_slice(&lanes.pack(0)[14..]);
        assert_eq!(read(&message, b"b"), Some(StoreChange::from(&lane)));
        assert_eq!(read(&message, b"a"), None);
        assert_eq!(read(&[0x92, 0xa1, b'a', 0xc2], b"b"), Some(StoreChange::AnyLane));
        assert_eq!(read(b"", b"b"), Some(StoreChange::AnyLane));
    }
}
