//! Finds the server that has the keys of a store: the only one, or the primary of its slot in a cluster.

use super::error::{Stage, broken, code, judge};
use super::options::RedisOptions;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError, Value, cmd,
};
use rewheel_core::store::{StoreError, StoreResult};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum time to connect to a node of a cluster and to ask it: others can answer instead.
const ASK_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of nodes to remember. Asking all of them takes longer than any caller waits.
const NODES_MAX: usize = 32;

/// The servers of a store.
#[derive(Debug)]
pub(super) enum Servers {
    One(Client),
    Cluster(Cluster),
}

/// A cluster. All keys of a store are in one slot, so a store uses one of its primaries at a time.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The nodes that the URL names.
    seeds: Vec<Client>,
    /// A key of the store's slot.
    key: String,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    primary: Option<Client>,
    /// All nodes, as of the last answer.
    nodes: Vec<Client>,
    /// How often a node was asked. Each question begins with another node, so that one whose answer is old is not asked again and again.
    asked: usize,
}

impl Servers {
    pub(super) fn new(options: &RedisOptions, key: &str) -> StoreResult<Servers> {
        let mut clients = Vec::new();
        for server in &options.servers {
            let client = Client::open(server.expose());
            clients.push(client.map_err(|error| {
                broken("the URL of the Redis server is not valid", Some(error.into()))
            })?);
        }
        if options.is_cluster {
            let known = Mutex::default();
            return Ok(Servers::Cluster(Cluster { seeds: clients, key: key.to_owned(), known }));
        }
        let client = clients.into_iter().next();
        client.map(Servers::One).ok_or_else(|| broken("the URL names no Redis server", None))
    }

    /// Returns the server that has the keys.
    pub(super) async fn find(&self) -> StoreResult<Client> {
        match self {
            Servers::One(client) => Ok(client.clone()),
            Servers::Cluster(cluster) => cluster.find().await,
        }
    }

    /// Connects to the server that has the keys.
    ///
    /// The nodes of a cluster learn of a failover one after the other. While one of them names a primary that is gone, the next is asked.
    pub(super) async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> StoreResult<MultiplexedConnection> {
        let (mut failed, mut last) = (Vec::new(), None);
        for _ in 0..self.answers_max() {
            let client = match self.find().await {
                Ok(client) => client,
                Err(error) => return Err(last.unwrap_or(error)),
            };
            let server = address(&client);
            if !failed.contains(&server) {
                match client.get_multiplexed_async_connection_with_config(config).await {
                    Ok(connection) => return Ok(connection),
                    Err(error) => last = Some(judge(error, Stage::Connecting, &server)),
                }
                failed.push(server);
            }
            self.forget();
        }
        Err(last.unwrap_or_else(no_node))
    }

    /// Returns how many nodes can be asked for the server that has the keys, and one more: what is known may be old.
    fn answers_max(&self) -> usize {
        match self {
            Servers::One(_) => 1,
            Servers::Cluster(cluster) => 1 + cluster.seeds.len().max(cluster.known().nodes.len()),
        }
    }

    /// Returns host and port of the server, for errors.
    pub(super) fn address(&self) -> String {
        match self {
            Servers::One(client) => address(client),
            Servers::Cluster(cluster) => match &cluster.known().primary {
                Some(primary) => address(primary),
                None => cluster.seeds.iter().map(address).collect::<Vec<_>>().join(", "),
            },
        }
    }

    /// Asks again at the next use: the server is gone, or no longer has the keys.
    pub(super) fn forget(&self) {
        match self {
            Servers::One(_) => {}
            Servers::Cluster(cluster) => cluster.known().primary = None,
        }
    }

    /// Notes that the keys are on another server. Returns whether the call can be repeated there: a server that says so has done nothing.
    pub(super) fn follow(&self, error: &RedisError) -> bool {
        let Servers::Cluster(cluster) = self else { return false };
        if self.is_elsewhere(error) {
            self.forget();
        }
        let has_moved = error.code() == Some("MOVED");
        if has_moved {
            cluster.follow(error);
        }
        has_moved
    }

    /// Returns whether a server says that it does not have the keys now, or is not their primary. Its connection is not used again: behind a
    /// name or a balancer, the next one leads to the new primary.
    ///
    /// While a slot moves, its node answers ASK. A script must not follow that: the node that gets the keys does not have all of them yet,
    /// and would let the script write as if those did not exist.
    pub(super) fn is_elsewhere(&self, error: &RedisError) -> bool {
        match code(error).as_str() {
            "READONLY" | "MASTERDOWN" => true,
            "ASK" | "CLUSTERDOWN" => self.is_cluster(),
            _ => false,
        }
    }

    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Servers::Cluster(_))
    }
}

impl Cluster {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, error: &RedisError) {
        let mut known = self.known();
        let from = known.primary.take();
        let to = error.redirect_node().and_then(|(address, _)| address.rsplit_once(':'));
        // Without a host, it is that of the server that answered: asking finds it.
        let (Some(from), Some((host, port))) = (from, to) else { return };
        if let Ok(port) = port.parse()
            && !host.is_empty()
        {
            known.primary = Client::open(moved(from.get_connection_info(), host, port)).ok();
        }
    }

    async fn find(&self) -> StoreResult<Client> {
        let candidates = {
            let mut known = self.known();
            if let Some(primary) = &known.primary {
                return Ok(primary.clone());
            }
            let from = known.asked;
            known.asked += 1;
            let in_turn = |nodes: &[Client]| {
                let (later, first) = nodes.split_at(from % nodes.len().max(1));
                [first, later].concat()
            };
            [in_turn(&known.nodes), in_turn(&self.seeds)].concat()
        };
        let mut last = None;
        for node in candidates {
            match ask(&node, &self.key).await {
                Ok(nodes) => {
                    let primary = nodes[0].clone();
                    let mut known = self.known();
                    known.primary = Some(primary.clone());
                    known.nodes = nodes;
                    return Ok(primary);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(no_node))
    }
}

fn no_node() -> StoreError {
    StoreError::Unavailable("no node of the Redis Cluster is known".into())
}

/// Asks a node for the nodes that have the slot of a key, the primary first, and then all others.
async fn ask(node: &Client, key: &str) -> StoreResult<Vec<Client>> {
    let failed = |error| judge(error, Stage::Connecting, &address(node));
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ASK_TIMEOUT))
        .set_response_timeout(Some(ASK_TIMEOUT));
    let connection = node.get_multiplexed_async_connection_with_config(&config).await;
    let mut connection: MultiplexedConnection = connection.map_err(failed)?;
    let slot: i64 = cmd("CLUSTER")
        .arg("KEYSLOT")
        .arg(key)
        .query_async(&mut connection)
        .await
        .map_err(|error| {
            if error.to_string().contains("cluster support disabled") {
                let what = format!(
                    "{} is not a node of a Redis Cluster: use redis:// instead of redis+cluster://",
                    address(node)
                );
                return broken(what, Some(error.into()));
            }
            failed(error)
        })?;
    let slots: Value =
        cmd("CLUSTER").arg("SLOTS").query_async(&mut connection).await.map_err(failed)?;
    let nodes = nodes_of(slots, slot, node.get_connection_info());
    nodes.ok_or_else(|| {
        let why = format!("{}: no node of the Redis Cluster has slot {slot}", address(node));
        StoreError::Unavailable(why.into())
    })
}

/// Reads the answer to `CLUSTER SLOTS`: ranges of slots with their nodes, the primary first.
fn nodes_of(slots: Value, slot: i64, asked: &ConnectionInfo) -> Option<Vec<Client>> {
    let Value::Array(ranges) = slots else { return None };
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for range in ranges {
        let Value::Array(parts) = range else { return None };
        let [Value::Int(first), Value::Int(last), nodes @ ..] = parts.as_slice() else {
            return None;
        };
        let is_ours = (*first..=*last).contains(&slot);
        let list = if is_ours { &mut ours } else { &mut others };
        list.extend(nodes.iter().filter_map(|node| node_of(node, asked)));
    }
    if ours.is_empty() {
        return None;
    }
    ours.extend(others);
    ours.truncate(NODES_MAX);
    Some(ours)
}

/// Reads one node: its host, if it is not the one that was asked, and its port.
fn node_of(node: &Value, asked: &ConnectionInfo) -> Option<Client> {
    let Value::Array(parts) = node else { return None };
    let [host, Value::Int(port), ..] = parts.as_slice() else { return None };
    // A node that does not know its own name gives none.
    let host =
        if let Value::BulkString(host) = host { std::str::from_utf8(host).ok()? } else { "" };
    Client::open(moved(asked, host, u16::try_from(*port).ok()?)).ok()
}

/// Returns how to connect to another node of the same cluster. An empty host means the same host.
fn moved(known: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let host_of = |same: &str| if host.is_empty() { same.to_owned() } else { host.to_owned() };
    let addr = match known.addr() {
        ConnectionAddr::TcpTls { host: same, insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host: host_of(same),
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        ConnectionAddr::Tcp(same, _) => ConnectionAddr::Tcp(host_of(same), port),
        // A socket in a folder: its server is on this machine.
        ConnectionAddr::Unix(_) | _ => ConnectionAddr::Tcp(host_of("localhost"), port),
    };
    known.clone().set_addr(addr)
}

fn address(client: &Client) -> String {
    client.get_connection_info().addr().to_string()
}

#[cfg(test)]
mod tests {
    use super::{Servers, address, nodes_of};
    use crate::redis::options::RedisOptions;
    use redis::{Client, Value, make_extension_error};

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![Value::BulkString(host.into()), Value::Int(port)])
    }

    fn range(first: i64, last: i64, nodes: [Value; 2]) -> Value {
        let [primary, replica] = nodes;
        Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
    }

    fn addresses(slot: i64, ranges: Vec<Value>) -> Option<Vec<String>> {
        let asked = Client::open("redis://seed:1").unwrap();
        let nodes = nodes_of(Value::Array(ranges), slot, asked.get_connection_info());
        nodes.map(|nodes| nodes.iter().map(address).collect())
    }

    #[test]
    fn the_primary_of_the_slot_comes_first_and_all_nodes_are_known() {
        let ranges = vec![
            range(0, 99, [node("a", 1), node("b", 2)]),
            range(100, 199, [node("", 3), node("d", 4)]),
        ];
        let found = addresses(100, ranges.clone()).unwrap();
        assert_eq!(found, ["seed:3", "d:4", "a:1", "b:2"]);
        assert_eq!(addresses(99, ranges.clone()).unwrap()[0], "a:1");
        assert_eq!(addresses(200, ranges), None, "a slot without a server");
    }

    #[test]
    fn a_moved_slot_is_followed_and_one_that_moves_is_not() {
        let options = RedisOptions::parse("redis+cluster://a:1,b:2").unwrap();
        let servers = Servers::new(&options, "{rewheel}:").unwrap();
        let Servers::Cluster(cluster) = &servers else { panic!("a cluster") };
        cluster.known().primary = Some(Client::open("redis://a:1").unwrap());
        let error = |code: &str| make_extension_error(code.to_owned(), Some("7 c:3".to_owned()));
        assert!(!servers.follow(&error("OOM")));
        assert_eq!(servers.address(), "a:1");
        assert!(!servers.follow(&error("ASK")), "a script must not follow");
        assert_eq!(servers.address(), "a:1, b:2");

        let one = Servers::new(&RedisOptions::parse("redis://a:1").unwrap(), "").unwrap();
        assert!(!one.follow(&error("MOVED")));
    }
}
