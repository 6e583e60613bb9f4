//! Tests of requests that are sent more than once.

mod support;
mod answers;
mod keys;
mod waiting;
mod failures;
