//! Tests what visitors do, with JavaScript.

use crate::browser::Browser;
use crate::site::Site;
use crate::stories;

/// Fails if the console has messages other than expected statuses of pages.
async fn is_quiet(browser: &Browser, expected: &[&str]) {
    let complaints = browser.complaints().await;
    let is_known = |line: &String| expected.iter().any(|status| line.contains(status));
    let unknown: Vec<_> = complaints.iter().filter(|line| !is_known(line)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[tokio::test]
async fn from_the_overview_to_a_canary_redrive() {
    let site = Site::open().await;
    let browser = site.browser().await;
    stories::redrive_with_a_canary(&site, &browser).await;
    is_quiet(&browser, &[]).await;
}

#[tokio::test]
async fn a_job_is_found_edited_and_retried() {
    let site = Site::open().await;
    let browser = site.browser().await;
    stories::find_and_edit(&site, &browser).await;
    is_quiet(&browser, &["status of 412"]).await;
}

#[tokio::test]
async fn a_kind_is_parked_by_hand() {
    let site = Site::open().await;
    let browser = site.browser().await;
    stories::park_and_reset(&browser).await;
    is_quiet(&browser, &[]).await;
}

#[tokio::test]
async fn a_session_begins_and_ends() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    stories::sign_in_and_out(&browser).await;
    // A script of a page cannot read the session.
    stories::sign_in(&browser).await;
    let cookies = browser.until("[document.cookie]").await;
    let cookies = cookies[0].as_str().unwrap();
    assert!(!cookies.contains("session") && !cookies.contains("form"), "{cookies}");
}

#[tokio::test]
async fn a_new_token_is_shown_once() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    stories::create_a_token(&site, &browser).await;
    is_quiet(&browser, &[]).await;
}
