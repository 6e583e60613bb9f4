//! A TCP proxy to the server that tests can break in several ways.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards bytes, until a test tells it otherwise.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    ways: Arc<Ways>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Ways {
    /// Connections with a smaller number forward nothing, and stay open.
    silent_below: AtomicUsize,
    /// Responses of the server are not read.
    deaf: AtomicBool,
    /// New connections are closed at once.
    refuses: AtomicBool,
    /// A connection that sends this text is closed, with this response.
    cut: Mutex<Option<(Vec<u8>, Vec<u8>)>>,
    made: AtomicUsize,
    /// How often clients sent something: each time they wait for a response.
    asked: AtomicUsize,
}

impl Proxy {
    pub(crate) async fn start(host: &str, port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("an address").port();
        let ways = Arc::new(Ways::default());
        let (host, shared) = (host.to_owned(), Arc::clone(&ways));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if shared.refuses.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect((host.as_str(), port)).await.expect("a server");
                let number = shared.made.fetch_add(1, Ordering::SeqCst);
                let (client_says, client_hears) = client.into_split();
                let (server_says, server_hears) = server.into_split();
                let client_hears = Arc::new(tokio::sync::Mutex::new(client_hears));
                pumps.spawn(ask(
                    Arc::clone(&shared),
                    number,
                    client_says,
                    server_hears,
                    Arc::clone(&client_hears),
                ));
                pumps.spawn(answer(Arc::clone(&shared), number, server_says, client_hears));
            }
        });
        Proxy { port: here, ways, _task: task }
    }

    /// Stops forwarding on the current connections. New ones work.
    pub(crate) fn silence(&self) {
        self.ways.silent_below.store(self.ways.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Closes new connections at once.
    pub(crate) fn refuse(&self) {
        self.ways.refuses.store(true, Ordering::SeqCst);
    }

    /// Stops reading the server's responses, as if the process were paused.
    pub(crate) fn go_deaf(&self) {
        self.ways.deaf.store(true, Ordering::SeqCst);
    }

    /// Closes the next connection that sends this text, before the server receives it.
    pub(crate) fn cut_at(&self, said: &str, answer: &[u8]) {
        let cut = (said.as_bytes().to_vec(), answer.to_vec());
        *self.ways.cut.lock().expect("a lock") = Some(cut);
    }

    /// Returns how often clients have sent something so far.
    pub(crate) fn asked(&self) -> usize {
        self.ways.asked.load(Ordering::SeqCst)
    }

    /// Returns whether the awaited text was sent.
    pub(crate) fn has_cut(&self) -> bool {
        self.ways.cut.lock().expect("a lock").is_none()
    }
}

async fn ask(
    ways: Arc<Ways>,
    number: usize,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    back: Arc<tokio::sync::Mutex<OwnedWriteHalf>>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let said = &bytes[..count];
        ways.asked.fetch_add(1, Ordering::SeqCst);
        let cut = {
            let mut cut = ways.cut.lock().expect("a lock");
            let is_said = |(word, _): &(Vec<u8>, Vec<u8>)| {
                said.windows(word.len()).any(|part| part == word.as_slice())
            };
            if cut.as_ref().is_some_and(is_said) { cut.take() } else { None }
        };
        if let Some((_, answer)) = cut {
            let mut back = back.lock().await;
            let _ = back.write_all(&answer).await;
            let _ = back.shutdown().await;
            return;
        }
        if number < ways.silent_below.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if to.write_all(said).await.is_err() {
            return;
        }
    }
}

async fn answer(
    ways: Arc<Ways>,
    number: usize,
    mut from: OwnedReadHalf,
    to: Arc<tokio::sync::Mutex<OwnedWriteHalf>>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let is_silent = number < ways.silent_below.load(Ordering::SeqCst);
        if is_silent || ways.deaf.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if to.lock().await.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
    let _ = to.lock().await.shutdown().await;
}
