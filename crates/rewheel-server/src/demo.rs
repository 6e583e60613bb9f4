//! Runs the demo of `serve --demo`: jobs that fail and are retried.
//!
//! [`start`] runs a callback server that fails in several ways, with a kind for each; [`trickle`]
//! submits jobs; [`narrate`] prints what happens to them.

mod callee;
mod kinds;
mod trickle;
mod narrate;
mod output;

pub use self::narrate::narrate;
pub use self::trickle::trickle;

use rewheel_core::KindName;
use rewheel_engine::KindSettings;
use std::fmt;
use std::io;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The running demo callback server; it stops when this value is dropped.
#[derive(Debug)]
pub struct Demo {
    /// The URL of the callback server.
    pub url: String,
    /// The kinds whose jobs go there.
    pub kinds: Vec<(KindName, KindSettings)>,
    _callee: JoinSet<()>,
}

/// Starts the callback server on a free port of this machine.
///
/// # Errors
/// If no port can be opened.
pub async fn start() -> io::Result<Demo> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut callee = JoinSet::new();
    callee.spawn(callee::serve(listener));
    let kinds = kinds::ALL.iter().map(|kind| (kind.name(), kind.settings(&url))).collect();
    Ok(Demo { url, kinds, _callee: callee })
}

/// The text printed at the start.
impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "demo: the jobs call a test server at {}", self.url)?;
        for kind in kinds::ALL {
            write!(f, "\n  {:<12}  {}", kind.name, kind.about)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
