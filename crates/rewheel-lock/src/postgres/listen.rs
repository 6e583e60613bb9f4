//! Hears which request is next when another process releases a lock, with LISTEN.

use super::{CONNECT_TIMEOUT, error_text};
use crate::backend::RequestId;
use crate::wakeups::Wakeups;
use rewheel::{Backoff, Jitter, Random, millis, seconds};
use std::future::poll_fn;
use std::pin::pin;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Config, Error, Socket};

/// The waits between attempts to connect.
const RECONNECT: Backoff = Backoff::exponential(millis(100)).max(seconds(5)).jitter(Jitter::EQUAL);

/// A connection that listens. Nothing depends on it: without it, requests look more often.
#[derive(Debug)]
pub(super) struct Listening {
    /// The background task; it ends when this value is dropped.
    _task: JoinSet<()>,
}

impl Listening {
    pub(super) fn start<T>(server: Config, tls: T, channel: String, wakeups: Wakeups) -> Listening
    where
        T: MakeTlsConnect<Socket> + Clone + Send + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
    {
        let mut task = JoinSet::new();
        task.spawn(async move {
            let (mut failures, random) = (0_u32, Random::thread());
            loop {
                let heard = listen(&server, tls.clone(), &channel, &wakeups).await;
                failures = if wakeups.is_listening() { 1 } else { failures.saturating_add(1) };
                wakeups.set_listening(false);
                if let Err(error) = heard {
                    tracing::debug!(
                        error = error_text(&error),
                        "no notifications about locks: polling only"
                    );
                }
                tokio::time::sleep(RECONNECT.delay(failures, &random)).await;
            }
        });
        Listening { _task: task }
    }
}

/// Listens until the connection breaks.
async fn listen<T>(server: &Config, tls: T, channel: &str, wakeups: &Wakeups) -> Result<(), Error>
where
    T: MakeTlsConnect<Socket>,
{
    // A server may accept the connection and never answer.
    let Ok(connected) = timeout(CONNECT_TIMEOUT, server.connect(tls)).await else { return Ok(()) };
    let (client, mut connection) = connected?;
    let mut hear = pin!(async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(heard) = message? {
                match RequestId::parse(heard.payload()) {
                    Some(next) => wakeups.wake(next),
                    None => wakeups.wake_all(),
                }
            }
        }
        Ok(())
    });
    let sql = format!("LISTEN \"{channel}\"");
    tokio::select! {
        biased;
        ended = &mut hear => return ended,
        listens = timeout(CONNECT_TIMEOUT, client.batch_execute(&sql)) => match listens {
            Ok(listens) => listens?,
            Err(_) => return Ok(()),
        },
    }
    // Notifications were missed while nothing listened.
    wakeups.set_listening(true);
    wakeups.wake_all();
    hear.await
}
