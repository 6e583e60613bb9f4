//! Encodes cursors: opaque tokens for the next page of a list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rewheel_core::Timestamp;
use rewheel_core::store::Cursor;
use sha2::{Digest, Sha256};

/// The version of the format. Unknown versions are rejected.
const VERSION: &str = "1";

/// Bytes of a digest that detects invented or truncated cursors. It is not a security measure: a position contains no secrets, and an
/// invented one reaches nothing that a filter could not reach.
const CHECK_BYTES: usize = 4;

const NO_CURSOR: &str =
    "is not a cursor of this list: use the value of `next` in the previous page";

/// All lists with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Jobs,
    Operations,
    Incidents,
    Kinds,
    Schedules,
    Holders,
    Tokens,
    Audit,
}

impl List {
    const fn as_str(self) -> &'static str {
        match self {
            List::Jobs => "jobs",
            List::Operations => "operations",
            List::Incidents => "incidents",
            List::Kinds => "kinds",
            List::Schedules => "schedules",
            List::Holders => "holders",
            List::Tokens => "tokens",
            List::Audit => "audit",
        }
    }

    /// Encodes a position of this list.
    pub(super) fn cursor(self, position: &str) -> String {
        let text = format!("{VERSION} {} {position}", self.as_str());
        let mut bytes = check(&text).to_vec();
        bytes.extend(text.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a position of this list.
    pub(super) fn position(self, cursor: &str) -> Result<String, &'static str> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| NO_CURSOR)?;
        let (sum, text) = bytes.split_at_checked(CHECK_BYTES).ok_or(NO_CURSOR)?;
        let text = std::str::from_utf8(text).map_err(|_| NO_CURSOR)?;
        let mut parts = text.splitn(3, ' ');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(VERSION), Some(list), Some(position))
                if list == self.as_str() && sum == check(text) =>
            {
                Ok(position.to_owned())
            }
            _ => Err(NO_CURSOR),
        }
    }
}

fn check(text: &str) -> [u8; CHECK_BYTES] {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// Returns the submit time until which a page of jobs was searched, from the cursor of the next page.
pub(crate) fn searched_until(cursor: &str) -> Option<Timestamp> {
    let cursor: Cursor = List::Jobs.position(cursor).ok()?.parse().ok()?;
    // The id of a job begins with its submit time, in milliseconds.
    let millis =
        cursor.job().to_bytes()[..6].iter().fold(0, |time, byte| (time << 8) | i64::from(*byte));
    Some(Timestamp::from_millis(millis))
}

/// Cuts one page out of a list in memory. `position` returns a unique text for each item, by which they are sorted. Returns the page, and
/// the position of its last item if more follow.
pub(super) fn cut<T>(
    items: Vec<T>,
    position: impl Fn(&T) -> String,
    after: Option<&str>,
    limit: usize,
) -> (Vec<T>, Option<String>) {
    let mut placed: Vec<(String, T)> =
        items.into_iter().map(|item| (position(&item), item)).collect();
    placed.sort_by(|(one, _), (other, _)| one.cmp(other));
    placed.retain(|(at, _)| after.is_none_or(|after| at.as_str() > after));
    let has_more = placed.len() > limit;
    placed.truncate(limit);
    let next = placed.last().filter(|_| has_more).map(|(at, _)| at.clone());
    (placed.into_iter().map(|(_, item)| item).collect(), next)
}

/// Formats a number so that larger ones sort first as text.
pub(super) fn largest_first(number: u64) -> String {
    format!("{:020}", u64::MAX - number)
}

#[cfg(test)]
mod tests {
    use super::{List, cut, largest_first, searched_until};
    use rewheel::Random;
    use rewheel_core::store::Cursor;
    use rewheel_core::{JobId, Timestamp};

    #[test]
    fn a_cursor_leads_back_to_its_position() {
        for position in ["", "charge-card", "b c d", "größer"] {
            let cursor = List::Kinds.cursor(position);
            assert_eq!(List::Kinds.position(&cursor).as_deref(), Ok(position));
            assert!(List::Jobs.position(&cursor).is_err(), "another list took it");
            assert!(position.is_empty() || !cursor.contains(position), "{cursor}");
        }
    }

    #[test]
    fn a_cursor_of_jobs_says_how_far_the_search_came() {
        let at = Timestamp::from_millis(1_700_000_000_123);
        let cursor = Cursor::behind(JobId::new(at, &Random::seeded(1)));
        assert_eq!(searched_until(&List::Jobs.cursor(&cursor.to_string())), Some(at));
        assert_eq!(searched_until(&List::Kinds.cursor(&cursor.to_string())), None);
        assert_eq!(searched_until("x"), None);
    }

    #[test]
    fn what_no_answer_named_is_refused() {
        let good = List::Audit.cursor("17");
        let mut cut_off = good.clone();
        cut_off.pop();
        for bad in ["", "17", "!!!", "c0193a4b2-7c11-7000-8000-0242ac120002", "AAAA", &cut_off] {
            assert!(List::Audit.position(bad).is_err(), "{bad:?}");
        }
        for place in 0..good.len() {
            let mut changed = good.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(List::Audit.position(&changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn pages_have_every_item_once() {
        let items: Vec<u64> = vec![5, 900, 17, 3, 44];
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let position = |number: &u64| largest_first(*number);
            let (page, next) = cut(items.clone(), position, after.as_deref(), 2);
            seen.extend(page);
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, [900, 44, 17, 5, 3]);
        assert_eq!(cut(items, |number| number.to_string(), None, 5).1, None);
    }
}
