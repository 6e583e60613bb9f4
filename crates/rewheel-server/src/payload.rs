//! Checks JSON payloads, and writes stored payloads into documents.
//!
//! A payload is bytes. It is never parsed and serialized again, which would change numbers, order and spacing. But it is part of larger
//! documents, such as the response to a worker's claim, together with the payloads of other jobs. A payload that common JSON parsers
//! reject must therefore not be accepted: it would make the whole document unreadable.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Maximum nesting depth of arrays and objects. The strictest common parsers stop at 64 levels, and the response to a claim adds three.
pub(crate) const DEPTH_MAX: usize = 60;

/// Checks that every JSON parser can read a payload.
///
/// # Errors
/// Says what the payload must be.
pub(crate) fn check(json: &str) -> Result<(), String> {
    let portable = serde_json::from_str::<Portable>(json);
    portable.map(drop).map_err(|error| {
        if error.to_string().starts_with(TOO_DEEP) {
            return format!("must not nest arrays and objects deeper than {DEPTH_MAX} levels");
        }
        format!("is not valid JSON: {error}")
    })
}

/// Returns stored bytes as part of a document, unchanged. Bytes that are not JSON, such as those of another codec in Rust, and JSON that
/// [`check`] rejects become a JSON string.
pub(crate) fn raw(bytes: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(bytes);
    if check(&text).is_ok()
        && let Ok(raw) = RawValue::from_string(text.clone().into_owned())
    {
        return raw;
    }
    serde_json::value::to_raw_value(&*text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

const TOO_DEEP: &str = "too deep";

/// The prefix of keys that serde_json reserves for itself.
const PRIVATE: &str = "$serde_json::private::";

/// JSON with finite numbers, Unicode strings and limited depth. Serde's own parser checks numbers and strings.
struct Portable;

impl<'de> Deserialize<'de> for Portable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Portable, D::Error> {
        Level(0).deserialize(from)
    }
}

/// A key of an object. serde_json gives some keys a special meaning, and misreads objects that contain them.
struct PlainKey;

impl<'de> Deserialize<'de> for PlainKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PlainKey, D::Error> {
        struct Key;

        impl Visitor<'_> for Key {
            type Value = PlainKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<PlainKey, E> {
                if key.starts_with(PRIVATE) {
                    return Err(E::custom(format_args!("keys must not begin with `{PRIVATE}`")));
                }
                Ok(PlainKey)
            }
        }

        from.deserialize_str(Key)
    }
}

/// A value at this depth.
#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn deeper<E: Error>(self) -> Result<Level, E> {
        if self.0 >= DEPTH_MAX { Err(E::custom(TOO_DEEP)) } else { Ok(Level(self.0 + 1)) }
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Portable;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Portable, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Portable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Portable, E> {
        Ok(Portable)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Portable, E> {
        Ok(Portable)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Portable, E> {
        Ok(Portable)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Portable, E> {
        Ok(Portable)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Portable, E> {
        Ok(Portable)
    }

    fn visit_str<E>(self, _: &str) -> Result<Portable, E> {
        Ok(Portable)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Portable, A::Error> {
        let deeper = self.deeper()?;
        while items.next_element_seed(deeper)?.is_some() {}
        Ok(Portable)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Portable, A::Error> {
        let deeper = self.deeper()?;
        while let Some(PlainKey) = entries.next_key()? {
            entries.next_value_seed(deeper)?;
        }
        Ok(Portable)
    }
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, check, raw};

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn json_that_every_parser_reads_is_accepted() {
        for good in
            ["null", "17", "-0.0", "1e300", "\"\\u00e9 \\ud83d\\ude00\"", "{\"a\":1,\"a\":2}"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
            assert_eq!(raw(good.as_bytes()).get(), good);
        }
        assert_eq!(check(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(check("12345678901234567890.123"), Ok(()));
    }

    #[test]
    fn json_that_some_parsers_refuse_is_refused() {
        for bad in [
            "1e999",
            "-1e400",
            "[1,{\"a\":1e999}]",
            "\"\\ud800\"",
            "{\"\\udc00\":1}",
            "[{\"a\":{\"$serde_json::private::RawValue\":\"1\"}}]",
        ] {
            let why = check(bad).unwrap_err();
            assert!(why.starts_with("is not valid JSON: "), "{bad}: {why}");
        }
        let deep = "must not nest arrays and objects deeper than 60 levels";
        for levels in [DEPTH_MAX + 1, 300, 100_000] {
            assert_eq!(check(&nested(levels)), Err(deep.to_owned()));
        }
    }

    #[test]
    fn stored_bytes_that_cannot_be_served_become_a_string() {
        assert_eq!(raw(b"1e999").get(), "\"1e999\"");
        assert_eq!(raw(nested(300).as_bytes()).get(), format!("\"{}\"", nested(300)));
        assert_eq!(raw(&[0xff, b'a']).get(), "\"\u{fffd}a\"");
    }
}
