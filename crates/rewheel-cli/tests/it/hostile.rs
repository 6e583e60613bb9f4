//! Runs hostile clients against a real server.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test of real processes, in real time"
)]

mod server;

use self::server::{PATIENCE, Server, answer, code, status, until};
use rewheel::{Random, seconds};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

const MIB: u64 = 1024 * 1024;

/// Maximum slowdown of a server under attack, compared with an idle server on the same machine. The machine may be slow or busy; on an
/// idle one each response takes a few milliseconds.
const SLOWER_MAX: u32 = 50;

/// A response time that is always accepted: less than every timeout that an attacker could make others wait for.
const SOON: Duration = seconds(5);

/// Returns how many more files this process may open.
fn files_free() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap_or(1_000_000);
    soft.saturating_sub(200)
}

/// Checks that the server still serves others: a submit on a separate connection is stored. Returns the response time.
async fn serves_others(server: &Server) -> Duration {
    let job = r#"{"kind":"mail","payload":{}}"#;
    let length = job.len();
    let submit = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{job}"
    );
    let live = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let asked = Instant::now();
    for (request, wanted) in [(live, 200), (submit.as_str(), 201)] {
        let answer = server.say(request.as_bytes()).await;
        assert_eq!(status(&answer), wanted, "{answer}");
    }
    asked.elapsed()
}

/// Checks that the server serves others about as fast as an idle server at the same time.
async fn serves_others_soon(server: &Server, calm: &Server) {
    let (took, control) = tokio::join!(serves_others(server), serves_others(calm));
    let limit = SOON.max(control * SLOWER_MAX);
    assert!(took < limit, "answered after {took:?}; a calm server after {control:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_slow_clients_delay_no_other_client() {
    let server = Server::start("head_timeout = \"8s\"").await;
    let calm = Server::start("").await;
    serves_others_soon(&server, &calm).await;
    let before = server.memory();
    let many = files_free().min(5_000);
    let (begun, mut slow) = (Instant::now(), Vec::new());
    for number in 0..many {
        // The listener's queue is shorter than the number of clients.
        let mut client = timeout(PATIENCE, server.connect()).await.unwrap();
        let head = "GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nx-padding: ".to_owned()
            + &"x".repeat(number % 2_000);
        client.write_all(head.as_bytes()).await.unwrap();
        slow.push(client);
        if number % 500 == 499 {
            serves_others_soon(&server, &calm).await;
        }
    }
    let (opened, grown) = (begun.elapsed(), server.memory().saturating_sub(before));
    eprintln!("{many} slow connections within {opened:?}: {} KiB more", grown / 1024);
    assert!(grown < 200 * MIB, "{} MiB", grown / MIB);
    for _ in 0..10 {
        serves_others_soon(&server, &calm).await;
    }
    let is_over = || server.files() < 100;
    until("the slow are cut off", is_over).await;
    serves_others(&server).await;
    // Each of them got an error, or was replaced by another connection.
    let mut told = String::new();
    slow.last_mut().unwrap().read_to_string(&mut told).await.unwrap();
    assert_eq!((status(&told), code(&told)), (408, "too_slow"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_bodies_are_cut_off_within_bounded_memory() {
    let (server, calm) = (Server::start("").await, Server::start("").await);
    serves_others_soon(&server, &calm).await;
    let before = server.memory();
    let mut clients = JoinSet::new();
    for path in ["/v1/jobs", "/v1/jobs/batch", "/v1/kinds/mail/pause", "/v1/workers/claim"] {
        for _ in 0..4 {
            let mut client = server.connect().await;
            clients.spawn(async move {
                let head = format!(
                    "POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
                );
                client.write_all(head.as_bytes()).await.unwrap();
                let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
                let mut sent = 0_u64;
                while client.write_all(&chunk).await.is_ok() {
                    sent += 0x10000;
                    assert!(sent < 4_096 * MIB, "{path} listens for ever");
                }
                sent
            });
        }
    }
    let mut most = 0;
    while !clients.is_empty() {
        if let Ok(Some(sent)) = timeout(seconds(1), clients.join_next()).await {
            sent.unwrap();
        }
        most = most.max(server.memory().saturating_sub(before));
        serves_others_soon(&server, &calm).await;
    }
    eprintln!("16 endless bodies: {} KiB more", most / 1024);
    assert!(most < 512 * MIB, "{} MiB", most / MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_is_cut_off() {
    let server = Server::start("body_timeout = \"1s\"").await;
    let mut client = server.connect().await;
    let head = b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{";
    client.write_all(head).await.unwrap();
    let told = answer(&mut client).await;
    assert_eq!((status(&told), code(&told)), (408, "too_slow"), "{told}");
    serves_others(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_cut_anywhere_gets_a_problem_or_silence() {
    let server = Server::start("").await;
    let job = r#"{"kind":"mail","payload":{"to":"ada"}}"#;
    let length = job.len();
    let whole = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{job}"
    );
    for cut in 0..whole.len() {
        let told = server.say_only(&whole.as_bytes()[..cut]).await;
        // Nothing was sent, or the connection ended within the body: there is no client to respond to.
        if !told.is_empty() {
            assert_eq!(status(&told), 400, "cut at {cut}: {told}");
            assert!(["bad_request", "bad_json"].contains(&code(&told)), "cut at {cut}: {told}");
        }
    }
    serves_others(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_gets_clear_errors_and_never_a_server_error() {
    let server = Server::start("").await;
    let random = Random::seeded(17);
    let below = |most: usize| usize::try_from(random.next() % most as u64).unwrap();
    let job = r#"{"kind":"mail","payload":{"to":"ada"},"priority":5,"delay":"1h"}"#;
    let length = job.len();
    let seeds = [
        format!("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{job}"),
        "GET /v1/jobs?limit=10&state=dead HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(),
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_owned(),
    ];
    for round in 0..1_500 {
        let mut noise = seeds[round % seeds.len()].clone().into_bytes();
        for _ in 0..=below(4) {
            let place = below(noise.len());
            match below(3) {
                0 => noise[place] = u8::try_from(below(256)).unwrap(),
                1 => drop(noise.remove(place)),
                _ => noise.insert(place, u8::try_from(below(256)).unwrap()),
            }
        }
        let told = server.say_only(&noise).await;
        if !told.is_empty() {
            let shown = String::from_utf8_lossy(&noise);
            assert!((200..500).contains(&status(&told)), "{shown:?}: {told}");
            assert!(status(&told) < 400 || !code(&told).is_empty(), "{shown:?}: {told}");
        }
    }
    serves_others(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_utf_8_is_refused_with_a_reason() {
    let server = Server::start("").await;
    let cases: [(&[u8], u16, &str); 6] = [
        (b"GET /v1/jobs/%ff%fe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 400, "bad_query"),
        (b"GET /v1/jobs?q=%ff HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 200, ""),
        (b"GET /v1/jobs/\xff\xfe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 400, "bad_request"),
        (b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: \xff\r\nconnection: close\r\n\r\n", 400, "bad_query"),
        (
            b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nidempotency-key: \xff\xfe\r\nconnection: close\r\ncontent-length: 28\r\n\r\n{\"kind\":\"mail\",\"payload\":{}}",
            400,
            "bad_query",
        ),
        (
            b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 30\r\n\r\n{\"kind\":\"mail\",\"payload\":\"\xff\xfe\"}",
            400,
            "bad_json",
        ),
    ];
    for (request, wanted, named) in cases {
        let told = server.say(request).await;
        let shown = String::from_utf8_lossy(request);
        assert_eq!(status(&told), wanted, "{shown}: {told}");
        assert!(wanted < 400 || code(&told) == named, "{shown}: {told}");
    }
    serves_others(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_is_not_unpacked() {
    let server = Server::start("").await;
    let before = server.memory();
    let bomb = server::bomb(64 * 1024 * 1024);
    let head = format!(
        "POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        bomb.len()
    );
    let told = server.say(&[head.as_bytes(), &bomb].concat()).await;
    assert_eq!((status(&told), code(&told)), (413, "too_large"), "{told}");
    let grown = server.memory().saturating_sub(before);
    eprintln!("a bomb of {} bytes: {} KiB more", bomb.len(), grown / 1024);
    assert!(grown < 128 * MIB, "{} MiB", grown / MIB);
    let brotli = b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\n{}";
    let told = server.say(brotli).await;
    assert_eq!((status(&told), code(&told)), (415, "unknown_encoding"), "{told}");
    serves_others(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_does_not_listen_is_cut_off() {
    let server = Server::start("write_timeout = \"1s\"").await;
    let listen = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut deaf: Vec<TcpStream> = Vec::new();
    for _ in 0..4 {
        let mut client = server.connect().await;
        client.write_all(listen).await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        deaf.push(client);
    }
    let before = server.files();
    // Each job is an event, and the clients do not read it: eventually all buffers are full.
    let is_cut = async {
        while server.files() + 4 > before {
            server.submit_many().await;
        }
    };
    timeout(PATIENCE, is_cut).await.unwrap();
    serves_others(&server).await;
}
