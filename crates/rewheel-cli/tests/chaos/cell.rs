//! A chaos cell: a few nodes on one store, with a callee.

use crate::callee::Callee;
use crate::door::Door;
use crate::node::Node;
use crate::submitter::{Submitter, Urls, post};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a store may be affected after a fault has ended.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// The settings of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: usize,
    /// `None` uses the default, which is longer than a test should take.
    pub(crate) lease_ttl: Option<&'static str>,
    /// The pause between two batches of jobs.
    pub(crate) pause: Duration,
    /// Additional environment variables of each node, by its number.
    pub(crate) env: fn(usize) -> Vec<(String, String)>,
    /// Additional sections of the config file.
    pub(crate) config: String,
}

impl Default for Settings {
    fn default() -> Settings {
        // Some 200 jobs a second: work for three nodes in a debug build, and quickly drained.
        let pause = Duration::from_millis(40);
        let config = String::new();
        Settings { nodes: 3, lease_ttl: Some("1s"), pause, env: |_| Vec::new(), config }
    }
}

pub(crate) struct Cell {
    pub(crate) callee: Callee,
    pub(crate) nodes: Vec<Node>,
    pub(crate) store: String,
    pub(crate) client: reqwest::Client,
    settings: Settings,
    config: PathBuf,
    urls: Urls,
    /// How long this machine took to start all nodes.
    started_in: Duration,
    _folder: tempfile::TempDir,
}

impl Cell {
    pub(crate) async fn start(store: &str, settings: Settings) -> Cell {
        let folder = tempfile::tempdir().unwrap();
        let callee = Callee::start().await;
        let config = folder.path().join("rewheel.toml");
        let text = config_text(store, &callee.url, settings.lease_ttl);
        std::fs::write(&config, text + &settings.config).unwrap();
        // A paused node accepts a connection, and then does not respond.
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2));
        let mut cell = Cell {
            callee,
            nodes: Vec::new(),
            store: store.to_owned(),
            client: client.build().unwrap(),
            settings,
            config,
            urls: Arc::new(Mutex::default()),
            started_in: Duration::ZERO,
            _folder: folder,
        };
        let started = Instant::now();
        for index in 0..cell.settings.nodes {
            let node = cell.new_node(index).await;
            cell.add(node);
        }
        cell.started_in = started.elapsed();
        cell
    }

    /// Additional time for real-time limits, so that they measure the engine and not the machine: a few seconds on an idle machine.
    pub(crate) fn slowness(&self) -> Duration {
        5 * self.started_in
    }

    /// Starts a node that is not part of the cell until it is added.
    pub(crate) async fn new_node(&self, index: usize) -> Node {
        Node::start(&self.config, &name(index), &(self.settings.env)(index)).await
    }

    /// Adds a started node.
    pub(crate) fn add(&mut self, node: Node) {
        self.urls.lock().unwrap().push(node.url.clone());
        self.nodes.push(node);
    }

    /// Restarts a node that has ended.
    pub(crate) async fn restart(&mut self, index: usize) {
        let node = self.new_node(index).await;
        self.urls.lock().unwrap()[index].clone_from(&node.url);
        self.nodes[index] = node;
    }

    /// Starts submitting jobs of kind `work`, to any node that responds.
    pub(crate) fn submit_on(&self) -> Submitter {
        Submitter::start(self.client.clone(), Arc::clone(&self.urls), self.settings.pause)
    }

    /// Returns a client of all nodes.
    pub(crate) fn door(&self) -> Door {
        Door::new(self.client.clone(), Arc::clone(&self.urls))
    }

    /// Submits one job to one node, repeatedly until it is acknowledged; returns its id.
    pub(crate) async fn submit_to(&self, index: usize, job: Value, within: Duration) -> String {
        let url = format!("{}/v1/jobs", self.nodes[index].url);
        let started = Instant::now();
        loop {
            match post(&self.client, &url, &job).await {
                Ok(answer) => return answer["id"].as_str().unwrap().to_owned(),
                Err(why) => assert!(
                    started.elapsed() < within,
                    "{} takes no job after {within:?}: {why}; it said {:#?}",
                    name(index),
                    self.nodes[index].said()
                ),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Measures the time until each node has accepted a job and that job has run.
    pub(crate) async fn recover(&self, name: &str) -> Vec<String> {
        let (ended, recovery_max) = (Instant::now(), RECOVERY_MAX + self.slowness());
        let mut probes = Vec::new();
        for index in 0..self.nodes.len() {
            let key = format!("probe-{name}-{index}");
            let job = json!({"kind": "steady", "payload": {}, "key": key});
            let id = self.submit_to(index, job, recovery_max).await;
            let left = recovery_max.saturating_sub(ended.elapsed());
            self.callee.wait_for(&id, left, |calls| !calls.is_empty()).await;
            probes.push(id);
        }
        println!("recovered within {:.2} s of the fault's end", ended.elapsed().as_secs_f64());
        assert!(ended.elapsed() <= recovery_max, "{:?} is too long", ended.elapsed());
        probes
    }
}

pub(crate) fn name(index: usize) -> String {
    format!("node-{index}")
}

fn config_text(store: &str, callee: &str, lease_ttl: Option<&str>) -> String {
    // With a short lease, all default waits of a node are shortened as well.
    let haste = lease_ttl.map(|lease_ttl| {
        format!(
            r#"
            lease_ttl = "{lease_ttl}"
            housekeeping = "500ms"
            "#
        )
    });
    let kind = |name: &str, more: &str| {
        format!(
            r#"
            [kinds.{name}]
            runner = "callback"
            attempts_max = 50
            takeovers_max = 100
            backoff = "fixed 20ms jitter none"
            keep_succeeded = "1d"
            {more}
            [kinds.{name}.callback]
            url = "{callee}/{name}"
            allow = ["127.0.0.0/8"]
            headers = {{ x-node = "${{NODE}}" }}
            "#
        )
    };
    format!(
        r#"
        [store]
        url = "{store}"
        [engine]
        {}
        concurrency = 64
        {}{}{}
        "#,
        haste.unwrap_or_default(),
        kind("work", r#"attempt_timeout = "2s""#),
        // Longer than any fault: the fault ends these calls, not a timeout.
        kind("held", r#"attempt_timeout = "10m""#),
        kind("steady", r#"attempt_timeout = "2s""#),
    )
}
