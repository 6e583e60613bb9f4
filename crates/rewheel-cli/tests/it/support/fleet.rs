//! Starts a few nodes on one store, for tests that kill them one at a time.

use crate::node::Node;
use rewheel::{millis, seconds};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout for something that takes a second or two, also on a slow and busy machine.
pub(crate) const PATIENCE: Duration = seconds(180);

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "{what}: not after {PATIENCE:?}");
}

/// Nodes with one config. The name `2-1` means the third node at its second start.
pub(crate) struct Fleet {
    config: PathBuf,
    nodes: Vec<(Node, usize)>,
    client: reqwest::Client,
}

impl Fleet {
    pub(crate) async fn start(config: &Path, count: usize) -> Fleet {
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let mut fleet = Fleet { config: config.to_owned(), nodes: Vec::new(), client };
        for index in 0..count {
            let node = fleet.node(index, 0).await;
            fleet.nodes.push((node, 0));
        }
        fleet
    }

    async fn node(&self, index: usize, starts: usize) -> Node {
        Node::start(&self.config, &format!("{index}-{starts}"), &[]).await
    }

    /// Returns the address of the first node.
    pub(crate) fn url(&self) -> &str {
        &self.nodes[0].0.url
    }

    /// Kills the node with this name, if it still runs, and starts another in its place.
    pub(crate) async fn kill(&mut self, name: &str) {
        let (index, starts) = name.split_once('-').unwrap();
        let (index, starts): (usize, usize) = (index.parse().unwrap(), starts.parse().unwrap());
        assert_eq!(self.nodes[index].1, starts, "{name} was killed before");
        self.nodes[index].0.kill().await;
        self.nodes[index] = (self.node(index, starts + 1).await, starts + 1);
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url());
        let answer = self.client.get(url).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.url());
        let answer = self.client.post(url).body(body.to_string()).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    /// Reads a kind.
    pub(crate) async fn kind(&self, name: &str) -> Value {
        let kinds = self.get("/v1/kinds").await;
        let kinds = kinds["items"].as_array().unwrap();
        kinds.iter().find(|kind| kind["kind"] == name).unwrap().clone()
    }

    /// Shuts down every node gracefully.
    pub(crate) async fn stop(self) {
        for (mut node, _) in self.nodes {
            assert!(node.terminate().await.success(), "{:?}", node.said());
        }
    }
}
