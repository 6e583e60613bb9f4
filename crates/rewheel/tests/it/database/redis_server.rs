//! A real Redis: connecting through a proxy that breaks connections, errors of the server.

use crate::net::{Fault, Proxy};
use redis::{Client, Connection, RedisError};
use rewheel::database::connect_with_retry;
use rewheel::{Category, Class, Classify, GiveUpReason, Random, Retry, millis};
use std::net::ToSocketAddrs;

fn url() -> String {
    std::env::var("REWHEEL_TEST_REDIS").expect(
        "REWHEEL_TEST_REDIS names no server: run `cargo xtask test`, or see `cargo xtask services up`",
    )
}

fn connection() -> Connection {
    Client::open(url()).unwrap().get_connection().unwrap()
}

/// A key that no other test uses.
fn key() -> String {
    format!("test_{:016x}", Random::thread().next())
}

/// Returns a client whose connections go through a proxy.
async fn through_proxy(script: &[Fault]) -> (Client, Proxy) {
    let url = url();
    let (_, rest) = url.split_once("://").unwrap();
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, address) = address.rsplit_once('@').map_or(("", address), |(a, b)| (a, b));
    let proxy = Proxy::to(address.to_socket_addrs().unwrap().next().unwrap(), script).await;
    let at = if login.is_empty() { "" } else { "@" };
    let path = path.split('?').next().unwrap_or_default();
    let through = format!("redis://{login}{at}{}/{path}", proxy.address);
    (Client::open(through).unwrap(), proxy)
}

/// Runs blocking work beside the proxy, which needs a thread of its own.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn ping(client: &Client) -> Result<Connection, RedisError> {
    let mut connection = client.get_connection()?;
    redis::cmd("PING").query::<String>(&mut connection)?;
    Ok(connection)
}

#[tokio::test]
async fn connecting_survives_connections_that_break() {
    let faults = [Fault::Reset, Fault::CutAfter(0), Fault::CutAfter(3), Fault::Garble];
    let (client, proxy) = through_proxy(&faults).await;
    let policy = Retry::fixed(millis(1)).attempts_max(9);
    let connect = || {
        let client = client.clone();
        blocking(move || ping(&client))
    };
    let mut connection = connect_with_retry(policy, connect).await.unwrap();
    assert_eq!(proxy.connections(), 5);
    let key = key();
    let counted = blocking(move || {
        let count: i64 = redis::cmd("INCR").arg(&key).query(&mut connection)?;
        redis::cmd("DEL").arg(&key).query::<i64>(&mut connection)?;
        Ok::<_, RedisError>(count)
    });
    assert_eq!(counted.await.unwrap(), 1);
}

#[tokio::test]
async fn wrong_credentials_end_it_at_once() {
    let (client, proxy) = through_proxy(&[]).await;
    let connect = || {
        let client = client.clone();
        blocking(move || {
            let mut connection = client.get_connection()?;
            redis::cmd("AUTH").arg("stranger").arg("wrong").query::<()>(&mut connection)
        })
    };
    let policy = Retry::fixed(millis(1)).attempts_max(9);
    let error = connect_with_retry(policy, connect).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
    assert_eq!((error.category(), proxy.connections()), (Category::Rejected, 1));
}

#[test]
fn errors_of_the_server_are_classified_by_their_first_word() {
    let (mut connection, key) = (connection(), key());
    redis::cmd("SET").arg(&key).arg("text").query::<()>(&mut connection).unwrap();
    let error = redis::cmd("LPUSH").arg(&key).arg(1).query::<i64>(&mut connection).unwrap_err();
    assert_eq!(error.classify(), Class::stop(Category::Rejected).with_code("WRONGTYPE"));
    let script = "return redis.call('LPUSH', KEYS[1], 1)";
    let eval = redis::cmd("EVAL").arg(script).arg(1).arg(&key).query::<i64>(&mut connection);
    assert_eq!(eval.unwrap_err().classify().category, Category::Rejected);
    redis::cmd("DEL").arg(&key).query::<i64>(&mut connection).unwrap();
}

#[test]
fn a_connection_that_the_server_ends_is_broken() {
    let mut victim = connection();
    let id: i64 = redis::cmd("CLIENT").arg("ID").query(&mut victim).unwrap();
    let mut other = connection();
    let kill = ["KILL", "ID", &id.to_string()];
    redis::cmd("CLIENT").arg(&kill).query::<i64>(&mut other).unwrap();
    let error = redis::cmd("PING").query::<String>(&mut victim).unwrap_err();
    assert_eq!(error.classify(), Class::retry(Category::Io).with_code("connection"));
}

#[tokio::test]
async fn a_command_whose_answer_is_lost_is_a_broken_connection() {
    let (client, proxy) = through_proxy(&[Fault::Swallow]).await;
    let (swallow, key) = (proxy.swallow(), key());
    let (counted, error) = blocking(move || {
        let mut connection = ping(&client).unwrap();
        swallow();
        let lost = redis::cmd("INCR").arg(&key).query::<i64>(&mut connection).unwrap_err();
        let mut direct = self::connection();
        let counted: i64 = redis::cmd("GETDEL").arg(&key).query(&mut direct).unwrap();
        (counted, lost)
    })
    .await;
    assert_eq!(error.classify(), Class::retry(Category::Io).with_code("connection"));
    assert_eq!(counted, 1, "the server has done it, so a retry would count twice");
}
