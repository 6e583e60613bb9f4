//! Says what this program was built from.

use rewheel_engine::meters::Build;

/// What `rewheel --version` prints after the name.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("REWHEEL_COMMIT"),
    "\nfeatures: ",
    env!("REWHEEL_FEATURES")
);

/// What the metric `rewheel_build_info` shows.
pub(crate) const BUILD: Build =
    Build { version: env!("CARGO_PKG_VERSION"), commit: env!("REWHEEL_COMMIT") };
