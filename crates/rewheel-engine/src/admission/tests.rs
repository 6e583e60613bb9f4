//! What admission promises, whatever happened before.

mod cases;
mod model;
mod world;
