//! Tests that stored texts cannot become markup, on every page.

use super::browser::{ADMIN, Site};
use axum::http::Method;
use serde_json::json;

/// Ends of elements and attributes, scripts, and characters that confuse.
const HOSTILE: &str = "<script>alert(1)</script>\" onfocus=\"alert(2) ' javascript:alert(3) </textarea></title> \u{202e}rtl &lt;";

/// What must not be in a page as it is.
const MARKUP: [&str; 4] =
    ["<script>alert", "\" onfocus=\"alert", "</textarea></title>", "' javascript"];

async fn site() -> (Site, String) {
    let site = Site::closed().await;
    let long = "x".repeat(4_000);
    let body = json!({
        "kind": "mail", "payload": { HOSTILE: HOSTILE, "long": long, "nul": "\u{0}" }, "key": HOSTILE,
        "tenant": HOSTILE, "shard_key": HOSTILE, "group_key": HOSTILE,
    });
    let job = site.rest(ADMIN, Method::POST, "/v1/jobs", &body.to_string()).await;
    (site, job["id"].as_str().unwrap().to_owned())
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test]
async fn stored_texts_are_escaped_on_every_page() {
    let (site, id) = site().await;
    let mut browser = site.signed_in(ADMIN).await;
    browser.submit("/ui/jobs", &format!("/ui/jobs/{id}/pause"), &[]).await;
    let text = encoded(HOSTILE);
    let pages = [
        "/ui/".to_owned(),
        "/ui/jobs".to_owned(),
        format!("/ui/jobs/{id}"),
        format!("/ui/jobs/{id}/edit"),
        format!("/ui/jobs/{id}/cancel"),
        format!("/ui/jobs/{id}?done={text}"),
        format!("/ui/jobs?filter={text}"),
        format!("/ui/jobs?q={text}"),
        format!("/ui/jobs?{text}={text}"),
        format!("/ui/jobs?tenant={text}&kind={text}"),
        format!("/ui/jobs/{text}"),
        format!("/ui/kinds/{text}"),
        format!("/ui/incidents/{text}"),
        format!("/ui/incidents?kind={text}"),
        format!("/ui/operations/{text}"),
        format!("/ui/schedules/{text}/pause"),
        format!("/ui/tokens/{text}/revoke"),
        format!("/ui/audit?who={text}&what={text}"),
        format!("/ui/bulk/cancel?key={text}"),
        format!("/ui/bulk/{text}"),
        format!("/ui/sign-in?next={text}"),
        format!("/ui/{text}"),
        "/ui/audit".to_owned(),
        "/ui/fleet".to_owned(),
    ];
    for path in pages {
        // A path has no `+` for a space.
        let path = match path.split_once('?') {
            None => path.replace('+', "%20"),
            Some(_) => path,
        };
        let shown = browser.get(&path).await;
        assert!(shown.status < 500, "{path}: {}", shown.html);
        for markup in MARKUP {
            assert!(!shown.html.contains(markup), "{path} contains {markup}: {}", shown.html);
        }
    }
    let shown = browser.get(&format!("/ui/jobs/{id}")).await;
    shown.has("&#60;script&#62;alert(1)");
}

#[tokio::test]
async fn failures_and_names_are_escaped() {
    let site = Site::closed().await;
    let token = site.token(r#"{"name":"ops","roles":["admin"],"tenant":null}"#).await;
    let mut browser = site.signed_in(&token).await;
    let made =
        browser.submit("/ui/tokens", "/ui/tokens", &[("name", HOSTILE), ("role", "read")]).await;
    assert_eq!(made.status, 422);
    made.has("role=\"alert\"");
    let zone = browser.submit("/ui/preferences", "/ui/preferences", &[("zone", HOSTILE)]).await;
    let edit = browser
        .submit(
            "/ui/jobs",
            "/ui/jobs/ticked",
            &[("verb", "cancel"), ("job", HOSTILE), ("back", HOSTILE)],
        )
        .await;
    for shown in [made, zone, edit] {
        for markup in MARKUP {
            assert!(!shown.html.contains(markup), "{markup} in {}", shown.html);
        }
    }
}

#[tokio::test]
async fn a_message_of_a_callee_is_a_text() {
    let message = HOSTILE;
    let engine_site = Site::failing_with(message).await;
    let id = super::pages::dead_letter(&engine_site).await;
    let mut browser = engine_site.browser();
    let overview = browser.get("/ui/").await;
    let start = overview.html.find("/ui/incidents/").unwrap();
    let incident = overview.html[start..].split('"').next().unwrap().to_owned();
    for path in [
        "/ui/".to_owned(),
        "/ui/incidents".to_owned(),
        format!("{incident}/differs"),
        incident,
        format!("/ui/jobs/{id}"),
        "/ui/kinds/broken".to_owned(),
    ] {
        let shown = browser.get(&path).await;
        assert_eq!(shown.status, 200, "{path}");
        for markup in MARKUP {
            assert!(!shown.html.contains(markup), "{path} contains {markup}");
        }
    }
}
