//! Tests changes of jobs, kinds and tokens through forms.

use super::browser::{ADMIN, Browser, Site};
use super::pages::dead_letter;
use axum::http::Method;

async fn waiting(site: &Site) -> String {
    let job = site
        .rest("", Method::POST, "/v1/jobs", r#"{"kind":"mail","payload":{"to":"a","n":1}}"#)
        .await;
    job["id"].as_str().unwrap().to_owned()
}

async fn state(site: &Site, id: &str) -> String {
    site.rest("", Method::GET, &format!("/v1/jobs/{id}"), "").await["state"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn change(browser: &mut Browser, id: &str, verb: &str) -> u16 {
    browser.submit("/ui/jobs", &format!("/ui/jobs/{id}/{verb}"), &[]).await.status
}

#[tokio::test]
async fn a_job_is_paused_resumed_and_cancelled() {
    let site = Site::open().await;
    let (id, mut browser) = (waiting(&site).await, site.browser());
    assert_eq!(change(&mut browser, &id, "pause").await, 303);
    assert_eq!(state(&site, &id).await, "paused");
    browser
        .get(&format!("/ui/jobs/{id}?done=pause"))
        .await
        .has("The job is paused")
        .has(">Resume<")
        .has("rest");
    assert_eq!(change(&mut browser, &id, "resume").await, 303);
    assert_eq!(state(&site, &id).await, "scheduled");
    browser.get(&format!("/ui/jobs/{id}/cancel")).await.has("cannot be undone");
    assert_eq!(state(&site, &id).await, "scheduled", "a page changes nothing");
    assert_eq!(change(&mut browser, &id, "cancel").await, 303);
    assert_eq!(state(&site, &id).await, "cancelled");
    assert_eq!(change(&mut browser, &id, "pause").await, 409);
    assert_eq!(change(&mut browser, &id, "explode").await, 404);
    assert_eq!(change(&mut browser, "x%2F..%2F..%2Fv1%2Ftokens%3F", "retry").await, 404);
}

#[tokio::test]
async fn a_dead_letter_is_retried() {
    let site = Site::open().await;
    let (id, mut browser) = (dead_letter(&site).await, site.browser());
    browser.get(&format!("/ui/jobs/{id}")).await.has("Retry now").has("Cancel…");
    assert_eq!(change(&mut browser, &id, "retry").await, 303);
    let job = site.rest("", Method::GET, &format!("/v1/jobs/{id}"), "").await;
    assert_eq!(job["audit"][0]["what"], "retry", "{job}");
}

#[tokio::test]
async fn ticked_jobs_are_changed_one_by_one() {
    let site = Site::open().await;
    let (one, two) = (waiting(&site).await, waiting(&site).await);
    let mut browser = site.browser();
    browser.get("/ui/jobs").await.has(&format!("value=\"{one}\""));
    change(&mut browser, &two, "pause").await;
    let fields = [
        ("verb", "pause"),
        ("job", one.as_str()),
        ("job", two.as_str()),
        ("job", "x"),
        ("back", "/ui/jobs"),
    ];
    let shown = browser.submit("/ui/jobs", "/ui/jobs/ticked", &fields).await;
    shown.has("pause: 2 of 3 jobs");
    // What a browser sends for Enter in a tick box.
    let none = [("verb", "none"), ("job", one.as_str())];
    browser.submit("/ui/jobs", "/ui/jobs/ticked", &none).await;
    assert_eq!(state(&site, &one).await, "paused");
    let fields = [("verb", "cancel"), ("job", one.as_str()), ("job", two.as_str())];
    let asked = browser.submit("/ui/jobs", "/ui/jobs/ticked", &fields).await;
    asked.has("Cancel 2 jobs").has("cannot be undone");
    assert_eq!(state(&site, &one).await, "paused");
    let fields = [&fields[..], &[("sure", "yes")]].concat();
    browser.submit("/ui/jobs", "/ui/jobs/ticked", &fields).await.has("cancel: 2 of 2 jobs");
    assert_eq!(state(&site, &one).await, "cancelled");
    assert_eq!(
        browser.submit("/ui/jobs", "/ui/jobs/ticked", &[("verb", "retry")]).await.status,
        422
    );
}

#[tokio::test]
async fn an_edit_shows_its_diff_before_it_is_saved() {
    let site = Site::open().await;
    let (id, mut browser) = (waiting(&site).await, site.browser());
    let path = format!("/ui/jobs/{id}/edit");
    let page = browser.get(&path).await;
    let (etag, due) = (page.field("etag"), page.field_of("due"));
    let payload = "{\r\n  \"to\": \"b\",\r\n  \"n\": 12345678901234567890.10\r\n}";
    let (attempts, empty) = (page.field_of("attempts_max"), "");
    let fields = |step| {
        vec![
            ("etag", etag.as_str()),
            ("payload", payload),
            ("priority", "7"),
            ("due", due.as_str()),
            ("deadline", empty),
            ("attempts_max", attempts.as_str()),
            ("step", step),
        ]
    };
    let diff = browser.submit(&path, &path, &fields("diff")).await;
    diff.has("class=\"d-old\"").has("class=\"d-new\"").has("Save and retry").has("priority");
    let job = site.rest("", Method::GET, &format!("/v1/jobs/{id}"), "").await;
    assert_eq!(job["priority"], 5, "nothing is saved yet");
    assert_eq!(
        browser.submit(&path, &path, &fields("save")).await.location(),
        format!("/ui/jobs/{id}?done=edit")
    );
    browser.get(&format!("/ui/jobs/{id}")).await.has("12345678901234567890.10");
    // The form is for a version that is past.
    let late = browser.submit(&path, &path, &fields("save")).await;
    assert_eq!(late.has("changed after this page was opened").status, 412);
    let mut wrong = fields("diff");
    let current = late.field("etag");
    wrong[0].1 = &current;
    wrong[1].1 = "{";
    assert_eq!(browser.submit(&path, &path, &wrong).await.has("not valid JSON").status, 422);
    wrong[1].1 = "{}";
    wrong[2].1 = "70";
    wrong[6].1 = "save";
    assert_eq!(browser.submit(&path, &path, &wrong).await.has("priority").status, 422);
}

#[tokio::test]
async fn a_kind_is_paused_and_its_breaker_is_opened() {
    let site = Site::open().await;
    let mut browser = site.browser();
    browser.get("/ui/kinds/mail/breaker-open").await.has("No attempt of this kind starts");
    assert_eq!(browser.submit("/ui/kinds", "/ui/kinds/mail/breaker-open", &[]).await.status, 303);
    browser.get("/ui/kinds/mail").await.has("parked").has("opened by rest").has("Close breaker…");
    browser.get("/ui/").await.has("mail was parked");
    assert_eq!(browser.submit("/ui/kinds", "/ui/kinds/mail/breaker-reset", &[]).await.status, 303);
    browser
        .get("/ui/kinds/mail?done=breaker-reset")
        .await
        .has("Reset breaker: done.")
        .lacks("Close breaker");
    assert_eq!(browser.get("/ui/kinds/mail/explode").await.status, 404);
    browser
        .get("/ui/kinds/mail/settings")
        .await
        .has("attempts_max")
        .has("Maximum number of attempts");
}

#[tokio::test]
async fn a_new_token_is_shown_once_and_closes_an_open_server() {
    let site = Site::open().await;
    let mut browser = site.browser();
    let fields = [("name", "first"), ("role", "read")];
    let wrong = browser.submit("/ui/tokens", "/ui/tokens", &fields).await;
    assert_eq!(wrong.has("must include `admin`").status, 422);
    let made =
        browser.submit("/ui/tokens", "/ui/tokens", &[("name", "first"), ("role", "admin")]).await;
    made.has("it is not shown again").has("Sign in");
    let text =
        made.html.split_once("id=\"new-token\">").unwrap().1.split('<').next().unwrap().to_owned();
    assert_eq!(browser.get("/ui/tokens").await.status, 303);
    let mut browser = site.signed_in(&text).await;
    browser.get("/ui/tokens").await.has("first").lacks(&text);
    let id = text.split('_').nth(1).unwrap();
    browser.get(&format!("/ui/tokens/{id}/revoke")).await.has("Revoke token first");
    let revoke = format!("/ui/tokens/{id}/revoke");
    assert_eq!(browser.submit("/ui/tokens", &revoke, &[]).await.status, 303);
    assert_eq!(browser.get("/ui/tokens").await.status, 303, "the session ended with its token");
}

#[tokio::test]
async fn a_schedule_is_paused_and_fired() {
    let site = Site::closed().await;
    let body = r#"{"every":"1h","job":{"kind":"mail","payload":{}}}"#;
    site.rest(ADMIN, Method::PUT, "/v1/schedules/nightly", body).await;
    let mut browser = site.signed_in(ADMIN).await;
    browser.get("/ui/schedules").await.has("nightly").has("every 1h").has("pause…");
    let shown = browser.submit("/ui/schedules", "/ui/schedules/nightly/fire", &[]).await;
    browser.get(shown.location()).await.has("mail");
    assert_eq!(
        browser.submit("/ui/schedules", "/ui/schedules/nightly/pause", &[]).await.status,
        303
    );
    browser.get("/ui/schedules?done=pause").await.has("The schedule is paused").has("resume…");
}
