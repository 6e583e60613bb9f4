//! Tests what systemd receives.

use super::Systemd;
use rewheel::{CancelToken, seconds};
use rewheel_engine::Engine;
use rewheel_stores::MemoryStore;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use tempfile::TempDir;

/// The socket of systemd.
struct Receiver {
    socket: UnixDatagram,
    folder: TempDir,
}

impl Receiver {
    fn open() -> Receiver {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_nonblocking(true).expect("a socket that does not block");
        Receiver { socket, folder }
    }

    fn systemd(&self, usec: Option<&str>, pid: Option<&str>) -> Systemd {
        let path = self.folder.path().join("notify").into_os_string();
        Systemd::of(Some(path), usec.map(str::to_owned), pid.map(str::to_owned))
    }

    fn heard(&self) -> Vec<String> {
        let mut buffer = [0; 64];
        let mut heard = Vec::new();
        while let Ok(length) = self.socket.recv(&mut buffer) {
            heard.push(String::from_utf8(buffer[..length].to_vec()).expect("text"));
        }
        heard
    }
}

#[test]
fn without_systemd_nothing_is_sent() {
    Systemd::of(None, Some("10000000".to_owned()), None).say("READY=1");
    let receiver = Receiver::open();
    let gone = receiver.systemd(None, None);
    gone.say("READY=1");
    assert_eq!(receiver.heard(), ["READY=1"]);
    drop(receiver);
    // A server runs on without its supervisor.
    gone.say("STOPPING=1");
}

#[cfg(target_os = "linux")]
#[test]
fn an_abstract_name_works() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("rewheel-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    Systemd::of(Some(format!("@{name}").into()), None, None).say("READY=1");
    socket.set_nonblocking(true).expect("a socket that does not block");
    let mut buffer = [0; 64];
    assert_eq!(socket.recv(&mut buffer).unwrap(), "READY=1".len());
}

#[test]
fn the_watchdog_of_another_process_is_not_fed() {
    let receiver = Receiver::open();
    let every = |usec, pid| receiver.systemd(usec, pid).feed_every;
    let own = std::process::id().to_string();
    assert_eq!(every(Some("30000000"), None), Some(seconds(15)));
    assert_eq!(every(Some("30000000"), Some(own.as_str())), Some(seconds(15)));
    assert_eq!(every(Some("30000000"), Some("1")), None);
    assert_eq!((every(Some("0"), None), every(Some("soon"), None)), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_is_fed_while_the_engine_runs() {
    let receiver = Receiver::open();
    let systemd = receiver.systemd(Some("30000000"), None);
    let engine = Engine::builder(Arc::new(MemoryStore::new())).start().await.unwrap();
    let stop = CancelToken::new();
    let looking = async {
        tokio::time::sleep(seconds(46)).await;
        assert_eq!(receiver.heard(), ["WATCHDOG=1"; 4]);
        // As if the dispatch loop hung.
        engine.kill();
        tokio::time::sleep(seconds(15)).await;
        receiver.heard();
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(receiver.heard(), [""; 0]);
        stop.cancel();
    };
    tokio::join!(systemd.while_fed(&engine, stop.cancelled()), looking);
}
