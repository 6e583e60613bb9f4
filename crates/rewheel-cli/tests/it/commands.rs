//! Tests the requests that commands send, and what they print of the responses.

mod fake;
mod requests;
mod lists;
mod batch;
mod consent;
mod terminal;
mod passwords;
