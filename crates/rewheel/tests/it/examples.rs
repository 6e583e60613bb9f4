//! The examples of the integrations, as tests.

#[cfg(all(feature = "axum", feature = "reqwest"))]
#[path = "../../examples/amplification.rs"]
#[expect(dead_code, unreachable_pub, reason = "the function `main` of the example")]
mod amplification;
#[cfg(all(feature = "axum", feature = "tonic"))]
#[path = "../../examples/grpc.rs"]
#[expect(dead_code, unreachable_pub, reason = "the function `main` of the example")]
mod grpc;
#[cfg(all(feature = "axum", feature = "reqwest"))]
#[path = "../../examples/http_client.rs"]
#[expect(dead_code, unreachable_pub, reason = "the function `main` of the example")]
mod http_client;
#[cfg(feature = "rusqlite")]
#[path = "../../examples/transactions.rs"]
#[expect(dead_code, unreachable_pub, reason = "the function `main` of the example")]
mod transactions;

#[cfg(all(feature = "axum", feature = "reqwest"))]
#[tokio::test]
async fn the_call_context_keeps_three_services_from_multiplying_their_retries() {
    use amplification::{Context, calls_of_one_request};
    assert_eq!(calls_of_one_request(Context::NotPassed).await, [3, 9, 27]);
    assert_eq!(calls_of_one_request(Context::Passed).await, [3, 3, 3]);
}

#[cfg(all(feature = "axum", feature = "reqwest"))]
#[tokio::test]
async fn the_http_client_repeats_a_get_and_a_post_with_a_key() {
    let lines = http_client::run().await.unwrap();
    assert_eq!(
        lines,
        [
            "GET: 200 OK done",
            "POST without a key: 503 Service Unavailable",
            "POST with a key: 200 OK",
        ]
    );
}

#[cfg(all(feature = "axum", feature = "tonic"))]
#[tokio::test]
async fn a_grpc_call_is_repeated() {
    assert_eq!(grpc::run().await.unwrap(), "found order 17");
}

#[cfg(feature = "rusqlite")]
#[tokio::test]
async fn no_booking_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(transactions::run(&folder.path().join("accounts.db")).await.unwrap(), 700);
}
