//! Runs jobs by HTTP callbacks.
//!
//! [`Callback`] holds the settings of a callback, [`Clients`] the HTTP connections, and
//! [`CallbackRunner`] makes one call per attempt.

mod settings;
mod variables;
mod callee_url;
mod template;
mod ceiling;
mod address;
mod client;
mod request;
mod answer;
mod result_body;
mod echo;
mod span;
mod runner;

pub(crate) use self::answer::{read_body, reason};
pub(crate) use self::callee_url::{CalleeUrl, Path};
pub(crate) use self::echo::Echo;
pub(crate) use self::variables::{names, substitute};

pub use self::address::{Allow, RefusedAddress};
pub use self::ceiling::Ceiling;
pub(crate) use self::client::Client;
pub use self::client::Clients;
pub use self::runner::CallbackRunner;
pub use self::settings::{Callback, CallbackError};
pub(crate) use self::settings::{MASKED, masked};
