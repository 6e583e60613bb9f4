//! A private Redis Cluster: three primaries, each with a replica.

use crate::redis_process::{RedisProcess, wait_for};
use std::cell::Cell;
use std::path::Path;

/// The number of primaries; as many replicas follow them.
const PRIMARIES: usize = 3;

/// The slots of a cluster.
const SLOTS: usize = 16_384;

/// Nothing acknowledged is lost by a killed node that comes back.
const SETTINGS: &str = "--cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 2000 \
                        --appendonly yes --appendfsync always";

/// A replica takes over only when it is told to: on a busy machine a primary that works may not answer for seconds, and a failover that
/// no test asked for would lose what the replica does not have yet. It is a setting of the process, so that it outlasts a restart.
const ON_COMMAND: &str = "--cluster-replica-no-failover yes";

/// How often to look before a planned failover is asked for again, 20 ms apart: longer than the five seconds that Redis gives it.
const LOOKS_PER_FAILOVER: usize = 300;

/// Returns whether this line of `CLUSTER NODES` is about a node that does not answer. Its flags are compared whole: `nofailover` is one too.
fn is_failing(line: &str) -> bool {
    let flags = line.split(' ').nth(2).unwrap_or_default();
    flags.split(',').any(|flag| matches!(flag, "fail" | "fail?"))
}

/// Six processes that are a cluster. They are killed when it is dropped.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisProcess>,
}

impl RedisCluster {
    /// Starts a cluster with its data in this folder. Its replicas take over only when they are told to.
    pub fn start(folder: &Path) -> RedisCluster {
        RedisCluster::start_with(folder, &format!("{SETTINGS} {ON_COMMAND}"))
    }

    /// Starts a cluster whose replicas take over by themselves when their primary does not answer for two seconds.
    pub fn start_with_failover(folder: &Path) -> RedisCluster {
        RedisCluster::start_with(folder, SETTINGS)
    }

    fn start_with(folder: &Path, settings: &str) -> RedisCluster {
        let node = |index: usize| {
            let folder = folder.join(index.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            RedisProcess::start(&folder, settings)
        };
        let cluster = RedisCluster { nodes: (0..2 * PRIMARIES).map(node).collect() };
        cluster.join();
        cluster
    }

    /// Makes one cluster of the nodes.
    fn join(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            node.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            if index < PRIMARIES {
                let slots: Vec<String> = (SLOTS * index / PRIMARIES
                    ..SLOTS * (index + 1) / PRIMARIES)
                    .map(|slot| slot.to_string())
                    .collect();
                let words =
                    ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
                node.command::<()>(&words.collect::<Vec<_>>());
            }
            let port = node.port().to_string();
            self.nodes[0].command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
        let is_met = |node: &RedisProcess| {
            let nodes: String = node.command(&["CLUSTER", "NODES"]);
            nodes.lines().count() == self.nodes.len() && !nodes.contains("handshake")
        };
        wait_for("all nodes know each other", || self.nodes.iter().all(is_met));
        for index in 0..PRIMARIES {
            let primary: String = self.nodes[index].command(&["CLUSTER", "MYID"]);
            self.nodes[PRIMARIES + index].command::<()>(&["CLUSTER", "REPLICATE", &primary]);
        }
        self.wait_until_whole();
    }

    /// Waits until all nodes agree that the cluster works, and all replicas follow their primaries.
    pub fn wait_until_whole(&self) {
        let is_whole = |node: &RedisProcess| {
            let said = |words: &[&str]| node.try_command::<String>(words).unwrap_or_default();
            let (state, link) = (said(&["CLUSTER", "INFO"]), said(&["INFO", "replication"]));
            let nodes = said(&["CLUSTER", "NODES"]);
            let replicas = nodes.lines().filter(|line| line.contains("slave")).count();
            state.contains("cluster_state:ok")
                && replicas == PRIMARIES
                && !nodes.lines().any(is_failing)
                && (link.contains("role:master") || link.contains("master_link_status:up"))
        };
        wait_for("the cluster is whole", || self.nodes.iter().all(is_whole));
    }

    /// Returns the URL of a store in this cluster.
    pub fn url(&self) -> String {
        let hosts = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// Returns a node.
    pub fn node(&self, index: usize) -> &RedisProcess {
        &self.nodes[index]
    }

    /// Returns a node, to kill or restart it.
    pub fn node_mut(&mut self, index: usize) -> &mut RedisProcess {
        &mut self.nodes[index]
    }

    /// Returns the number of the node that is the primary of a key's slot, if a running node knows one that runs.
    pub fn primary_of(&self, key: &str) -> Option<usize> {
        let slot = self.slot_of(key);
        let mut running = self.nodes.iter().filter(|node| node.is_running());
        running.find_map(|node| {
            let slots: Vec<Vec<redis::Value>> = node.try_command(&["CLUSTER", "SLOTS"]).ok()?;
            let range = slots.iter().find(|range| match (&range[0], &range[1]) {
                (redis::Value::Int(first), redis::Value::Int(last)) => {
                    (*first..=*last).contains(&slot)
                }
                _ => false,
            })?;
            let redis::Value::Array(primary) = range.get(2)? else { return None };
            let redis::Value::Int(port) = primary.get(1)? else { return None };
            let is_it = |node: &RedisProcess| node.is_running() && i64::from(node.port()) == *port;
            self.nodes.iter().position(is_it)
        })
    }

    /// Returns the slot of a key.
    pub fn slot_of(&self, key: &str) -> i64 {
        let node = self.nodes.iter().find(|node| node.is_running()).unwrap();
        node.command(&["CLUSTER", "KEYSLOT", key])
    }

    /// Makes the replica of a primary that was killed the primary of a key's slot, and returns its number.
    pub fn take_over(&self, key: &str, killed: usize) -> usize {
        let primary = format!("master_port:{}", self.nodes[killed].port());
        let is_replica = |node: &RedisProcess| {
            let info = node.try_command::<String>(&["INFO", "replication"]).unwrap_or_default();
            node.is_running() && info.lines().any(|line| line.trim() == primary)
        };
        let replica = self.nodes.iter().find(|node| is_replica(node)).expect("a replica runs");
        replica.command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        self.wait_for_new_primary(key, killed)
    }

    /// Makes a replica the primary of a key's slot while the primary runs: a planned failover, which loses nothing.
    pub fn hand_over(&self, key: &str, replica: usize) {
        let looks = Cell::new(0_usize);
        wait_for("the replica is the primary", || {
            if looks.replace(looks.get() + 1).is_multiple_of(LOOKS_PER_FAILOVER) {
                // An error says that a failover is under way or over: the next look sees which.
                drop(self.nodes[replica].try_command::<()>(&["CLUSTER", "FAILOVER"]));
            }
            self.primary_of(key) == Some(replica)
        });
    }

    /// Waits until another node is the primary of a key, and returns its number.
    pub fn wait_for_new_primary(&self, key: &str, old: usize) -> usize {
        let new = || self.primary_of(key).filter(|new| *new != old);
        wait_for("a replica takes over", || new().is_some());
        new().unwrap()
    }

    /// Begins to move the slot of a key to another primary. Until [`RedisCluster::end_move`], keys may be on both.
    pub fn begin_move(&self, key: &str, to: usize) -> usize {
        let from = self.primary_of(key).unwrap();
        let id = |index: usize| self.nodes[index].command::<String>(&["CLUSTER", "MYID"]);
        let slot = self.slot_of(key).to_string();
        self.nodes[to].command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        self.nodes[from].command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
        from
    }

    /// Moves the keys of a slot, and ends the move.
    pub fn end_move(&self, key: &str, from: usize, to: usize) {
        let slot = self.slot_of(key).to_string();
        let port = self.nodes[to].port().to_string();
        loop {
            let get = ["CLUSTER", "GETKEYSINSLOT", &slot, "100"];
            let keys: Vec<Vec<u8>> = self.nodes[from].command(&get);
            if keys.is_empty() {
                break;
            }
            let client = redis::Client::open(self.nodes[from].url()).unwrap();
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg(&["127.0.0.1", &port, "", "0", "60000", "KEYS"]).arg(keys);
            migrate.query::<()>(&mut client.get_connection().unwrap()).unwrap();
        }
        let id: String = self.nodes[to].command(&["CLUSTER", "MYID"]);
        for index in [to, from] {
            self.nodes[index].command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        }
    }
}
