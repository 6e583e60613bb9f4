//! Tests the keyboard.

use crate::browser::{Browser, ENTER, ESCAPE};
use crate::site::Site;
use serde_json::json;

async fn focused(browser: &Browser, css: &str) {
    browser.until_with("document.activeElement.matches(arguments[0])", json!([css])).await;
}

/// Waits until a page is there, and its script listens to keys.
async fn until_at(browser: &Browser, path: &str) {
    let is_there = "location.pathname === arguments[0] && document.readyState === 'complete'";
    browser.until_with(is_there, json!([path])).await;
}

#[tokio::test]
async fn keys_open_pages() {
    let site = Site::open().await;
    let browser = site.browser().await;
    let places = [
        ("j", "/ui/jobs"),
        ("i", "/ui/incidents"),
        ("k", "/ui/kinds"),
        ("p", "/ui/operations"),
        ("s", "/ui/schedules"),
        ("f", "/ui/fleet"),
        ("a", "/ui/audit"),
        ("o", "/ui/"),
    ];
    browser.open("/ui/").await;
    for (key, path) in places {
        browser.press(&["g", key]).await;
        until_at(&browser, path).await;
    }
    browser.press(&["?"]).await;
    browser.until("location.pathname === '/ui/help'").await;
}

#[tokio::test]
async fn rows_are_walked_ticked_and_opened() {
    let site = Site::open().await;
    site.charge(3).await;
    let browser = site.browser().await;
    browser.open("/ui/jobs").await;
    let row = |number: usize| format!("document.querySelectorAll('tr[data-row]')[{number}]");
    browser.press(&["j", "j", "j", "k"]).await;
    browser.until(&format!("{}.matches('.here')", row(1))).await;
    assert_eq!(browser.count("tr.here").await, 1);
    browser.press(&["x"]).await;
    browser.until(&format!("{}.querySelector(':checked')", row(1))).await;
    assert_eq!(browser.count(":checked").await, 1);
    browser.press(&["x"]).await;
    browser.until(&format!("!{}.querySelector(':checked')", row(1))).await;
    let id = browser.until(&format!("[{}.querySelector('a.id').title]", row(1))).await;
    browser.press(&[ENTER]).await;
    until_at(&browser, &format!("/ui/jobs/{}", id[0].as_str().unwrap())).await;
    browser.press(&["e"]).await;
    browser.until("location.pathname.endsWith('/edit')").await;
}

#[tokio::test]
async fn a_field_takes_every_key_until_escape() {
    let site = Site::open().await;
    let browser = site.browser().await;
    browser.open("/ui/jobs").await;
    browser.press(&["/"]).await;
    focused(&browser, "#filter").await;
    browser.press(&["g", "k", "?"]).await;
    browser.until("document.getElementById('filter').value === 'gk?'").await;
    browser.press(&[ESCAPE]).await;
    focused(&browser, "body").await;
    browser.press(&["?"]).await;
    browser.until("location.pathname === '/ui/help'").await;

    browser.open("/ui/preferences").await;
    browser.click("input[name=keys]").await;
    browser.click("main form button.primary").await;
    browser.until("document.body.dataset.keys === 'false'").await;
    let watch = "addEventListener('keydown', (event) => { window.taken = [event.key, event.defaultPrevented]; })";
    browser.run(watch, json!([])).await.unwrap();
    browser.press(&["?"]).await;
    assert_eq!(browser.until("window.taken").await, json!(["?", false]), "keys are off");
}

#[tokio::test]
async fn an_incident_is_redriven_by_keys_alone() {
    let site = Site::open().await;
    site.dead_letters(3).await;
    let browser = site.browser().await;
    browser.open("/ui/").await;
    browser.press(&["g", "i"]).await;
    until_at(&browser, "/ui/incidents").await;
    browser.press(&["j", ENTER]).await;
    browser
        .until(
            "location.pathname.startsWith('/ui/incidents/') && document.readyState === 'complete'",
        )
        .await;
    browser.press(&["r"]).await;
    browser.until("location.pathname === '/ui/bulk/redrive'").await;
    assert_eq!(site.jobs("dead").await, 3, "no key changes anything");
    let button = "document.activeElement.matches(\"form[action$='/bulk/redrive'] button\")";
    for _ in 0..60 {
        if browser.run(&format!("return {button}"), json!([])).await.unwrap() == json!(true) {
            break;
        }
        browser.press(&["\u{e004}"]).await;
    }
    browser.press(&[ENTER]).await;
    browser.until("location.pathname.startsWith('/ui/operations/')").await;
    site.settle(1, json!({ "verdict": "done" })).await;
    site.settle(2, json!({ "verdict": "done" })).await;
}
