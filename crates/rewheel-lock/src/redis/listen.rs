//! Hears which request is next when another process releases a lock, by subscribing to a channel.

use crate::backend::RequestId;
use crate::wakeups::Wakeups;
use futures_util::StreamExt;
use redis::{Client, RedisError};
use rewheel::{Backoff, Jitter, Random, millis, seconds};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The waits between attempts to subscribe.
const RECONNECT: Backoff = Backoff::exponential(millis(100)).max(seconds(5)).jitter(Jitter::EQUAL);

/// Maximum time to subscribe, and for the answer to a ping.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// A quiet subscription is tested this often: a server may disappear without closing its connections.
const PING_AFTER: Duration = Duration::from_secs(10);

/// A subscription. Nothing depends on it: without it, requests look more often.
#[derive(Debug)]
pub(super) struct Listening {
    /// The background task; it ends when this value is dropped.
    _task: JoinSet<()>,
}

impl Listening {
    pub(super) fn start(client: Client, channel: String, wakeups: Wakeups) -> Listening {
        let mut task = JoinSet::new();
        task.spawn(async move {
            let (mut failures, random) = (0_u32, Random::thread());
            loop {
                let heard = listen(&client, &channel, &wakeups).await;
                failures = if wakeups.is_listening() { 1 } else { failures.saturating_add(1) };
                wakeups.set_listening(false);
                if let Err(error) = heard {
                    tracing::debug!(%error, "no messages about locks: polling only");
                }
                tokio::time::sleep(RECONNECT.delay(failures, &random)).await;
            }
        });
        Listening { _task: task }
    }
}

/// Listens until the connection breaks.
async fn listen(client: &Client, channel: &str, wakeups: &Wakeups) -> Result<(), RedisError> {
    let Ok(connected) = timeout(ANSWER_TIMEOUT, client.get_async_pubsub()).await else {
        return Ok(());
    };
    let (mut sink, mut stream) = connected?.split();
    let Ok(subscribed) = timeout(ANSWER_TIMEOUT, sink.subscribe(channel)).await else {
        return Ok(());
    };
    subscribed?;
    // Messages were missed while nothing listened.
    wakeups.set_listening(true);
    wakeups.wake_all();
    loop {
        match timeout(PING_AFTER, stream.next()).await {
            Ok(Some(message)) => {
                let next = std::str::from_utf8(message.get_payload_bytes()).ok();
                match next.and_then(RequestId::parse) {
                    Some(next) => wakeups.wake(next),
                    None => wakeups.wake_all(),
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
