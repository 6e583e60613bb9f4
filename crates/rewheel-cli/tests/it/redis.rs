//! Tests the command with a store in Redis: the demo, the start-up rules, what `doctor` says, and encryption.

use crate::demo;
use crate::node::Node;
use crate::shell::{Ran, command, run};
use rewheel_testkit::{RedisCluster, RedisProcess};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use tempfile::TempDir;

const SAFE: &str = "--appendonly yes --appendfsync always";

fn doctor(folder: &Path, url: &str) -> Ran {
    run(folder, &["doctor", "--json", "--store", url])
}

/// The checks that failed, with what they say.
fn failed(ran: &Ran) -> Vec<(String, String)> {
    let checks = ran.json()["checks"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let failed = checks.iter().filter(|check| check["ok"] == false);
    failed.map(|check| (text(&check["name"]), text(&check["message"]))).collect()
}

/// Starts a node and returns what it wrote until it accepted requests.
async fn warnings(folder: &Path, url: &str) -> Vec<String> {
    let config = folder.join("rewheel.toml");
    std::fs::write(&config, format!("[store]\nurl = \"{url}\"\n")).unwrap();
    let node = Node::start(&config, "one", &[]).await;
    node.said().into_iter().filter(|line| line.contains("WARN")).collect()
}

/// Each setting of the table in `docs/redis.md`: a node warns of it when it starts, and `doctor` says the same.
#[tokio::test]
async fn each_setting_that_can_lose_jobs_is_named_at_start_and_by_doctor() {
    for (settings, name, text) in [
        (SAFE, "", ""),
        ("--appendonly yes --appendfsync everysec", "appendfsync", "up to 2 seconds"),
        ("--appendonly yes --appendfsync no", "appendfsync", "about 30 seconds"),
        ("--appendonly no", "appendonly", "loses all jobs"),
        ("--appendonly no --save 60 1", "appendonly", "since the last snapshot"),
        (
            "--appendonly yes --appendfsync always --no-appendfsync-on-rewrite yes",
            "no-appendfsync-on-rewrite",
            "about 30 seconds",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let server = RedisProcess::start(folder.path(), settings);
        let (said, found) =
            (warnings(folder.path(), &server.url()).await, doctor(folder.path(), &server.url()));
        if name.is_empty() {
            assert_eq!((said.len(), found.code), (0, 0), "{settings}: {said:?} {found:?}");
            continue;
        }
        let [warning] = said.as_slice() else { panic!("{settings}: {said:?}") };
        assert!(warning.contains(name) && warning.contains(text), "{settings}: {warning}");
        let failed = failed(&found);
        let [(check, message)] = failed.as_slice() else { panic!("{settings}: {found:?}") };
        assert!(check == name && message.contains(text), "{settings}: {found:?}");
        assert_eq!(found.code, 1, "{settings}: {found:?}");
    }
}

#[test]
fn a_server_that_may_evict_jobs_is_refused() {
    let folder = TempDir::new().unwrap();
    let settings = format!("{SAFE} --maxmemory 100mb --maxmemory-policy volatile-lru");
    let server = RedisProcess::start(folder.path(), &settings);
    let url = server.url();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &url];
    for refused in [run(folder.path(), &serve), doctor(folder.path(), &url)] {
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.err.contains("has maxmemory-policy volatile-lru"), "{refused:?}");
        assert!(refused.err.contains("CONFIG SET maxmemory-policy noeviction"), "{refused:?}");
    }
    assert_eq!(server.command::<i64>(&["DBSIZE"]), 0, "nothing was written");
}

#[test]
fn the_demo_runs_on_redis() {
    let folder = TempDir::new().unwrap();
    let server = RedisProcess::start(folder.path(), SAFE);
    let url = server.url();
    demo::runs_on(folder.path(), &url);
    let found = doctor(folder.path(), &url);
    assert!(found.code == 0 && found.json()["books"]["missing"] == 0, "{found:?}");
}

#[test]
fn the_demo_runs_on_a_cluster() {
    let folder = TempDir::new().unwrap();
    let cluster = RedisCluster::start(folder.path());
    demo::runs_on(folder.path(), &cluster.url());
    let found = doctor(folder.path(), &cluster.url());
    assert_eq!(found.json()["books"]["missing"], 0, "{found:?}");
}

#[test]
fn an_encrypted_connection_proves_the_server_by_its_certificate() {
    let folder = TempDir::new().unwrap();
    for name in ["server", "other"] {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join(format!("{name}.pem")), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        std::fs::write(folder.path().join(format!("{name}.key")), key).unwrap();
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!(
        "{SAFE} --tls-port {port} --tls-cert-file server.pem --tls-key-file server.key \
         --tls-ca-cert-file server.pem --tls-auth-clients no"
    );
    let _server = RedisProcess::start(folder.path(), &settings);
    let url = format!("rediss://localhost:{port}");
    let trusting = |file: &str| {
        let mut doctor = command(folder.path());
        doctor.args(["doctor", "--json", "--store", &url]).env("SSL_CERT_FILE", file);
        Ran::of(&doctor.output().unwrap())
    };
    let found = trusting("server.pem");
    assert!(found.code == 0 && found.json()["ok"] == true, "{found:?}");
    let strange = trusting("other.pem");
    assert_ne!(strange.code, 0);
    assert!(strange.err.contains("certificate"), "{strange:?}");
}
