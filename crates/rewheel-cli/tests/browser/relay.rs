//! A connection between browser and server that a test can cut.

use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes connections on to a server until it is cut.
pub(crate) struct Relay {
    pub(crate) url: String,
    is_cut: Arc<watch::Sender<bool>>,
    _listening: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn to(url: &str) -> Relay {
        let server = url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let is_cut = Arc::new(watch::Sender::new(false));
        let cut = Arc::clone(&is_cut);
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass_on(client, server.clone(), cut.subscribe()));
            }
        });
        Relay { url, is_cut, _listening: listening }
    }

    /// Ends every connection, and each new one.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

async fn pass_on(mut client: TcpStream, server: String, mut is_cut: watch::Receiver<bool>) {
    let passed = async {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        biased;
        _ = is_cut.wait_for(|is_cut| *is_cut) => {}
        _ = passed => {}
    }
}
