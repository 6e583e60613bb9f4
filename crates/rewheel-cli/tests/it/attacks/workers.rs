//! Tests remote workers that act for others, or keep jobs for too long.

use super::server::{Answer, Attack, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Leases are short, so that a silent worker expires soon.
const CONFIG: &str = r#"
    [engine]
    lease_ttl = "1s"
    housekeeping = "100ms"
    [kinds.mail]
    runner = "worker"
    attempt_timeout_ceiling = "10m"
"#;

async fn claim(server: &Server, token: Option<&str>, holder: Value, wait: &str) -> Answer {
    let body = json!({"holder": holder, "name": "w", "kinds": ["mail"], "max": 10, "wait": wait});
    server.send_as(token, "POST", "/v1/workers/claim", &body.to_string()).await
}

async fn post(server: &Server, token: Option<&str>, verb: &str, body: Value) -> Answer {
    server.send_as(token, "POST", &format!("/v1/workers/{verb}"), &body.to_string()).await
}

async fn submit(server: &Server, token: Option<&str>, kind: &str) -> String {
    let body = json!({"kind": kind, "payload": {"order": 17}}).to_string();
    let answer = server.send_as(token, "POST", "/v1/jobs", &body).await;
    answer.ok()["id"].as_str().unwrap().to_owned()
}

async fn job(server: &Server, token: Option<&str>, id: &str) -> Value {
    server.send_as(token, "GET", &format!("/v1/jobs/{id}"), "").await.ok()
}

/// Sends every request of a worker for a job that it has.
async fn calls(
    server: &Server,
    token: &str,
    holder: &Value,
    id: &str,
    fence: &Value,
) -> [Answer; 5] {
    let token = Some(token);
    [
        claim(server, token, holder.clone(), "0s").await,
        post(server, token, "heartbeat", json!({"holder": holder, "jobs": [id]})).await,
        post(
            server,
            token,
            "extend",
            json!({"holder": holder, "id": id, "fence": fence, "timeout": "1m"}),
        )
        .await,
        post(
            server,
            token,
            "settle",
            json!({"holder": holder, "results": [{"id": id, "fence": fence, "verdict": "done"}]}),
        )
        .await,
        post(server, token, "leave", json!({"holder": holder})).await,
    ]
}

pub(crate) async fn act_only_for_themselves(attack: Attack) {
    let server = attack.serve(&CONFIG.replace("\"1s\"", "\"60s\"")).await;
    let admin = server.token(None, r#"{"name":"admin","roles":["admin"]}"#).await;
    let create = |name: &str, role: &str| json!({"name": name, "roles": [role]}).to_string();
    let honest = server.token(Some(&admin), &create("honest", "work")).await;
    let thief = server.token(Some(&admin), &create("thief", "work")).await;
    let operator = server.token(Some(&admin), &create("operator", "operate")).await;

    let id = submit(&server, Some(&admin), "mail").await;
    let claimed = claim(&server, Some(&honest), Value::Null, "20s").await.ok();
    let (holder, fence) = (&claimed["holder"], &claimed["jobs"][0]["fence"]);
    assert_eq!(claimed["jobs"][0]["id"], id);
    for answer in calls(&server, &thief, holder, &id, fence).await {
        answer.assert_problem(403, "forbidden");
    }
    // An operator's token cannot act for a worker; not even an admin can act for a worker that it did not create.
    for token in [&operator, &admin] {
        for answer in calls(&server, token, holder, &id, fence).await {
            answer.assert_problem(403, "forbidden");
        }
    }
    let seen = job(&server, Some(&admin), &id).await;
    assert_eq!((&seen["state"], &seen["fence"]), (&json!("leased"), fence));
    for answer in calls(&server, &honest, holder, &id, fence).await {
        answer.ok();
    }
    assert_eq!(job(&server, Some(&admin), &id).await["state"], "succeeded");
}

/// A callee that responds only when it is told to.
async fn slow_callee() -> (String, tokio::sync::mpsc::Receiver<()>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (called, calls) = tokio::sync::mpsc::channel(8);
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await;
            let _ = called.send(()).await;
            let _ = stream.flush().await;
            open.push(stream);
        }
    });
    (url, calls, serving)
}

pub(crate) async fn do_not_act_for_engines(attack: Attack) {
    let (url, mut calls, _serving) = slow_callee().await;
    let config = format!(
        "[kinds.hook]\nrunner = \"callback\"\n[kinds.hook.callback]\nurl = \"{url}\"\n\
         allow = [\"127.0.0.0/8\"]\n[kinds.mail]\nrunner = \"worker\"\n"
    );
    let server = attack.serve(&config).await;
    let id = submit(&server, None, "hook").await;
    calls.recv().await.unwrap();
    let running = job(&server, None, &id).await;
    let (holder, fence) = (&running["holder"], &running["fence"]);
    assert!(holder.is_string(), "{running}");
    let answers = [
        post(&server, None, "heartbeat", json!({"holder": holder, "jobs": []})).await,
        post(
            &server,
            None,
            "settle",
            json!({"holder": holder, "results": [{"id": id, "fence": fence, "verdict": "done"}]}),
        )
        .await,
        post(&server, None, "leave", json!({"holder": holder})).await,
        post(
            &server,
            None,
            "extend",
            json!({"holder": holder, "id": id, "fence": fence, "timeout": "1m"}),
        )
        .await,
        post(
            &server,
            None,
            "checkpoint",
            json!({"holder": holder, "id": id, "fence": fence, "payload": 1}),
        )
        .await,
        claim(&server, None, holder.clone(), "0s").await,
    ];
    for answer in answers {
        answer.assert_problem(403, "forbidden");
    }
    assert_eq!(job(&server, None, &id).await["state"], "leased");
}

pub(crate) async fn hear_that_they_expired(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let id = submit(&server, None, "mail").await;
    let first = claim(&server, None, Value::Null, "20s").await.ok();
    // Another worker gets the job once the lease of the first has expired.
    let second = claim(&server, None, Value::Null, "60s").await.ok();
    assert_eq!(second["jobs"][0]["id"], id);
    let holder = &first["holder"];
    let result = json!({"id": id, "fence": first["jobs"][0]["fence"], "verdict": "done"});
    let answers = [
        post(&server, None, "settle", json!({"holder": holder, "results": [result]})).await,
        post(&server, None, "heartbeat", json!({"holder": holder, "jobs": [id]})).await,
        post(
            &server,
            None,
            "extend",
            json!({"holder": holder, "id": id, "fence": 1, "timeout": "1m"}),
        )
        .await,
        claim(&server, None, holder.clone(), "0s").await,
    ];
    for answer in answers {
        answer.assert_problem(410, "holder_expired");
    }
    let never = json!("0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e");
    let result = json!({"id": id, "fence": 1, "verdict": "done"});
    post(&server, None, "settle", json!({"holder": never, "results": [result]}))
        .await
        .assert_problem(410, "holder_expired");
}

pub(crate) async fn leave_and_give_back_their_jobs(attack: Attack) {
    let server = attack.serve(&CONFIG.replace("\"1s\"", "\"600s\"")).await;
    let id = submit(&server, None, "mail").await;
    let first = claim(&server, None, Value::Null, "20s").await.ok();
    let checkpoint = async |fence: &Value, payload: Value| {
        let holder = &first["holder"];
        let body = json!({"holder": holder, "id": id, "fence": fence, "payload": payload});
        post(&server, None, "checkpoint", body).await
    };
    let fence = &first["jobs"][0]["fence"];
    assert_eq!(checkpoint(fence, json!({"done": 2})).await.ok()["kept"], true);
    assert_eq!(checkpoint(&json!(999), json!({"done": 3})).await.ok()["reason"], "fence_lost");
    let large = json!("x".repeat(2_000_000));
    checkpoint(fence, large).await.assert_problem(422, "invalid_field");
    let left = post(&server, None, "leave", json!({"holder": first["holder"]})).await.ok();
    assert_eq!(left, json!({"given_back": 1}));
    let again = post(&server, None, "leave", json!({"holder": first["holder"]})).await.ok();
    assert_eq!(again, json!({"given_back": 0}), "leaving twice changes nothing");
    let second = claim(&server, None, Value::Null, "20s").await.ok();
    assert_eq!((&second["jobs"][0]["id"], &second["jobs"][0]["attempt"]), (&json!(id), &json!(1)));
    assert_eq!(second["jobs"][0]["payload"], json!({"done": 2}), "the last checkpoint");
    post(&server, None, "heartbeat", json!({"holder": first["holder"], "jobs": []}))
        .await
        .assert_problem(410, "holder_expired");
}

pub(crate) async fn get_more_time_within_the_ceiling(attack: Attack) {
    let server = attack.serve(&CONFIG.replace("\"1s\"", "\"600s\"")).await;
    let id = submit(&server, None, "mail").await;
    let claimed = claim(&server, None, Value::Null, "20s").await.ok();
    let (holder, fence) = (&claimed["holder"], &claimed["jobs"][0]["fence"]);
    let extend = async |fence: &Value, timeout: &str| {
        let body = json!({"holder": holder, "id": id, "fence": fence, "timeout": timeout});
        post(&server, None, "extend", body).await.ok()
    };
    let longer = extend(fence, "5m").await;
    assert_eq!(longer["extended"], true, "{longer}");
    // Ten minutes in total are the limit, however often more is requested.
    let most = extend(fence, "36500d").await["overdue"].clone();
    assert_eq!(extend(fence, "36500d").await["overdue"], most);
    assert!(longer["overdue"].as_str() < most.as_str(), "{longer} {most}");
    let lost = extend(&json!(999), "1m").await;
    assert_eq!(lost, json!({"id": id, "extended": false, "reason": "fence_lost"}));
}
