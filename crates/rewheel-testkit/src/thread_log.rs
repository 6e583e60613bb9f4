//! Collects the log lines of a test.

use std::cell::{Cell, RefCell};
use std::fmt::{Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, span};

thread_local! {
    /// What this thread collects; nothing, unless its test has asked.
    static LEVEL: Cell<Option<Level>> = const { Cell::new(None) };
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Collects log lines of a level or above, separately for each thread. It must be the global subscriber: a subscriber for one thread
/// would miss call sites that another thread registered first.
#[derive(Debug)]
pub struct ThreadLog(());

impl ThreadLog {
    /// Begins to collect the lines of this thread.
    pub fn install(level: Level) {
        LEVEL.set(Some(level));
        // Fails if another test of this process has done so.
        let _ = tracing::subscriber::set_global_default(ThreadLog(()));
    }

    /// Returns whether this thread has collected no line.
    pub fn is_empty() -> bool {
        LINES.with_borrow(Vec::is_empty)
    }

    /// Returns the lines of this thread, each with its level, and forgets them.
    pub fn take() -> String {
        LINES.take().join("\n")
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for ThreadLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        if LEVEL.get().is_none_or(|level| *event.metadata().level() > level) {
            return;
        }
        let mut line = Line(event.metadata().level().to_string());
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
