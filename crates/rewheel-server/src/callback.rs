//! Runs jobs by calling somebody over HTTP.
//!
//! [`Callback`] is what an operator says about the call, [`Clients`] are the connections, and
//! [`CallbackRunner`] makes one call per attempt.

mod settings;
mod template;
mod address;
mod client;
mod request;
mod answer;
mod span;
mod runner;

pub(crate) use self::answer::{read_body, reason};
pub(crate) use self::settings::substitute;
pub(crate) use self::template::parse_url;

pub use self::address::{Allow, RefusedAddress};
pub(crate) use self::client::Client;
pub use self::client::Clients;
pub use self::runner::CallbackRunner;
pub use self::settings::{Callback, CallbackError};
pub(crate) use self::settings::{MASKED, masked};
