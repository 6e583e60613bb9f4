//! Tests that no spelling of a forbidden address gets through, in a network namespace without a network.

use super::{Clients, Names};
use crate::callback::template::tests::job;
use crate::callback::{Callback, CallbackRunner};
use rewheel::{CancelToken, seconds};
use rewheel_core::{KindName, Report};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Set inside the network namespace that has only loopback.
const INSIDE: &str = "REWHEEL_TEST_LOOPBACK_ONLY";

/// Targets that a broken guard would reach: this machine, the private network, cloud metadata services.
const TARGETS: [Ipv4Addr; 8] = [
    Ipv4Addr::new(127, 0, 0, 1),
    Ipv4Addr::new(127, 9, 8, 7),
    Ipv4Addr::new(0, 0, 0, 0),
    Ipv4Addr::new(10, 1, 2, 3),
    Ipv4Addr::new(172, 16, 5, 4),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 64, 0, 9),
];

/// Returns every notation of an address that a URL parser accepts, and some that it should reject.
fn spellings(target: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = target.octets();
    let number = u32::from(target);
    let (low, last) = (number & 0x00ff_ffff, number & 0xffff);
    let [x, y] = [number >> 16, last];
    let wide: String = target
        .to_string()
        .chars()
        .map(|one| match one {
            '.' => '\u{3002}',
            digit => char::from_u32(digit as u32 - '0' as u32 + 0xff10).unwrap(),
        })
        .collect();
    vec![
        target.to_string(),
        format!("{target}."),
        format!("{number}"),
        format!("{number:#x}"),
        format!("{number:#o}").replace("0o", "0"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{low}"),
        format!("{a}.{b}.{last}"),
        format!("{a:#x}.0{b:o}.{last}"),
        format!("000{a:o}.{b}.{c}.{d}"),
        target.to_string().replace('.', "%2e"),
        target.to_string().replace('1', "%31"),
        wide,
        format!("1.1.1.1@{target}"),
        format!("pay.example:443@{target}"),
        format!("[::ffff:{target}]"),
        format!("[::ffff:{x:x}:{y:x}]"),
        format!("[::{target}]"),
        format!("[64:ff9b::{target}]"),
        format!("[64:ff9b:1::{x:x}:{y:x}]"),
        format!("[2002:{x:x}:{y:x}::1]"),
        format!("[::ffff:0:{target}]"),
        format!("{}.by-name.example", target.to_string().replace('.', "-")),
    ]
}

/// Resolves names to the addresses in them; one name resolves differently each time.
fn look_up(name: &str) -> Vec<IpAddr> {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    if name == "rebinding.example" {
        let public = ASKED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        return vec![if public { [192, 0, 9, 1].into() } else { Ipv4Addr::LOCALHOST.into() }];
    }
    if name == "both.example" {
        return vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::new(10, 0, 0, 1).into()];
    }
    let named = name.strip_suffix(".by-name.example").map(|text| text.replace('-', "."));
    named.and_then(|text| text.parse().ok()).into_iter().collect()
}

/// Returns why nothing was sent, or `None` if something may have been sent.
async fn refusal(url: &str, clients: &Clients) -> Option<String> {
    let callback = match Callback::parse(&json!({ "url": url })) {
        Ok(callback) => callback,
        Err(error) => return Some(error.to_string()),
    };
    let kind = KindName::parse("charge-card").unwrap();
    let runner = CallbackRunner::new(kind, callback, clients).unwrap();
    let report = runner.call(&job(None, b"{}"), 1, seconds(5), 0, &CancelToken::new()).await;
    let Report::AttemptFailed { failure, .. } = report else { return None };
    let is_refused = failure.message().contains("are not allowed");
    is_refused.then(|| failure.message().to_owned())
}

/// Runs this test again where a broken guard reaches no network. Returns whether that was possible.
fn ran_without_a_network(name: &str) -> bool {
    let this = std::env::current_exe().unwrap();
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
    inside.arg("ip link set lo up && exec \"$0\" --exact \"$1\" --nocapture").arg(this).arg(name);
    let output = match inside.env(INSIDE, "1").output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return false,
        Err(error) => panic!("{error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("running 0 tests"), "there is no test {name}");
    if !said.contains("running 1 test") {
        return false;
    }
    assert!(output.status.success(), "{said}");
    true
}

#[tokio::test]
async fn no_spelling_of_an_address_gets_past_the_guard() {
    if std::env::var_os(INSIDE).is_none() {
        let name = "callback::client::guard::no_spelling_of_an_address_gets_past_the_guard";
        // Without a network namespace (`unshare`, `ip`), only the tables of `address` are tested: nothing is sent that a broken guard
        // could let through.
        let _ran = ran_without_a_network(name);
        return;
    }
    let clients = Clients { names: Names::Stub(look_up), ..Clients::new() };
    // A request that gets past the guard arrives here.
    let doors = ["127.0.0.1:0", "[::1]:0"].map(|address| TcpListener::bind(address).unwrap());
    doors.iter().for_each(|door| door.set_nonblocking(true).unwrap());
    let ports: Vec<u16> = doors.iter().map(|door| door.local_addr().unwrap().port()).collect();
    let mut hosts: Vec<String> = TARGETS.into_iter().flat_map(spellings).collect();
    let others =
        ["[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[fd00:ec2::254]", "[fe80::1]", "both.example"];
    hosts.extend(others.map(str::to_owned));
    let urls: BTreeSet<String> =
        hosts.iter().map(|host| format!("http://{host}:{}/hook", ports[0])).collect();
    assert!(urls.len() >= 150, "{}", urls.len());
    for url in &urls {
        assert!(refusal(url, &clients).await.is_some(), "{url} was let through");
    }
    // The name resolves to another address the second time: the connection must use the checked address.
    let rebinding = format!("http://rebinding.example:{}/hook", ports[0]);
    let tries = [refusal(&rebinding, &clients).await, refusal(&rebinding, &clients).await];
    assert!(tries[0].is_none() && tries[1].is_some(), "{tries:?}");
    for door in &doors {
        let knocked = door.accept().map(|(_, from)| from);
        assert_eq!(knocked.unwrap_err().kind(), ErrorKind::WouldBlock, "a connection was accepted");
    }
}
