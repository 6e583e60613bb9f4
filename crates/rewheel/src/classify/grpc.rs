//! Classifies statuses of gRPC.

use super::{Category, Class, Verdict, grpc_pushback};

impl Class {
    /// Classifies a gRPC call by the number of its status, and the value of `grpc-retry-pushback-ms` if the server sent it.
    ///
    /// | status | verdict | category |
    /// |---|---|---|
    /// | `OK` (0) | done | |
    /// | `UNAVAILABLE` (14) | retry | `transient` |
    /// | `RESOURCE_EXHAUSTED` (8) | retry | `throttled` |
    /// | `ABORTED` (10) | retry | `rejected` |
    /// | `DEADLINE_EXCEEDED` (4) | retry | `timeout` |
    /// | `CANCELLED` (1) | stop | `cancelled` |
    /// | `UNKNOWN` (2), `INTERNAL` (13), `DATA_LOSS` (15), unknown numbers | stop | `unknown` |
    /// | any other | stop | `rejected` |
    ///
    /// A push-back replaces the verdict of a failure: the server asks for a delay, or does not want a retry at all. The code of the
    /// class is the name of the status.
    ///
    /// ```
    /// use rewheel::{Category, Class, Verdict, millis};
    ///
    /// assert_eq!(Class::of_grpc(14, None), Class::retry(Category::Transient).with_code("unavailable"));
    /// assert_eq!(Class::of_grpc(14, Some("250")).verdict, Verdict::RetryAfter(millis(250)));
    /// assert_eq!(Class::of_grpc(14, Some("-1")).verdict, Verdict::Stop);
    /// ```
    pub fn of_grpc(status: i32, pushback: Option<&str>) -> Class {
        let (class, code) = match status {
            0 => return Class::DONE,
            1 => (Class::stop(Category::Cancelled), "cancelled"),
            2 => (Class::stop(Category::Unknown), "unknown"),
            3 => (Class::stop(Category::Rejected), "invalid_argument"),
            4 => (Class::retry(Category::Timeout), "deadline_exceeded"),
            5 => (Class::stop(Category::Rejected), "not_found"),
            6 => (Class::stop(Category::Rejected), "already_exists"),
            7 => (Class::stop(Category::Rejected), "permission_denied"),
            8 => (Class::retry(Category::Throttled), "resource_exhausted"),
            9 => (Class::stop(Category::Rejected), "failed_precondition"),
            // Two transactions met: the server works.
            10 => (Class::retry(Category::Rejected), "aborted"),
            11 => (Class::stop(Category::Rejected), "out_of_range"),
            12 => (Class::stop(Category::Rejected), "unimplemented"),
            13 => (Class::stop(Category::Unknown), "internal"),
            14 => (Class::retry(Category::Transient), "unavailable"),
            15 => (Class::stop(Category::Unknown), "data_loss"),
            16 => (Class::stop(Category::Rejected), "unauthenticated"),
            _ => (Class::stop(Category::Unknown), "unknown"),
        };
        let class = class.with_code(code);
        match pushback.map(grpc_pushback) {
            // The server decides how long to wait, but not that a failure is temporary.
            Some(Verdict::RetryAfter(delay)) if class.verdict == Verdict::Retry => {
                Class { verdict: Verdict::RetryAfter(delay), ..class }
            }
            Some(Verdict::Stop) => Class { verdict: Verdict::Stop, ..class },
            Some(Verdict::RetryAfter(_) | Verdict::Retry | Verdict::Done) | None => class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Category, Class, Verdict};
    use std::time::Duration;

    #[test]
    fn every_status_has_a_class() {
        let retried: Vec<i32> = (-1..=17)
            .filter(|status| Class::of_grpc(*status, None).verdict == Verdict::Retry)
            .collect();
        assert_eq!(retried, [4, 8, 10, 14]);
        assert_eq!(Class::of_grpc(99, None), Class::stop(Category::Unknown).with_code("unknown"));
    }

    #[test]
    fn a_push_back_sets_the_delay_but_makes_nothing_temporary() {
        let delay = Verdict::RetryAfter(Duration::from_millis(7));
        assert_eq!(Class::of_grpc(8, Some("7")).verdict, delay);
        assert_eq!(Class::of_grpc(5, Some("7")).verdict, Verdict::Stop);
        for wrong in ["", "soon", "-1", "99999999999"] {
            assert_eq!(Class::of_grpc(14, Some(wrong)).verdict, Verdict::Stop, "{wrong}");
        }
        assert_eq!(Class::of_grpc(0, Some("-1")), Class::DONE);
    }
}
