//! Writes what a statement is given for many jobs: a JSON list with a list for each job.

use std::fmt::{Display, Write as _};

/// Bytes of one list: a fraction of the smallest `max_allowed_packet` that servers have by default.
const BYTES_MAX: usize = 1024 * 1024;

/// Jobs in one list.
const JOBS_MAX: usize = 1_000;

/// The lists of many jobs.
#[derive(Debug, Default)]
pub(super) struct Given {
    jobs: Vec<String>,
}

impl Given {
    pub(super) fn add(&mut self, job: ForJob) {
        self.jobs.push(job.0);
    }

    /// Orders the jobs by their lists.
    pub(super) fn sort(&mut self) {
        self.jobs.sort_unstable();
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Takes all lists, several in one text each.
    pub(super) fn take(&mut self) -> Vec<String> {
        let (mut texts, mut text, mut jobs) = (Vec::new(), String::new(), 0);
        for job in self.jobs.drain(..) {
            if jobs == JOBS_MAX || (jobs > 0 && text.len() + job.len() > BYTES_MAX) {
                texts.push(format!("[{text}]"));
                text.clear();
                jobs = 0;
            }
            let comma = if jobs == 0 { "" } else { "," };
            let _ = write!(text, "{comma}[{job}]");
            jobs += 1;
        }
        if jobs > 0 {
            texts.push(format!("[{text}]"));
        }
        texts
    }
}

/// The values for one job.
#[derive(Debug, Default)]
pub(super) struct ForJob(String);

impl ForJob {
    pub(super) fn number(self, number: impl Display) -> ForJob {
        self.with(format_args!("{number}"))
    }

    /// Adds bytes as hexadecimal digits, which no character set changes.
    pub(super) fn bytes(self, bytes: &[u8]) -> ForJob {
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        self.with(format_args!("\"{text}\""))
    }

    pub(super) fn maybe_text(self, text: Option<&str>) -> ForJob {
        match text {
            Some(text) => self.bytes(text.as_bytes()),
            None => self.with(format_args!("null")),
        }
    }

    fn with(mut self, value: impl Display) -> ForJob {
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(self.0, "{comma}{value}");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, ForJob, Given, JOBS_MAX};

    #[test]
    fn values_are_written_as_json() {
        let mut given = Given::default();
        given.add(ForJob::default().number(-3).maybe_text(None).maybe_text(Some("a\"\u{e9}")));
        given.add(ForJob::default().bytes(&[0, 255]).number(i64::MAX));
        assert_eq!(given.take(), ["[[-3,null,\"6122c3a9\"],[\"00ff\",9223372036854775807]]"]);
        assert!(given.take().is_empty());
    }

    #[test]
    fn long_lists_are_split() {
        let mut given = Given::default();
        (0..=JOBS_MAX).for_each(|n| given.add(ForJob::default().number(n)));
        assert_eq!(given.take().len(), 2);
        (0..3).for_each(|_| given.add(ForJob::default().bytes(&vec![7; BYTES_MAX / 5])));
        let texts = given.take();
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| text.len() <= BYTES_MAX + 2));
    }
}
