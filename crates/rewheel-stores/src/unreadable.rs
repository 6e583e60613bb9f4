//! Builds the operator advice for jobs whose rows cannot be read.

use rewheel_core::store::Risk;

/// Returns the risk for jobs that were set aside because their rows cannot be read.
pub(crate) fn unreadable_jobs(count: u64, first: &str, reason: &str) -> Risk {
    let jobs = match count {
        1 => "1 job is paused because its row cannot be read".to_owned(),
        _ => format!("{count} jobs are paused because their rows cannot be read"),
    };
    let message = format!(
        "{jobs}; first job: {first}, unreadable value: {reason}; if a newer version of Rewheel wrote the rows, upgrade this \
         node; otherwise repair the rows; in both cases resume the jobs afterwards"
    );
    Risk { name: "unreadable_jobs", message }
}

#[cfg(test)]
mod tests {
    use super::unreadable_jobs;

    #[test]
    fn one_job_and_many_jobs_are_counted_in_words() {
        let one = unreadable_jobs(1, "job-1", "a due reason").message;
        assert!(
            one.starts_with("1 job is paused because its row cannot be read; first job: job-1,")
        );
        let two = unreadable_jobs(2, "job-1", "a due reason").message;
        assert!(two.starts_with("2 jobs are paused because their rows cannot be read;"), "{two}");
    }
}
