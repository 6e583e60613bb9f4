//! Tests that open pages update themselves, and that nothing changes under the pointer.

use crate::browser::{Browser, Scripts};
use crate::relay::Relay;
use crate::site::{Site, timeout};
use crate::stories;
use serde_json::{Value, json};

/// Opens the list of five waiting jobs.
async fn list(site: &Site) -> Browser {
    site.charge(5).await;
    let browser = site.browser().await;
    browser.open("/ui/jobs").await;
    assert_eq!(browser.count("tr[data-row]").await, 5);
    browser
}

/// Ends the five jobs, and submits others.
async fn change(site: &Site) {
    site.settle(5, timeout()).await;
    site.charge(20).await;
}

/// Waits until the page has seen a change, and kept it back.
async fn until_frozen(browser: &Browser) {
    browser.until("document.querySelector('#live[data-state=frozen]')").await;
    assert_eq!(browser.count("tr[data-row] .s-dead").await, 0);
}

async fn until_changed(browser: &Browser) {
    browser.until("document.querySelectorAll('tr[data-row] .s-dead').length === 5").await;
}

async fn ids(browser: &Browser) -> Value {
    browser
        .until("[...document.querySelectorAll('tr[data-row] a.id')].map((link) => link.title)")
        .await
}

#[tokio::test]
async fn rows_change_in_place_and_not_under_the_pointer() {
    let site = Site::open().await;
    let browser = list(&site).await;
    // Looks at the box of a row in every frame.
    let watch = "
        const row = document.querySelectorAll('tr[data-row]')[2];
        const box = () => JSON.stringify(row.getBoundingClientRect()) + row.isConnected;
        const first = box();
        window.moves = 0;
        const look = () => { if (box() !== first) window.moves += 1; requestAnimationFrame(look); };
        look();
        return first;";
    browser.run(watch, json!([])).await.unwrap();
    let before = ids(&browser).await;
    browser.hover("tr[data-row]:nth-child(3) .why").await;
    change(&site).await;
    until_frozen(&browser).await;
    assert_eq!(ids(&browser).await, before);
    browser.leave().await;
    until_changed(&browser).await;
    assert_eq!(ids(&browser).await, before, "rows keep their order, and new ones wait");
    browser.until("!document.getElementById('newer').hidden").await;
    assert_eq!(browser.until("[window.moves]").await, json!([0]));
    browser.click("#newer a").await;
    browser.until("document.querySelectorAll('tr[data-row]').length === 25").await;
}

/// Waits until the page has loaded itself twice after changes: it has seen at least one of them whole.
async fn see_changes(site: &Site, browser: &Browser) {
    let loads = "performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').length";
    for _ in 0..2 {
        let before = browser.until(&format!("[{loads}]")).await;
        site.charge(1).await;
        browser.until_with(&format!("{loads} > arguments[0]"), before).await;
    }
}

#[tokio::test]
async fn selected_text_and_ticks_stay() {
    let site = Site::open().await;
    let browser = list(&site).await;
    browser.click("tr[data-row]:nth-child(4) input").await;
    let select = "document.activeElement.blur();
        getSelection().selectAllChildren(document.querySelectorAll('tr[data-row] .mark')[1])";
    browser.run(select, json!([])).await.unwrap();
    browser.leave().await;
    change(&site).await;
    until_frozen(&browser).await;
    browser.until("getSelection().toString().includes('scheduled')").await;
    browser.run("getSelection().removeAllRanges()", json!([])).await.unwrap();
    // Now only the tick keeps the rows as they are.
    see_changes(&site, &browser).await;
    until_frozen(&browser).await;
    browser.click("tr[data-row]:nth-child(4) input:checked").await;
    browser.run("document.activeElement.blur()", json!([])).await.unwrap();
    browser.leave().await;
    until_changed(&browser).await;
}

#[tokio::test]
async fn a_selection_alone_keeps_its_rows() {
    let site = Site::open().await;
    let browser = list(&site).await;
    let select =
        "getSelection().selectAllChildren(document.querySelectorAll('tr[data-row] .mark')[1])";
    browser.run(select, json!([])).await.unwrap();
    change(&site).await;
    see_changes(&site, &browser).await;
    until_frozen(&browser).await;
    browser.until("getSelection().toString().includes('scheduled')").await;
    browser.run("getSelection().removeAllRanges()", json!([])).await.unwrap();
    until_changed(&browser).await;
}

#[tokio::test]
async fn a_lost_connection_is_a_message_and_ends() {
    let site = Site::open().await;
    site.charge(5).await;
    let relay = Relay::to(site.url()).await;
    let browser = Browser::start(&relay.url, Scripts::On).await;
    browser.open("/ui/jobs").await;
    browser.until("document.querySelector('#live[data-state=live]')").await;
    relay.cut();
    browser.until("document.querySelector('#live[data-state=lost]')").await;
    browser.until_in("#live", "No news since").await;
    assert_eq!(browser.count("tr[data-row]").await, 5, "the old numbers stay");
    site.settle(5, timeout()).await;
    relay.mend();
    until_changed(&browser).await;
    browser.until("document.querySelector('#live[data-state=live]')").await;
}

#[tokio::test]
async fn a_revoked_session_is_a_message_with_a_way_back() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    stories::sign_in(&browser).await;
    browser.open("/ui/jobs?state=dead").await;
    browser.until("document.querySelector('#live[data-state=live]')").await;
    let tokens = site.get("/v1/tokens").await;
    let mut tokens = tokens["items"].as_array().unwrap().iter();
    let session = tokens.find(|token| token["name"].as_str().unwrap().starts_with("session."));
    let id = session.unwrap()["id"].as_str().unwrap();
    site.post(&format!("/v1/tokens/{id}/revoke"), Value::Null).await;
    browser.until_in("#live", "Signed out").await;
    browser.click("#live a").await;
    browser.until("location.pathname === '/ui/sign-in'").await;
    browser.until("document.querySelector('[name=next]').value.includes('state=dead')").await;
}

#[tokio::test]
async fn eight_windows_load_and_update() {
    let site = Site::open().await;
    let job = site.submit(json!({ "kind": "charge-card", "payload": {} })).await;
    let browser = site.browser().await;
    let mut windows = vec![browser.window().await];
    for _ in 1..8 {
        windows.push(browser.new_window().await);
    }
    for window in &windows {
        browser.show(window).await;
        browser.open(&format!("/ui/jobs/{job}")).await;
        browser.run("window.isOld = true", json!([])).await.unwrap();
    }
    site.settle(1, timeout()).await;
    for window in &windows {
        browser.show(window).await;
        browser.until_in("h1", "dead").await;
        browser.until("window.isOld").await;
    }
}
