//! Says in the log why a connection was lost.

use super::support::{Node, counted, named, soon};
use rewheel_testkit::Schema;
use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, span};

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the warnings of a thread.
struct Log;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line.0));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_connection_that_the_server_ends_is_logged_with_the_cause() {
    tracing::subscriber::set_global_default(Log).expect("no other test sets one");
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "pool_max=3")).await;
    node.subject.store.books().await.expect("it works");
    let visitor = schema.connect().await;
    let end = format!(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.name()
    );
    assert!(counted(&visitor, &end).await >= 1, "there was nothing to end");
    let told = async {
        while LINES.with_borrow(Vec::is_empty) {
            tokio::task::yield_now().await;
        }
    };
    soon("a line in the log", told).await;
    let lines = LINES.take().join("\n");
    assert!(lines.contains("connection to PostgreSQL lost"), "{lines}");
    assert!(lines.contains("FATAL: terminating connection"), "{lines}");
    assert!(lines.contains("(SQLSTATE 57P01)"), "{lines}");
    assert!(!lines.contains("db error"), "{lines}");
}
