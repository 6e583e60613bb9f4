//! Holds the HTTP clients for callbacks.

mod connect;

use self::connect::{Connector, GuardedResolver};
use super::address::Allow;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(super) use self::connect::{ConnectTimeout, Unresolved};

/// How long an idle connection is kept. Shorter than the idle timeout of common servers and load balancers, so that they rarely close a
/// connection just as it is reused.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Idle connections per host: the engine's default concurrency, so that after a burst all of them can be reused.
const IDLE_PER_HOST_MAX: usize = 256;

/// Maximum number of clients. Each has its own connections and certificates. Kinds that still use a removed client keep it.
const CLIENTS_MAX: usize = 64;

const NAME: HeaderValue = HeaderValue::from_static(concat!("rewheel/", env!("CARGO_PKG_VERSION")));

const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// An HTTP/1.1 and HTTP/2 client with a connection pool. It follows no redirects, never resends a request, and uses no proxy, which would
/// resolve names without the address check.
#[derive(Clone, Debug)]
pub(crate) struct Client(legacy::Client<Connector, Full<Bytes>>);

impl Client {
    fn new(allow: &Allow, names: Names, tls: ClientConfig) -> Client {
        let resolver = GuardedResolver { allow: allow.clone(), names };
        let client = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
            .build(Connector::new(resolver, tls));
        Client(client)
    }

    /// Sends a request, and returns the response when its head has arrived.
    pub(crate) async fn call(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(NAME);
        headers.entry(ACCEPT).or_insert(ANYTHING);
        self.0.request(request).await
    }
}

/// The certificate authorities for a callee, as PEM. Not a file name: every node of a fleet runs the kind and needs the same
/// certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Authority(Arc<str>);

impl Authority {
    /// Parses certificates.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub(crate) fn parse(pem: &str) -> Result<Authority, String> {
        let authority = Authority(Arc::from(pem));
        if authority.roots()?.is_empty() {
            let why = "contains no certificate: it must have a line BEGIN CERTIFICATE";
            return Err(why.to_owned());
        }
        Ok(authority)
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.0.as_bytes()) {
            let certificate = certificate.map_err(|error| format!("is not valid PEM: {error}"))?;
            roots
                .add(certificate)
                .map_err(|error| format!("is not a valid certificate: {error}"))?;
        }
        Ok(roots)
    }
}

/// The HTTP clients of a process: one for each combination of allowed addresses and authority, so that kinds share no connections that
/// only one of them may use.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    clients: Arc<Mutex<HashMap<Reach, Client>>>,
    names: Names,
}

/// How host names are resolved.
#[derive(Clone, Copy, Debug, Default)]
enum Names {
    /// By the resolver of this machine.
    #[default]
    Machine,
    /// By a stub, in tests.
    #[cfg(test)]
    Stub(fn(&str) -> Vec<std::net::IpAddr>),
}

/// The allowed addresses and the trusted authority of a client.
type Reach = (Allow, Option<Authority>);

impl Clients {
    /// Creates an empty set of clients.
    pub fn new() -> Clients {
        Clients::default()
    }

    /// Returns the client for these allowed addresses and this authority, or the authorities that this machine trusts.
    pub(crate) fn of(
        &self,
        allow: &Allow,
        authority: Option<&Authority>,
    ) -> Result<Client, rustls::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (allow.clone(), authority.cloned());
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        let client = Client::new(allow, self.names, trusting(authority)?);
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Builds a TLS config that trusts the authority, or the authorities that this machine trusts.
fn trusting(authority: Option<&Authority>) -> Result<ClientConfig, rustls::Error> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
    };
    let only = |roots| Ok(builder()?.with_root_certificates(roots).with_no_client_auth());
    if let Some(authority) = authority {
        return only(authority.roots().map_err(rustls::Error::General)?);
    }
    builder()?.with_platform_verifier().map(|builder| builder.with_no_client_auth()).or_else(
        |error| {
            // A minimal container has no certificates. Plain HTTP needs none.
            tracing::warn!(%error, "no CA certificates found on this system: callbacks to https URLs will fail; install CA certificates or set callback.ca");
            only(RootCertStore::empty())
        },
    )
}

#[cfg(test)]
mod guard;

#[cfg(test)]
mod tests {
    use super::Clients;
    use crate::callback::Allow;

    #[test]
    fn kinds_that_allow_the_same_share_a_client() {
        let clients = Clients::new();
        let networks = || ["10.0.0.0/8".parse().unwrap(), "127.0.0.0/8".parse().unwrap()];
        let mut backwards = networks();
        backwards.reverse();
        clients.of(&Allow::new(networks()), None).unwrap();
        clients.of(&Allow::new(backwards), None).unwrap();
        assert_eq!(clients.clients.lock().unwrap().len(), 1);
        clients.of(&Allow::default(), None).unwrap();
        assert_eq!(clients.clients.lock().unwrap().len(), 2);
    }
}
