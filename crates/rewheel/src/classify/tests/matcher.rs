//! Tests of matchers.

use super::*;

fn nested(inner: impl Into<Box<dyn Error + Send + Sync>>) -> DueReason {
    DueReason(Some(Box::new(DueReason(Some(inner.into())))))
}

#[track_caller]
fn check(matcher: &Matcher, error: &(dyn Error + 'static), expected: bool) {
    assert_eq!(matcher.matches(error), expected, "{matcher:?} on {error:?}");
    let not = !matcher.clone();
    assert_eq!(not.matches(error), !expected, "{not:?} on {error:?}");
}

#[test]
fn composes() {
    let (yes, no) = (Matcher::always, Matcher::never);
    for (matcher, expected) in [
        (yes(), true),
        (no(), false),
        (Matcher::any([]), false),
        (Matcher::any([no(), yes()]), true),
        (Matcher::any([no(), no()]), false),
        (Matcher::all([]), true),
        (Matcher::all([yes(), no()]), false),
        (Matcher::all([yes(), yes()]), true),
        (no().or(yes()), true),
        (no().or(no()), false),
        (yes().and(no()), false),
        (yes().and(yes()), true),
    ] {
        check(&matcher, &DueReason(None), expected);
    }
}

#[test]
fn finds_a_text_anywhere_in_the_chain_in_any_case() {
    let error = nested("Deadlock ΣΑΣ found");
    check(&Matcher::text("deadlock"), &error, true);
    check(&Matcher::text("WENT WRONG"), &error, true);
    check(&Matcher::text("Σας"), &nested("σας"), true);
    check(&Matcher::text("σα"), &nested("ΟΣΑΝ"), true);
    check(&Matcher::text("wrong deadlock"), &error, false);
    check(&Matcher::text(""), &error, false);
    check(&Matcher::text("inner"), &io::Error::other(nested("the INNER one")), true);
}

#[test]
fn reads_only_the_beginning_of_a_huge_message() {
    let message = |before: usize| nested(format!("{}needle", "x".repeat(before)));
    check(&Matcher::text("needle"), &message(60_000), true);
    check(&Matcher::text("needle"), &message(10_000_000), false);
}

#[test]
fn survives_a_message_that_cannot_be_written() {
    #[derive(Debug, thiserror::Error)]
    #[error("{}", Broken)]
    struct BrokenError;
    struct Broken;
    impl fmt::Display for Broken {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    check(&Matcher::text("x"), &BrokenError, false);
}

#[test]
fn finds_an_io_kind_anywhere_in_the_chain() {
    let reset = Matcher::io([ErrorKind::TimedOut, ErrorKind::ConnectionReset]);
    let error = || io::Error::from(ErrorKind::ConnectionReset);
    check(&reset, &error(), true);
    check(&reset, &nested(error()), true);
    check(&reset, &io::Error::other(error()), true);
    check(&reset, &nested(io::Error::other(nested(error()))), true);
    check(&reset, &nested(Arc::new(io::Error::other(Box::new(error())))), true);
    check(&reset, &io::Error::from(ErrorKind::BrokenPipe), false);
    check(&reset, &nested("connection reset"), false);
    check(&Matcher::io([]), &error(), false);
}

#[test]
fn finds_an_error_by_its_type_anywhere_in_the_chain() {
    let number = Matcher::source::<std::num::ParseIntError>();
    let error = || "x".parse::<u8>().unwrap_err();
    check(&number, &nested(error()), true);
    check(&number, &io::Error::other(error()), true);
    check(&number, &nested(Arc::new(error())), true);
    check(&number, &DueReason(None), false);
    check(&Matcher::source_where(|e: &DueReason| e.0.is_none()), &nested("x"), false);
    check(&Matcher::source_where(|e: &DueReason| e.0.is_none()), &nested(DueReason(None)), true);
}

#[test]
fn reads_the_status_of_an_error_in_the_chain() {
    #[derive(Debug, thiserror::Error)]
    #[error("answered {0:?}")]
    struct Answered(Option<u16>);
    let server = Matcher::status(StatusSet::EMPTY.with_class(5), |e: &Answered| e.0);
    check(&server, &nested(Answered(Some(503))), true);
    check(&server, &nested(Answered(Some(404))), false);
    check(&server, &nested(Answered(None)), false);
    check(&server, &DueReason(None), false);
}

#[test]
fn ends_where_the_sources_form_a_circle() {
    #[derive(Debug)]
    struct Round;
    impl fmt::Display for Round {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("round")
        }
    }
    impl Error for Round {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }
    check(&Matcher::text("square").or(Matcher::source::<DueReason>()), &Round, false);
    assert_eq!(io::Error::other(Round).classify().verdict, Verdict::Retry);
}

#[test]
fn shows_what_it_is_made_of() {
    let matcher = Matcher::text("A").or(!Matcher::io([ErrorKind::TimedOut]));
    assert_eq!(format!("{matcher:?}"), r#"any[text["a"], !io[TimedOut]]"#);
    let status = Matcher::status(StatusSet::SUCCESS, |_: &fmt::Error| None);
    assert_eq!(format!("{status:?}"), "status[2xx, core::fmt::Error]");
}
