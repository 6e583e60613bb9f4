//! Tests of the windows.

#[cfg(not(loom))]
mod count;
#[cfg(not(loom))]
mod time;
#[cfg(loom)]
mod loom_windows;
