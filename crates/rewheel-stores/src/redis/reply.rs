//! Reads the replies of scripts.

use super::error::unreadable;
use super::pack::instant;
use redis::Value;
use rewheel_core::store::StoreResult;
use rewheel_core::{HolderId, JobId, KindName, Timestamp};

/// A reply, or a part of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply(pub(super) Value);

impl Reply {
    /// The parts of a list.
    pub(super) fn list(self) -> StoreResult<Vec<Reply>> {
        let Value::Array(list) = self.0 else { return Err(unreadable("a reply")) };
        Ok(list.into_iter().map(Reply).collect())
    }

    /// The parts of a list of this length.
    pub(super) fn parts<const N: usize>(self) -> StoreResult<[Reply; N]> {
        self.list()?.try_into().map_err(|_| unreadable("a reply"))
    }

    /// The text; `None` if it is missing.
    pub(super) fn bytes(self) -> StoreResult<Option<Vec<u8>>> {
        if self.is_missing() {
            return Ok(None);
        }
        if let Value::SimpleString(text) = self.0 {
            return Ok(Some(text.into_bytes()));
        }
        let Value::BulkString(bytes) = self.0 else { return Err(unreadable("a reply")) };
        Ok(Some(bytes))
    }

    pub(super) fn must(self) -> StoreResult<Vec<u8>> {
        self.bytes()?.ok_or_else(|| unreadable("a reply"))
    }

    pub(super) fn text(self) -> StoreResult<String> {
        String::from_utf8(self.must()?).map_err(|_| unreadable("a text"))
    }

    pub(super) const fn is_missing(&self) -> bool {
        matches!(self.0, Value::Nil)
    }

    /// A number: an integer, or one whose digits are a text.
    pub(super) fn number(self) -> StoreResult<f64> {
        if let Value::Int(number) = self.0 {
            return Ok(number as f64);
        }
        self.text()?.parse().map_err(|_| unreadable("a number"))
    }

    pub(super) fn count(self) -> StoreResult<u64> {
        Ok(self.number()?.max(0.0) as u64)
    }

    pub(super) fn time(self) -> StoreResult<Timestamp> {
        self.number().map(instant)
    }

    pub(super) fn maybe_time(self) -> StoreResult<Option<Timestamp>> {
        if self.is_missing() { Ok(None) } else { self.time().map(Some) }
    }

    pub(super) fn job(self) -> StoreResult<JobId> {
        let id = self.must()?.try_into().map_err(|_| unreadable("the id of a job"))?;
        Ok(JobId::from_bytes(id))
    }

    pub(super) fn holder(self) -> StoreResult<HolderId> {
        let id = self.must()?.try_into().map_err(|_| unreadable("the id of a holder"))?;
        Ok(HolderId::from_bytes(id))
    }

    pub(super) fn kind(self) -> StoreResult<KindName> {
        KindName::parse(&self.text()?).map_err(|_| unreadable("the name of a kind"))
    }
}
