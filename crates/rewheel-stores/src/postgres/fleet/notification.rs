//! The text of a notification: its sender, and the lanes that changed.
//!
//! The text is the id of the sender, alone if any lane may have changed; otherwise followed by `;` and the changed lanes. A lane is its kind, tenant,
//! priority and shard, separated by commas, with all bytes of names percent-encoded that are not letters, digits, `-`, `_` or `.`. So it needs no quoting in
//! SQL. Nodes of a version that does not know this text take it for a change of any lane, and this version does the same for every other text.

use rewheel_core::store::StoreChange;
use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};
use std::fmt::Write as _;

/// Maximum length. PostgreSQL refuses 8,000 bytes.
const BYTES_MAX: usize = 7_500;

/// Writes the notification of a sender.
pub(super) fn write(sender: &str, change: &StoreChange) -> String {
    let StoreChange::Lanes(lanes) = change else { return sender.to_owned() };
    let mut text = format!("{sender};");
    for (place, lane) in lanes.iter().enumerate() {
        if place > 0 {
            text.push(';');
        }
        encode(lane.kind.as_str(), &mut text);
        text.push(',');
        encode(lane.tenant.as_ref().map_or("", Tenant::as_str), &mut text);
        let _ = write!(text, ",{},{}", lane.priority.get(), lane.shard.get());
        if text.len() > BYTES_MAX {
            return sender.to_owned();
        }
    }
    text
}

/// Reads a notification; `None` if this sender sent it.
pub(super) fn read(text: &str, me: &str) -> Option<StoreChange> {
    let (sender, lanes) = text.split_once(';').map_or((text, None), |(from, to)| (from, Some(to)));
    if sender == me {
        return None;
    }
    let Some(lanes) = lanes else { return Some(StoreChange::AnyLane) };
    let mut change = StoreChange::default();
    for lane in lanes.split(';').filter(|lane| !lane.is_empty()) {
        match read_lane(lane) {
            Some(lane) => change.add(&lane),
            None => return Some(StoreChange::AnyLane),
        }
    }
    Some(change)
}

fn read_lane(text: &str) -> Option<Lane> {
    let mut fields = text.split(',');
    let (kind, tenant) = (decode(fields.next()?)?, decode(fields.next()?)?);
    let (priority, shard) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let tenant = match tenant.as_str() {
        "" => None,
        name => Some(Tenant::parse(name).ok()?),
    };
    let lane = Lane {
        kind: KindName::parse(&kind).ok()?,
        tenant,
        priority: Priority::new(priority).ok()?,
        shard: Shard::stored(shard)?,
    };
    fields.next().is_none().then_some(lane)
}

fn encode(name: &str, text: &mut String) {
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02x}");
        }
    }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = behind;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, read, write};
    use rewheel_core::store::StoreChange;
    use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};

    fn lane(kind: &str, tenant: Option<&str>) -> Lane {
        Lane {
            kind: KindName::parse(kind).unwrap(),
            tenant: tenant.map(|name| Tenant::parse(name).unwrap()),
            priority: Priority::MAX,
            shard: Shard::new(255),
        }
    }

    #[test]
    fn lanes_are_read_as_they_were_written() {
        let lanes = [
            lane("charge", None),
            lane("charge", Some("a'b;c,d%41 äß\\")),
            lane("refund.v2", Some("acme")),
        ];
        let change: StoreChange = lanes.iter().collect();
        let text = write("me", &change);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,;%".contains(&byte);
        assert!(text.bytes().all(is_plain), "{text}");
        assert_eq!(read(&text, "other"), Some(change));
        assert_eq!(read(&text, "me"), None);
        for change in [StoreChange::default(), StoreChange::AnyLane] {
            assert_eq!(read(&write("me", &change), "other"), Some(change));
        }
    }

    #[test]
    fn too_many_lanes_for_one_text_are_any_lane() {
        let tenants = (0..800).map(|tenant| lane("charge", Some(&format!("tenant {tenant}"))));
        let lanes: Vec<Lane> = tenants.collect();
        let text = write("me", &lanes.iter().collect());
        assert_eq!(read(&text, "other"), Some(StoreChange::AnyLane));
        let text = write("me", &lanes[..100].iter().collect());
        assert!(text.len() <= BYTES_MAX);
        assert_eq!(read(&text, "other"), Some(lanes[..100].iter().collect()));
    }

    #[test]
    fn an_unknown_text_is_any_lane() {
        for text in [
            "",
            "x",
            "x;charge",
            "x;charge,,5",
            "x;,,5,0",
            "x;charge,,99,0",
            "x;a,%4,5,0",
            "x;a,%ff,5,0",
            "x;a,,5,0,1",
        ] {
            assert_eq!(read(text, "me"), Some(StoreChange::AnyLane), "{text:?}");
        }
    }
}
