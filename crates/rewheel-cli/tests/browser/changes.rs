//! Tests that an open page stays right when its object ends, or its list gets a first row.

use crate::browser::ENTER;
use crate::site::{Site, timeout};
use serde_json::{Value, json};

#[tokio::test]
async fn the_button_that_copies_the_id_stays() {
    let site = Site::open().await;
    let job = site.submit(json!({ "kind": "charge-card", "payload": {} })).await;
    let browser = site.browser().await;
    browser.open(&format!("/ui/jobs/{job}")).await;
    browser.until("!document.querySelector('[data-copy=job-id]').hidden").await;
    site.settle(1, timeout()).await;
    browser.until_in("h1", "dead").await;
    browser.click("[data-copy=job-id]").await;
    browser.until_in("[data-copy=job-id]", "copied").await;
}

#[tokio::test]
async fn an_incident_that_ends_is_no_lost_connection() {
    let site = Site::open().await;
    site.dead_letters(3).await;
    let incident = site.get("/v1/incidents").await["items"][0]["id"].clone();
    let browser = site.browser().await;
    browser.open(&format!("/ui/incidents/{}", incident.as_str().unwrap())).await;
    browser.until("document.querySelector('#live[data-state=live]')").await;
    let messages = "
        const live = document.getElementById('live');
        window.messages = [];
        const note = () => window.messages.push(live.textContent);
        new MutationObserver(note).observe(live, { childList: true, characterData: true, subtree: true });";
    browser.run(messages, json!([])).await.unwrap();
    site.post("/v1/jobs/redrive", json!({ "filter": { "kind": ["charge-card"] } })).await;
    site.settle(3, json!({ "verdict": "done" })).await;
    browser.until_in("#live", "incident").await;
    let said = browser.until("window.messages").await;
    assert!(!said.to_string().contains("No news"), "{said}");
}

#[tokio::test]
async fn an_empty_list_gets_its_first_rows() {
    let site = Site::open().await;
    let browser = site.browser().await;
    browser.open("/ui/jobs?state=dead").await;
    browser.until("document.querySelector('#live[data-state=live]')").await;
    site.dead_letters(2).await;
    // As rows, or as a line that shows them.
    browser
        .until("document.querySelector('tr[data-row]') || !document.getElementById('newer').hidden")
        .await;
}

#[tokio::test]
async fn an_operation_that_ended_cannot_be_aborted() {
    let site = Site::open().await;
    site.dead_letters(3).await;
    let canary = json!({ "filter": { "kind": ["charge-card"] }, "canary": [1] });
    let operation = site.post("/v1/jobs/redrive", canary).await["id"].clone();
    let browser = site.browser().await;
    browser.open(&format!("/ui/operations/{}", operation.as_str().unwrap())).await;
    browser.until("document.querySelector(\"a[href$='/abort']\")").await;
    site.settle(1, json!({ "verdict": "done" })).await;
    site.settle(2, json!({ "verdict": "done" })).await;
    browser.until("!document.querySelector(\"a[href$='/abort']\")").await;
}

#[tokio::test]
async fn enter_on_a_tick_changes_no_job() {
    let site = Site::open().await;
    site.dead_letters(3).await;
    let browser = site.browser().await;
    browser.open("/ui/jobs?state=dead").await;
    browser.click("tr[data-row]:nth-child(2) input").await;
    browser.press(&[ENTER]).await;
    browser.press(&["?"]).await;
    browser.until("location.pathname === '/ui/help'").await;
    assert_eq!(site.jobs("dead").await, 3);
    let audit = site.get("/v1/audit").await;
    let is_retry = |entry: &&Value| entry["what"] == "retry";
    assert_eq!(audit["items"].as_array().unwrap().iter().find(is_retry), None);
}
