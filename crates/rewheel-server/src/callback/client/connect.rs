//! Opens connections for callbacks: only to permitted addresses, with TLS where the URL asks for it, within a timeout.

use super::Names;
use crate::callback::address::{Allow, RefusedAddress};
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

/// Timeout for connecting. A reachable callee completes a handshake within a few seconds; an unreachable one must not keep a slot busy
/// for the whole attempt timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle time before a TCP keepalive probe, and the number of unanswered probes. Shorter than the time after which load balancers drop an
/// idle connection.
const ALIVE: Duration = Duration::from_secs(15);
const ALIVE_RETRIES: u32 = 3;

type Coming<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// The connection was not established in time.
#[derive(Debug, thiserror::Error)]
#[error("connection timed out")]
pub(crate) struct ConnectTimeout;

/// A host name could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unresolved(io::Error);

/// Opens connections. Each call clones it, although most reuse a connection: clones are cheap.
#[derive(Clone, Debug)]
pub(super) struct Connector(Arc<HttpsConnector<HttpConnector<GuardedResolver>>>);

impl Connector {
    pub(super) fn new(resolver: GuardedResolver, tls: ClientConfig) -> Connector {
        let mut http = HttpConnector::new_with_resolver(resolver);
        http.enforce_http(false);
        http.set_nodelay(true);
        // Detect callees that disappear without closing the connection. Without keepalive, a dead HTTP/2 connection would receive every
        // call to its host for a quarter of an hour, and a call with a long timeout would wait that long.
        http.set_keepalive(Some(ALIVE));
        http.set_keepalive_interval(Some(ALIVE));
        http.set_keepalive_retries(Some(ALIVE_RETRIES));
        #[cfg(target_os = "linux")]
        http.set_tcp_user_timeout(Some(ALIVE * 2));
        // Shared among the addresses of a name: an unresponsive address leaves time for the next one.
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        Connector(Arc::new(https))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Coming<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = HttpsConnector::clone(&self.0).call(to);
        Box::pin(async move {
            match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectTimeout.into()),
            }
        })
    }
}

/// Resolves names, and returns only permitted addresses: the connection is made to exactly the addresses that were checked.
#[derive(Clone, Debug)]
pub(super) struct GuardedResolver {
    pub(super) allow: Allow,
    pub(super) names: Names,
}

impl Service<Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Coming<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let GuardedResolver { allow, names } = self.clone();
        Box::pin(async move {
            // The caller fills in the port.
            let found: Vec<SocketAddr> = match names {
                Names::Machine => {
                    let found = tokio::net::lookup_host((name.as_str(), 0)).await;
                    found.map_err(Unresolved)?.collect()
                }
                #[cfg(test)]
                Names::Stub(look_up) => {
                    look_up(name.as_str()).into_iter().map(|one| (one, 0).into()).collect()
                }
            };
            Ok(permitted(&allow, found.into_iter())?.into_iter())
        })
    }
}

/// Keeps the permitted addresses; an error if there are none.
fn permitted(
    allow: &Allow,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, RefusedAddress> {
    let mut refused = None;
    let mut permitted = Vec::new();
    for address in found {
        match allow.check(address.ip()) {
            Ok(()) => permitted.push(address),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    match refused {
        Some(refusal) if permitted.is_empty() => Err(refusal),
        Some(_) | None => Ok(permitted),
    }
}

#[cfg(test)]
mod tests {
    use super::{Connector, GuardedResolver, MaybeHttpsStream, Service as _, permitted};
    use crate::callback::Allow;
    use crate::callback::client::{Names, trusting};
    use std::net::SocketAddr;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_name_leads_only_to_its_public_addresses() {
        let found = addresses(&["10.0.0.1:0", "1.1.1.1:0", "[::1]:0"]);
        let kept = permitted(&Allow::default(), found.into_iter()).unwrap();
        assert_eq!(kept, addresses(&["1.1.1.1:0"]));
    }

    #[test]
    fn a_name_of_private_addresses_is_refused_by_the_first() {
        let found = addresses(&["10.0.0.1:0", "192.168.0.1:0"]);
        let refused = permitted(&Allow::default(), found.into_iter()).unwrap_err();
        assert_eq!(refused.address.to_string(), "10.0.0.1");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_callee_that_vanishes_without_a_word_is_noticed() {
        use rustix::net::sockopt::{socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_user_timeout};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let resolver = GuardedResolver { allow: Allow::default(), names: Names::default() };
        let mut connector = Connector::new(resolver, trusting(None).unwrap());
        let MaybeHttpsStream::Http(stream) = connector.call(url.parse().unwrap()).await.unwrap()
        else {
            panic!("the client did not ask for encryption");
        };
        let socket = stream.inner();
        assert!(socket_keepalive(socket).unwrap());
        assert_eq!(tcp_keepidle(socket).unwrap(), super::ALIVE);
        assert_eq!(tcp_keepcnt(socket).unwrap(), super::ALIVE_RETRIES);
        assert_eq!(tcp_user_timeout(socket).unwrap(), 30_000);
    }
}
