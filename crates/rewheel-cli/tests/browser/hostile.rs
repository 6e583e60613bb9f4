//! Tests that stored texts never run as scripts.

use crate::browser::Browser;
use crate::pages::{Texts, furnish};
use crate::site::Site;
use serde_json::json;

/// Ends elements and attributes, and leaves a trace if any part of it runs.
const HOSTILE: &str = "</textarea></title></pre><script>sessionStorage.ran=1</script><img src=x onerror=\"sessionStorage.ran=2\">\
                       \" onfocus=\"sessionStorage.ran=3\" autofocus x=\"' onmouseover='sessionStorage.ran=4 \u{202e}<svg onload=sessionStorage.ran=5>";

/// The same for a field of 128 bytes.
const SHORT: &str = "\"><script>sessionStorage.ran=6</script><img src=x onerror=sessionStorage.ran=7>' onfocus='sessionStorage.ran=8";

/// Does to each element what could start its handlers, and returns what must not be on a page.
const PROVOKE: &str = "
    for (const details of document.querySelectorAll('details')) details.open = true;
    for (const element of document.querySelectorAll('*')) {
        element.focus?.();
        for (const type of ['mouseover', 'mouseenter', 'pointerover']) element.dispatchEvent(new Event(type));
    }
    const wrong = [...document.querySelectorAll('img, iframe, object, embed, script:not([src])')];
    const handler = (element) => [...element.attributes].some((one) => one.name.startsWith('on'));
    wrong.push(...[...document.querySelectorAll('*')].filter(handler));
    wrong.push(...[...document.links].filter((link) => !link.protocol.startsWith('http')));
    return wrong.map((element) => element.outerHTML);";

fn encoded(text: &str) -> String {
    let byte = |byte: u8| format!("%{byte:02x}");
    text.bytes().map(byte).collect()
}

async fn provoke(browser: &Browser, path: &str) {
    browser.open(path).await;
    let wrong = browser.run(PROVOKE, json!([])).await.unwrap();
    assert_eq!(wrong, json!([]), "{path}");
    let ran = browser.run("return sessionStorage.ran ?? null", json!([])).await.unwrap();
    assert!(ran.is_null(), "{path}: script {ran} ran");
}

#[tokio::test]
async fn texts_of_jobs_do_not_run() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    let owned = |text: &str| text.to_owned();
    let texts = Texts { key: owned(HOSTILE), tenant: owned(SHORT), message: owned(HOSTILE) };
    let mut paths = furnish(&site, &browser, &texts).await;
    let text = encoded(HOSTILE);
    paths.extend([
        format!("/ui/jobs?filter={text}"),
        format!("/ui/jobs?q={text}"),
        format!("/ui/jobs?key={text}"),
        format!("/ui/jobs?tenant={text}&kind={text}"),
        format!("/ui/jobs/{text}"),
        format!("/ui/kinds/{text}"),
        format!("/ui/incidents/{text}"),
        format!("/ui/incidents?kind={text}"),
        format!("/ui/operations/{text}"),
        format!("/ui/audit?who={text}&what={text}"),
        format!("/ui/bulk/cancel?key={text}"),
        format!("/ui/sign-in?next={text}"),
        "/ui/sign-in?next=javascript:sessionStorage.ran=9".to_owned(),
        format!("/ui/{text}"),
    ]);
    browser.complaints().await;
    for path in &paths {
        provoke(&browser, path).await;
    }
    // A script that the policy stopped would be a message of the console.
    let complaints = browser.complaints().await;
    let is_status = |line: &&String| line.contains("the server responded with a status of 4");
    let others: Vec<_> = complaints.iter().filter(|line| !is_status(line)).collect();
    assert!(others.is_empty(), "{others:#?}");

    // The test would notice: the console has a message of markup that is markup.
    let markup = "document.body.insertAdjacentHTML('beforeend', arguments[0])";
    browser.run(markup, json!([HOSTILE])).await.unwrap();
    browser.until("document.querySelector('img').complete").await;
    let complaints = browser.complaints().await;
    assert!(
        complaints.iter().any(|line| line.contains("Content Security Policy")),
        "{complaints:#?}"
    );
}
