//! A private Redis Cluster that a cell may harm.

use rewheel_testkit::RedisCluster;
use tempfile::TempDir;

/// Six servers with their own data. None takes over from another by itself.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) servers: RedisCluster,
    /// Deleted after the servers have ended.
    _folder: TempDir,
}

impl Cluster {
    pub(crate) fn start() -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        Cluster { servers: RedisCluster::start(folder.path()), _folder: folder }
    }

    /// The URL for the nodes.
    pub(crate) fn store(&self) -> String {
        format!("{}?prefix=chaos", self.servers.url())
    }

    /// Closes all connections to the primary of the store; returns how many there were.
    pub(crate) fn kill_connections(&self) -> usize {
        let primary = self.servers.node(self.servers.primary_of("{chaos}:").unwrap());
        let kill = |sort| primary.command::<usize>(&["CLIENT", "KILL", "TYPE", sort]);
        kill("normal") + kill("pubsub")
    }
}
