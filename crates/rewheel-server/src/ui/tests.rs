//! Tests the dashboard through the router of the server.

mod browser;
mod session;
mod pages;
mod hostile;
mod changes;
mod bulk;
mod live;
