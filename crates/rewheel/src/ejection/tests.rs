//! Tests of outlier ejection.

#[cfg(not(loom))]
mod outliers;
#[cfg(loom)]
mod loom_ejection;
