//! Accepts client connections, and closes those that stay idle or are too slow.
//!
//! A connection either waits for a request or serves one. There is no timer per connection: one
//! ticker checks all of them.

mod connection;
mod raw;
mod registry;
mod serve;
mod stream;
#[cfg(test)]
mod tests;

use self::connection::Connection;
use self::registry::Registry;
use crate::config::LimitSettings;
use axum::Router;
use rewheel::CancelToken;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Maximum number of connections beyond the limit that are open only to be rejected.
const REFUSED_MAX: usize = 64;

/// Maximum interval between two checks of all connections.
const TICK_MAX: Duration = Duration::from_millis(250);

/// The handshake of a connection: none, or TLS.
pub(crate) trait Handshake: Clone + Send + 'static {
    /// The stream that requests are read from.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Performs the handshake. A client that takes longer than `head_timeout` is disconnected.
    fn shake(
        &self,
        connection: TcpStream,
    ) -> impl Future<Output = io::Result<Self::Stream>> + Send + 'static;
}

/// No handshake: plain HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Handshake for Plain {
    type Stream = TcpStream;

    fn shake(
        &self,
        connection: TcpStream,
    ) -> impl Future<Output = io::Result<TcpStream>> + Send + 'static {
        std::future::ready(Ok(connection))
    }
}

/// The listener and its open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: LimitSettings,
    room: Arc<Registry>,
}

impl Connections {
    pub(crate) fn new(limits: &LimitSettings) -> Connections {
        Connections { limits: limits.clone(), room: Arc::new(Registry::new(limits, tick(limits))) }
    }

    /// Serves connections until `quiet`, then lets running responses finish.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection at once.
    pub(crate) async fn serve<H: Handshake>(
        self,
        listener: TcpListener,
        handshake: H,
        router: Router,
        quiet: CancelToken,
    ) {
        let http = serve::protocol(&self.limits);
        let mut tasks = JoinSet::new();
        let mut ticks = interval(tick(&self.limits));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let until = quiet.cancelled();
        tokio::pin!(until);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = tasks.join_next() => continue,
                _ = ticks.tick() => {
                    self.room.tick();
                    continue;
                }
                () = &mut until => break,
            };
            let connection = match accepted {
                Ok((connection, _)) => connection,
                Err(error) => {
                    self.cannot_accept(&error).await;
                    continue;
                }
            };
            let served =
                serve::Served { http: http.clone(), router: router.clone(), quiet: quiet.clone() };
            match self.room.enter() {
                Some(place) => {
                    tasks.spawn(served.run(connection, handshake.clone(), place));
                }
                None if tasks.len() < self.limits.connections_max + REFUSED_MAX => {
                    tasks.spawn(serve::refuse(connection, handshake.clone(), Connection::apart()));
                }
                None => {}
            }
        }
        drop(listener);
        while !tasks.is_empty() {
            tokio::select! {
                _ = tasks.join_next() => {}
                _ = ticks.tick() => self.room.tick(),
            }
        }
    }

    /// Closes an idle connection if the process has no file descriptor left; ignores clients that
    /// disconnected.
    async fn cannot_accept(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        let made_room = self.room.cut_one();
        tracing::warn!(%error, made_room, "failed to accept a connection");
        tokio::time::sleep(tick(&self.limits)).await;
        self.room.tick();
    }
}

/// Returns the interval between checks: a fraction of the shortest timeout.
fn tick(limits: &LimitSettings) -> Duration {
    let shortest = limits.head_timeout.min(limits.idle_timeout).min(limits.write_timeout);
    (shortest / 8).min(TICK_MAX)
}
