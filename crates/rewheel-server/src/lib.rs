//! Rewheel for every language.
