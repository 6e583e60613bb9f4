//! Secrets and mark-up in what people read.
