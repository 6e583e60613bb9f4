//! Tests what pages load.

use crate::pages::{Texts, furnish};
use crate::site::Site;
use serde_json::Value;
use std::collections::HashMap;

/// The most that the first page may load, compressed.
const FIRST_LOAD_MAX: f64 = 60_000.0;

/// Returns the URL and the size of each request. A stream of events has no size before its end.
fn loaded(events: &[Value]) -> Vec<(String, f64)> {
    let mut requests = HashMap::new();
    for event in events {
        let params = &event["params"];
        let Some(id) = params["requestId"].as_str() else { continue };
        match event["method"].as_str().unwrap() {
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap().to_owned();
                // The browser's own pages are `chrome:`.
                if url.starts_with("http") {
                    requests.insert(id, (url, 0.0));
                }
            }
            "Network.loadingFinished" => {
                let size = params["encodedDataLength"].as_f64().unwrap();
                requests.entry(id).and_modify(|request| request.1 = size);
            }
            _ => {}
        }
    }
    requests.into_values().collect()
}

#[tokio::test]
async fn the_first_page_is_small() {
    let site = Site::open().await;
    site.dead_letters(12).await;
    let browser = site.browser().await;
    browser.open("/ui/").await;
    browser.until("document.querySelector('#live[data-state=live]')").await;
    let requests = loaded(&browser.network().await);
    let size: f64 = requests.iter().map(|(_, size)| size).sum();
    let has =
        |ending: &str| requests.iter().any(|(url, size)| url.ends_with(ending) && *size > 1_000.0);
    assert!(has("/ui/") && has(".css") && has(".js"), "{requests:#?}");
    assert!(size < FIRST_LOAD_MAX, "{size} bytes: {requests:#?}");
}

#[tokio::test]
async fn pages_load_nothing_from_elsewhere_and_break_no_policy() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    let paths = furnish(&site, &browser, &Texts::usual()).await;
    browser.complaints().await;
    for path in &paths {
        browser.open(path).await;
    }
    let requests = loaded(&browser.network().await);
    assert!(requests.len() > paths.len());
    let elsewhere: Vec<_> =
        requests.iter().filter(|(url, _)| !url.starts_with(&format!("{}/", site.url()))).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
    let complaints = browser.complaints().await;
    let is_status = |line: &&String| line.contains("the server responded with a status of 4");
    let (statuses, others): (Vec<_>, Vec<_>) = complaints.iter().partition(is_status);
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(statuses.len(), 2, "no-such-page, and the filter that is wrong: {statuses:#?}");
}
