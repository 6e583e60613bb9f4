//! Errors of the crate redis, some from a server that answers with errors.

use redis::RedisError;
use rewheel::{Category, Class, Classify};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// Returns the error of a client whose server answers everything with this text.
fn error_of(answer: &'static [u8]) -> RedisError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = redis::Client::open(format!("redis://{}/", listener.local_addr().unwrap()));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4_096];
            while stream.read(&mut request).is_ok_and(|length| length > 0) {
                // A connection begins with some commands whose failure the client ignores, so there are more answers than it needs.
                if answer.is_empty() || stream.write_all(&answer.repeat(10)).is_err() {
                    return;
                }
            }
        });
        match client.unwrap().get_connection() {
            Ok(mut connection) => redis::cmd("PING").query::<String>(&mut connection).unwrap_err(),
            Err(error) => error,
        }
    })
}

#[test]
fn errors_of_the_server_are_classified_by_their_first_word() {
    let passes = |code| Class::retry(Category::Transient).with_code(code);
    let loading = error_of(b"-LOADING Redis is loading the dataset in memory\r\n");
    assert_eq!(loading.classify(), passes("LOADING"), "{loading:?}");
    let down = error_of(b"-CLUSTERDOWN The cluster is down\r\n");
    assert_eq!(down.classify(), passes("CLUSTERDOWN"), "{down:?}");
    let full = error_of(b"-OOM command not allowed\r\n");
    assert_eq!(full.classify(), Class::stop(Category::Transient).with_code("OOM"), "{full:?}");
    let many = error_of(b"-ERR max number of clients reached\r\n");
    assert_eq!(many.classify(), Class::retry(Category::Throttled).with_code("ERR"), "{many:?}");
    let script = error_of(b"-ERR LOADING Redis is loading\r\n");
    assert_eq!(script.classify(), passes("LOADING"), "{script:?}");
}

#[test]
fn a_port_without_a_server_and_a_cut_connection_are_broken() {
    let broken = Class::retry(Category::Io).with_code("connection");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = redis::Client::open(format!("redis://{free}/")).unwrap();
    assert_eq!(client.get_connection().err().unwrap().classify(), broken);
    assert_eq!(error_of(b"").classify(), broken);
    assert_eq!(error_of(b"not redis\r\n").classify(), broken);
}
