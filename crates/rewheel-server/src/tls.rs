//! Speaks TLS with whoever connects.

mod certificates;

pub use self::certificates::TlsError;

pub(crate) use self::certificates::Certificates;

use axum::serve::Listener;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to agree on keys. It takes three round trips; who takes longer holds a
/// connection, and nothing else.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Clients that agree on keys at the same time. More wait in the queue of the operating system.
const HANDSHAKES_MAX: usize = 1_000;

type Handshake = Pin<Box<dyn Future<Output = Option<(TlsStream<TcpStream>, SocketAddr)>> + Send>>;

/// Accepts connections, each of which takes its own time to agree on keys.
pub(crate) struct TlsListener {
    listener: TcpListener,
    certificates: Certificates,
    handshakes: FuturesUnordered<Handshake>,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, certificates: Certificates) -> TlsListener {
        TlsListener { listener, certificates, handshakes: FuturesUnordered::new() }
    }

    fn begin(&mut self, stream: TcpStream, address: SocketAddr) {
        let acceptor = TlsAcceptor::from(self.certificates.latest());
        self.handshakes.push(Box::pin(async move {
            let shaken = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
            match shaken {
                Ok(Ok(stream)) => Some((stream, address)),
                Ok(Err(error)) => {
                    // Scanners and probes do it all day.
                    tracing::debug!(%address, %error, "handshake failed");
                    None
                }
                Err(_) => {
                    tracing::debug!(%address, "handshake took too long");
                    None
                }
            }
        }));
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TlsStream<TcpStream>, SocketAddr) {
        loop {
            let has_room = self.handshakes.len() < HANDSHAKES_MAX;
            tokio::select! {
                Some(shaken) = self.handshakes.next() => {
                    if let Some(connection) = shaken {
                        return connection;
                    }
                }
                // That of axum waits where there are no more files to be opened.
                (stream, address) = Listener::accept(&mut self.listener), if has_room => {
                    self.begin(stream, address);
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

#[cfg(test)]
mod tests;
