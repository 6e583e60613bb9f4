//! Encodes the counts of a slot as bytes, which stores keep without reading them.

use super::{HistorySlot, KindCounts};
use crate::name::KindName;

/// The version of the layout. Unknown versions are not read.
const LAYOUT: u8 = 1;

impl HistorySlot {
    /// Returns the slot as bytes: some ten bytes for each kind with little activity.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = vec![LAYOUT];
        put(&mut to, self.minutes.into());
        put(&mut to, self.reported.into());
        put(&mut to, self.kinds.len() as u64);
        for (kind, counts) in &self.kinds {
            let name = kind.as_ref().map_or("", KindName::as_str);
            put(&mut to, name.len() as u64);
            to.extend_from_slice(name.as_bytes());
            counts.sums().into_iter().for_each(|number| put(&mut to, number));
            for buckets in [&counts.durations, &counts.lateness] {
                let used = || buckets.iter().enumerate().filter(|(_, count)| **count > 0);
                put(&mut to, used().count() as u64);
                for (at, count) in used() {
                    put(&mut to, at as u64);
                    put(&mut to, *count);
                }
            }
        }
        to
    }

    /// Reads a slot; `None` if the bytes are not one of this layout.
    pub fn decode(bytes: &[u8]) -> Option<HistorySlot> {
        let mut from = bytes.strip_prefix(&[LAYOUT])?;
        let minutes = u32::try_from(take(&mut from)?).ok()?;
        let reported = u32::try_from(take(&mut from)?).ok()?;
        let mut slot = HistorySlot { minutes, reported, kinds: Default::default() };
        for _ in 0..take(&mut from)? {
            let length = usize::try_from(take(&mut from)?).ok()?;
            let (name, rest) = from.split_at_checked(length)?;
            from = rest;
            let name = std::str::from_utf8(name).ok()?;
            let kind = match name {
                "" => None,
                name => Some(KindName::parse(name).ok()?),
            };
            let mut counts = KindCounts::default();
            for number in counts.sums_mut() {
                *number = take(&mut from)?;
            }
            for buckets in [&mut counts.durations, &mut counts.lateness] {
                for _ in 0..take(&mut from)? {
                    let at = usize::try_from(take(&mut from)?).ok()?;
                    *buckets.get_mut(at)? = take(&mut from)?;
                }
            }
            slot.kinds.insert(kind, counts);
        }
        from.is_empty().then_some(slot)
    }
}

/// Writes a number in as few bytes as it needs: seven bits in each, the lowest first.
fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
