//! Keeps the connections over which callbacks are made.

use super::address::{Allow, RefusedAddress};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, Client, ClientBuilder, redirect, retry};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A callee that is there answers a handshake within a second or three; one that is not should not
/// hold a place for a whole attempt timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Shorter than the idle timeout of common servers and balancers, so that they rarely close a
/// connection just as it is used again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// As many idle connections to one host as an engine has places by default: after a burst every
/// one of them can be used again.
const IDLE_PER_HOST_MAX: usize = 256;

/// Each has its own connections and certificates. Kinds that still need a forgotten one keep it.
const CLIENTS_MAX: usize = 64;

/// Who vouches for callees: certificates as PEM. Not the name of a file: every node of a fleet runs the
/// kind, and has what its settings say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Authority(Arc<str>);

impl Authority {
    /// Takes certificates.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub(crate) fn parse(pem: &str) -> Result<Authority, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| format!("is no PEM: {error}"))?;
            roots.add(certificate).map_err(|error| format!("is no certificate: {error}"))?;
        }
        if roots.is_empty() {
            let why = "has no certificate: it is the text that begins with BEGIN CERTIFICATE";
            return Err(why.to_owned());
        }
        Ok(Authority(Arc::from(pem)))
    }

    fn certificates(&self) -> reqwest::Result<Vec<Certificate>> {
        Certificate::from_pem_bundle(self.0.as_bytes())
    }
}

/// The HTTP clients of a process: one for each list of allowed addresses with each authority, since a
/// connection that one kind may use is not for another to find in the pool.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    clients: Arc<Mutex<HashMap<Reach, Client>>>,
    names: Names,
}

/// Who knows the addresses of a name.
#[derive(Clone, Copy, Debug, Default)]
enum Names {
    /// The resolver of this machine.
    #[default]
    Machine,
    /// One that answers as a test wants it to.
    #[cfg(test)]
    Stub(fn(&str) -> Vec<std::net::IpAddr>),
}

/// Where a client may go, and whom it trusts there.
type Reach = (Allow, Option<Authority>);

impl Clients {
    /// Starts without connections.
    pub fn new() -> Clients {
        Clients::default()
    }

    /// Returns the client of those who may reach these addresses, where the authority, or any that this
    /// machine trusts, vouches for them.
    pub(crate) fn of(
        &self,
        allow: &Allow,
        authority: Option<&Authority>,
    ) -> reqwest::Result<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (allow.clone(), authority.cloned());
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        let client = match authority {
            Some(authority) => {
                builder(allow, self.names).tls_certs_only(authority.certificates()?).build()?
            }
            None => build(allow, self.names)?,
        };
        clients.insert(key, client.clone());
        Ok(client)
    }
}

fn build(allow: &Allow, names: Names) -> reqwest::Result<Client> {
    builder(allow, names).build().or_else(|error| {
        // A slim container has no certificates. Plain HTTP does not need any.
        tracing::warn!(%error, "no system certificates: https callbacks will fail");
        builder(allow, names).tls_certs_only([]).build()
    })
}

fn builder(allow: &Allow, names: Names) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("rewheel/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        // The engine retries, and counts.
        .retry(retry::never())
        // A proxy would resolve names behind the guard's back.
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
        .tcp_nodelay(true)
        .dns_resolver(Arc::new(GuardedResolver { allow: allow.clone(), names }))
}

/// Resolves names, and hands on only the addresses that may be reached: the connection is made to
/// the very addresses that were checked.
#[derive(Debug)]
struct GuardedResolver {
    allow: Allow,
    names: Names,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (allow, names) = (self.allow.clone(), self.names);
        Box::pin(async move {
            // The port is filled in by whoever asked.
            let found: Vec<SocketAddr> = match names {
                Names::Machine => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
                #[cfg(test)]
                Names::Stub(look_up) => {
                    look_up(name.as_str()).into_iter().map(|one| (one, 0).into()).collect()
                }
            };
            let addresses: Addrs = Box::new(permitted(&allow, found.into_iter())?.into_iter());
            Ok(addresses)
        })
    }
}

/// Keeps the addresses that may be reached; refused if there are only others.
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
mod guard;

#[cfg(test)]
mod tests {
    use super::{Clients, permitted};
    use crate::callback::Allow;
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
