//! Compares the client around reqwest with reqwest alone, at a server of this process.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::OnceLock;
use std::thread;

use rewheel::{RateLimiter, ServiceClass};
use tokio::runtime::{Builder, Runtime};

use crate::goal::Limit::Times;
use crate::harness::{Comparison, Group, Pace, Subject};

const ALONE: &str = "reqwest alone";

pub fn compare(pace: &Pace) -> Vec<Group> {
    let url = format!("http://{}/", serve().expect("a free port of this machine"));
    // Total timeout, retry with a budget, rate limiter, circuit breaker, attempt timeout.
    let five = rewheel::reqwest::Client::builder(http())
        .class(&ServiceClass::STANDARD)
        .rate_limiter(RateLimiter::per_second(1_000_000_000))
        .build();
    let (alone, same) = (http(), url.clone());
    let subjects = vec![
        requests("rewheel, five policies", async move || {
            let response = five.get(&url).send().await.map_err(io::Error::other)?;
            response.bytes().await.map_err(io::Error::other)
        })
        .versus(&[ALONE], &[(1, Times(1.02))]),
        requests(ALONE, async move || {
            let response = alone.get(&same).send().await.map_err(io::Error::other)?;
            response.bytes().await.map_err(io::Error::other)
        }),
    ];
    vec![
        Comparison { name: "HTTP request to a local server", threads: &[1], subjects }
            .measure(pace),
    ]
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("a client without TLS")
}

fn requests<T>(
    name: &'static str,
    request: impl AsyncFn() -> io::Result<T> + Send + Sync + 'static,
) -> Subject {
    let work = move |indexes: Range<u64>| {
        runtime().block_on(async {
            for _ in indexes {
                request().await.expect("the server answers");
            }
        });
    };
    Subject::of_loop(name, work).that_waits()
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime with sockets")
    })
}

/// Starts a server that does as little as possible for a request without a body.
fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    stream.set_nodelay(true)?;
    let (mut request, mut filled) = ([0; 4_096], 0);
    loop {
        let length = stream.read(&mut request[filled..])?;
        if length == 0 {
            return Ok(());
        }
        filled += length;
        if request[..filled].ends_with(b"\r\n\r\n") {
            stream.write_all(ANSWER)?;
            filled = 0;
        }
    }
}
