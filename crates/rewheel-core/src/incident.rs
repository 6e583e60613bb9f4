//! Groups failures with the same cause into incidents.

use crate::failure::Failure;
use crate::id::JobId;
use crate::job::Job;
use crate::name::KindName;
use crate::state::State;
use crate::timestamp::Timestamp;
use rewheel::Category;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of example jobs of an incident; the latest are kept.
const EXAMPLES_MAX: usize = 5;

/// Jobs whose latest failures look alike: the same kind, category and code, and messages that differ only in numbers and names.
///
/// ```
/// use rewheel::Category;
/// use rewheel_core::{Failure, Incident};
///
/// let refused = |order: u64| {
///     Failure::new(Category::Rejected, Some("404"), &format!("order {order} of 'shop-{order}' does not exist"))
/// };
/// let (one, other) = (refused(17), refused(18));
/// assert_eq!(Incident::pattern(one.message()), "order # of # does not exist");
/// assert_eq!(Incident::pattern(one.message()), Incident::pattern(other.message()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Identifier; the same cause has the same id on every node and after every restart.
    pub id: String,
    /// The kind of the jobs.
    pub kind: KindName,
    /// The category of the failures.
    pub category: Category,
    /// The code of the failures.
    pub code: Option<String>,
    /// The common message, with `#` for the parts that differ.
    pub message: String,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs that are dead letters.
    pub dead: u64,
    /// The earliest time of these jobs: for a dead letter the time at which it became dead, for a
    /// live job the time of its submit.
    pub first_seen: Timestamp,
    /// The latest time of these jobs: for a dead letter the time at which it became dead, for a
    /// live job the time of its submit.
    pub last_seen: Timestamp,
    /// Some of the jobs, the latest first.
    pub examples: Vec<JobId>,
}

impl Incident {
    /// Returns a message with `#` in place of the parts that differ from job to job: numbers, ids and quoted text. In JSON, the
    /// field names stay unchanged. The values of fields such as `error` or `code` also stay unchanged, because they describe the
    /// cause.
    pub fn pattern(message: &str) -> String {
        let mut pattern = String::with_capacity(message.len());
        let (mut rest, mut is_value) = (message, false);
        while let Some(first) = rest.chars().next() {
            let quoted = matches!(first, '"' | '\'' | '`').then(|| rest[1..].find(first)).flatten();
            let part = match quoted {
                Some(end) => {
                    let (inside, part) = (&rest[1..=end], end + 2);
                    let is_name = first == '"' && rest[part..].trim_start().starts_with(':');
                    match (is_name, is_value && first == '"') {
                        (true, _) => pattern.push_str(&rest[..part]),
                        (false, true) => pattern.extend(["\"", &Incident::pattern(inside), "\""]),
                        (false, false) => pattern.push('#'),
                    }
                    is_value = is_name && names_a_cause(inside);
                    part
                }
                None => {
                    let (part, is_variable) = match first.is_alphanumeric() {
                        true => word(rest),
                        false => (first.len_utf8(), false),
                    };
                    is_value &= first == ':' || first.is_whitespace();
                    pattern.push_str(if is_variable { "#" } else { &rest[..part] });
                    part
                }
            };
            rest = &rest[part..];
        }
        pattern
    }

    /// Returns the id of the incident of a job, by its latest failure.
    pub fn of(job: &Job) -> Option<String> {
        let failure = job.failure.as_ref()?;
        Some(Incident::id(&job.lane.kind, failure, &Incident::pattern(failure.message())))
    }

    fn id(kind: &KindName, failure: &Failure, pattern: &str) -> String {
        // FNV-1a: short, and the same on every node and in every version.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let code = failure.code().unwrap_or_default();
        for part in [kind.as_str(), failure.category().as_str(), code, pattern] {
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        let mut id = String::with_capacity(16);
        let _ = write!(id, "{hash:016x}");
        id
    }
}

/// Returns whether a field of this name in a callee's response describes the cause.
fn names_a_cause(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["code", "detail", "error", "message", "msg", "reason", "title", "type"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns the length of the word at the start, and whether it differs from job to job, which means that it contains a digit.
fn word(text: &str) -> (usize, bool) {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let mut end = text.find(|c| !is_inside(c)).unwrap_or(text.len());
    // Punctuation at the end belongs to the sentence, not to the number.
    end = text[..end].trim_end_matches(['.', ':', '-']).len();
    (end, text[..end].contains(|c: char| c.is_ascii_digit()))
}

/// The data of a failed job that an incident needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedJob {
    /// The job.
    pub id: JobId,
    /// Its kind.
    pub kind: KindName,
    /// Whether the job is a dead letter; otherwise it is live.
    pub is_dead: bool,
    /// When the job died; for a live job, when it was submitted.
    pub seen: Timestamp,
    /// Its latest failure.
    pub failure: Failure,
}

impl FailedJob {
    /// Extracts the needed values of a job; `None` if its latest attempt did not fail.
    pub fn of(job: &Job) -> Option<FailedJob> {
        Some(FailedJob {
            id: job.id,
            kind: job.lane.kind.clone(),
            is_dead: job.state() == State::Dead,
            seen: job.status.finished().unwrap_or(job.created),
            failure: job.failure.clone()?,
        })
    }
}

/// Groups jobs by their latest failure.
#[derive(Debug, Default)]
pub struct Incidents {
    by_id: BTreeMap<String, Incident>,
}

impl Incidents {
    /// Adds a job. The jobs added first become the examples.
    pub fn add(&mut self, job: &FailedJob) {
        let FailedJob { kind, failure, seen, .. } = job;
        let (message, seen) = (Incident::pattern(failure.message()), *seen);
        let id = Incident::id(kind, failure, &message);
        let incident = self.by_id.entry(id.clone()).or_insert_with(|| Incident {
            id,
            kind: kind.clone(),
            category: failure.category(),
            code: failure.code().map(str::to_owned),
            message,
            jobs: 0,
            dead: 0,
            first_seen: seen,
            last_seen: seen,
            examples: Vec::new(),
        });
        incident.jobs += 1;
        incident.dead += u64::from(job.is_dead);
        incident.first_seen = incident.first_seen.min(seen);
        incident.last_seen = incident.last_seen.max(seen);
        if incident.examples.len() < EXAMPLES_MAX {
            incident.examples.push(job.id);
        }
    }

    /// Returns the incidents, ordered by dead letters, then by jobs, both descending.
    pub fn into_list(self) -> Vec<Incident> {
        let mut list: Vec<Incident> = self.by_id.into_values().collect();
        list.sort_by_key(|incident| {
            let size = (incident.dead, incident.jobs, incident.last_seen);
            (std::cmp::Reverse(size), incident.id.clone())
        });
        list
    }
}

#[cfg(test)]
mod tests {
    use super::Incident;

    #[test]
    fn what_differs_from_job_to_job_is_left_out() {
        for (message, pattern) in [
            ("", ""),
            ("no answer", "no answer"),
            ("no answer within 200ms", "no answer within #"),
            ("order 17 does not exist.", "order # does not exist."),
            ("0193a4b2-7c11-7000-8000-0242ac120002 is gone", "# is gone"),
            ("connect to 10.0.0.7:443: refused", "connect to #: refused"),
            ("unknown field `total` at line 3", "unknown field # at line #"),
            ("user \"anna\" said 'no'", "user # said #"),
            ("it's not over", "it's not over"),
            ("5 > 3 (größer)", "# > # (größer)"),
            ("card_declined", "card_declined"),
            (
                r#"422: {"error": "card 17 was stolen", "by":"anna", "at":3}"#,
                r##"#: {"error": "card # was stolen", "by":#, "at":#}"##,
            ),
            (
                r#"{"errorCode":"card_declined","ids":["a","b"]}"#,
                r##"{"errorCode":"card_declined","ids":[#,#]}"##,
            ),
            (r#"{"message":"no \"end"#, r##"{"message":"no \"end"##),
            (r#"host: "a" is unknown"#, "host: # is unknown"),
        ] {
            assert_eq!(Incident::pattern(message), pattern, "{message}");
        }
    }
}
