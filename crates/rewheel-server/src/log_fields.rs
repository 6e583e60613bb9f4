//! Formats log fields so that text from outside cannot forge log lines or control a terminal.

use rewheel_core::printable;
use std::fmt;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Returns a formatter for the fields of events and spans that escapes control characters and keeps every value on one line. A log line
/// may quote text from a callee or a client.
///
/// ```
/// let lines = tracing_subscriber::fmt::layer::<tracing_subscriber::Registry>()
///     .fmt_fields(rewheel_server::log_fields());
/// # drop(lines);
/// ```
pub fn log_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    debug_fn(write).delimited(" ")
}

fn write(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = format!("{value:?}");
    let value = printable(&value);
    match field.name() {
        "message" => write!(writer, "{value}"),
        name => {
            let name = name.strip_prefix("r#").unwrap_or(name);
            if writer.has_ansi_escapes() {
                write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
            } else {
                write!(writer, "{name}={value}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::log_fields;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt as _;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(is_ansi: bool, log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(is_ansi)
            .without_time()
            .with_writer(move || writer.clone())
            .fmt_fields(log_fields());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const BAD: &str = "gone\n ERROR forged\x1b[2J\u{9b}\u{202e}\u{2028}";

    #[test]
    fn text_of_others_stays_within_its_line() {
        let line = logged(false, || {
            let span = tracing::info_span!("call", code = %BAD);
            let _inside = span.enter();
            tracing::warn!(error = %BAD, quoted = BAD, count = 7, "failed: {BAD}");
        });
        assert_eq!(line.matches('\n').count(), 1, "{line:?}");
        let text = line.strip_suffix('\n').unwrap();
        assert!(!text.contains(rewheel_core::is_unprintable), "{text:?}");
        let escaped = r"gone\n ERROR forged\u{1b}[2J\u{9b}\u{202e}\u{2028}";
        assert!(text.contains(&format!("call{{code={escaped}}}")), "{text}");
        assert!(text.contains(&format!("failed: {escaped} error={escaped} ")), "{text}");
        assert!(text.ends_with(" count=7"), "{text}");
    }

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let line = logged(true, || tracing::warn!(error = %BAD, "failed"));
        assert!(line.contains("\x1b[3merror\x1b[0m") && !line.contains("\x1b[2J"), "{line:?}");
    }
}
