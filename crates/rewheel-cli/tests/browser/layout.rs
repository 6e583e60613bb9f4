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

/// A drawing has a size of its own, which the page must not take over. The pages of a new server have no chart yet, so one is added.
#[tokio::test]
async fn a_chart_is_not_higher_than_its_place() {
    let site = Site::closed().await;
    let browser = site.browser().await;
    browser.open("/ui/").await;
    let added = "(() => { const figure = document.createElement('figure'); figure.className = 'chart'; \
                 figure.innerHTML = '<div class=\"plot\"><span class=\"axis\"></span><svg viewBox=\"0 0 90 100\" preserveAspectRatio=\"none\"></svg></div>'; \
                 document.querySelector('main').append(figure); \
                 return [figure.querySelector('svg').getBoundingClientRect().height] })()";
    let height = browser.until(added).await;
    assert!(height[0].as_f64().is_some_and(|height| (50.0..150.0).contains(&height)), "{height}");
}
