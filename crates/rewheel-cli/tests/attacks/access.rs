//! Callers who reach for more than their token allows.
