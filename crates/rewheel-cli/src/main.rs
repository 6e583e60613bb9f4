//! The `rewheel` command.

fn main() {}
