//! Tells systemd the state of the server (`Type=notify`), and feeds its watchdog.

use rewheel::Clock;
use rewheel_engine::Engine;
use std::ffi::OsString;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// How to reach systemd, if it started this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Systemd {
    socket: Option<OsString>,
    /// How often to feed the watchdog: half of the time after which it kills the process.
    feed_every: Option<Duration>,
}

impl Systemd {
    /// Reads the variables that systemd sets.
    pub(crate) fn from_environment() -> Systemd {
        let text = |name: &str| std::env::var(name).ok();
        let socket = std::env::var_os("NOTIFY_SOCKET");
        Systemd::of(socket, text("WATCHDOG_USEC"), text("WATCHDOG_PID"))
    }

    fn of(socket: Option<OsString>, usec: Option<String>, pid: Option<String>) -> Systemd {
        let is_for_this = pid.is_none_or(|pid| pid == std::process::id().to_string());
        let limit = usec.filter(|_| is_for_this).and_then(|usec| usec.parse().ok());
        let limit = limit.filter(|usec| *usec > 0).map(Duration::from_micros);
        let feed_every = limit.filter(|_| socket.is_some()).map(|limit| limit / 2);
        Systemd { socket: socket.filter(|path| !path.is_empty()), feed_every }
    }

    /// Sends a state, such as `READY=1`.
    pub(crate) fn say(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = send(socket, state)
        {
            tracing::warn!(%error, state, "failed to notify systemd");
        }
    }

    /// Waits for `stop`, and feeds the watchdog as long as the dispatch loop of the engine makes progress.
    pub(crate) async fn while_fed(&self, engine: &Engine, stop: impl Future<Output = ()>) {
        let Some(every) = self.feed_every else { return stop.await };
        let (clock, mut stop, mut ticks) = (Clock::system(), pin!(stop), None);
        loop {
            let now = Some(engine.ticks());
            if now == ticks {
                tracing::error!("watchdog of systemd not fed because the dispatch loop stalled");
            } else {
                self.say("WATCHDOG=1");
            }
            ticks = now;
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = clock.sleep(every) => {}
            }
        }
    }
}

#[cfg(unix)]
fn send(socket: &OsString, state: &str) -> std::io::Result<()> {
    use std::os::unix::net::UnixDatagram;
    let sender = UnixDatagram::unbound()?;
    // A full queue must not block the server.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(state.as_bytes(), &address(socket)?).map(drop)
}

/// A name that begins with `@` is in the abstract namespace of Linux.
#[cfg(unix)]
fn address(socket: &OsString) -> std::io::Result<std::os::unix::net::SocketAddr> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::ffi::OsStrExt as _;
        if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
            return std::os::unix::net::SocketAddr::from_abstract_name(name);
        }
    }
    std::os::unix::net::SocketAddr::from_pathname(socket)
}

#[cfg(not(unix))]
fn send(_: &OsString, _: &str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
