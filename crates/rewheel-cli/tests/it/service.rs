//! Tests what a package and a process supervisor use: version, man pages, readiness, states for systemd.

use crate::node::Node;
use crate::shell::run;
use std::time::Duration;
use tokio::net::UnixDatagram;

/// Longer than a start or a stop takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn the_version_names_commit_and_features() {
    let folder = tempfile::tempdir().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(run(folder.path(), &["-V"]).out, format!("rewheel {version}"));
    let long = run(folder.path(), &["--version"]).out;
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], format!("rewheel {version}"));
    assert!(lines[1].strip_prefix("commit: ").is_some_and(|commit| !commit.is_empty()), "{long}");
    let features = lines[2].strip_prefix("features: ").unwrap();
    for (name, is_on) in [("otlp", cfg!(feature = "otlp")), ("redis", cfg!(feature = "redis"))] {
        assert_eq!(features.split(", ").any(|feature| feature == name), is_on, "{long}");
    }
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["man", "share/man1"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "man pages are in share/man1"), "{}", ran.err);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("share/man1").join(name));
    assert!(page("rewheel.1").unwrap().contains("rewheel\\-serve(1)"));
    assert!(page("rewheel-serve.1").unwrap().contains("\\-\\-paused"));
    assert!(page("rewheel-jobs-list.1").unwrap().contains("\\-\\-state"));
    std::fs::write(folder.path().join("file"), "").unwrap();
    let ran = run(folder.path(), &["man", "file/man1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("failed to write man pages to file/man1"), "{}", ran.err);
}

#[test]
fn a_paused_demo_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["serve", "--paused", "--demo"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}

/// Waits for the next state.
async fn next(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 64];
    let received = tokio::time::timeout(PATIENCE, socket.recv(&mut buffer)).await;
    let length = received.expect("systemd is told the state").unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn systemd_and_scripts_learn_the_state_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    let config = folder.path().join("rewheel.toml");
    std::fs::write(&config, "[store]\nurl = \"memory://\"\n").unwrap();
    let path = folder.path().join("notify").to_str().unwrap().to_owned();
    let env = [("NOTIFY_SOCKET", path.as_str()), ("WATCHDOG_USEC", "4000000")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut node = Node::start(&config, "node", &env).await;
    let mut first = [next(&socket).await, next(&socket).await];
    first.sort();
    assert_eq!(first, ["READY=1", "WATCHDOG=1"]);
    let ran = run(folder.path(), &["ready", "--server", &node.url]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "ready"), "{}", ran.err);
    assert_eq!(next(&socket).await, "WATCHDOG=1");
    assert!(node.terminate().await.success(), "{:?}", node.said());
    let mut last = next(&socket).await;
    while last == "WATCHDOG=1" {
        last = next(&socket).await;
    }
    assert_eq!(last, "STOPPING=1");
    let ran = run(folder.path(), &["ready", "--server", &node.url]);
    assert_ne!(ran.code, 0, "{}", ran.out);
}
