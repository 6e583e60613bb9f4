//! Tests that every flow works in a browser that runs no scripts.

use crate::browser::{Browser, Scripts};
use crate::site::Site;
use crate::stories;
use serde_json::json;

async fn browser(site: &Site) -> Browser {
    let browser = Browser::start(site.url(), Scripts::Off).await;
    browser.open("/ui/help").await;
    // The script would show this button.
    browser.until("document.getElementById('freeze').hidden").await;
    browser
}

#[tokio::test]
async fn from_the_overview_to_a_canary_redrive() {
    let site = Site::open().await;
    let browser = browser(&site).await;
    stories::redrive_with_a_canary(&site, &browser).await;
}

#[tokio::test]
async fn a_job_is_found_edited_and_retried() {
    let site = Site::open().await;
    let browser = browser(&site).await;
    stories::find_and_edit(&site, &browser).await;
}

#[tokio::test]
async fn sessions_and_tokens() {
    let site = Site::closed().await;
    let browser = Browser::start(site.url(), Scripts::Off).await;
    stories::sign_in_and_out(&browser).await;
    stories::create_a_token(&site, &browser).await;
}

#[tokio::test]
async fn the_other_forms() {
    let site = Site::open().await;
    let browser = browser(&site).await;
    stories::park_and_reset(&browser).await;
    site.dead_letters(3).await;
    let canary = json!({ "filter": { "kind": ["charge-card"] }, "canary": [1, 2] });
    site.post("/v1/jobs/redrive", canary).await;
    browser.open("/ui/operations").await;
    browser.click("main a[href*='/ui/operations/']").await;
    browser.click("main a[href$='/abort']").await;
    browser.click("main form[action$='/abort'] button").await;
    browser.reload_until_text("aborted").await;
    assert_eq!(site.jobs("dead").await, 2, "the canary took one");

    let hourly = json!({ "every": "1h", "job": { "kind": "mail", "payload": {} } });
    site.ask("PUT", "/v1/schedules/nightly", hourly).await;
    browser.open("/ui/schedules").await;
    for verb in ["pause", "resume"] {
        browser.click(&format!("main a[href$='/nightly/{verb}']")).await;
        browser.click(&format!("main form[action$='/nightly/{verb}'] button")).await;
        browser.until("location.pathname === '/ui/schedules'").await;
    }
    assert_eq!(browser.count("main a[href$='/nightly/pause']").await, 1);

    let theme = "[document.documentElement.dataset.theme]";
    let before = browser.until(theme).await;
    browser.click("#theme-form button").await;
    browser.until_with("document.documentElement.dataset.theme !== arguments[0]", before).await;
}
