//! A browser as a visitor uses it: open, look, click, type.

use crate::webdriver::{Refused, Session};
use crate::{PATIENCE, POLL};
use serde_json::{Value, json};
use std::time::Duration;

/// The name of an element's id in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys without a character.
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";

/// Whether pages may run scripts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scripts {
    On,
    Off,
}

/// A browser whose current window shows a page of a server.
pub(crate) struct Browser {
    session: Session,
    /// The server's address, without a slash at its end.
    url: String,
    scripts: Scripts,
}

impl Browser {
    pub(crate) async fn start(url: &str, scripts: Scripts) -> Browser {
        let session = Session::start().await;
        let browser = Browser { session, url: url.to_owned(), scripts };
        browser.apply_scripts().await;
        browser
    }

    async fn apply_scripts(&self) {
        if self.scripts == Scripts::Off {
            let off = json!({ "value": true });
            self.devtools("Emulation.setScriptExecutionDisabled", off).await;
        }
    }

    /// Opens a page of the server.
    pub(crate) async fn open(&self, path: &str) {
        let url = format!("{}{path}", self.url);
        self.must("/url", json!({ "url": url })).await;
    }

    pub(crate) async fn reload(&self) {
        self.must("/refresh", json!({})).await;
    }

    /// Returns the path and the query of the page.
    pub(crate) async fn path(&self) -> String {
        let url = self.session.get("/url").await.unwrap();
        url.as_str().unwrap().strip_prefix(&self.url).unwrap_or("another server").to_owned()
    }

    /// Opens another window, in which the next commands act.
    pub(crate) async fn new_window(&self) -> String {
        let window = self.must("/window/new", json!({ "type": "window" })).await;
        let handle = window["handle"].as_str().unwrap().to_owned();
        self.show(&handle).await;
        self.apply_scripts().await;
        handle
    }

    pub(crate) async fn window(&self) -> String {
        self.session.get("/window").await.unwrap().as_str().unwrap().to_owned()
    }

    /// Acts in another window from now on.
    pub(crate) async fn show(&self, window: &str) {
        self.must("/window", json!({ "handle": window })).await;
    }

    /// Runs the body of a function in the page, also if pages may not run scripts.
    pub(crate) async fn run(&self, script: &str, args: Value) -> Result<Value, Refused> {
        self.session.post("/execute/sync", json!({ "script": script, "args": args })).await
    }

    /// Runs the body of a function that passes its result to its last argument.
    pub(crate) async fn run_async(&self, script: &str, args: Value) -> Value {
        self.must("/execute/async", json!({ "script": script, "args": args })).await
    }

    /// Sends a command of the protocol of developer tools.
    pub(crate) async fn devtools(&self, command: &str, params: Value) -> Value {
        self.must("/goog/cdp/execute", json!({ "cmd": command, "params": params })).await
    }

    /// Makes the window of a phone, or of another size.
    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Waits until an expression of JavaScript is true, and returns its value.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) -> impl Future<Output = Value> {
        self.until_with(expression, json!([]))
    }

    /// As [`until`](Browser::until), with `arguments`.
    #[track_caller]
    pub(crate) fn until_with(&self, expression: &str, args: Value) -> impl Future<Output = Value> {
        let (caller, script) = (std::panic::Location::caller(), format!("return {expression}"));
        async move {
            let mut seen = String::new();
            let wait = async {
                loop {
                    // A page that is being loaded has no elements, or not these.
                    match self.run(&script, args.clone()).await {
                        Ok(value) if is_true(&value) => return value,
                        Ok(value) => seen = value.to_string(),
                        Err(refused) => seen = refused.to_string(),
                    }
                    tokio::time::sleep(POLL).await;
                }
            };
            let waited = tokio::time::timeout(PATIENCE, wait).await;
            match waited {
                Ok(value) => value,
                Err(_) => panic!("{caller}: {script} {args}: {seen} on {}", self.page().await),
            }
        }
    }

    /// Waits until the page contains a text.
    #[track_caller]
    pub(crate) fn until_text(&self, text: &str) -> impl Future<Output = Value> {
        let has = "document.querySelector('main').innerText.includes(arguments[0])";
        self.until_with(has, json!([text]))
    }

    /// Waits until an element's text contains a text.
    #[track_caller]
    pub(crate) fn until_in(&self, css: &str, text: &str) -> impl Future<Output = Value> {
        let has = "document.querySelector(arguments[0]).innerText.includes(arguments[1])";
        self.until_with(has, json!([css, text]))
    }

    /// Loads the page again until it contains a text.
    #[track_caller]
    pub(crate) fn reload_until_text(&self, text: &str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let wait = async {
                while !self.text("main").await.contains(text) {
                    tokio::time::sleep(POLL).await;
                    self.reload().await;
                }
            };
            if tokio::time::timeout(PATIENCE, wait).await.is_err() {
                panic!("{caller}: no `{text}` on {}", self.page().await);
            }
        }
    }

    /// Returns the text of an element.
    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> impl Future<Output = String> {
        let text =
            self.until_with("[document.querySelector(arguments[0]).innerText]", json!([css]));
        async move { text.await[0].as_str().unwrap().to_owned() }
    }

    /// Returns the number of elements.
    pub(crate) async fn count(&self, css: &str) -> u64 {
        let count = "return document.querySelectorAll(arguments[0]).length";
        self.run(count, json!([css])).await.unwrap().as_u64().unwrap()
    }

    /// Presses the left button on an element, once it is shown.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) -> impl Future<Output = ()> {
        self.act(css, "click", json!({}))
    }

    /// Replaces the text of a field.
    #[track_caller]
    pub(crate) fn fill(&self, css: &str, text: &str) -> impl Future<Output = ()> {
        let clear = self.act(css, "clear", json!({}));
        let write = self.act(css, "value", json!({ "text": text }));
        async move {
            clear.await;
            write.await;
        }
    }

    /// Acts on an element. An update of the page may replace it at any moment: then the action did not happen, and is repeated.
    #[track_caller]
    fn act(&self, css: &str, verb: &str, body: Value) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let mut seen = None;
            let wait = async {
                loop {
                    match self.try_to_act(css, verb, &body).await {
                        Ok(()) => return,
                        Err(refused) => seen = Some(refused),
                    }
                    tokio::time::sleep(POLL).await;
                }
            };
            if tokio::time::timeout(PATIENCE, wait).await.is_err() {
                panic!("{caller}: {verb} {css}: {seen:?} on {}", self.page().await);
            }
        }
    }

    async fn try_to_act(&self, css: &str, verb: &str, body: &Value) -> Result<(), Refused> {
        let element = self.find(css).await?;
        let id = element[ELEMENT].as_str().unwrap();
        self.session.post(&format!("/element/{id}/{verb}"), body.clone()).await.map(drop)
    }

    async fn find(&self, css: &str) -> Result<Value, Refused> {
        self.session.post("/element", json!({ "using": "css selector", "value": css })).await
    }

    /// Moves the pointer to the middle of an element.
    pub(crate) async fn hover(&self, css: &str) {
        self.until_with("document.querySelector(arguments[0])", json!([css])).await;
        let element = self.find(css).await.unwrap();
        self.point(json!({ "origin": element, "x": 0, "y": 0 })).await;
    }

    /// Moves the pointer to a corner of the window.
    pub(crate) async fn leave(&self) {
        self.point(json!({ "origin": "viewport", "x": 0, "y": 0 })).await;
    }

    async fn point(&self, to: Value) {
        let mut step = json!({ "type": "pointerMove", "duration": 0 });
        for (name, value) in to.as_object().unwrap() {
            step[name] = value.clone();
        }
        let pointer = json!({ "type": "pointer", "id": "mouse", "actions": [step] });
        self.must("/actions", json!({ "actions": [pointer] })).await;
    }

    /// Presses keys, one after the other.
    pub(crate) async fn press(&self, keys: &[&str]) {
        let press = |key: &&str| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let steps: Vec<Value> = keys.iter().flat_map(press).collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": steps });
        self.must("/actions", json!({ "actions": [keyboard] })).await;
    }

    /// Returns the console's messages since the last call: errors of scripts, violations of the content security policy, failed requests.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.must("/se/log", json!({ "type": "browser" })).await;
        let text = |entry: &Value| entry["message"].as_str().unwrap().to_owned();
        // The others are advice.
        let is_wrong = |entry: &&Value| entry["level"] == "SEVERE" || entry["level"] == "WARNING";
        log.as_array().unwrap().iter().filter(is_wrong).map(text).collect()
    }

    /// Returns the network's events since the last call, with the names of developer tools.
    pub(crate) async fn network(&self) -> Vec<Value> {
        let log = self.must("/se/log", json!({ "type": "performance" })).await;
        let event = |entry: &Value| {
            let text = entry["message"].as_str().unwrap();
            serde_json::from_str::<Value>(text).unwrap()["message"].take()
        };
        log.as_array().unwrap().iter().map(event).collect()
    }

    /// Returns a picture of the window as PNG, in base64.
    pub(crate) async fn picture(&self) -> String {
        self.session.get("/screenshot").await.unwrap().as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn must(&self, command: &str, body: Value) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let done = self.session.post(command, body).await;
            done.unwrap_or_else(|refused| panic!("{caller}: {command}: {refused}"))
        }
    }

    /// Describes the page for the message of a failed test.
    async fn page(&self) -> String {
        let text = self.run("return document.body.innerText", json!([])).await;
        format!(
            "{}:\n{}",
            self.path().await,
            text.map_or_else(|e| e.to_string(), |t| t.to_string())
        )
    }
}

/// As JavaScript decides.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => true,
    }
}

/// Waits until a condition holds that the browser does not know.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(POLL).await;
        }
    };
    let limit: Duration = PATIENCE;
    assert!(tokio::time::timeout(limit, wait).await.is_ok(), "{what}: it never happened");
}
