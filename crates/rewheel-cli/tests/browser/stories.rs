//! What visitors do, step by step, with and without JavaScript.

use crate::browser::{Browser, ENTER};
use crate::site::{ADMIN, Site};
use serde_json::json;

/// From the overview to a canary redrive, which succeeds.
pub(crate) async fn redrive_with_a_canary(site: &Site, browser: &Browser) {
    site.dead_letters(15).await;
    browser.open("/ui/").await;
    browser.click("main a[href*='/ui/incidents/']").await;
    browser.until_in("h1", "charge-card").await;
    browser.until_text("no answer of pay.example").await;
    // A page of the preview changes nothing.
    browser.click("main a[href*='canary=1']").await;
    browser.until_in("h1", "Redrive 15").await;
    assert_eq!(site.jobs("dead").await, 15);
    let steps = browser.until("[document.getElementById('canary').value]").await;
    assert_eq!(steps, json!(["1,10,100"]));
    browser.click("form[action$='/bulk/redrive'] button").await;
    browser.until("location.pathname.startsWith('/ui/operations/')").await;
    let done = json!({ "verdict": "done" });
    // The second step starts only after the first has succeeded.
    site.settle(1, done.clone()).await;
    site.settle(10, done.clone()).await;
    site.settle(4, done).await;
    browser.reload_until_text("15 of 15").await;
    assert_eq!(site.jobs("succeeded").await, 15);
    browser.open("/ui/incidents").await;
    assert_eq!(browser.count("a[href*='/ui/incidents/']").await, 0);
}

/// Finds a job, edits it in two windows, of which the second is too late, and retries it.
pub(crate) async fn find_and_edit(site: &Site, browser: &Browser) {
    for order in [16, 17, 18] {
        let job = json!({ "kind": "charge-card", "key": format!("order-{order}"), "payload": { "amount": 100 } });
        site.submit(job).await;
    }
    site.settle(3, crate::site::timeout()).await;
    browser.open("/ui/jobs").await;
    browser.fill("#filter", &format!("state:dead key:order-17{ENTER}")).await;
    browser.until("location.search.includes('key=order-17')").await;
    assert_eq!(browser.count("tr[data-row]").await, 1);
    browser.click("tr[data-row] a.id").await;
    browser.until_in("h1", "order-17").await;
    browser.click("main a[href$='/edit']").await;
    browser.until("document.getElementById('payload')").await;
    let (edit, first) = (browser.path().await, browser.window().await);
    let second = browser.new_window().await;
    browser.open(&edit).await;
    browser.fill("#payload", "{\"amount\": 90}").await;
    browser.click("button[value=diff]").await;
    browser.until_in("pre:has(.d-new)", "90").await;

    browser.show(&first).await;
    browser.fill("#payload", "{\"amount\": 120}").await;
    browser.click("button[value=diff]").await;
    browser.until_in("pre:has(.d-old)", "100").await;
    browser.until_in("pre:has(.d-new)", "120").await;
    let path = edit.strip_prefix("/ui").unwrap().strip_suffix("/edit").unwrap();
    let path = format!("/v1{path}");
    assert_eq!(site.get(&path).await["payload"]["amount"], 100, "a diff saves nothing");
    browser.click("button[value=save]").await;
    browser.until("!location.pathname.endsWith('/edit')").await;
    assert_eq!(site.get(&path).await["payload"]["amount"], 120);

    browser.show(&second).await;
    // The form is of the version that the first window changed.
    browser.click("button[value=save]").await;
    browser.until_in("main [role=alert]", "The job changed after this page was opened").await;
    assert_eq!(site.get(&path).await["payload"]["amount"], 120);
    browser.click("button[value=diff]").await;
    browser.until_in("pre:has(.d-old)", "120").await;
    browser.click("button[value=save-retry]").await;
    browser.until("!location.pathname.endsWith('/edit')").await;
    site.settle(1, json!({ "verdict": "done" })).await;
    let job = site.get(&path).await;
    assert_eq!((&job["payload"]["amount"], &job["state"]), (&json!(90), &json!("succeeded")));
}

/// Parks a kind by hand, and lets it run again.
pub(crate) async fn park_and_reset(browser: &Browser) {
    browser.open("/ui/kinds").await;
    browser.click("main a[href$='/ui/kinds/mail']").await;
    for (verb, state) in [("breaker-open", "parked"), ("breaker-reset", "closed")] {
        browser.click(&format!("main a[href$='/kinds/mail/{verb}']")).await;
        browser.click(&format!("main form[action$='/kinds/mail/{verb}'] button")).await;
        browser.until("location.pathname === '/ui/kinds/mail'").await;
        browser.until_in("#head", state).await;
    }
}

/// Signs in on the way to a page, and out.
pub(crate) async fn sign_in_and_out(browser: &Browser) {
    browser.open("/ui/jobs?state=dead").await;
    browser.until("location.pathname === '/ui/sign-in'").await;
    browser.fill("#token", "rw_wrong").await;
    browser.click("main form button").await;
    browser.until_in("main [role=alert]", "token").await;
    browser.fill("#token", &format!("{ADMIN}{ENTER}")).await;
    browser.until("location.pathname === '/ui/jobs'").await;
    assert_eq!(browser.path().await, "/ui/jobs?state=dead");
    browser.click("form[action$='/sign-out'] button").await;
    browser.until("location.pathname === '/ui/sign-in'").await;
    browser.open("/ui/").await;
    browser.until("location.pathname === '/ui/sign-in'").await;
}

pub(crate) async fn sign_in(browser: &Browser) {
    browser.open("/ui/sign-in").await;
    browser.fill("#token", &format!("{ADMIN}{ENTER}")).await;
    browser.until("location.pathname === '/ui/'").await;
}

/// Creates a token, which is shown once.
pub(crate) async fn create_a_token(site: &Site, browser: &Browser) {
    sign_in(browser).await;
    browser.open("/ui/tokens").await;
    browser.fill("#name", "ci").await;
    browser.click("input[name=role][value=read]").await;
    browser.click("main form[action$='/ui/tokens'] button").await;
    let token = browser.text("#new-token").await;
    assert!(token.starts_with("rw_"), "{token}");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let used = client.get(format!("{}/v1/stats", site.url())).bearer_auth(&token);
    assert_eq!(used.send().await.unwrap().status(), 200);
    browser.open("/ui/tokens").await;
    let page = browser.until("[document.documentElement.outerHTML]").await;
    let page = page[0].as_str().unwrap();
    assert!(page.contains(">ci<") && !page.contains(&token), "{page}");
}
