//! Takes pictures of the main pages of the demo. `cargo xtask screenshots` keeps them.

use crate::browser::{Browser, Scripts, until};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The folder in which the pictures are kept; without it they are only checked.
const FOLDER: &str = "REWHEEL_SCREENSHOTS";

/// So many dead letters make an incident worth keeping a picture of.
const DEAD_LETTERS: usize = 12;

/// A PNG file begins with this, the length and the name of its first part, and its width and height.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";

/// The ending of a picture's name, the theme, and the size of the window.
const VIEWS: [(&str, &str, [u32; 2]); 3] =
    [("", "light", [1280, 860]), ("-dark", "dark", [1280, 860]), ("-phone", "light", [390, 844])];

/// A running demo; it is killed when this value is dropped.
struct Demo {
    _process: Child,
    url: String,
    client: reqwest::Client,
}

impl Demo {
    async fn start() -> Demo {
        let mut process = Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["serve", "--demo", "--store", "memory://", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next_line().await.unwrap().expect("it listens");
            if let Some((_, url)) = line.split_once("listening on ") {
                break url.trim().to_owned();
            }
        };
        // Read on, so that it does not block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Demo { _process: process, url, client }
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let answer = self.client.get(format!("{}{path}", self.url)).send().await.unwrap();
        let listed: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        listed["items"].as_array().unwrap().clone()
    }
}

/// Returns the width and the height of a PNG file.
fn size(picture: &[u8]) -> Option<[u32; 2]> {
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?));
    let sides = picture.strip_prefix(PNG)?;
    Some([number(sides)?, number(sides.get(4..)?)?])
}

#[tokio::test]
async fn the_main_pages_of_the_demo_have_pictures() {
    let folder = std::env::var_os(FOLDER);
    let dead_letters = if folder.is_some() { DEAD_LETTERS } else { 1 };
    let demo = Demo::start().await;
    let dead = "/v1/jobs?limit=100&state=dead&kind=demo-broken";
    until("jobs die", async || demo.items(dead).await.len() >= dead_letters).await;
    let job = demo.items(dead).await.swap_remove(0);
    let incidents = demo.items("/v1/incidents").await;
    let incident = incidents.iter().find(|incident| incident["kind"] == "demo-broken").unwrap();
    let id = |document: &Value| document["id"].as_str().unwrap().to_owned();
    let pages = [
        ("overview", "/ui/".to_owned()),
        ("jobs", "/ui/jobs".to_owned()),
        ("job", format!("/ui/jobs/{}", id(&job))),
        ("incident", format!("/ui/incidents/{}", id(incident))),
        ("kinds", "/ui/kinds".to_owned()),
        ("kind", "/ui/kinds/demo-outage".to_owned()),
    ];
    let browser = Browser::start(&demo.url, Scripts::On).await;
    browser.devtools("Emulation.setScrollbarsHidden", json!({ "hidden": true })).await;
    for (ending, theme, [width, height]) in VIEWS {
        browser.resize(width, height).await;
        let feature = json!({ "name": "prefers-color-scheme", "value": theme });
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
        for (name, path) in &pages {
            browser.open(path).await;
            browser.until("document.querySelector('#live[data-state=live]')").await;
            let picture = BASE64_STANDARD.decode(browser.picture().await).unwrap();
            assert_eq!(size(&picture), Some([width, height]), "{path}");
            if let Some(folder) = &folder {
                let file = Path::new(folder).join(format!("dashboard-{name}{ending}.png"));
                std::fs::write(file, picture).unwrap();
            }
        }
    }
}
