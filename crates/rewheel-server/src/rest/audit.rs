//! Serves the audit log.

use super::Page;
use super::cursor::List;
use super::query::Parameters;
use crate::app::App;
use crate::conditions::{Conditions, word};
use crate::job_document::AuditDocument;
use crate::problem::Problem;
use crate::tokens::Caller;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel_core::store::Store;
use rewheel_core::{AuditEntry, JobId, KindName, Limits};
use serde::Serialize;
use std::sync::Arc;

/// One entry, with its subject.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    entry: AuditDocument,
    job: Option<String>,
    kind: Option<String>,
}

/// The filter. Without a condition on action, kind or actor, all entries match.
struct Wanted {
    job: Option<JobId>,
    whats: Vec<String>,
    kinds: Vec<KindName>,
    whos: Vec<String>,
    limit: usize,
}

/// `GET /v1/audit`: newest first, of all jobs or of one, filtered by action, kind and actor.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let known = ["limit", "cursor", "job", "what", "kind", "who"];
    let mut parameters = Parameters::read(&uri, &known)?;
    let before = parameters.after_as::<u64>(List::Audit);
    let wanted = Wanted {
        job: parameters.one("job", |text| text.parse::<JobId>()),
        whats: parameters.all("what", word),
        kinds: parameters.all("kind", KindName::parse),
        whos: parameters.all("who", word),
        limit: parameters.limit(),
    };
    parameters.finish()?;
    about(&app, &caller, wanted.job).await?;
    let (entries, next) =
        find(app.engine()?.store().as_ref(), &wanted, before, Limits::SCAN_MAX).await?;
    let items: Vec<Line> = entries.iter().map(Line::new).collect();
    let next = next.map(|seq| List::Audit.cursor(&seq.to_string()));
    Ok(Json(Page { items, next }).into_response())
}

/// Checks that the caller may see the entries, which contain no tenant.
pub(super) async fn about(app: &App, caller: &Caller, job: Option<JobId>) -> Result<(), Problem> {
    let (Some(id), Some(_)) = (job, caller.tenant()) else {
        return caller.whole("add `?job=ID` with the id of a job of this tenant");
    };
    match app.engine()?.store().get(id).await? {
        Some(job) if caller.sees(&job) => Ok(()),
        Some(_) | None => Err(super::jobs::not_found(id)),
    }
}

/// Reads a limited number of entries, and returns where to continue if there may be more.
async fn find(
    store: &dyn Store,
    wanted: &Wanted,
    mut before: Option<u64>,
    scan_max: usize,
) -> Result<(Vec<AuditEntry>, Option<u64>), Problem> {
    // Ask for one more than the limit, to know whether there are more.
    let at_once = if wanted.is_all() { wanted.limit + 1 } else { Limits::PAGE_MAX };
    let (mut found, mut looked_at) = (Vec::new(), 0);
    loop {
        let page = store.audit(wanted.job, before, at_once).await?;
        let is_last = page.len() < at_once;
        looked_at += page.len();
        before = page.last().map(|entry| entry.seq).or(before);
        found.extend(page.into_iter().filter(|entry| wanted.matches(entry)));
        if found.len() > wanted.limit {
            found.truncate(wanted.limit);
            let next = found.last().map(|entry| entry.seq);
            return Ok((found, next));
        }
        if is_last || looked_at >= scan_max {
            return Ok((found, before.filter(|_| !is_last)));
        }
    }
}

impl Wanted {
    fn is_all(&self) -> bool {
        self.whats.is_empty() && self.kinds.is_empty() && self.whos.is_empty()
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let has = |wanted: &[String], text: &str| {
            wanted.is_empty() || wanted.iter().any(|one| one == text)
        };
        let is_of_kind = self.kinds.is_empty()
            || entry.kind.as_ref().is_some_and(|kind| self.kinds.contains(kind));
        has(&self.whats, &entry.what) && has(&self.whos, entry.who.as_str()) && is_of_kind
    }
}

impl Line {
    fn new(entry: &AuditEntry) -> Line {
        Line {
            entry: AuditDocument::new(entry),
            job: entry.job.map(|job| job.to_string()),
            kind: entry.kind.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Wanted, find};
    use rewheel_core::store::KindStore;
    use rewheel_core::{Actor, KindChange, KindName, NewKind};
    use rewheel_stores::MemoryStore;

    #[tokio::test]
    async fn a_search_looks_at_a_bounded_number_of_entries_and_goes_on() {
        let (store, name) = (MemoryStore::new(), KindName::parse("mail").unwrap());
        let kind = NewKind {
            name: name.clone(),
            settings: "{}".to_owned(),
            takeovers_max: 3,
            on_dead: Default::default(),
        };
        store.put_kinds(&[kind], &Actor::new("first")).await.unwrap();
        let many = Actor::new("many");
        for _ in 0..Limits::PAGE_MAX {
            store.change_kind(&name, &KindChange::Pause, &many).await.unwrap();
            store.change_kind(&name, &KindChange::Resume, &many).await.unwrap();
        }
        let whos = vec!["first".to_owned()];
        let wanted = Wanted { job: None, whats: vec![], kinds: vec![], whos, limit: 10 };
        let (found, next) = find(&store, &wanted, None, Limits::PAGE_MAX).await.unwrap();
        assert_eq!((found.len(), next), (0, Some(Limits::PAGE_MAX as u64 + 2)));
        let (found, next) = find(&store, &wanted, next, 10 * Limits::PAGE_MAX).await.unwrap();
        assert_eq!((found.len(), next), (1, None));
        assert_eq!(found[0].what, "put kind");
    }
}
