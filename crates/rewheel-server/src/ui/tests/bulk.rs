//! Tests previews and bulk operations.

use super::browser::{Browser, Shown, Site};
use super::pages::dead_letter;
use axum::http::Method;

async fn with_jobs(count: usize) -> (Site, Browser) {
    let site = Site::open().await;
    for number in 0..count {
        let body = format!(r#"{{"kind":"mail","payload":{{}},"key":"k{number}"}}"#);
        site.rest("", Method::POST, "/v1/jobs", &body).await;
    }
    let browser = site.browser();
    (site, browser)
}

/// Sends the form of a preview, with some fields changed.
async fn confirm(
    browser: &mut Browser,
    page: &Shown,
    path: &str,
    changed: &[(&str, &str)],
) -> Shown {
    let names = ["code", "filter", "count", "issued", "signature"];
    let values: Vec<String> = names.iter().map(|name| page.field(name)).collect();
    let mut fields: Vec<(&str, &str)> =
        names.iter().copied().zip(values.iter().map(String::as_str)).collect();
    for (name, value) in changed {
        fields.retain(|(found, _)| found != name);
        fields.push((*name, *value));
    }
    browser.post(path, &fields).await
}

#[tokio::test]
async fn what_was_shown_is_changed() {
    let (site, mut browser) = with_jobs(3).await;
    browser.get("/ui/jobs?kind=mail").await.has("/ui/bulk/pause?kind=mail");
    let page = browser.get("/ui/bulk/pause?kind=mail").await;
    page.has("exactly <b>3</b>").has("kind is mail").has("curl").lacks("Type 3");
    let mut events = site.engine.events(None);
    let started = confirm(&mut browser, &page, "/ui/bulk/pause", &[("rate", "1000/s")]).await;
    let place = started.location().to_owned();
    assert!(place.starts_with("/ui/operations/"), "{place}");
    let mut paused = 0;
    while paused < 3 {
        let event = events.next().await.unwrap();
        paused +=
            usize::from(event.to == rewheel_core::State::Paused && event.kind.as_str() == "mail");
    }
    browser.get(&place).await.has("pause");
    browser.get("/ui/operations").await.has("pause").has("rest");
}

#[tokio::test]
async fn a_form_that_was_changed_does_nothing() {
    let (site, mut browser) = with_jobs(2).await;
    let page = browser.get("/ui/bulk/pause?kind=mail&key=k1").await;
    for changed in
        [("filter", "kind=mail"), ("count", "1000"), ("issued", "99"), ("signature", "AAAA")]
    {
        let refused = confirm(&mut browser, &page, "/ui/bulk/pause", &[changed]).await;
        assert_eq!(refused.has("the form was changed").status, 403, "{changed:?}");
    }
    let refused = confirm(&mut browser, &page, "/ui/bulk/cancel", &[]).await;
    assert_eq!(refused.status, 403, "another verb was not shown");
    let mut stranger = site.browser();
    stranger.get("/ui/").await;
    assert_eq!(confirm(&mut stranger, &page, "/ui/bulk/pause", &[]).await.status, 403);
    assert_eq!(
        site.rest("", Method::GET, "/v1/operations", "").await["items"].as_array().unwrap().len(),
        0
    );
}

#[tokio::test]
async fn a_stale_count_asks_again() {
    let (site, mut browser) = with_jobs(2).await;
    let page = browser.get("/ui/bulk/pause?kind=mail").await;
    for number in 10..15 {
        let body = format!(r#"{{"kind":"mail","payload":{{}},"key":"k{number}"}}"#);
        site.rest("", Method::POST, "/v1/jobs", &body).await;
    }
    let again = confirm(&mut browser, &page, "/ui/bulk/pause", &[]).await;
    assert_eq!(again.has("matched 2 jobs, and matches 7 now").status, 409);
    assert_eq!(confirm(&mut browser, &again, "/ui/bulk/pause", &[]).await.status, 303);
}

#[tokio::test]
async fn cancelling_needs_the_typed_count() {
    let (_site, mut browser) = with_jobs(2).await;
    let page = browser.get("/ui/bulk/cancel?kind=mail").await;
    page.has("Type 2 to confirm").has("cannot be undone");
    for typed in ["", "3"] {
        let again = confirm(&mut browser, &page, "/ui/bulk/cancel", &[("typed", typed)]).await;
        assert_eq!(again.has("Type the number of jobs, 2").status, 409);
    }
    assert_eq!(
        confirm(&mut browser, &page, "/ui/bulk/cancel", &[("typed", "2")]).await.status,
        303
    );
}

#[tokio::test]
async fn an_incident_is_redriven_with_a_canary() {
    let site = Site::open().await;
    dead_letter(&site).await;
    let mut browser = site.browser();
    let list = browser.get("/ui/incidents").await;
    let start = list.html.find("/ui/incidents/").unwrap();
    let incident = list.html[start..].split('"').next().unwrap().to_owned();
    let page = browser.get(&incident).await;
    let start = page.html.find("/ui/bulk/redrive").unwrap();
    let preview = page.html[start..].split('"').next().unwrap().replace("&#38;", "&");
    let page = browser.get(&preview).await;
    page.has("exactly <b>1</b>").has("value=\"1,10,100\"");
    let wrong = confirm(&mut browser, &page, "/ui/bulk/redrive", &[("canary", "one")]).await;
    assert_eq!(wrong.has("canary must be numbers").status, 422);
    let started = confirm(&mut browser, &page, "/ui/bulk/redrive", &[("canary", "1,10")]).await;
    browser.get(started.location()).await.has("redrive");
}

#[tokio::test]
async fn only_verbs_that_fit_the_states_are_offered() {
    let (_site, mut browser) = with_jobs(1).await;
    let shown = browser.get("/ui/jobs?state=scheduled").await;
    shown
        .has("/ui/bulk/pause?")
        .has("/ui/bulk/retry?")
        .lacks("/ui/bulk/redrive?")
        .lacks("/ui/bulk/resume?");
    assert_eq!(browser.get("/ui/bulk/explode").await.status, 404);
    let twice = browser.get("/ui/bulk/cancel?tenant=a&tenant=b").await;
    assert_eq!(twice.has("`tenant` occurs twice").status, 400);
    browser.get("/ui/bulk/redrive?state=dead").await.has("nothing to redrive");
}
