//! Reads and writes failures. Those that scripts write have no text: the reader knows it.

use super::super::PAYLOAD_BYTES_MAX;
use super::{Reader, Unreadable, Writer};
use rewheel::Category;
use rewheel_core::store::Refusal;
use rewheel_core::{Failure, JobId};

/// Writes a failure.
pub(in super::super) fn write_failure(failure: &Failure) -> Vec<u8> {
    let mut to = Writer::default();
    to.raw(b"F").short(failure.category().as_str().as_bytes());
    to.maybe_text(failure.code()).long(failure.message().as_bytes());
    to.done()
}

/// Reads a failure.
pub(in super::super) fn read_failure(raw: &[u8]) -> Result<Failure, Unreadable> {
    const WHAT: Unreadable = Unreadable("a failure");
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| WHAT);
    let mut from = Reader(raw);
    match from.u8()? {
        b'F' => {
            let category = text(from.short()?)?;
            let category = category.parse::<Category>().map_err(|_| Unreadable("a category"))?;
            let code = from.maybe_text()?;
            Ok(Failure::new(category, code, text(from.long()?)?))
        }
        b'D' => Ok(Failure::of_deadline()),
        b'T' => Ok(Failure::of_takeovers(from.u32()?)),
        b'U' => {
            let (why, detail) = (from.u8()?, from.long()?);
            let why = refusal(why, detail)?;
            Ok(Failure::of_follow_up(&format!("{why}{}", text(from.0)?)))
        }
        _ => Err(WHAT),
    }
}

/// Reads why a script refused a job.
pub(in super::super) fn refusal(why: u8, detail: &[u8]) -> Result<Refusal, Unreadable> {
    const WHAT: Unreadable = Unreadable("a refusal");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| WHAT);
    Ok(match why {
        b'K' => Refusal::UnknownKind,
        b'D' => Refusal::DeadlineTooEarly,
        b'H' => Refusal::HolderTooOld { holder: text(detail)? },
        b'R' => Refusal::KeyReused { job: JobId::from_bytes(detail.try_into().map_err(|_| WHAT)?) },
        b'L' => Refusal::TooLarge {
            bytes: text(detail)?.parse().map_err(|_| WHAT)?,
            bytes_max: PAYLOAD_BYTES_MAX,
        },
        _ => return Err(WHAT),
    })
}
