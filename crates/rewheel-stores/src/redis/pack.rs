//! Packs arguments for scripts, and unpacks what scripts have packed: the part of MessagePack that both need.

use rewheel_core::Timestamp;
use std::time::Duration;

/// The last number up to which doubles, the only numbers of Lua, are exact. It stands for the end of time.
const FOREVER: f64 = 9_007_199_254_740_991.0;

/// A list of arguments for a script.
#[derive(Debug, Default)]
pub(super) struct Args {
    bytes: Vec<u8>,
    count: u32,
}

impl Args {
    pub(super) fn bytes(mut self, value: &[u8]) -> Args {
        put_bytes(&mut self.bytes, value);
        self.count += 1;
        self
    }

    pub(super) fn number(mut self, value: f64) -> Args {
        put_number(&mut self.bytes, value);
        self.count += 1;
        self
    }

    pub(super) fn flag(self, value: bool) -> Args {
        self.number(if value { 1.0 } else { 0.0 })
    }

    pub(super) fn count(self, value: usize) -> Args {
        self.number(count(value))
    }

    pub(super) fn millis(self, value: Duration) -> Args {
        self.number(millis(value))
    }

    pub(super) fn missing(mut self) -> Args {
        self.bytes.push(0xc2);
        self.count += 1;
        self
    }

    pub(super) fn maybe_bytes(self, value: Option<&[u8]>) -> Args {
        match value {
            Some(value) => self.bytes(value),
            None => self.missing(),
        }
    }

    pub(super) fn maybe_number(self, value: Option<f64>) -> Args {
        match value {
            Some(value) => self.number(value),
            None => self.missing(),
        }
    }

    pub(super) fn list(mut self, list: Args) -> Args {
        list.write(&mut self.bytes);
        self.count += 1;
        self
    }

    pub(super) fn maybe_list(self, list: Option<Args>) -> Args {
        match list {
            Some(list) => self.list(list),
            None => self.missing(),
        }
    }

    /// A list of texts.
    pub(super) fn texts<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> Args {
        values.into_iter().fold(Args::default(), |args, value| args.bytes(value.as_ref()))
    }

    /// A list of lists.
    pub(super) fn lists(values: impl IntoIterator<Item = Args>) -> Args {
        values.into_iter().fold(Args::default(), Args::list)
    }

    /// Returns the packed list, with the offset of the store's clock as its first argument.
    pub(super) fn pack(self, offset: i64) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.bytes.len() + 16);
        put_count(&mut packed, self.count + 1);
        put_number(&mut packed, offset as f64);
        packed.extend_from_slice(&self.bytes);
        packed
    }

    fn write(&self, to: &mut Vec<u8>) {
        put_count(to, self.count);
        to.extend_from_slice(&self.bytes);
    }
}

fn put_count(to: &mut Vec<u8>, count: u32) {
    to.push(0xdd);
    to.extend_from_slice(&count.to_be_bytes());
}

fn put_number(to: &mut Vec<u8>, value: f64) {
    to.push(0xcb);
    to.extend_from_slice(&value.to_be_bytes());
}

fn put_bytes(to: &mut Vec<u8>, value: &[u8]) {
    to.push(0xdb);
    to.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend_from_slice(value);
}

/// A count as a script gets it.
pub(super) fn count(value: usize) -> f64 {
    number(value as u64)
}

/// A number as a script gets it. A larger number than any that the store gives out matches nothing.
pub(super) fn number(value: u64) -> f64 {
    (value as f64).min(FOREVER)
}

/// A duration as a script gets it: whole milliseconds, rounded up, so that nothing runs early.
pub(super) fn millis(value: Duration) -> f64 {
    (value.as_nanos().div_ceil(1_000_000) as f64).min(FOREVER)
}

/// A time as a script gets it.
pub(super) fn time(value: Timestamp) -> f64 {
    (value.as_millis() as f64).clamp(-FOREVER, FOREVER)
}

/// Reads a time.
pub(super) fn instant(value: f64) -> Timestamp {
    Timestamp::from_millis(match value {
        value if value >= FOREVER => i64::MAX,
        value if value <= -FOREVER => i64::MIN,
        value => value as i64,
    })
}

/// Reads a duration.
pub(super) fn duration(value: f64) -> Duration {
    if value >= FOREVER { Duration::MAX } else { Duration::from_millis(value.max(0.0) as u64) }
}

/// A value that a script has packed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Packed {
    Missing,
    Flag(bool),
    Number(f64),
    Bytes(Vec<u8>),
    List(Vec<Packed>),
}

impl Packed {
    pub(super) fn read(bytes: &[u8]) -> Option<Packed> {
        let mut rest = bytes;
        read(&mut rest)
    }

    pub(super) fn list(self) -> Option<Vec<Packed>> {
        match self {
            Packed::List(list) => Some(list),
            Packed::Missing | Packed::Flag(_) | Packed::Number(_) | Packed::Bytes(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Packed::Number(number) => Some(*number),
            Packed::Missing | Packed::Flag(_) | Packed::Bytes(_) | Packed::List(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Packed::Bytes(bytes) => Some(bytes),
            Packed::Missing | Packed::Flag(_) | Packed::Number(_) | Packed::List(_) => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn unsigned(rest: &mut &[u8], bytes: usize) -> Option<u64> {
    Some(take(rest, bytes)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

fn signed(rest: &mut &[u8], bytes: usize) -> Option<i64> {
    let unused = 64 - 8 * bytes as u32;
    Some((unsigned(rest, bytes)? << unused) as i64 >> unused)
}

fn bytes(rest: &mut &[u8], count: u64) -> Option<Packed> {
    take(rest, usize::try_from(count).ok()?).map(|taken| Packed::Bytes(taken.to_vec()))
}

fn list(rest: &mut &[u8], count: u64) -> Option<Packed> {
    (0..count).map(|_| read(rest)).collect::<Option<_>>().map(Packed::List)
}

fn read(rest: &mut &[u8]) -> Option<Packed> {
    let kind = unsigned(rest, 1)?;
    Some(match kind {
        0x00..=0x7f => Packed::Number(kind as f64),
        0x90..=0x9f => list(rest, kind - 0x90)?,
        0xa0..=0xbf => bytes(rest, kind - 0xa0)?,
        0xc0 => Packed::Missing,
        0xc2 => Packed::Flag(false),
        0xc3 => Packed::Flag(true),
        0xc4 | 0xd9 => unsigned(rest, 1).and_then(|count| bytes(rest, count))?,
        0xc5 | 0xda => unsigned(rest, 2).and_then(|count| bytes(rest, count))?,
        0xc6 | 0xdb => unsigned(rest, 4).and_then(|count| bytes(rest, count))?,
        0xca => Packed::Number(f32::from_bits(unsigned(rest, 4)? as u32).into()),
        0xcb => Packed::Number(f64::from_bits(unsigned(rest, 8)?)),
        0xcc => Packed::Number(unsigned(rest, 1)? as f64),
        0xcd => Packed::Number(unsigned(rest, 2)? as f64),
        0xce => Packed::Number(unsigned(rest, 4)? as f64),
        0xcf => Packed::Number(unsigned(rest, 8)? as f64),
        0xd0 => Packed::Number(signed(rest, 1)? as f64),
        0xd1 => Packed::Number(signed(rest, 2)? as f64),
        0xd2 => Packed::Number(signed(rest, 4)? as f64),
        0xd3 => Packed::Number(signed(rest, 8)? as f64),
        0xdc => unsigned(rest, 2).and_then(|count| list(rest, count))?,
        0xdd => unsigned(rest, 4).and_then(|count| list(rest, count))?,
        // An empty table is packed as a map without entries.
        0x80 => Packed::List(Vec::new()),
        0xe0..=0xff => Packed::Number(kind as f64 - 256.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Args, Packed, duration, instant, millis, number, time};
    use rewheel_core::Timestamp;
    use std::time::Duration;

    #[test]
    fn reads_what_it_packed() {
        let args = Args::default()
            .bytes(b"a\0b")
            .flag(true)
            .missing()
            .list(Args::texts(["x", "y"]))
            .maybe_number(Some(-7.0));
        let read = Packed::read(&args.pack(5)).unwrap().list().unwrap();
        let texts = ["x", "y"].map(|text| Packed::Bytes(text.as_bytes().to_vec()));
        assert_eq!(
            read,
            [
                Packed::Number(5.0),
                Packed::Bytes(b"a\0b".to_vec()),
                Packed::Number(1.0),
                Packed::Flag(false),
                Packed::List(texts.to_vec()),
                Packed::Number(-7.0),
            ]
        );
        assert_eq!(Packed::read(&[0xdd, 0, 0, 0, 2, 1]), None, "cut off");
    }

    #[test]
    fn the_end_of_time_stays_the_end_of_time() {
        for at in [i64::MIN, -5_000, 0, 1_763_273_000_123, i64::MAX] {
            let at = Timestamp::from_millis(at);
            assert_eq!(instant(time(at)), at);
        }
        assert_eq!(duration(millis(Duration::MAX)), Duration::MAX);
        assert_eq!(millis(Duration::from_micros(1)), 1.0);
        assert_eq!(number(u64::MAX), 9_007_199_254_740_991.0);
    }
}
