//! Runs the demo of `serve --demo`: jobs that fail and are retried.
//!
//! [`start`] runs a callback server that fails in several ways, with a kind for each; [`trickle`]
//! submits jobs, and a schedule, too; [`narrate`] prints what happens to them.

mod callee;
mod kinds;
mod trickle;
mod narrate;
mod output;

pub use self::narrate::narrate;
pub use self::trickle::trickle;

use crate::notify::LogNotifier;
use rewheel::{Clock, Moment, seconds};
use rewheel_core::{Actor, KindName};
use rewheel_engine::notify::{Event, Route};
use rewheel_engine::{
    Engine, EngineBuilder, FollowUp, KindSettings, Schedule, ScheduleChange, ScheduleError,
};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The hosts of the demo: addresses of this machine. Some systems have only the first.
const HOSTS: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3)),
];

/// The name of the demo's schedule.
const SCHEDULE: &str = "demo-every-15s";

/// The running demo callback server; it stops when this value is dropped.
#[derive(Debug)]
pub struct Demo {
    /// The URL of the callback server.
    pub url: String,
    /// The hosts on which it listens.
    pub hosts: Vec<IpAddr>,
    /// The kinds whose jobs go there.
    pub kinds: Vec<(KindName, KindSettings)>,
    _callee: JoinSet<()>,
}

/// Starts the callback server on a free port of this machine.
///
/// # Errors
/// If no port can be opened.
pub async fn start() -> io::Result<Demo> {
    let clock = Clock::system();
    let now = clock.now();
    start_at(clock, now).await
}

/// As [`start`], with outages at times after this moment of a clock.
async fn start_at(clock: Clock, started: Moment) -> io::Result<Demo> {
    let first = TcpListener::bind(SocketAddr::new(HOSTS[0], 0)).await?;
    let address = first.local_addr()?;
    let (mut listeners, mut hosts) = (vec![first], vec![HOSTS[0]]);
    for host in &HOSTS[1..] {
        if let Ok(listener) = TcpListener::bind(SocketAddr::new(*host, address.port())).await {
            listeners.push(listener);
            hosts.push(*host);
        }
    }
    let mut callee = JoinSet::new();
    let last = listeners.len() - 1;
    for (place, listener) in listeners.into_iter().enumerate() {
        callee.spawn(callee::serve(listener, (clock.clone(), started), place == last));
    }
    let kinds = kinds::ALL.iter().map(|kind| (kind.name(), kind.settings(address))).collect();
    Ok(Demo { url: format!("http://{address}"), hosts, kinds, _callee: callee })
}

impl Demo {
    /// Adds the kinds of the demo, and a notifier that logs when one of them is parked and when it goes on.
    pub fn prepare(&self, mut builder: EngineBuilder) -> EngineBuilder {
        for (name, settings) in &self.kinds {
            builder = builder.kind(name.as_str(), settings.clone());
        }
        let route =
            Route { events: vec![Event::KindParked, Event::KindUnparked], ..Route::default() };
        builder.notifier("log (demo)", route, LogNotifier)
    }
}

/// Starts the demo's schedule.
///
/// # Errors
/// Returns the error of the store.
pub async fn put_schedule(engine: &Engine) -> Result<(), ScheduleError> {
    let job = FollowUp::raw(kinds::SCHEDULED, br#"{"order":1}"#.to_vec());
    let schedule = Schedule::every(seconds(15), job)?;
    engine.put_schedule(SCHEDULE, &schedule, &Actor::new("demo")).await.map(|_| ())
}

/// Deletes the demo's schedule: without the demo, its jobs would fail.
pub async fn delete_schedule(engine: &Engine) {
    let by = Actor::new("demo");
    if let Err(error) = engine.change_schedule(SCHEDULE, ScheduleChange::Remove, None, &by).await {
        tracing::warn!(%error, "failed to delete the schedule of the demo");
    }
}

/// The text printed at the start.
impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "demo: the jobs call a test server at {}", self.url)?;
        for kind in kinds::ALL {
            write!(f, "\n  {:<11}  {}", kind.name, kind.about)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
