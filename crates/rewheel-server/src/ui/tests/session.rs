//! Tests sessions, codes of forms, headers and addresses.

use super::browser::{ADMIN, Site};
use axum::http::Method;

#[tokio::test]
async fn browsers_find_the_dashboard_and_programs_find_nothing_at_the_root() {
    let site = Site::open().await;
    let mut browser = site.browser();
    assert_eq!(browser.get("/").await.status, 404);
    browser.more.push(("accept", "text/html,application/xhtml+xml".to_owned()));
    assert_eq!(browser.get("/").await.location(), "/ui/");
    assert_eq!(browser.get("/ui").await.location(), "/ui/");
    browser
        .get("/ui/")
        .await
        .has("Nothing needs a person")
        .has("everyone on this machine is admin");
    assert_eq!(browser.get("/ui/nowhere").await.has("does not exist").status, 404);
    assert_eq!(browser.get("/ui/jobs/ticked").await.has("only for a form").status, 405);
}

#[tokio::test]
async fn every_page_has_its_security_headers() {
    let site = Site::open().await;
    for path in ["/ui/", "/ui/nowhere", "/ui/jobs/x", "/ui/sign-in"] {
        let shown = site.browser().get(path).await;
        let policy = shown.headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(shown.headers["referrer-policy"], "same-origin");
        assert_eq!(shown.headers["x-content-type-options"], "nosniff");
        assert_eq!(shown.headers["cache-control"], "no-store");
        assert!(shown.headers["content-type"].to_str().unwrap().starts_with("text/html"));
        let cookie = shown.headers["set-cookie"].to_str().unwrap();
        assert!(
            cookie.contains("HttpOnly")
                && cookie.contains("SameSite=Strict")
                && cookie.contains("Path=/ui")
        );
        shown.lacks(" style=").lacks(" onclick=");
    }
}

#[tokio::test]
async fn a_token_becomes_a_session_that_ends_with_it() {
    let site = Site::closed().await;
    let mut browser = site.browser();
    assert_eq!(
        browser.get("/ui/jobs?state=dead").await.location(),
        "/ui/sign-in?next=%2Fui%2Fjobs%3Fstate%3Ddead"
    );
    let token = site.token(r#"{"name":"ops","roles":["operate"]}"#).await;
    let page = browser.get("/ui/sign-in?next=%2Fui%2Fjobs%3Fstate%3Ddead").await;
    let (code, next) = (page.code(), page.field("next"));
    let wrong =
        browser.post("/ui/sign-in", &[("code", &code), ("token", "rw_1_x"), ("next", &next)]).await;
    assert_eq!(wrong.has("unknown or no longer valid").status, 403);
    let signed =
        browser.post("/ui/sign-in", &[("code", &code), ("token", &token), ("next", &next)]).await;
    assert_eq!(signed.location(), "/ui/jobs?state=dead");
    let session = browser.cookies["rewheel_session"].clone();
    assert_ne!(session, token);
    browser.get("/ui/").await.has(">ops<").has("sign out").lacks("/ui/tokens");
    // REST does not read the cookie; the session is a token of its own.
    assert_eq!(browser.get("/v1/jobs").await.status, 401);
    let tokens = site.rest(ADMIN, Method::GET, "/v1/tokens", "").await;
    let items = tokens["items"].as_array().unwrap();
    let made =
        items.iter().find(|one| one["name"].as_str().unwrap().starts_with("session.")).unwrap();
    assert_eq!(made["roles"], serde_json::json!(["operate"]));
    assert!(made["expires"].is_string());
    site.rest(ADMIN, Method::POST, "/v1/tokens/ops/revoke", "").await;
    assert!(browser.get("/ui/jobs").await.location().starts_with("/ui/sign-in"));
}

#[tokio::test]
async fn signing_out_ends_the_session_and_not_the_token() {
    let site = Site::closed().await;
    let token = site.token(r#"{"name":"ops","roles":["read"]}"#).await;
    let mut browser = site.signed_in(&token).await;
    let old = browser.clone();
    assert_eq!(browser.submit("/ui/jobs", "/ui/sign-out", &[]).await.location(), "/ui/sign-in");
    assert_eq!(old.clone().get("/ui/jobs").await.status, 303);
    site.signed_in(&token).await.get("/ui/jobs").await.has("There are no jobs");
    // Also the admin token of the config can sign in.
    site.signed_in(ADMIN)
        .await
        .get("/ui/tokens")
        .await
        .has("New token")
        .has("ops")
        .lacks("session.");
}

#[tokio::test]
async fn a_token_has_a_limited_number_of_sessions() {
    let site = Site::closed().await;
    let token = site.token(r#"{"name":"web","roles":["read"]}"#).await;
    for _ in 0..51 {
        site.signed_in(&token).await;
    }
    let sessions = site.rest(ADMIN, Method::GET, "/v1/tokens?limit=1000", "").await;
    let count = |state: &str| {
        let is_one = |one: &&serde_json::Value| {
            one["state"] == state && one["name"].as_str().unwrap().starts_with("session.")
        };
        sessions["items"].as_array().unwrap().iter().filter(is_one).count()
    };
    assert_eq!((count("live"), count("revoked")), (50, 1), "{sessions}");
    let tokens = site.rest(ADMIN, Method::GET, "/v1/tokens?sessions=false", "").await;
    assert_eq!(tokens["items"].as_array().unwrap().len(), 1, "{tokens}");
}

#[tokio::test]
async fn a_token_that_cannot_look_does_not_sign_in() {
    let site = Site::closed().await;
    let token = site.token(r#"{"name":"app","roles":["submit"]}"#).await;
    let mut browser = site.browser();
    let code = browser.get("/ui/sign-in").await.code();
    let shown = browser.post("/ui/sign-in", &[("code", &code), ("token", &token)]).await;
    assert_eq!(shown.has("cannot look").status, 403);
    assert!(!browser.cookies.contains_key("rewheel_session"));
}

#[tokio::test]
async fn names_of_sessions_are_reserved() {
    let wrong = crate::tokens::make(r#"{"name":"session.config-00000000.1","roles":["admin"]}"#);
    assert!(wrong.unwrap_err().detail.contains("reserved for sessions"));
}

#[tokio::test]
async fn a_form_needs_the_code_of_its_own_session() {
    let site = Site::closed().await;
    let token = site.token(r#"{"name":"ops","roles":["admin"]}"#).await;
    let (mut one, mut other) = (site.signed_in(&token).await, site.signed_in(&token).await);
    let stolen = other.get("/ui/kinds").await.code();
    for code in ["", "x", stolen.as_str()] {
        let shown = one.post("/ui/kinds/mail/pause", &[("code", code)]).await;
        assert_eq!(shown.has("not of a page that this browser opened").status, 403);
    }
    let (mut foreign, own) = (one.clone(), one.get("/ui/kinds").await.code());
    foreign.more.push(("origin", "https://evil.example".to_owned()));
    assert_eq!(foreign.post("/ui/kinds/mail/pause", &[("code", &own)]).await.status, 403);
    one.get("/ui/kinds/mail").await.lacks("an operator paused");
    assert_eq!(one.submit("/ui/kinds", "/ui/kinds/mail/pause", &[]).await.status, 303);
    one.get("/ui/kinds/mail").await.has("an operator paused");
}

#[tokio::test]
async fn a_link_of_another_site_reloads_once() {
    let site = Site::closed().await;
    let mut browser = site.browser();
    browser.more.push(("sec-fetch-site", "cross-site".to_owned()));
    let shown = browser.get("/ui/jobs?q=a%22b").await;
    assert_eq!(shown.status, 200);
    shown.has("http-equiv=\"refresh\"").has("0;url=/ui/jobs?q=a%22b");
    // A new form cookie would replace that of open pages.
    assert!(!shown.headers.contains_key("set-cookie"));
    let open = Site::open().await;
    let mut other = open.browser();
    let code = other.get("/ui/kinds").await.code();
    let mut link = open.browser();
    link.more.push(("sec-fetch-site", "cross-site".to_owned()));
    assert!(!link.get("/ui/kinds").await.headers.contains_key("set-cookie"));
    assert_eq!(other.post("/ui/kinds/mail/pause", &[("code", &code)]).await.status, 303);
    browser.more.clear();
    assert_eq!(browser.get("/ui/jobs").await.status, 303);
}

#[tokio::test]
async fn the_dashboard_works_below_a_path_that_the_proxy_removes_or_not() {
    let site = Site::behind("https://ops.example/a/b").await;
    for prefix in ["", "/a/b"] {
        let mut browser = site.browser();
        let page = browser.get(&format!("{prefix}/ui/sign-in")).await;
        page.has("action=\"/a/b/ui/sign-in\"").has("href=\"/a/b/ui/assets/");
        let cookie = page.headers["set-cookie"].to_str().unwrap().to_owned();
        assert!(cookie.contains("Path=/a/b/ui;") && cookie.contains("Secure"), "{cookie}");
        let code = page.code();
        browser.more.push(("origin", "https://ops.example".to_owned()));
        let fields = [("code", code.as_str()), ("token", ADMIN), ("next", "/a/b/ui/kinds")];
        let signed = browser.post(&format!("{prefix}/ui/sign-in"), &fields).await;
        assert_eq!(signed.location(), "/a/b/ui/kinds");
        browser.get(&format!("{prefix}/ui/kinds")).await.has("href=\"/a/b/ui/kinds/mail\"");
    }
    let mut evil = site.browser();
    evil.more.push(("origin", "https://evil.example".to_owned()));
    assert_eq!(evil.post("/ui/sign-in", &[]).await.status, 403);
}

#[tokio::test]
async fn a_server_without_tokens_answers_only_this_machine() {
    let site = Site::open().await;
    let mut browser = site.browser();
    browser.more.push(("x-forwarded-for", "10.0.0.9".to_owned()));
    assert_eq!(browser.get("/ui/jobs").await.has("through a proxy").status, 403);
}

#[tokio::test]
async fn the_files_of_pages_are_kept_by_browsers() {
    let site = Site::open().await;
    let page = site.browser().get("/ui/").await;
    for (name, media_type) in
        [("app.css", "text/css"), ("app.js", "text/javascript"), ("icon.svg", "image/svg+xml")]
    {
        let start = page.html.find("/ui/assets/").unwrap();
        let hash = page.html[start..].split('/').nth(3).unwrap();
        let file = site.browser().get(&format!("/ui/assets/{hash}/{name}")).await;
        assert_eq!(file.status, 200);
        assert!(file.headers["content-type"].to_str().unwrap().starts_with(media_type));
        assert!(file.headers["cache-control"].to_str().unwrap().contains("immutable"));
    }
    assert_eq!(site.browser().get("/ui/assets/0/passwd").await.status, 404);
    assert_eq!(
        site.browser().get("/ui/assets/0/app.css").await.headers["cache-control"],
        "no-store"
    );
}

#[tokio::test]
async fn preferences_are_cookies_and_wrong_ones_are_named() {
    let site = Site::open().await;
    let mut browser = site.browser();
    browser.get("/ui/jobs").await.has("data-theme=\"system\"").has(">UTC<");
    let fields =
        [("theme", "dark"), ("zone", "Asia/Shanghai"), ("next", "/ui/jobs"), ("with_keys", "1")];
    assert_eq!(
        browser.submit("/ui/preferences", "/ui/preferences", &fields).await.location(),
        "/ui/jobs"
    );
    browser
        .get("/ui/jobs")
        .await
        .has("data-theme=\"dark\"")
        .has(">Asia/Shanghai<")
        .has("data-keys=\"false\"");
    // As the script of the page writes it.
    browser.cookies.insert("rewheel_zone".to_owned(), "Etc%2FGMT%2B5".to_owned());
    browser.get("/ui/jobs").await.has(">Etc/GMT+5<");
    let wrong =
        browser.submit("/ui/preferences", "/ui/preferences", &[("zone", "Mars/Base")]).await;
    assert_eq!(wrong.has("Mars/Base").status, 422);
}
