//! Chaos cells on SQLite: one node at a time uses the file.

mod kill_node;
mod mixed_kill_node;
