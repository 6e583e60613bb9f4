//! Connects to the one of several servers that accepts writes.

use super::error::{DriverError, a_person_must_look};
use rewheel::{Clock, Moment};
use std::error::Error as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a host may take before the next one is tried as well. A server that has stopped accepts a connection and never answers, and a
/// machine that has stopped does not even refuse it.
const HEAD_START: Duration = Duration::from_millis(200);

/// How long a host that was connected to, but not used, is tried only if no other host works: an old primary often answers faster than
/// the new one, and would be refused each time.
const REFUSED_FOR: Duration = Duration::from_secs(30);

/// A connection that was made.
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) connection: Stream,
    /// The number of its host.
    pub(super) host: usize,
}

type Stream = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The hosts of a store.
pub(super) struct Hosts {
    servers: Vec<Server>,
    tls: MakeRustlsConnect,
    primary: Primary,
    /// Whether an attempt waits for the host that is tried first, or was given up while it waited. The next attempt then tries all hosts at
    /// once: its caller may be as impatient.
    is_waiting: AtomicBool,
    /// How the latest attempt to connect to each host failed, for errors.
    failures: Mutex<Vec<Option<String>>>,
    /// When each host was refused after it had accepted a connection.
    refused: Mutex<Vec<Option<Moment>>>,
    clock: Clock,
}

/// The host that accepted the latest connection. Clones share it. When it changes, connections to the other hosts end: those hosts are
/// standbys, or do not answer any more.
#[derive(Clone, Debug)]
pub(super) struct Primary(Arc<watch::Sender<Place>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    host: usize,
    /// How often all connections were ended.
    ended: u64,
}

/// Tells when a connection must end because its server is not the primary any more.
#[derive(Debug)]
pub(super) struct End {
    made: Place,
    now: watch::Receiver<Place>,
}

impl End {
    /// Waits until the connection must end.
    ///
    /// Cancel safe.
    pub(super) async fn wait(&mut self) {
        let made = self.made;
        let is_over = |now: &Place| now.host != made.host || now.ended != made.ended;
        if self.now.wait_for(is_over).await.is_err() {
            // The store is closed: the owner of the connection ends it.
            std::future::pending().await
        }
    }
}

impl Primary {
    /// Starts with the first of this many hosts, or with any of them.
    pub(super) fn of(config: &Config) -> Primary {
        let is_random = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
        let count = config.get_hosts().len() as u64;
        let first = if is_random { rewheel::Random::thread().next() % count.max(1) } else { 0 };
        let place = Place { host: usize::try_from(first).unwrap_or(0), ended: 0 };
        Primary(Arc::new(watch::Sender::new(place)))
    }

    /// Ends all connections that exist now.
    pub(super) fn end_connections(&self) {
        self.0.send_modify(|place| place.ended += 1);
    }

    fn place(&self) -> Place {
        *self.0.borrow()
    }

    /// Records the host of a connection. Returns whether it is another one than before.
    fn set_host(&self, host: usize) -> bool {
        let set = |place: &mut Place| std::mem::replace(&mut place.host, host) != host;
        self.0.send_if_modified(set)
    }
}

/// One host.
#[derive(Clone, Debug)]
struct Server {
    config: Config,
    /// Host and port.
    address: String,
}

impl Hosts {
    /// Takes a configuration with at least one host.
    pub(super) fn new(config: &Config, tls: MakeRustlsConnect, primary: Primary) -> Hosts {
        let count = config.get_hosts().len();
        let servers: Vec<Server> = (0..count).map(|nth| Server::nth(config, nth)).collect();
        let failures = Mutex::new(vec![None; servers.len()]);
        let refused = Mutex::new(vec![None; servers.len()]);
        let (is_waiting, clock) = (AtomicBool::new(false), Clock::system());
        Hosts { servers, tls, primary, is_waiting, failures, refused, clock }
    }

    /// Returns hosts and ports, and nothing that is secret.
    pub(super) fn address(&self) -> String {
        self.servers.iter().map(|server| server.address.as_str()).collect::<Vec<_>>().join(",")
    }

    /// Returns how the latest attempt to connect to each host failed. For a single host only why it was refused: the error of the driver
    /// tells the rest.
    pub(super) fn failures(&self) -> String {
        let failures = self.known_failures();
        let said = self.servers.iter().zip(failures.iter()).filter_map(|(server, failure)| {
            Some(format!("{}: {}", server.address, failure.as_deref()?))
        });
        said.collect::<Vec<_>>().join("; ")
    }

    fn known_failures(&self) -> MutexGuard<'_, Vec<Option<String>>> {
        // Nothing that can panic runs under this lock.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_refused(&self) -> MutexGuard<'_, Vec<Option<Moment>>> {
        // Nothing that can panic runs under this lock.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the first host that accepts the connection. The next host is tried when one fails, and also when one takes long; then
    /// both are waited for. A host that was refused is tried when all others have failed.
    ///
    /// Cancel safe: attempts that are under way end.
    pub(super) async fn connect(&self) -> Result<Connected, Error> {
        let (host, (client, connection)) = self.connect_any(self.primary.place().host).await?;
        Ok(Connected { client, connection, host })
    }

    /// Takes a host for the primary, if it was another one. Connections to other hosts end.
    pub(super) fn accept(&self, host: usize) {
        self.known_refused()[host] = None;
        if self.primary.set_host(host) {
            let address = &self.servers[host].address;
            tracing::info!(address, "connected to another host of PostgreSQL");
        }
    }

    /// Returns when a new connection to a host must end.
    pub(super) fn end_of(&self, host: usize) -> End {
        let now = self.primary.0.subscribe();
        let made = Place { host, ..*now.borrow() };
        End { made, now }
    }

    /// Records why a host that was connected to is not used.
    pub(super) fn refuse(&self, host: usize, why: String) {
        self.known_failures()[host] = Some(why);
        self.known_refused()[host] = Some(self.clock.now());
    }

    /// Returns the hosts in the order in which they are tried, and after them those that were refused.
    fn in_turn(&self, first: usize) -> (Vec<usize>, Vec<usize>) {
        let (now, refused) = (self.clock.now(), self.known_refused());
        let is_refused = |nth: usize| refused[nth].is_some_and(|at| now.since(at) < REFUSED_FOR);
        (first..self.servers.len()).chain(0..first).partition(|nth| !is_refused(*nth))
    }

    async fn connect_any(&self, first: usize) -> Result<(usize, (Client, Stream)), Error> {
        self.known_failures().fill(None);
        if let [only] = self.servers.as_slice() {
            return Ok((0, only.config.connect(self.tls.clone()).await?));
        }
        let (left, refused) = self.in_turn(first);
        let (mut left, mut refused) = (left.into_iter(), refused.into_iter());
        let head_start = match self.is_waiting.swap(true, Ordering::Relaxed) {
            true => Duration::ZERO,
            false => HEAD_START,
        };
        let mut tries = JoinSet::new();
        let mut error = None;
        loop {
            let next = left.next().or_else(|| if tries.is_empty() { refused.next() } else { None });
            if let Some(nth) = next {
                let (config, tls) = (self.servers[nth].config.clone(), self.tls.clone());
                self.known_failures()[nth] = Some("no response".to_owned());
                tries.spawn(async move { (nth, config.connect(tls).await) });
            }
            // The last ones are waited for without a limit: the caller has one.
            let patience = next.map_or(Duration::MAX, |_| head_start);
            match timeout(patience, tries.join_next()).await {
                Ok(Some(Ok((nth, Ok(connected))))) => {
                    self.is_waiting.store(false, Ordering::Relaxed);
                    self.known_failures().fill(None);
                    return Ok((nth, connected));
                }
                Ok(Some(Ok((nth, Err(failed))))) => {
                    self.is_waiting.fetch_and(nth != first, Ordering::Relaxed);
                    self.note(nth, failed, &mut error);
                }
                Ok(Some(Err(failed))) => {
                    if let Ok(panic) = failed.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
                Ok(None) => {
                    if let Some(error) = error {
                        return Err(error);
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Records how a host failed, and keeps the error that tells most.
    fn note(&self, nth: usize, error: Error, kept: &mut Option<Error>) {
        self.known_failures()[nth] = Some(reason(&error));
        // A host that is down may come back: an operator must do something only if that is not so of any host.
        let passes = |error: &Error| error.code().and_then(a_person_must_look).is_none();
        if !kept.as_ref().is_some_and(passes) {
            *kept = Some(error);
        }
    }
}

impl Server {
    /// Returns the configuration of one of the hosts.
    fn nth(config: &Config, nth: usize) -> Server {
        let ports = config.get_ports();
        let port = ports.get(nth).or(ports.first()).copied().unwrap_or(5432);
        let mut one = without_hosts(config);
        one.port(port);
        if let Some(address) = config.get_hostaddrs().get(nth) {
            one.hostaddr(*address);
        }
        let address = match config.get_hosts().get(nth) {
            Some(Host::Tcp(name)) => {
                one.host(name);
                format!("{name}:{port}")
            }
            #[cfg(unix)]
            Some(Host::Unix(folder)) => {
                one.host_path(folder);
                format!("{} port {port}", folder.display())
            }
            None => String::new(),
        };
        Server { config: one, address }
    }
}

/// Copies every setting but the hosts and their ports.
fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding());
    one.target_session_attrs(config.get_target_session_attrs());
    one.load_balance_hosts(config.get_load_balance_hosts());
    one
}

/// Returns why a host refused a connection, without advice.
fn reason(error: &Error) -> String {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause {
        // The driver says that the database allows no writes.
        Some(cause)
            if cause.kind() == io::ErrorKind::PermissionDenied && error.code().is_none() =>
        {
            "a standby, or read-only".to_owned()
        }
        Some(cause) => cause.to_string(),
        None => DriverError::text(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{HEAD_START, Hosts, Primary, REFUSED_FOR, Server};
    use crate::postgres::options::Verify;
    use crate::postgres::tls;
    use rewheel::{Clock, ManualClock};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_postgres::Config;

    fn hosts(url: &str) -> Hosts {
        let config: Config = url.parse().expect("a URL");
        Hosts::new(&config, tls::connector(&Verify::No).expect("TLS"), Primary::of(&config))
    }

    /// A setting that is forgotten when a URL is split would be lost for every host.
    #[test]
    fn each_host_has_all_settings_of_the_url() {
        let settings = "options=-c%20geqo=off&application_name=shop&connect_timeout=7&tcp_user_timeout=8&keepalives=0\
                        &keepalives_idle=9&keepalives_interval=10&keepalives_retries=11&sslmode=require\
                        &sslnegotiation=direct&channel_binding=require&target_session_attrs=read-write\
                        &load_balance_hosts=random";
        let config = |place: &str, more: &str| -> Config {
            format!("postgres://u:pw@{place}/d?{settings}{more}").parse().expect("a URL")
        };
        let both = config("a:1,b:2", "&hostaddr=127.0.0.1,127.0.0.2");
        for (nth, alone) in
            [config("a:1", "&hostaddr=127.0.0.1"), config("b:2", "&hostaddr=127.0.0.2")]
                .iter()
                .enumerate()
        {
            let split = Server::nth(&both, nth);
            assert_eq!(format!("{:?}", split.config), format!("{alone:?}"));
            assert_eq!(split.config.get_password(), alone.get_password());
        }
    }

    #[test]
    fn an_address_names_hosts_and_ports_and_no_secret() {
        let check = |url: &str, expected: &str| assert_eq!(hosts(url).address(), expected);
        check("postgres://u:hunter2@db.internal/shop", "db.internal:5432");
        check("postgres://u:hunter2@127.0.0.1:5433/shop?password=hunter2", "127.0.0.1:5433");
        check("postgres://a:1,b:2/shop", "a:1,b:2");
        check("postgres://%2Frun%2Fpostgresql/shop", "/run/postgresql port 5432");
    }

    #[test]
    fn connections_end_when_another_host_is_the_primary() {
        use futures_util::FutureExt;
        let hosts = hosts("postgres://a,b/shop");
        let mut first = hosts.end_of(0);
        assert_eq!(first.wait().now_or_never(), None);
        hosts.accept(1);
        assert_eq!(first.wait().now_or_never(), Some(()));
        let mut second = hosts.end_of(1);
        hosts.accept(1);
        assert_eq!(second.wait().now_or_never(), None);
        assert_eq!(hosts.end_of(0).wait().now_or_never(), Some(()), "it is not the primary");
        hosts.primary.end_connections();
        assert_eq!(second.wait().now_or_never(), Some(()));
        assert_eq!(hosts.end_of(1).wait().now_or_never(), None, "a new connection stays");
    }

    /// Answers as a server that needs no password.
    async fn welcome(mut stream: TcpStream) -> TcpStream {
        let mut said = [0; 1_024];
        assert!(stream.read(&mut said).await.expect("a client") > 0);
        stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await.expect("a client");
        stream
    }

    /// The old primary answers at once, the new one after more than the head start of a host.
    #[tokio::test]
    async fn a_host_that_was_refused_is_tried_last_for_a_while() {
        let old = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let new = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let ports = [&old, &new].map(|one| one.local_addr().expect("an address").port());
        let url =
            format!("postgres://u@127.0.0.1:{},127.0.0.1:{}/d?sslmode=disable", ports[0], ports[1]);
        let clock = ManualClock::new();
        let hosts = Hosts { clock: Clock::from(&clock), ..hosts(&url) };
        hosts.refuse(0, "an old primary".to_owned());
        let connected = async { hosts.connect().await.map(|connected| connected.host) };
        let answer = async {
            let (stream, _) = new.accept().await.expect("a connection");
            let early = tokio::time::timeout(3 * HEAD_START, old.accept()).await;
            assert!(early.is_err(), "the old primary was tried beside the new one");
            welcome(stream).await
        };
        let (connected, _stream) = tokio::join!(connected, answer);
        assert_eq!(connected.expect("connected"), 1);

        // The refused host is tried when no other one is left.
        drop(new);
        let connected = async { hosts.connect().await.map(|connected| connected.host) };
        let answer = async { welcome(old.accept().await.expect("a connection").0).await };
        let (connected, _stream) = tokio::join!(connected, answer);
        assert_eq!(connected.expect("connected"), 0);

        assert_eq!(hosts.in_turn(0), (vec![1], vec![0]));
        clock.advance(REFUSED_FOR);
        assert_eq!(hosts.in_turn(0), (vec![0, 1], vec![]));
        hosts.refuse(1, "an old primary".to_owned());
        assert_eq!(hosts.in_turn(0), (vec![0], vec![1]));
        hosts.accept(1);
        assert_eq!(hosts.in_turn(1), (vec![1, 0], vec![]));
    }

    /// One refuses, one never answers: the error names each of them.
    #[tokio::test]
    async fn every_host_is_tried_and_named() {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let ports = [&silent, &closed].map(|one| one.local_addr().expect("an address").port());
        drop(closed);
        let url = format!("postgres://u@127.0.0.1:{},127.0.0.1:{}/d", ports[0], ports[1]);
        let hosts = hosts(&url);
        let connected = tokio::time::timeout(Duration::from_secs(60), async {
            tokio::select! {
                connected = hosts.connect() => panic!("there is no server: {:?}", connected.map(|_| ())),
                // Until the second host has refused.
                () = async { while !hosts.failures().contains("refused") { tokio::task::yield_now().await } } => {}
            }
        });
        connected.await.expect("the second host is tried although the first never answers");
        let text = hosts.failures();
        assert!(text.starts_with(&format!("127.0.0.1:{}: no response; ", ports[0])), "{text}");
    }
}
