//! Tests every page with axe-core, in both themes, on a phone and on a desk.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use crate::pages::{Texts, furnish};
use crate::site::Site;
use serde_json::{Value, json};

/// The file `axe.min.js` of the npm package axe-core; `cargo xtask test` gets it.
const AXE: &str = "REWHEEL_TEST_AXE";

/// Updates of the page would change what axe looks at.
const STOP_UPDATES: &str = "window.fetch = () => new Promise(() => {});";

const FINDINGS: &str = "
    const done = arguments[arguments.length - 1];
    const finding = (rule) => rule.nodes.map((node) => `${rule.id}: ${node.html} ${node.failureSummary}`);
    axe.run().then((found) => done(found.violations.flatMap(finding)), (error) => done([String(error)]));";

#[tokio::test]
async fn axe_finds_nothing() {
    let Some(axe) = std::env::var_os(AXE) else {
        println!("not tested: accessibility ({AXE} does not name axe.min.js)");
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let site = Site::closed().await;
    let browser = site.browser().await;
    let paths = furnish(&site, &browser, &Texts::usual()).await;
    let source = json!({ "source": format!("{STOP_UPDATES}{axe}") });
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", source).await;
    let mut findings = Vec::new();
    for theme in ["light", "dark"] {
        // Colours that are on their way have a contrast of their own.
        let features = json!([
            { "name": "prefers-color-scheme", "value": theme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        for width in [360, 1200] {
            browser.resize(width, 900).await;
            for path in &paths {
                browser.open(path).await;
                let found = browser.run_async(FINDINGS, json!([])).await;
                let found = found.as_array().unwrap().iter().filter_map(Value::as_str);
                findings.extend(found.map(|one| format!("{path} {width} {theme}: {one}")));
            }
        }
    }
    assert!(findings.is_empty(), "{} findings: {findings:#?}", findings.len());
}
