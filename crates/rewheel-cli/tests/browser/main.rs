//! Tests of the dashboard in a real browser: Chromium, driven over WebDriver.
//!
//! Each test starts a server and a browser of its own, with a new profile. The browser resolves no names, so that it can reach only this machine.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test in real time, which may panic"
)]

#[path = "../chaos/node.rs"]
#[expect(dead_code, reason = "chaos also pauses nodes")]
mod node;
mod webdriver;
mod browser;
mod site;
mod stories;
mod flows;
mod no_script;
mod relay;
mod live;
mod keys;
mod changes;
mod pages;
mod accessibility;
mod layout;
mod network;
mod hostile;
mod screenshots;

use std::time::Duration;

/// Timeout of anything in these tests, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(25);
