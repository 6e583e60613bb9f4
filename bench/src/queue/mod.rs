//! What the measurements of all stores share.

pub mod load;
pub mod subject;
pub mod figure;
