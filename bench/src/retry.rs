//! Compares retries when the first attempt succeeds.

mod rewheel;
mod peers;

use std::hint::black_box;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::harness::{Comparison, Group, Pace};

const PEERS: &[&str] = &["tower::retry", "tokio-retry", "backon"];

pub fn compare(pace: &Pace) -> Vec<Group> {
    [plain(), with_options(), blocking()]
        .into_iter()
        .map(|comparison| comparison.measure(pace))
        .collect()
}

/// Awaits a call repeatedly on one runtime.
macro_rules! awaited {
    ($name:expr, $call:expr) => {
        $crate::harness::Subject::of_loop($name, move |indexes| {
            $crate::retry::runtime().block_on(async {
                for _ in indexes {
                    let _ = std::hint::black_box($call.await);
                }
            });
        })
    };
}
pub(crate) use awaited;

pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_current_thread().enable_time().build().expect("a timer needs no resources")
    })
}

async fn answer() -> io::Result<u64> {
    Ok(black_box(42))
}

fn answer_at_once() -> io::Result<u64> {
    Ok(black_box(42))
}

fn plain() -> Comparison {
    Comparison {
        name: "retry, first attempt succeeds",
        threads: &[1],
        subjects: vec![
            rewheel::plain(),
            peers::tower(),
            peers::tokio_retry(),
            peers::backon(),
            awaited!("the call alone", answer()),
        ],
    }
}

fn with_options() -> Comparison {
    Comparison { name: "retry, with an option", threads: &[1], subjects: rewheel::options() }
}

fn blocking() -> Comparison {
    Comparison {
        name: "blocking retry, first attempt succeeds",
        threads: &[1],
        subjects: vec![rewheel::blocking(), peers::backon_blocking()],
    }
}
