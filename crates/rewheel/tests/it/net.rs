//! A real HTTP server, and a proxy in front of a server that refuses, delays, cuts and garbles connections.

#![allow(dead_code, reason = "each integration uses a part of it")]
#![allow(clippy::allow_attributes, reason = "which part depends on the features")]
#![expect(clippy::unwrap_used, reason = "test code")]

use axum::Router;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// An HTTP server on a free port. Dropping it stops it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Server { address, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// What the proxy does with one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Forwards everything.
    None,
    /// Resets the connection at once.
    Reset,
    /// Reads what the client sends, and never answers.
    Hang,
    /// Forwards only so many bytes of the response, then closes.
    CutAfter(usize),
    /// Forwards the request, and changes every byte of the response.
    Garble,
    /// Forwards everything, but only after [`Proxy::release`].
    Delay,
    /// Forwards everything until [`Proxy::swallow`]. The next answer of the server does not reach the client, and the connection ends.
    Swallow,
}

/// What a test tells its proxy while connections are open.
#[derive(Clone, Debug)]
struct Told {
    released: watch::Sender<bool>,
    swallows: Arc<AtomicBool>,
}

/// A TCP proxy. Each connection gets the next fault of its script; then the proxy forwards everything.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<VecDeque<Fault>>>,
    connections: watch::Receiver<usize>,
    told: Told,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr, script: &[Fault]) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(script.iter().copied().collect::<VecDeque<_>>()));
        let (count, connections) = watch::channel(0);
        let faults = Arc::clone(&script);
        let told = Told { released: watch::Sender::new(false), swallows: Arc::default() };
        let tells = told.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let fault = faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
                let (count, told) = (count.clone(), tells.clone());
                open.spawn(async move {
                    // Counted when the proxy has got a request, or reset the connection.
                    Box::pin(serve(client, target, fault, (&count, &told))).await;
                });
            }
        });
        Proxy { address, script, connections, told, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.borrow()
    }

    /// Waits until so many connections have sent something or were reset.
    pub(crate) async fn wait_for(&mut self, connections: usize) {
        self.connections.wait_for(|count| *count >= connections).await.unwrap();
    }

    /// Forwards what [`Fault::Delay`] holds back.
    pub(crate) fn release(&self) {
        self.told.released.send_replace(true);
    }

    /// Swallows the next answer of a server, as [`Fault::Swallow`] says.
    pub(crate) fn swallow(&self) -> impl Fn() + Send + Sync + 'static {
        let swallows = Arc::clone(&self.told.swallows);
        move || swallows.store(true, Ordering::SeqCst)
    }

    /// Sets the faults of the next connections.
    pub(crate) fn then(&self, script: &[Fault]) {
        self.script.lock().unwrap().extend(script);
    }
}

async fn serve(
    mut client: TcpStream,
    target: SocketAddr,
    fault: Fault,
    (count, told): (&watch::Sender<usize>, &Told),
) {
    // A server may speak first, as those of databases do.
    if fault == Fault::Swallow {
        count.send_modify(|count| *count += 1);
        let Ok(server) = TcpStream::connect(target).await else { return };
        return swallow(client, server, &told.swallows).await;
    }
    if fault == Fault::Reset {
        client.set_zero_linger().unwrap();
        drop(client);
        count.send_modify(|count| *count += 1);
        return;
    }
    let mut request = [0; 16 * 1024];
    let Ok(length) = client.read(&mut request).await else { return };
    count.send_modify(|count| *count += 1);
    if fault == Fault::Hang {
        // Until the client closes the connection.
        while client.read(&mut request).await.is_ok_and(|length| length > 0) {}
        return;
    }
    if fault == Fault::Delay && told.released.subscribe().wait_for(|told| *told).await.is_err() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    if server.write_all(&request[..length]).await.is_err() {
        return;
    }
    match fault {
        Fault::None | Fault::Reset | Fault::Hang | Fault::Delay | Fault::Swallow => {
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
        Fault::CutAfter(bytes) => {
            let mut response = server.take(bytes as u64);
            let _ = tokio::io::copy(&mut response, &mut client).await;
        }
        Fault::Garble => {
            let mut response = [0; 16 * 1024];
            let Ok(length) = server.read(&mut response).await else { return };
            let garbled: Vec<u8> = response[..length].iter().map(|byte| byte ^ 0x15).collect();
            let _ = client.write_all(&garbled).await;
        }
    }
}

/// Forwards everything until it is told to swallow an answer.
async fn swallow(mut client: TcpStream, mut server: TcpStream, swallows: &AtomicBool) {
    let (mut from_client, mut from_server) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(length @ 1..) = read else { return };
                if server.write_all(&from_client[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut from_server) => {
                let Ok(length @ 1..) = read else { return };
                // The server has done what it was asked for.
                if swallows.load(Ordering::SeqCst) || client.write_all(&from_server[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Returns an address at which no server listens.
pub(crate) fn nowhere() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
