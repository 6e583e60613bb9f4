//! Errors of mysql_async.

use mysql_async::{Error, IoError, ServerError};
use rewheel::{Category, Class, Classify};
use std::io;

fn of_server(code: u16, message: &str) -> Class {
    let (message, state) = (message.to_owned(), "HY000".to_owned());
    Error::Server(ServerError { code, message, state }).classify()
}

#[test]
fn errors_of_the_server_are_classified_by_their_number() {
    assert_eq!(of_server(1213, "Deadlock"), Class::retry(Category::Transient).with_code(1213_u16));
    assert_eq!(of_server(1062, "Duplicate"), Class::stop(Category::Rejected).with_code(1062_u16));
}

#[test]
fn a_server_that_became_read_only_is_told_from_other_options() {
    let read_only = "The MySQL server is running with the --read-only option";
    assert_eq!(of_server(1290, read_only), Class::retry(Category::Transient).with_code(1290_u16));
    let other = "The MySQL server is running with the --secure-file-priv option";
    assert_eq!(of_server(1290, other), Class::stop(Category::Rejected).with_code(1290_u16));
}

#[tokio::test]
async fn a_port_without_a_server_is_a_broken_connection() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let opts = mysql_async::Opts::from_url(&format!("mysql://root@{free}/test")).unwrap();
    let error = mysql_async::Conn::new(opts).await.unwrap_err();
    assert_eq!(error.classify().category, Category::Io, "{error}");
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    let class = reset.classify();
    assert_eq!(Error::Io(IoError::Io(reset)).classify(), class);
}
