//! Tests what pages show, and to whom.

use super::browser::{ADMIN, Site};
use axum::http::Method;

const PAGES: [&str; 13] = [
    "/ui/",
    "/ui/jobs",
    "/ui/incidents",
    "/ui/kinds",
    "/ui/kinds/mail",
    "/ui/kinds/mail/settings",
    "/ui/operations",
    "/ui/schedules",
    "/ui/fleet",
    "/ui/audit",
    "/ui/tokens",
    "/ui/preferences",
    "/ui/help",
];

async fn job(site: &Site, body: &str) -> String {
    let job = site.rest(ADMIN, Method::POST, "/v1/jobs", body).await;
    job["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_page_opens_for_an_admin() {
    let site = Site::closed().await;
    let mut browser = site.signed_in(ADMIN).await;
    for path in PAGES {
        let shown = browser.get(path).await;
        assert_eq!(shown.status, 200, "{path}: {}", shown.html);
        shown.has("<main id=\"main\"").has("</html>").has("Skip to content");
        let labels = shown.html.matches("<h1").count();
        assert_eq!(labels, 1, "{path} has {labels} headings");
    }
}

#[tokio::test]
async fn a_reader_sees_pages_without_buttons() {
    let site = Site::closed().await;
    let id = job(&site, r#"{"kind":"mail","payload":{"to":"a"}}"#).await;
    let token = site.token(r#"{"name":"eye","roles":["read"]}"#).await;
    let mut browser = site.signed_in(&token).await;
    for path in PAGES.into_iter().filter(|path| *path != "/ui/tokens") {
        let shown = browser.get(path).await;
        assert_eq!(shown.status, 200, "{path}");
        shown.lacks("…</a>").lacks("danger").lacks("value=\"cancel\"").lacks("ui/tokens\"");
    }
    browser.get(&format!("/ui/jobs/{id}")).await.has("Facts").lacks("Retry now").lacks("Edit…");
    assert_eq!(browser.get("/ui/tokens").await.status, 403);
    for path in [
        format!("/ui/jobs/{id}/pause"),
        "/ui/kinds/mail/pause".to_owned(),
        "/ui/bulk/cancel".to_owned(),
    ] {
        assert_eq!(browser.submit("/ui/jobs", &path, &[]).await.status, 403, "{path}");
    }
    let shown = browser.get(&format!("/ui/jobs/{id}/edit")).await;
    assert_eq!(shown.has("needs the role `operate`").status, 403);
    assert_eq!(
        site.rest(ADMIN, Method::GET, &format!("/v1/jobs/{id}"), "").await["state"],
        "scheduled"
    );
}

#[tokio::test]
async fn a_token_of_a_tenant_sees_its_tenant() {
    let site = Site::closed().await;
    let own = job(&site, r#"{"kind":"mail","payload":{},"tenant":"acme","key":"own-key"}"#).await;
    let other =
        job(&site, r#"{"kind":"mail","payload":{},"tenant":"other","key":"other-key"}"#).await;
    let token = site.token(r#"{"name":"t","roles":["operate"],"tenant":"acme"}"#).await;
    let mut browser = site.signed_in(&token).await;
    assert_eq!(browser.get("/ui/").await.location(), "/ui/jobs");
    browser
        .get("/ui/jobs")
        .await
        .has("own-key")
        .lacks("other-key")
        .lacks("/ui/kinds")
        .lacks("/ui/fleet");
    assert_eq!(browser.get(&format!("/ui/jobs/{own}")).await.status, 200);
    assert_eq!(browser.get(&format!("/ui/jobs/{other}")).await.status, 404);
    assert_eq!(
        browser.submit("/ui/jobs", &format!("/ui/jobs/{other}/cancel"), &[]).await.status,
        404
    );
    for path in
        ["/ui/kinds", "/ui/kinds/mail", "/ui/schedules", "/ui/fleet", "/ui/audit", "/ui/tokens"]
    {
        assert_eq!(browser.get(path).await.status, 403, "{path}");
    }
    for path in ["/ui/incidents", "/ui/operations"] {
        assert_eq!(browser.get(path).await.status, 200, "{path}");
    }
    browser.get("/ui/bulk/cancel").await.has("tenant").has("exactly <b>1</b>");
}

#[tokio::test]
async fn the_filter_box_becomes_parameters_of_rest() {
    let site = Site::open().await;
    site.rest("", Method::POST, "/v1/jobs", r#"{"kind":"mail","payload":{},"key":"parcel-9"}"#)
        .await;
    let mut browser = site.browser();
    let found = browser.get("/ui/jobs?filter=state%3Ascheduled+kind%3Amail+parcel").await;
    assert_eq!(found.location(), "/ui/jobs?state=scheduled&kind=mail&q=parcel");
    browser
        .get(found.location())
        .await
        .has("parcel-9")
        .has("value=\"state:scheduled kind:mail parcel\"");
    let wrong = browser.get("/ui/jobs?filter=status%3Adead").await;
    assert_eq!(wrong.status, 400);
    wrong.has("`status:` is unknown").has("value=\"status:dead\"").lacks("parcel-9");
    let wrong = browser.get("/ui/jobs?state=sleeping").await;
    assert_eq!(wrong.has("role=\"alert\"").has("state:sleeping").status, 400);
    browser.get("/ui/jobs?state=dead").await.has("No job matches this filter");
    let unknown = browser.get("/ui/jobs?colour=red").await;
    assert_eq!(unknown.has("colour is unknown").status, 400);
    let id = site.rest("", Method::GET, "/v1/jobs", "").await["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        browser.get(&format!("/ui/jobs?filter={id}")).await.location(),
        format!("/ui/jobs/{id}")
    );
}

#[tokio::test]
async fn a_search_that_stopped_early_says_so() {
    let site = Site::open().await;
    let id = rewheel_core::JobId::new(
        rewheel_core::Timestamp::from_millis(1_700_000_000_000),
        &rewheel::Random::seeded(1),
    );
    let cursor = rewheel_core::store::Cursor::behind(id);
    let next = crate::rest::cursor_of_jobs(&cursor.to_string());
    let nothing = serde_json::json!({ "items": [], "next": next });
    let mut browser = site.browser_over("/v1/jobs", nothing);
    let page = browser.get("/ui/jobs?kind=mail").await;
    page.has("No match yet: the search looked back to 2023-11-14 22:13:20.000")
        .has("Search older jobs")
        .has(&format!("cursor={next}"))
        .has("/ui/bulk/pause?kind=mail")
        .lacks("No job matches");
    // The first job of an empty list must be able to appear.
    page.has("data-live-rows id=\"jobs\"");
    let complete = serde_json::json!({ "items": [], "next": null });
    let page = site.browser_over("/v1/jobs", complete).get("/ui/jobs?kind=mail").await;
    page.has("No job matches this filter").lacks("looked back").lacks("/ui/bulk/");
}

#[tokio::test]
async fn conditions_of_the_address_are_in_the_box() {
    let site = Site::open().await;
    dead_letter(&site).await;
    let incidents = site.rest("", Method::GET, "/v1/incidents", "").await;
    let incident = incidents["items"][0]["id"].as_str().unwrap();
    let mut browser = site.browser();
    let page = browser.get(&format!("/ui/jobs?incident={incident}&attempt=%3C9")).await;
    page.has(&format!("value=\"incident:{incident} attempt:&#60;9\"")).has("/ui/bulk/redrive?");
    // A bulk request has no holder.
    let holder = site.engine.store().holders().await.unwrap()[0].name.clone();
    let page = browser.get(&format!("/ui/jobs?holder={holder}")).await;
    page.has(&format!("value=\"holder:{holder}\"")).lacks("/ui/bulk/");
}

#[tokio::test]
async fn lists_are_paged_without_loss() {
    let site = Site::open().await;
    for number in 0..120 {
        let body = format!(r#"{{"kind":"mail","payload":{{}},"key":"key-{number:03}"}}"#);
        site.rest("", Method::POST, "/v1/jobs", &body).await;
    }
    let (mut browser, mut path, mut seen) =
        (site.browser(), "/ui/jobs?kind=mail".to_owned(), Vec::new());
    loop {
        let page = browser.get(&path).await;
        seen.extend((0..120).filter(|number| page.html.contains(&format!("key-{number:03}"))));
        let Some((before, _)) = page.html.split_once("\" rel=\"next\"") else { break };
        path = before.rsplit('"').next().unwrap().replace("&#38;", "&");
        assert!(path.contains("kind=mail"), "{path}");
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..120).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_job_says_why_it_waits_as_the_command_line_does() {
    let site = Site::open().await;
    let body = r#"{"kind":"mail","payload":{"n":12345678901234567890.10,"b":1,"a":2}}"#;
    let id = site.rest("", Method::POST, "/v1/jobs", body).await["id"].as_str().unwrap().to_owned();
    let shown = site.browser().get(&format!("/ui/jobs/{id}")).await;
    shown.has("Waits").has("12345678901234567890.10").has("Retry now").has("rewheel jobs show");
    let order = [
        shown.html.find("\"b\"").or(shown.html.find("&#34;b&#34;")),
        shown.html.find("&#34;a&#34;"),
    ];
    assert!(order[0] < order[1], "the keys keep their order");
}

#[tokio::test]
async fn a_job_of_a_paused_kind_says_what_would_start_it() {
    let site = Site::closed().await;
    let mut browser = site.signed_in(ADMIN).await;
    site.rest(ADMIN, Method::PUT, "/v1/kinds/work", r#"{"runner":"worker"}"#).await;
    let id = job(&site, r#"{"kind":"work","payload":{}}"#).await;
    let page = format!("/ui/jobs/{id}");
    browser.get(&page).await.lacks("Nothing starts it");
    site.rest(ADMIN, Method::POST, "/v1/kinds/work/pause", "").await;
    browser
        .get(&page)
        .await
        .has("Nothing starts it until an operator resumes the kind.")
        .has("href=\"/ui/kinds/work/resume\"");
    let token = site.token(r#"{"name":"eye","roles":["read"]}"#).await;
    let mut reader = site.signed_in(&token).await;
    reader.get(&page).await.has("Nothing starts it").lacks("/ui/kinds/work/resume");
    site.rest(ADMIN, Method::POST, "/v1/kinds/work/resume", "").await;
    site.rest(ADMIN, Method::POST, "/v1/kinds/work/breaker/open", "").await;
    browser.get(&page).await.has("until an operator closes or resets the breaker");
}

#[tokio::test]
async fn pages_have_charts_of_the_history() {
    let site = Site::open().await;
    let id = dead_letter(&site).await;
    let job = site.rest("", Method::GET, &format!("/v1/jobs/{id}"), "").await;
    let counts = serde_json::json!({
        "attempts": 9, "succeeded": 7, "retried": 2, "dead": 1,
        "duration": { "buckets": [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
        "lateness": { "buckets": [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
    });
    let points = serde_json::json!([
        { "start": "2026-01-01T11:57:00.000Z", "minutes": 1, "reported": 1, "counts": counts },
        { "start": "2026-01-01T11:58:00.000Z", "minutes": 1, "reported": 0, "counts": null },
    ]);
    let history = serde_json::json!({ "as_of": "2026-01-01T12:00:30.000Z", "points": points });
    let mut browser = site.browser_over("/v1/history", history);
    let incident = format!("/ui/incidents/{}", job["incident"].as_str().unwrap());
    for (path, charts) in [("/ui/", 2), ("/ui/kinds/broken", 3), (incident.as_str(), 1)] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.html);
        assert_eq!(page.html.matches("<figure class=\"chart\"").count(), charts, "{path}");
        page.has("11:57: succeeded 7, retried 2, dead letters 1").has("no node reported");
        page.has("aria-current=\"true\">15m<").has("c-dashed").lacks(" style=");
    }
    browser.get("/ui/").await.has("dead letters, +1 in 1 h");
    browser.get("/ui/?range=24h").await.has("aria-current=\"true\">24h<");
    browser.get("/ui/?range=%3Cscript%3E").await.lacks("<script>");
    // Without a report there is a sentence, and no empty chart.
    let nothing = serde_json::json!({ "as_of": "2026-01-01T12:00:30.000Z", "points": [] });
    let mut browser = site.browser_over("/v1/history", nothing);
    browser.get("/ui/kinds/broken").await.has("No complete minute has been reported yet.");
}

#[tokio::test]
async fn what_differs_says_when_it_cannot_say() {
    let site = Site::open().await;
    let id = dead_letter(&site).await;
    let job = site.rest("", Method::GET, &format!("/v1/jobs/{id}"), "").await;
    let page = format!("/ui/incidents/{}", job["incident"].as_str().unwrap());
    let mut browser = site.browser();
    browser.get(&page).await.has(&format!("href=\"{page}/differs\""));
    browser.get(&format!("{page}/differs")).await.has("no job of broken that succeeded is kept");
    assert_eq!(browser.get("/ui/incidents/00ff/differs").await.status, 404);
}

#[tokio::test]
async fn the_overview_names_what_needs_a_person() {
    let site = Site::open().await;
    site.browser().get("/ui/").await.has("Nothing needs a person");
    let id = dead_letter(&site).await;
    site.rest("", Method::POST, "/v1/jobs", r#"{"kind":"mail","payload":{}}"#).await;
    let mut browser = site.browser();
    let shown = browser.get("/ui/").await;
    shown
        .has("Needs a person")
        .has("1 dead letter of broken: rejected")
        .has("mail has 1 waiting job, and no node can run jobs of this kind");
    let start = shown.html.find("/ui/incidents/").unwrap();
    let incident = shown.html[start..].split('"').next().unwrap().to_owned();
    let page = browser.get(&incident).await;
    page.has("it is broken").has("Redrive with a canary…").has(&id);
    browser
        .get(&format!("/ui/jobs/{id}"))
        .await
        .has("Given up after attempt 1 of 1")
        .has("rejected");
    assert_eq!(browser.get("/ui/incidents/00ff").await.status, 404);
}

#[tokio::test]
async fn a_job_names_the_incident_of_its_own_cause() {
    let site = Site::open().await;
    let (one, two) = (dead_letter(&site).await, dead_letter(&site).await);
    let other = dead_letter_with(&site, r#"{"kind":"broken","payload":"other"}"#).await;
    let incident = async |id: &str| {
        let job = site.rest("", Method::GET, &format!("/v1/jobs/{id}"), "").await;
        job["incident"].as_str().unwrap().to_owned()
    };
    assert_eq!(incident(&one).await, incident(&two).await);
    assert_ne!(incident(&one).await, incident(&other).await);
    let mut browser = site.browser();
    browser
        .get(&format!("/ui/jobs/{one}"))
        .await
        .has("One other job has this cause")
        .has(&format!("/ui/incidents/{}\"", incident(&one).await));
    // The same category and code, but another message.
    browser.get(&format!("/ui/jobs/{other}")).await.lacks("this cause");
    let page = browser.get(&format!("/ui/incidents/{}", incident(&one).await)).await;
    page.has(&format!("/ui/jobs?incident={}\"", incident(&one).await));
    browser.get("/ui/incidents/00ff").await.has("this incident is over").has("id=\"problem\"");
}

/// Submits a job that dies, and returns its id.
pub(super) async fn dead_letter(site: &Site) -> String {
    dead_letter_with(site, r#"{"kind":"broken","payload":{}}"#).await
}

async fn dead_letter_with(site: &Site, body: &str) -> String {
    let mut events = site.engine.events(None);
    let id = site.rest("", Method::POST, "/v1/jobs", body).await;
    let id = id["id"].as_str().unwrap().to_owned();
    loop {
        let event = events.next().await.unwrap();
        if event.job.to_string() == id && event.to == rewheel_core::State::Dead {
            return id;
        }
    }
}
