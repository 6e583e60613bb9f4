//! Tests of failure classification.

use super::io::KINDS;
use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::SystemTime;

/// Sunday, 6 November 1994, 08:49:37 UTC: the example date of RFC 9110 in all three formats.
fn example_date() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

mod category {
    use super::*;

    #[test]
    fn reads_back_the_name_of_each() {
        let mut names = HashSet::new();
        for &category in Category::ALL {
            assert_eq!(category.as_str().parse(), Ok(category));
            assert_eq!(category.to_string(), category.as_str());
            assert!(names.insert(category.as_str()), "two categories are called {category}");
        }
    }

    /// They are stored and sent: a new one is added, none of these changes.
    #[test]
    fn has_the_same_words_as_ever() {
        let words = |engine_only| {
            let all = Category::ALL.iter();
            let these = all.filter(move |category| category.is_engine_only() == engine_only);
            these.map(|category| category.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            words(false),
            "timeout io throttled circuit_open bulkhead_full rejected transient cancelled deadline \
             unknown"
        );
        assert_eq!(words(true), "panic no_handler bad_payload");
    }

    #[test]
    fn names_the_text_that_is_none() {
        for text in ["time_out", "Timeout", " timeout", ""] {
            let error = text.parse::<Category>().unwrap_err();
            assert_eq!(error.to_string(), format!("unknown category `{text}`"));
        }
    }
}

mod status_set {
    use super::*;

    #[track_caller]
    fn check(text: &str, canonical: &str) {
        assert_eq!(text.parse::<StatusSet>().unwrap().to_string(), canonical);
    }

    #[track_caller]
    fn check_refused(text: &str, part: &str) {
        let error = text.parse::<StatusSet>().unwrap_err();
        assert_eq!(error.part(), part);
        assert!(error.to_string().starts_with(&format!("`{part}` is not a set")));
    }

    #[test]
    fn prints_what_it_reads_in_its_shortest_form() {
        check("404", "404");
        check("2xx", "2xx");
        check("5XX", "5xx");
        check("500-504", "500-504");
        check("500-500", "500");
        check("500-599", "5xx");
        check("4xx 5xx", "400-599");
        check("1xx,2xx,3xx,4xx,5xx", "100-599");
        check("  429, 5xx,,408\t425\n", "408 425 429 5xx");
        check("504,503,502 501 500", "500-504");
        check("399 4xx", "399-499");
        check(" none ", "none");
    }

    #[test]
    fn names_the_part_it_cannot_read() {
        check_refused("2xx, 40", "40");
        check_refused("099", "099");
        check_refused("600", "600");
        check_refused("0404", "0404");
        check_refused("+04", "+04");
        check_refused("6xx", "6xx");
        check_refused("0xx", "0xx");
        check_refused("5x", "5x");
        check_refused("504-500", "504-500");
        check_refused("500-600", "500-600");
        check_refused("500-", "500-");
        check_refused("-1", "-1");
        check_refused("500 - 504", "-");
        check_refused("none 404", "none");
        check_refused("4é", "4é");
        check_refused("", "");
        check_refused(" , ", " , ");
    }

    #[test]
    fn contains_what_was_added_only() {
        let set = StatusSet::EMPTY.with(100).with_range(163, 164).with(599);
        let contained = (0..=u16::MAX).filter(|&status| set.contains(status));
        assert_eq!(contained.collect::<Vec<_>>(), [100, 163, 164, 599]);
    }

    #[test]
    fn joins_two_sets() {
        let joined = StatusSet::SUCCESS.union(StatusSet::EMPTY.with(404));
        assert_eq!(joined.to_string(), "2xx 404");
        assert_eq!(joined.union(StatusSet::EMPTY), joined);
    }

    #[track_caller]
    fn check_panics(build: fn() -> StatusSet) {
        assert!(std::panic::catch_unwind(build).is_err());
    }

    #[test]
    fn panics_where_a_number_is_no_status() {
        check_panics(|| StatusSet::EMPTY.with(99));
        check_panics(|| StatusSet::EMPTY.with(600));
        check_panics(|| StatusSet::EMPTY.with(u16::MAX));
        check_panics(|| StatusSet::EMPTY.with_range(500, u16::MAX));
        check_panics(|| StatusSet::EMPTY.with_range(504, 500));
        check_panics(|| StatusSet::EMPTY.with_class(0));
        check_panics(|| StatusSet::EMPTY.with_class(6));
        check_panics(|| StatusSet::EMPTY.with_class(u16::MAX));
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(statuses in prop::collection::vec((100_u16..=599, 0_u16..=250), 0..8)) {
            let set = statuses.into_iter().fold(StatusSet::EMPTY, |set, (first, len)| {
                set.with_range(first, (first + len).min(599))
            });
            prop_assert_eq!(set.to_string().parse::<StatusSet>(), Ok(set));
        }

        #[test]
        fn never_panics_on_text(any in any::<String>(), like in "[0-9x, \\-]{0,24}") {
            let _ = any.parse::<StatusSet>();
            let _ = like.parse::<StatusSet>();
        }
    }
}

mod response {
    use super::*;

    #[track_caller]
    fn check(statuses: std::ops::RangeInclusive<u16>, verdict: Verdict, category: Category) {
        for status in statuses {
            let class = Class { verdict, category, code: Some(Code::from(status)) };
            assert_eq!(Class::of_status(status), class);
        }
    }

    #[test]
    fn is_judged_by_its_status() {
        for status in 100..=399 {
            assert_eq!(Class::of_status(status), Class::DONE);
        }
        check(400..=407, Verdict::Stop, Category::Rejected);
        check(408..=408, Verdict::Retry, Category::Timeout);
        check(409..=424, Verdict::Stop, Category::Rejected);
        check(425..=425, Verdict::Retry, Category::Transient);
        check(426..=428, Verdict::Stop, Category::Rejected);
        check(429..=429, Verdict::Retry, Category::Throttled);
        check(430..=499, Verdict::Stop, Category::Rejected);
        check(500..=500, Verdict::Retry, Category::Transient);
        check(501..=501, Verdict::Stop, Category::Rejected);
        check(502..=503, Verdict::Retry, Category::Transient);
        check(504..=504, Verdict::Retry, Category::Timeout);
        check(505..=505, Verdict::Stop, Category::Rejected);
        check(506..=599, Verdict::Retry, Category::Transient);
        check(600..=u16::MAX, Verdict::Retry, Category::Unknown);
        check(0..=99, Verdict::Retry, Category::Unknown);
    }

    #[test]
    fn is_retryable_as_the_constant_set_says() {
        for status in 100..=599 {
            let retried = Class::of_status(status).verdict == Verdict::Retry;
            assert_eq!(StatusSet::RETRYABLE.contains(status), retried, "status {status}");
        }
    }

    #[track_caller]
    fn check_header(status: u16, header: Option<&str>, verdict: Verdict) {
        let class = Class::of_response(status, header, example_date());
        assert_eq!(class.verdict, verdict);
        assert_eq!(
            Class { verdict: Class::of_status(status).verdict, ..class },
            Class::of_status(status)
        );
    }

    #[test]
    fn waits_as_its_header_says_where_it_is_retried() {
        let after = |seconds| Verdict::RetryAfter(Duration::from_secs(seconds));
        check_header(503, Some("7"), after(7));
        check_header(429, Some("Sun, 06 Nov 1994 08:50:37 GMT"), after(60));
        check_header(429, Some("Sun, 06 Nov 1994 08:48:37 GMT"), after(0));
        check_header(504, Some("999999999"), after(3600));
        check_header(503, Some("soon"), Verdict::Retry);
        check_header(503, None, Verdict::Retry);
        check_header(404, Some("7"), Verdict::Stop);
        check_header(409, Some("7"), after(7));
        check_header(409, Some("soon"), Verdict::Stop);
        check_header(409, None, Verdict::Stop);
        check_header(301, Some("7"), Verdict::Done);
        check_header(999, Some("7"), after(7));
    }
}

mod retry_after {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: Option<RetryAfter>) {
        assert_eq!(RetryAfter::parse(value), expected);
    }

    fn seconds(seconds: u64) -> Option<RetryAfter> {
        Some(RetryAfter::Delay(Duration::from_secs(seconds)))
    }

    #[test]
    fn reads_whole_seconds_of_any_size() {
        check("0", seconds(0));
        check("120", seconds(120));
        check(" \t007 ", seconds(7));
        check("18446744073709551615", seconds(u64::MAX));
        check("18446744073709551616", seconds(u64::MAX));
        check(&"9".repeat(400), seconds(u64::MAX));
        check(&format!("{}5", "0".repeat(400)), seconds(5));
    }

    #[test]
    fn reads_all_three_forms_of_a_date() {
        let at = Some(RetryAfter::At(example_date()));
        check("Sun, 06 Nov 1994 08:49:37 GMT", at);
        check("Sunday, 06-Nov-94 08:49:37 GMT", at);
        check("Sun Nov  6 08:49:37 1994", at);
        check(" Sun, 06 Nov 1994 08:49:37 GMT ", at);
    }

    #[test]
    fn ignores_what_is_neither() {
        for value in [
            "",
            " ",
            "-1",
            "-0",
            "+1",
            "1.5",
            "1e18",
            "0x10",
            "1 2",
            "1,2",
            "12s",
            "soon",
            "NaN",
            "inf",
            "٣",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 1994",
            "Sün, 06 Nov 1994 08:49:37 GMT",
        ] {
            check(value, None);
        }
    }

    #[track_caller]
    fn check_delay(retry_after: RetryAfter, delay: Duration) {
        assert_eq!(retry_after.delay(example_date()), delay);
    }

    #[test]
    fn waits_until_the_date_but_never_longer_than_the_cap() {
        let date = example_date();
        let day = Duration::from_secs(24 * 60 * 60);
        let nanosecond = Duration::from_nanos(1);
        check_delay(RetryAfter::At(date + nanosecond), nanosecond);
        check_delay(RetryAfter::At(date), Duration::ZERO);
        check_delay(RetryAfter::At(date - day), Duration::ZERO);
        check_delay(RetryAfter::At(date + day), RetryAfter::DELAY_MAX);
        check_delay(RetryAfter::Delay(RetryAfter::DELAY_MAX), RetryAfter::DELAY_MAX);
        check_delay(RetryAfter::Delay(RetryAfter::DELAY_MAX + nanosecond), RetryAfter::DELAY_MAX);
        check_delay(RetryAfter::Delay(Duration::MAX), RetryAfter::DELAY_MAX);
    }

    #[test]
    fn reads_the_push_back_of_grpc() {
        let after = |millis| Verdict::RetryAfter(Duration::from_millis(millis));
        for (value, expected) in [
            ("0", after(0)),
            (" 1500 ", after(1500)),
            ("2147483647", Verdict::RetryAfter(RetryAfter::DELAY_MAX)),
            ("2147483648", Verdict::Stop),
            ("-1", Verdict::Stop),
            ("-2147483648", Verdict::Stop),
            ("1.5", Verdict::Stop),
            ("soon", Verdict::Stop),
            ("", Verdict::Stop),
        ] {
            assert_eq!(grpc_pushback(value), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_text(
            any in any::<String>(),
            imf in "(Mon|Sun), [0-9]{2} (Feb|Nov) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            rfc850 in "(Mon|Sun)day, [0-9]{2}-(Feb|Nov)-[0-9]{2} [0-9:]{8} GMT",
            asctime in "(Mon|Sun) (Feb|Nov) [ 0-9]{2} [0-9:]{8} [0-9]{4}",
        ) {
            for text in [any, imf, rfc850, asctime] {
                let _ = grpc_pushback(&text);
                if let Some(retry_after) = RetryAfter::parse(&text) {
                    prop_assert!(retry_after.delay(example_date()) <= RetryAfter::DELAY_MAX);
                }
            }
        }
    }
}

mod io_error {
    use super::*;

    #[track_caller]
    fn check(error: io::Error, expected: Class) {
        assert_eq!(error.classify(), expected);
    }

    fn passes(code: &'static str) -> Class {
        Class::retry(Category::Io).with_code(code)
    }

    fn stays(code: &'static str) -> Class {
        Class::stop(Category::Io).with_code(code)
    }

    #[test]
    fn is_judged_by_its_kind() {
        let timed_out = Class::retry(Category::Timeout).with_code("timed_out");
        check(ErrorKind::TimedOut.into(), timed_out);
        check(ErrorKind::ConnectionRefused.into(), passes("connection_refused"));
        check(ErrorKind::UnexpectedEof.into(), passes("unexpected_eof"));
        check(ErrorKind::AddrInUse.into(), passes("addr_in_use"));
        check(ErrorKind::NotFound.into(), stays("not_found"));
        check(ErrorKind::InvalidData.into(), stays("invalid_data"));
        check(ErrorKind::StorageFull.into(), stays("storage_full"));
        check(io::Error::other("full moon"), passes("other"));
    }

    #[test]
    fn has_the_name_of_its_kind_as_its_code() {
        for (kind, _, code) in KINDS {
            assert_eq!(code.replace('_', ""), format!("{kind:?}").to_lowercase());
        }
    }

    #[test]
    fn is_retried_when_its_kind_is_unknown() {
        // No system has an error with this number.
        let unknown = io::Error::from_raw_os_error(i32::MAX);
        assert_eq!(unknown.classify(), Class::retry(Category::Io));
    }

    #[test]
    fn is_judged_by_the_one_inside_an_untold_one() {
        let missing = || io::Error::from(ErrorKind::NotFound);
        check(io::Error::other(missing()), stays("not_found"));
        check(io::Error::other(io::Error::other(missing())), stays("not_found"));
        check(io::Error::other(DueReason(Some(Box::new(missing())))), stays("not_found"));
        check(io::Error::other(Arc::new(missing())), stays("not_found"));
        check(io::Error::new(ErrorKind::BrokenPipe, missing()), passes("broken_pipe"));
        check(io::Error::other(DueReason(None)), passes("other"));
    }
}

/// An error with a cause.
#[derive(Debug)]
struct DueReason(Option<Box<dyn Error + Send + Sync>>);

impl fmt::Display for DueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("something Went wrong")
    }
}

impl Error for DueReason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|source| source as _)
    }
}

mod matcher;
mod database;
