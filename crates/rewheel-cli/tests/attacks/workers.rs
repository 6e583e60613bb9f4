//! Remote workers that act for others, or for too long.
