//! Cells on SQLite, whose store is a file: one node after the other.

mod kill_node;
