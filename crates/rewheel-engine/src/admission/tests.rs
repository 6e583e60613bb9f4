//! Tests of the guarantees of admission.

mod cases;
mod model;
mod world;
