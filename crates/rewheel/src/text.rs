//! Reads a policy's short text form through serde.

use serde::de::{Deserializer, Error, Visitor};
use std::fmt;

/// Reads a string and passes it to `parse`, whose error becomes serde's.
pub(crate) fn deserialize<'de, D, T, E>(
    from: D,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    struct Text<P>(P);

    impl<T, E: fmt::Display, P: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Text<P> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<D: Error>(self, text: &str) -> Result<T, D> {
            (self.0)(text).map_err(D::custom)
        }
    }

    from.deserialize_str(Text(parse))
}
