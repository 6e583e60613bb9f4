//! Tests that secrets, control characters and mark-up do not reach the output unescaped.

use super::server::{Attack, Server};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The response of a hostile callee: terminal commands, forged log lines, bidirectional text, and chat markup.
const HOSTILE: &str = "gone\x1b[2J\x1b]0;owned\x07\r\n ERROR forged line\u{9b}31m\u{202e}desrever\u{2028}next\u{7f} \
                       <!channel> <@U0123> <http://evil.example|click> & <at user_id=\"all\"></at> [click](http://evil.example) @all";

/// A server that records its requests.
struct Stub {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    _serving: JoinSet<()>,
}

#[derive(Clone, Debug)]
struct Request {
    uri: Uri,
    headers: HeaderMap,
    body: String,
}

type Respond = Arc<dyn Fn(usize, &Request) -> (StatusCode, String) + Send + Sync>;

impl Stub {
    /// Answers each request; `respond` gets the number of the request, from 1.
    async fn start(
        respond: impl Fn(usize, &Request) -> (StatusCode, String) + Send + Sync + 'static,
    ) -> Stub {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let respond: Respond = Arc::new(respond);
        let state = (Arc::clone(&seen), respond);
        let handler = |State((seen, respond)): State<(Arc<Mutex<Vec<Request>>>, Respond)>,
                       uri: Uri,
                       headers: HeaderMap,
                       body: Bytes| async move {
            let request = Request { uri, headers, body: String::from_utf8(body.into()).unwrap() };
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            respond(seen.len(), &request)
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(handler).with_state(state);
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Stub { address, seen, _serving: serving }
    }

    fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

/// Submits a job, and returns its id.
async fn submit(server: &Server, body: &Value) -> String {
    let job = server.send("POST", "/v1/jobs", &body.to_string()).await.ok();
    job["id"].as_str().unwrap().to_owned()
}

/// Waits until a job is dead, and returns it.
async fn dead(server: &Server, id: &str) -> Value {
    let path = format!("/v1/jobs/{id}");
    let is_dead = async || server.send("GET", &path, "").await.ok()["state"] == "dead";
    server.until("the job is dead", is_dead).await;
    server.send("GET", &path, "").await.ok()
}

fn is_control(character: char) -> bool {
    (character.is_control() && character != '\n')
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// File modes exist on Unix only; on other systems this only starts a server.
pub(crate) async fn database_files_are_private(attack: Attack) {
    let server = attack.serve("").await;
    let folder = std::fs::read_dir(server.attack.folder.path()).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        paths.filter(|path| path.to_string_lossy().contains("rewheel.db")).collect();
    assert!(!server.attack.store.starts_with("sqlite") || files.len() >= 3, "{files:?}");
    #[cfg(unix)]
    for file in files {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

/// Text of a callee reaches chats, logs and terminals as plain text.
pub(crate) async fn text_of_callees_is_only_text(attack: Attack) {
    let callee = Stub::start(|_, _| (StatusCode::BAD_REQUEST, HOSTILE.to_owned())).await;
    let chat = Stub::start(|_, _| (StatusCode::OK, r#"{"code":0,"errcode":0}"#.to_owned())).await;
    let mut config = format!(
        "[kinds.hook]\nrunner = \"callback\"\ncallback = {{ url = \"http://{}/\", allow = [\"127.0.0.0/8\"] }}\n\
         [[notify.route]]\nto = \"log\"\n",
        callee.address
    );
    for to in ["slack", "feishu", "dingtalk", "webhook"] {
        config += &format!(
            "[[notify.route]]\nto = \"{to}\"\nurl = \"http://{}/{to}\"\nevents = [\"dead_letter\"]\n",
            chat.address
        );
    }
    let mut server = attack.serve(&config).await;
    let job = json!({"kind": "hook", "payload": 1, "tenant": "<!here> @all \u{202e}"});
    let id = submit(&server, &job).await;
    dead(&server, &id).await;
    server.until("all chats were told", async || chat.seen().len() == 4).await;
    for request in chat.seen() {
        let (to, body) = (request.uri.path(), &request.body);
        assert!(!body.contains(is_control), "{to}: {body:?}");
        let document: Value = serde_json::from_str(body).unwrap();
        let text = match to {
            "/slack" => &document["text"],
            "/feishu" => &document["content"]["text"],
            "/dingtalk" => &document["text"]["content"],
            // A webhook receives data: exactly what the callee sent.
            _ => {
                assert!(document["error"].as_str().unwrap().contains("\u{1b}[2J"), "{document}");
                continue;
            }
        };
        let text = text.as_str().unwrap();
        assert_eq!(text.lines().count(), 3, "{to}: {text}");
        assert!(text.contains("ERROR forged line") && !text.contains(is_control), "{to}: {text}");
        let (raw, none) = (&["<", ">", "@all", "]("][..], &[][..]);
        let forbidden = match to {
            "/slack" => &["<", ">", "@all"][..],
            "/feishu" => raw,
            "/dingtalk" => &["@all", "]("][..],
            _ => none,
        };
        for bad in forbidden {
            assert!(!text.contains(bad), "{to}: {bad}: {text}");
        }
        if to == "/slack" {
            assert!(text.contains("&lt;!channel&gt;") && text.contains(" &amp; "), "{text}");
            assert_eq!(document["mrkdwn"], false);
        }
        if to == "/dingtalk" {
            assert_eq!(document["at"]["isAtAll"], false);
        }
    }
    server.until("the log has it", async || server.logged().contains("desrever")).await;
    let logged = server.logged();
    assert!(!logged.contains(is_control), "{logged:?}");
    let forged = logged.lines().find(|line| line.trim_start().starts_with("ERROR forged"));
    assert_eq!(forged, None, "{logged}");
    server.assert_running();
}

const SECRETS: [&str; 6] = [
    "s3cret-of-query",
    "s3cret-of-path",
    "s3cret-of-failover",
    "s3cret-of-header",
    "s3cret-of-rest",
    "s3cret-of-chat",
];

/// The secrets of URLs and headers reach only the callee, even if the callee repeats them.
pub(crate) async fn secrets_of_urls_reach_only_the_callee(attack: Attack) {
    let callee = Stub::start(|_, request| {
        let said = format!("no {} for {:?}", request.uri, request.headers.get("x-key"));
        (StatusCode::BAD_REQUEST, said)
    })
    .await;
    let chat =
        Stub::start(|_, request| (StatusCode::FORBIDDEN, format!("no {}", request.uri))).await;
    let config = format!(
        "[server]\ncallback_env = [\"REST_KEY\"]\ncallback_allow = [\"127.0.0.0/8\"]\n\
         [kinds.hook]\nrunner = \"callback\"\n[kinds.hook.callback]\n\
         url = \"http://{0}/hook/${{PATH_KEY}}?key=${{PAY_KEY}}\"\n\
         failover = [\"http://{0}/other?key=s3cret-of-failover\"]\n\
         headers = {{ x-key = \"s3cret-of-header\" }}\nallow = [\"127.0.0.0/8\"]\n\
         [[notify.route]]\nto = \"slack\"\nurl = \"http://{1}/s3cret-of-chat\"\n\
         [[notify.route]]\nto = \"log\"\n",
        callee.address, chat.address
    );
    let env = [
        ("PAY_KEY", "s3cret-of-query"),
        ("PATH_KEY", "s3cret-of-path"),
        ("REST_KEY", "s3cret-of-rest"),
        ("RUST_LOG", "debug"),
    ];
    let server = attack.serve_with(&config, &env).await;
    let url = |query: &str| format!("http://{}/rest?key={query}", callee.address);
    let put = |query: &str| {
        let callback = json!({"url": url(query), "allow": ["127.0.0.0/8"]});
        json!({"runner": "callback", "callback": callback}).to_string()
    };
    let refused = server.send("PUT", "/v1/kinds/rest", &put("${PAY_KEY}")).await;
    refused.assert_problem(422, "invalid_field");
    assert_eq!(refused.json()["errors"][0]["field"], "/callback/url");
    let shown = server.send("PUT", "/v1/kinds/rest", &put("${REST_KEY}")).await.ok();
    assert_eq!(shown["settings"]["callback"]["url"], url("${REST_KEY}"));
    let shown = server.send("PUT", "/v1/kinds/literal", &put("s3cret-of-rest")).await.ok();
    let masked = format!("http://{}/rest?***", callee.address);
    assert_eq!(shown["settings"]["callback"]["url"], masked);
    let mut paths: Vec<String> =
        ["/v1/kinds", "/v1/kinds/hook", "/v1/incidents", "/v1/audit", "/metrics", "/v1/stats"]
            .map(str::to_owned)
            .into();
    for kind in ["hook", "rest", "literal"] {
        let id = submit(&server, &json!({"kind": kind, "payload": 1})).await;
        dead(&server, &id).await;
        paths.extend([format!("/v1/jobs/{id}"), format!("/v1/audit?job={id}")]);
    }
    let sent: String =
        callee.seen().iter().map(|one| format!("{} {:?}\n", one.uri, one.headers)).collect();
    for secret in ["query", "path", "header", "rest"].map(|name| format!("s3cret-of-{name}")) {
        assert!(sent.contains(&secret), "{secret} did not reach the callee: {sent}");
    }
    server
        .until("the chat refused", async || server.logged().contains("notification not delivered"))
        .await;
    let mut texts: Vec<(String, String)> = Vec::new();
    for path in paths {
        let answer = server.send("GET", &path, "").await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        texts.push((path, answer.text));
    }
    let told = |request: &Request| ("a notice".to_owned(), request.body.clone());
    texts.extend(chat.seen().iter().map(told));
    texts.push(("the log".to_owned(), server.logged()));
    for (place, text) in &texts {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{place} has {secret}: {text}");
        }
    }
}

/// A kind set over REST reaches only the addresses that the config file permits, and no metadata service.
pub(crate) async fn kinds_of_rest_stay_below_the_ceiling(attack: Attack) {
    let inner = Stub::start(|_, _| (StatusCode::OK, "inner".to_owned())).await;
    let server = attack
        .serve("[server]\ncallback_allow = [\"127.0.0.0/8\", \"::/0\", \"160.0.0.0/4\"]\n")
        .await;
    let put = |url: &str, allow: &Value| {
        json!({"runner": "callback", "callback": {"url": url, "allow": allow}}).to_string()
    };
    let public = "https://pay.example/";
    for allow in [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "127.0.0.0/7",
        "169.254.169.254",
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::/48",
    ] {
        let refused =
            server.send("PUT", "/v1/kinds/hook", &put(public, &json!(["127.0.0.1", allow]))).await;
        refused.assert_problem(422, "invalid_field");
        assert_eq!(refused.json()["errors"][0]["field"], "/callback/allow", "{allow}: {refused:?}");
    }
    for (url, allow) in
        [("http://169.254.169.254/", "160.0.0.0/4"), ("http://[::ffff:a9fe:a9fe]/", "::/0")]
    {
        let refused = server.send("PUT", "/v1/kinds/hook", &put(url, &json!([allow]))).await;
        refused.assert_problem(422, "invalid_field");
        assert_eq!(refused.json()["errors"][0]["field"], "/callback/url", "{url}: {refused:?}");
    }
    let url = format!("http://{}/", inner.address);
    server.send("PUT", "/v1/kinds/hook", &put(&url, &json!(["127.0.0.0/8"]))).await.ok();
    let id = submit(&server, &json!({"kind": "hook", "payload": 1})).await;
    server.until("it is called", async || inner.seen().len() == 1).await;
    server.send("GET", &format!("/v1/jobs/{id}"), "").await.ok();

    // The ceiling is lowered; the store still contains the kind.
    let Server { attack, .. } = server;
    let server = attack.serve("").await;
    let id = submit(&server, &json!({"kind": "hook", "payload": 1})).await;
    let job = dead(&server, &id).await.to_string();
    assert!(job.contains("not in server.callback_allow"), "{job}");
    assert_eq!(inner.seen().len(), 1, "it was called again");
}

/// A receiver can detect a repetition, and may rotate its secret.
pub(crate) async fn retries_of_a_notice_keep_their_id(attack: Attack) {
    let hook = Stub::start(|number, _| {
        let status = if number == 1 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        (status, String::new())
    })
    .await;
    let config = format!(
        "[kinds.hook]\nrunner = \"callback\"\nattempts_max = 1\n\
         callback = {{ url = \"http://127.0.0.1:1/\", allow = [\"127.0.0.0/8\"] }}\n\
         [[notify.route]]\nto = \"webhook\"\nurl = \"http://{}/\"\nevents = [\"dead_letter\"]\n\
         secrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\", \"whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh\"]\n",
        hook.address
    );
    let server = attack.serve(&config).await;
    submit(&server, &json!({"kind": "hook", "payload": 1})).await;
    server.until("it is told again", async || hook.seen().len() == 2).await;
    let seen = hook.seen();
    assert_eq!(seen[0].headers["webhook-id"], seen[1].headers["webhook-id"]);
    for request in &seen {
        let signed = request.headers["webhook-signature"].to_str().unwrap();
        assert_eq!(signed.matches("v1,").count(), 2, "{signed}");
    }
}
