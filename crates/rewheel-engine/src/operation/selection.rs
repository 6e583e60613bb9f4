//! Selects the jobs of a bulk operation.

use super::{BulkVerb, Preview};
use rewheel_core::store::{
    AttemptRangeError, Count, Cursor, Filter, PageRequest, Store, StoreResult,
};
use rewheel_core::{
    DueReason, GroupKey, HolderId, Incident, Job, JobId, Key, KindName, Limits, State, Tenant,
    Timestamp,
};
use serde::{Deserialize, Serialize};

/// Maximum number of rows to count, so that a waiting user gets a response.
const COUNTED_MAX: usize = 1_000_000;

/// Maximum number of jobs to check one by one when the jobs of an incident are counted.
const LOOKED_AT_MAX: usize = 100_000;

/// Number of jobs that a preview names.
const SAMPLE_MAX: usize = 10;

/// A shorter text hardly narrows ids: ids of many years have the same first digits, and their other digits are random. This many
/// digits are those of about a minute.
const ID_DIGITS_MIN: usize = 8;

/// Kinds allow no more attempts by default, so hardly a job has more.
const ATTEMPTS_MANY: u32 = 1_000;

/// No job was submitted before this: the start of 2026.
const FIRST_MS: i64 = 1_767_225_600_000;

/// No job is due after this: 2100.
const LAST_MS: i64 = 4_102_444_800_000;

/// Selects jobs; all conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Conditions", into = "Conditions")]
pub struct Selection {
    /// Jobs that match this filter.
    pub filter: Filter,
    /// Jobs of this incident, see [`Incident`].
    pub incident: Option<String>,
}

/// Returns whether a search text excludes some jobs; a text that nearly every id contains does not.
fn tells_apart(text: &str) -> bool {
    let text = text.trim();
    let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let digits = text.chars().filter(char::is_ascii_hexdigit).count();
    !text.is_empty() && (!text.chars().all(is_of_id) || digits >= ID_DIGITS_MIN)
}

impl From<Filter> for Selection {
    fn from(filter: Filter) -> Selection {
        Selection { filter, incident: None }
    }
}

/// Some jobs of a selection, and where to continue.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) jobs: Vec<Job>,
    /// Where the next batch begins; `None` at the end.
    pub(super) next: Option<Cursor>,
}

impl Selection {
    /// Selects the jobs of an incident.
    pub fn of_incident(id: &str) -> Selection {
        Selection { incident: Some(id.to_owned()), ..Selection::default() }
    }

    /// Returns whether a condition excludes jobs that the verb could change. A condition that every job meets does not count,
    /// such as all states of the verb, a text that every id contains, or a time before the first job or after the last job.
    ///
    /// ```
    /// # use rewheel_engine::store::Filter;
    /// use rewheel_engine::{BulkVerb, Selection};
    ///
    /// let text = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
    /// assert!(Selection::from(text("order")).narrows(BulkVerb::Cancel));
    /// assert!(!Selection::from(text("01a")).narrows(BulkVerb::Cancel), "part of every id");
    /// ```
    pub fn narrows(&self, verb: BulkVerb) -> bool {
        let filter = &self.filter;
        let is_late = |at: Timestamp| at.as_millis() > FIRST_MS;
        let is_early = |at: Timestamp| at.as_millis() < LAST_MS;
        let has_all_states = verb.states().iter().all(|state| filter.wants(*state));
        !has_all_states
            || self.incident.is_some()
            || !filter.kinds.is_empty()
            || filter.tenant.is_some()
            || filter.key.is_some()
            || filter.parent.is_some()
            || filter.group_key.is_some()
            || filter.category.is_some()
            || filter.code.is_some()
            || filter.incident.is_some()
            || filter.reason.is_some()
            || filter.attempts.is_some_and(|range| range.least > 0 || range.most < ATTEMPTS_MANY)
            || !filter.holders.is_empty()
            || filter.text.as_deref().is_some_and(tells_apart)
            || [filter.due_after, filter.created_after].into_iter().flatten().any(is_late)
            || [filter.due_before, filter.created_before].into_iter().flatten().any(is_early)
    }

    /// Returns the selection for a verb: jobs in the states of the verb, and no jobs submitted later.
    pub(super) fn of(&self, verb: BulkVerb, now: Option<Timestamp>) -> Selection {
        let mut selection = self.clone();
        if selection.filter.states.is_empty() {
            selection.filter.states = verb.states().to_vec();
        }
        if selection.filter.created_before.is_none() {
            selection.filter.created_before =
                now.map(|now| Timestamp::from_millis(now.as_millis().saturating_add(1)));
        }
        selection
    }

    /// Reads the next jobs, at most `limit`.
    pub(super) async fn batch(
        &self,
        store: &dyn Store,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Batch> {
        let mut page = PageRequest { cursor, ..PageRequest::first(self.page_size(limit)) };
        if self.incident.is_some() {
            // The store cannot filter by incident, so the number of scanned rows per page must be limited here.
            page.scan_max = Limits::PAGE_MAX;
        }
        let page = store.list(&self.filter, &page).await?;
        let mut jobs: Vec<Job> = page.items.into_iter().filter(|job| self.has(job)).collect();
        if jobs.len() <= limit {
            return Ok(Batch { jobs, next: page.next });
        }
        jobs.truncate(limit);
        let next = jobs.last().map(|last| Cursor::behind(last.id));
        Ok(Batch { jobs, next })
    }

    pub(super) async fn preview(&self, store: &dyn Store) -> StoreResult<Preview> {
        match self.incident {
            Some(_) => self.look(store).await,
            None => self.count(store).await,
        }
    }

    async fn count(&self, store: &dyn Store) -> StoreResult<Preview> {
        let all = store.count(&self.filter, COUNTED_MAX).await?;
        // Operations are jobs, but are never selected.
        let kinds = vec![super::kind()];
        let operations = match self.filter.kinds.is_empty() {
            true => store.count(&Filter { kinds, ..self.filter.clone() }, COUNTED_MAX).await?,
            false => Count::Exactly(0),
        };
        let (Count::Exactly(own) | Count::AtLeast(own)) = operations;
        let count = match all {
            Count::Exactly(count) => Count::Exactly(count.saturating_sub(own)),
            Count::AtLeast(count) => Count::AtLeast(count.saturating_sub(own)),
        };
        let sample = self.batch(store, None, SAMPLE_MAX).await?;
        Ok(Preview { count, sample: sample.jobs.iter().map(|job| job.id).collect() })
    }

    /// Counts jobs that the store cannot count.
    async fn look(&self, store: &dyn Store) -> StoreResult<Preview> {
        let (mut count, mut sample, mut cursor) = (0, Vec::new(), None);
        for _ in 0..LOOKED_AT_MAX / Limits::PAGE_MAX {
            let batch = self.batch(store, cursor, Limits::PAGE_MAX).await?;
            count += batch.jobs.len() as u64;
            let more = SAMPLE_MAX - sample.len();
            sample.extend(batch.jobs.iter().take(more).map(|job| job.id));
            cursor = batch.next;
            if cursor.is_none() {
                return Ok(Preview { count: Count::Exactly(count), sample });
            }
        }
        Ok(Preview { count: Count::AtLeast(count), sample })
    }

    fn has(&self, job: &Job) -> bool {
        !job.lane.kind.is_reserved()
            && self.incident.as_ref().is_none_or(|id| Incident::of(job).as_ref() == Some(id))
    }

    /// If most jobs may not belong to the incident, more are read at once.
    fn page_size(&self, limit: usize) -> usize {
        if self.incident.is_some() { Limits::PAGE_MAX } else { limit.clamp(1, Limits::PAGE_MAX) }
    }
}

/// A selection as written into the payload of an operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Conditions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    state: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kind: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_after_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_before_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_after_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_before_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holder: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incident: Option<String>,
}

impl From<Selection> for Conditions {
    fn from(selection: Selection) -> Conditions {
        let filter = selection.filter;
        let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        Conditions {
            state: filter.states.iter().map(ToString::to_string).collect(),
            kind: filter.kinds.iter().map(ToString::to_string).collect(),
            tenant: filter.tenant.map(|tenant| tenant.to_string()),
            key: filter.key.map(|key| key.to_string()),
            parent: filter.parent.map(|parent| parent.to_string()),
            group_key: filter.group_key.map(|key| key.to_string()),
            category: filter.category.map(|category| category.as_str().to_owned()),
            code: filter.code,
            reason: filter.reason.map(|reason| reason.as_str().to_owned()),
            attempt: filter.attempts.map(|attempts| attempts.to_string()),
            holder: filter.holders.iter().map(ToString::to_string).collect(),
            q: filter.text,
            due_after_ms: millis(filter.due_after),
            due_before_ms: millis(filter.due_before),
            created_after_ms: millis(filter.created_after),
            created_before_ms: millis(filter.created_before),
            incident: selection.incident.or(filter.incident),
        }
    }
}

impl TryFrom<Conditions> for Selection {
    type Error = String;

    fn try_from(from: Conditions) -> Result<Selection, String> {
        let at = |millis: Option<i64>| millis.map(Timestamp::from_millis);
        let text = |error: &dyn ToString| error.to_string();
        let states: Result<Vec<State>, _> = from.state.iter().map(|state| state.parse()).collect();
        let kinds: Result<Vec<KindName>, _> =
            from.kind.iter().map(|kind| KindName::parse(kind)).collect();
        let tenant = from.tenant.map(|tenant| Tenant::parse(&tenant)).transpose();
        let key = from.key.map(|key| Key::parse(&key)).transpose();
        let parent = from.parent.map(|parent| parent.parse::<JobId>()).transpose();
        let group_key = from.group_key.map(|key| GroupKey::parse(&key)).transpose();
        let category = from.category.map(|category| category.parse()).transpose();
        let reason = from.reason.map(|reason| {
            DueReason::named(&reason).ok_or_else(|| format!("`{reason}` is not a reason"))
        });
        let attempts = from.attempt.map(|attempts| attempts.parse()).transpose();
        let holders: Result<Vec<HolderId>, _> =
            from.holder.iter().map(|holder| holder.parse()).collect();
        let filter = Filter {
            states: states.map_err(|error| text(&error))?,
            kinds: kinds.map_err(|error| text(&error))?,
            tenant: tenant.map_err(|error| text(&error))?,
            key: key.map_err(|error| text(&error))?,
            parent: parent.map_err(|error| text(&error))?,
            group_key: group_key.map_err(|error| text(&error))?,
            category: category.map_err(|error: rewheel::UnknownCategory| text(&error))?,
            code: from.code,
            incident: None,
            reason: reason.transpose()?,
            attempts: attempts.map_err(|error: AttemptRangeError| text(&error))?,
            holders: holders.map_err(|error| text(&error))?,
            text: from.q,
            due_after: at(from.due_after_ms),
            due_before: at(from.due_before_ms),
            created_after: at(from.created_after_ms),
            created_before: at(from.created_before_ms),
        };
        Ok(Selection { filter, incident: from.incident })
    }
}

#[cfg(test)]
mod tests {
    use super::{BulkVerb, DueReason, Filter, HolderId, Selection, Timestamp};

    #[test]
    fn a_selection_is_read_as_it_was_written() {
        let filter = Filter {
            code: Some("504".to_owned()),
            reason: Some(DueReason::RetryBudget),
            attempts: Some(">3".parse().unwrap()),
            holders: vec![HolderId::from_bytes([7; 16])],
            ..Filter::default()
        };
        let selection = Selection { filter, incident: Some("00ff".to_owned()) };
        let text = serde_json::to_string(&selection).unwrap();
        assert_eq!(serde_json::from_str::<Selection>(&text).unwrap(), selection);
        for bad in [r#"{"reason":"tired"}"#, r#"{"attempt":"many"}"#, r#"{"holder":["me"]}"#] {
            assert!(serde_json::from_str::<Selection>(bad).is_err(), "{bad}");
        }
    }

    #[track_caller]
    fn check(filter: Filter, narrows: bool) {
        let selection = Selection::from(filter);
        assert_eq!(selection.narrows(BulkVerb::Cancel), narrows, "{selection:?}");
    }

    #[test]
    fn a_condition_that_every_job_meets_keeps_none_back() {
        let text = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
        for common in ["", " ", "0", "-", "01a1", "A", "-7", "01a1e4a"] {
            check(text(common), false);
        }
        for rare in ["order", "01a1e4a9", "01a1e4a9-65ee", "0x1", "g"] {
            check(text(rare), true);
        }
        let at = |millis| Some(Timestamp::from_millis(millis));
        check(Filter { created_after: at(1_577_836_800_001), ..Filter::default() }, false);
        check(Filter { created_after: at(1_790_000_000_000), ..Filter::default() }, true);
        let attempts =
            |range: &str| Filter { attempts: Some(range.parse().unwrap()), ..Filter::default() };
        check(attempts(">=0"), false);
        check(attempts("<=4000000000"), false);
        check(attempts("<=3"), true);
        check(attempts(">3"), true);
        check(Filter { due_before: at(7_258_118_399_000), ..Filter::default() }, false);
        check(Filter { due_before: at(1_790_000_000_000), ..Filter::default() }, true);
    }
}
