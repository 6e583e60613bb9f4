//! Requests that are sent more than once, as clients and handlers see it.

mod support;
mod answers;
mod keys;
mod waiting;
mod failures;
