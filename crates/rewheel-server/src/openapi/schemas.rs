//! Schemas of the response documents.

mod jobs;
mod operations;
mod kinds;
mod schedules;
mod fleet;
mod workers;

use super::shape::{Object, list, one_of, or_null, reference, text};
use super::{requests, tokens};
use rewheel::Category;
use rewheel_core::{DueReason, State};
use serde_json::{Map, Value};

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";
const AT: &str = "2026-01-31T12:00:00.000Z";

/// Every schema by name.
pub(super) fn all() -> Map<String, Value> {
    let responses = [
        jobs::all(),
        operations::all(),
        kinds::all(),
        schedules::all(),
        fleet::all(),
        workers::all(),
    ];
    let all = responses.into_iter().flatten().chain(tokens::all()).chain(requests::all());
    all.map(|(name, schema)| (name.to_owned(), schema)).collect()
}

pub(crate) fn state() -> Value {
    one_of(State::ALL.map(State::as_str))
}

pub(crate) fn category() -> Value {
    one_of(Category::ALL.iter().map(|category| category.as_str()))
}

/// Why a job waits.
pub(crate) fn reason() -> Value {
    one_of(DueReason::ALL.map(DueReason::as_str))
}

/// A page of a list.
pub(super) fn page(of: &str) -> Object {
    let next = "Value of the query parameter `cursor` for the next page. Null on the last page.";
    Object::new().has("items", list(reference(of)), "The entries of this page.").has(
        "next",
        or_null(text()),
        next,
    )
}
