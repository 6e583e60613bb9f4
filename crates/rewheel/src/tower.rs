//! One tower layer over a whole pipeline.
