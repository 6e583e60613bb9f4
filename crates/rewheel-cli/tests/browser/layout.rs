//! Tests that no page scrolls sideways on a phone.

use crate::pages::{Texts, furnish};
use crate::site::Site;

#[tokio::test]
async fn pages_fit_the_width_of_a_phone() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    let long = Texts {
        key: "k".repeat(200),
        tenant: "t".repeat(60),
        message: format!("{} {}", "m".repeat(3_000), "{\"error\":\"a\"}".repeat(40)),
    };
    let paths = furnish(&site, &browser, &long).await;
    let mut wide = Vec::new();
    for width in [320, 360] {
        browser.resize(width, 740).await;
        for path in &paths {
            browser.open(path).await;
            let widths = browser.until("[document.documentElement.scrollWidth, innerWidth]").await;
            if widths[0].as_u64() > widths[1].as_u64() {
                wide.push(format!("{path} at {width}: {widths}"));
            }
        }
    }
    assert!(wide.is_empty(), "these pages scroll sideways: {wide:#?}");
}
