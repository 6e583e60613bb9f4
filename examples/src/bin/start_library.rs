//! Calls a bank, and tries again while it is unavailable.

use rewheel::{Retry, Retryable, millis, seconds};
use std::io;
use std::path::Path;

/// At most 5 attempts, and at most 10 seconds in total.
const POLICY: Retry = Retry::exponential(millis(100)).attempts_max(5).deadline(seconds(10));

/// Stands for a network call: the bank is available while the file `bank-is-up` exists.
async fn charge(order: u64) -> io::Result<()> {
    if Path::new("bank-is-up").exists() {
        println!("order {order}: charged");
        Ok(())
    } else {
        println!("order {order}: the bank refuses connections");
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

#[tokio::main]
async fn main() {
    if let Err(error) = (|| charge(17)).retry(POLICY).await {
        println!("order 17: {error}");
    }
}
