//! A TCP proxy that makes a server look far away: each request and its response together take longer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Bytes on their way in one direction. More wait in the buffers of the sockets, as with a slow network.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Forwards to a server, and delays what it forwards. Requests that are sent together are delayed together: the proxy limits no
/// bandwidth.
#[derive(Debug)]
pub struct DistantServer {
    url: String,
    asked: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl DistantServer {
    /// Starts a proxy to the server of this URL, such as `postgres://user@host:port/name`.
    pub async fn start(url: &str, round_trip: Duration) -> DistantServer {
        let (front, back) = url.split_once("://").unwrap();
        let (authority, path) = back.split_once('/').unwrap_or((back, ""));
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (format!("{user}@"), server.to_owned()),
            None => (String::new(), authority.to_owned()),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let (client_says, client_hears) = client.into_split();
                let (server_says, server_hears) = server.into_split();
                let delay = round_trip / 2;
                pumps.spawn(forward(client_says, server_hears, delay, Some(Arc::clone(&counted))));
                pumps.spawn(forward(server_says, client_hears, round_trip - delay, None));
            }
        });
        DistantServer { url: format!("{front}://{user}{here}/{path}"), asked, _task: task }
    }

    /// Returns the URL of the server behind the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns how often clients have sent something so far: each time they wait for a response.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[expect(clippy::disallowed_methods, reason = "it delays bytes for real")]
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    reads: Option<Arc<AtomicUsize>>,
) {
    let mut on_the_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let (mut bytes, mut count, mut is_open) = (vec![0; 64 * 1024], 0, true);
    while is_open || !on_the_way.is_empty() {
        let first = on_the_way.front().map_or_else(Instant::now, |(due, _)| *due);
        tokio::select! {
            read = from.read(&mut bytes), if is_open && count < BYTES_MAX => match read {
                Ok(read @ 1..) => {
                    if let Some(reads) = &reads {
                        reads.fetch_add(1, Ordering::SeqCst);
                    }
                    count += read;
                    on_the_way.push_back((Instant::now() + delay, bytes[..read].to_vec()));
                }
                Ok(0) | Err(_) => is_open = false,
            },
            () = tokio::time::sleep_until(first), if !on_the_way.is_empty() => {
                let Some((_, part)) = on_the_way.pop_front() else { continue };
                count -= part.len();
                if to.write_all(&part).await.is_err() {
                    return;
                }
            }
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::DistantServer;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Two requests that are sent together come back together; a third one takes another round trip.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it compares real times")]
    async fn a_request_takes_at_least_a_round_trip() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("echo://ops@{}/name?a=b", listener.local_addr().unwrap());
        let mut echo = tokio::task::JoinSet::new();
        echo.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 100];
            while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                stream.write_all(&bytes[..count]).await.unwrap();
            }
        });
        let delay = Duration::from_millis(40);
        let distant = DistantServer::start(&url, delay).await;
        let rest = distant.url().strip_prefix("echo://ops@").unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        assert_eq!(path, "name?a=b");
        let start = tokio::time::Instant::now();
        let mut stream = TcpStream::connect(address).await.unwrap();
        for round in 1..=3 {
            stream.write_all(b"ab").await.unwrap();
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"ab");
            assert!(start.elapsed() >= delay * round);
            assert_eq!(distant.asked(), round as usize);
        }
    }
}
