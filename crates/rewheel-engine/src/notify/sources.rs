//! Builds the notices of the engine's loops.

use super::event::{Event, Severity};
use super::notice::Notice;
use crate::shared::Shared;
use rewheel::Category;
use rewheel_core::store::DeadLetter;
use rewheel_core::{Cause, Failure, HolderId, Job, JobEvent, JobId, KindName, State, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Builds the notice of a dead letter, with the reason.
pub(super) fn dead_letter(
    letter: &DeadLetter,
    job: Option<&Job>,
    attempts_max: Option<u32>,
) -> Notice {
    let failure = letter.failure.as_ref();
    let attempts = letter.attempt.saturating_sub(job.map_or(0, |job| job.attempts_before));
    let attempts_max = attempts_max.or_else(|| job?.attempts_max);
    let why = GiveUpReason::of(failure, attempts, attempts_max);
    let kind = &letter.lane.kind;
    let counted = match letter.attempt {
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    };
    let text = format!("job {} of {kind} is dead after {counted}: {}", letter.job, why.text());
    let mut notice = Notice {
        severity: if why == GiveUpReason::Takeovers { Severity::Critical } else { Severity::Error },
        kind: Some(kind.clone()),
        tenant: letter.lane.tenant.clone(),
        job: Some(letter.job),
        attempt: Some(letter.attempt),
        reason: Some(why.as_str().into()),
        error: failure.map(ToString::to_string),
        ..Notice::new(Event::DeadLetter, letter.died, text)
    };
    if let Some(failure) = failure {
        notice = notice.with("category", failure.category());
        if let Some(code) = failure.code() {
            notice = notice.with("code", code);
        }
    }
    match job.and_then(|job| job.key.as_ref()) {
        Some(key) => notice.with("key", key),
        None => notice,
    }
}

/// Why a job became a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GiveUpReason {
    Exhausted,
    NotRetryable,
    Deadline,
    Takeovers,
}

impl GiveUpReason {
    /// Derives the reason from stored data: the announcing engine need not be the one where the job
    /// died.
    fn of(failure: Option<&Failure>, attempts: u32, attempts_max: Option<u32>) -> GiveUpReason {
        let category = failure.map(Failure::category);
        match (category, failure.and_then(Failure::code)) {
            (Some(Category::Deadline), _) => GiveUpReason::Deadline,
            (Some(Category::Panic), Some("takeovers")) => GiveUpReason::Takeovers,
            // Refused temporarily, several times.
            (Some(Category::Rejected), Some("409"))
                if attempts_max.is_some_and(|most| attempts >= most) =>
            {
                GiveUpReason::Exhausted
            }
            (Some(Category::Rejected | Category::BadPayload | Category::NoHandler), _) => {
                GiveUpReason::NotRetryable
            }
            _ if attempts_max.is_none_or(|most| attempts >= most) => GiveUpReason::Exhausted,
            _ => GiveUpReason::NotRetryable,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            GiveUpReason::Exhausted => Event::AttemptsExhausted.as_str(),
            GiveUpReason::NotRetryable => Event::NotRetryable.as_str(),
            GiveUpReason::Deadline => "deadline",
            GiveUpReason::Takeovers => "takeovers",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            GiveUpReason::Exhausted => "no attempts left",
            GiveUpReason::NotRetryable => "the failure is not retryable",
            GiveUpReason::Deadline => "the deadline has passed",
            GiveUpReason::Takeovers => {
                "the processes that ran the job died: the job may be the cause"
            }
        }
    }
}

impl Shared {
    /// Notifies of changes that the store made to jobs: takeovers and dead letters.
    pub(crate) fn notify_of(&self, events: &[JobEvent]) {
        if self.reports.desk.is_none() {
            return;
        }
        for notice in takeovers(events) {
            self.notify(|| notice);
        }
        let dead = events.iter().filter(|event| event.to == State::Dead);
        self.note_dead(dead.map(|event| event.job));
    }

    /// Notifies that this holder's lease is at risk, or lost.
    pub(crate) fn notify_lease(
        &self,
        severity: Severity,
        reason: &'static str,
        text: &str,
        error: &dyn Display,
    ) {
        self.notify(|| Notice {
            severity,
            reason: Some(reason.into()),
            error: Some(error.to_string()),
            ..Notice::new(Event::LeaseRenewalFailed, self.node_time(), text)
        });
    }

    /// Notifies that results of attempts cannot be stored.
    pub(crate) fn notify_persist(&self, job: Option<JobId>, results: usize, error: &dyn Display) {
        self.notify(|| {
            let text = match results {
                1 => "the result of 1 attempt was not stored".to_owned(),
                _ => format!("the results of {results} attempts were not stored"),
            };
            Notice {
                job,
                error: Some(error.to_string()),
                ..Notice::new(Event::PersistFailed, self.node_time(), text)
            }
        });
    }

    /// Notifies that a part of the engine does not work.
    pub(crate) fn notify_error(&self, reason: &'static str, text: &str, error: &dyn Display) {
        self.notify(|| Notice {
            reason: Some(reason.into()),
            error: Some(error.to_string()),
            ..Notice::new(Event::EngineError, self.node_time(), text)
        });
    }
}

/// One notice for each dead holder and kind: a node may have had ten thousand jobs, but it is one
/// incident.
fn takeovers(events: &[JobEvent]) -> Vec<Notice> {
    let mut groups: BTreeMap<(Option<HolderId>, &KindName), (u64, JobId, Timestamp)> =
        BTreeMap::new();
    for event in events.iter().filter(|event| event.cause == Cause::Takeover) {
        let group = groups.entry((event.holder, &event.kind)).or_insert((0, event.job, event.at));
        group.0 += 1;
    }
    let notice = |((holder, kind), (count, job, at)): ((Option<HolderId>, &KindName), _)| {
        let from = holder.map_or_else(String::new, |holder| format!(" from holder {holder}"));
        let text = match count {
            1 => format!("1 job of {kind} was taken over{from}"),
            count => format!("{count} jobs of {kind} were taken over{from}"),
        };
        Notice {
            kind: Some(kind.clone()),
            job: (count == 1).then_some(job),
            ..Notice::new(Event::Takeover, at, text)
        }
        .with("jobs", count)
        .with("from", from)
    };
    groups.into_iter().map(notice).collect()
}

#[cfg(test)]
mod tests {
    use super::{GiveUpReason, takeovers};
    use rewheel::{Category, Random};
    use rewheel_core::{Cause, Failure, HolderId, JobEvent, JobId, KindName, State, Timestamp};

    #[track_caller]
    fn check(failure: Option<(Category, Option<&str>)>, attempts: u32, expected: GiveUpReason) {
        let failure = failure.map(|(category, code)| Failure::new(category, code, "x"));
        assert_eq!(GiveUpReason::of(failure.as_ref(), attempts, Some(3)), expected, "{failure:?}");
    }

    #[test]
    fn a_death_is_explained_by_what_was_stored_of_it() {
        check(Some((Category::Io, None)), 3, GiveUpReason::Exhausted);
        check(Some((Category::Io, None)), 2, GiveUpReason::NotRetryable);
        check(None, 3, GiveUpReason::Exhausted);
        check(Some((Category::Panic, None)), 3, GiveUpReason::Exhausted);
        check(Some((Category::Rejected, Some("404"))), 3, GiveUpReason::NotRetryable);
        check(Some((Category::Rejected, Some("409"))), 3, GiveUpReason::Exhausted);
        check(Some((Category::Rejected, Some("409"))), 2, GiveUpReason::NotRetryable);
        check(Some((Category::BadPayload, None)), 1, GiveUpReason::NotRetryable);
        check(Some((Category::NoHandler, None)), 3, GiveUpReason::NotRetryable);
        check(Some((Category::Deadline, None)), 3, GiveUpReason::Deadline);
        check(Some((Category::Panic, Some("takeovers"))), 1, GiveUpReason::Takeovers);
    }

    #[test]
    fn a_dead_holder_is_one_notice_for_each_kind_it_ran() {
        let random = Random::seeded(1);
        let at = Timestamp::from_millis(5);
        let holders = [0, 1].map(|_| HolderId::new(at, &random));
        let event = |holder: usize, kind: &str, cause| JobEvent {
            job: JobId::new(at, &random),
            kind: KindName::parse(kind).unwrap(),
            from: State::Leased,
            to: State::Scheduled,
            cause,
            holder: Some(holders[holder]),
            at,
        };
        let mut events: Vec<JobEvent> =
            (0..500).map(|_| event(0, "mail", Cause::Takeover)).collect();
        events.push(event(0, "charge", Cause::Takeover));
        events.push(event(1, "mail", Cause::Deadline));
        let mut told = takeovers(&events);
        told.sort_by_key(|notice| notice.text.clone());
        assert_eq!(told.len(), 2);
        assert_eq!(told[0].job, Some(events[500].job));
        assert_eq!(told[1].attributes["jobs"], "500");
        let text = format!("500 jobs of mail were taken over from holder {}", holders[0]);
        assert_eq!((told[1].text.as_str(), told[1].job, told[1].at), (text.as_str(), None, at));
    }
}
