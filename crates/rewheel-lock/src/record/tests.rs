//! Tests of the rules of a lock.

use super::{Held, Place, Record};
use crate::backend::{Ask, IfHeld, PLACE_TTL, RequestId, Turn};
use crate::name::LockName;
use crate::server_clock::ServerTime;
use rewheel::{Random, seconds};

fn at(seconds: i64) -> ServerTime {
    ServerTime::from_micros(seconds * 1_000_000)
}

fn ids() -> [RequestId; 3] {
    let random = Random::seeded(1);
    [(); 3].map(|()| RequestId::new(&random))
}

fn ask(record: &mut Record, id: RequestId, now: ServerTime) -> Turn {
    let name = LockName::parse("a").unwrap();
    let ask = Ask { name: &name, id, owner: "test", lease: seconds(30), if_held: IfHeld::Wait };
    record.acquire(&ask, now)
}

#[test]
fn a_token_is_at_least_the_time_and_never_smaller_than_before() {
    let ([one, two, three], mut record) = (ids(), Record::default());
    ask(&mut record, one, at(100));
    assert_eq!(record.token, 100_000_000);
    ask(&mut record, two, at(131));
    assert_eq!(record.token, 131_000_000);
    // The clock goes back by more than the lease, and the holder dies.
    record.release(two, at(50));
    ask(&mut record, three, at(50));
    assert_eq!(record.token, 131_000_001);
}

#[test]
fn a_look_that_changes_nothing_needs_no_write() {
    let ([one, two, _], mut record) = (ids(), Record::default());
    ask(&mut record, one, at(100));
    ask(&mut record, two, at(100));
    let before = record.clone();
    ask(&mut record, two, at(102));
    assert_eq!(record, before);
    ask(&mut record, two, at(104));
    assert_ne!(record, before, "the place is kept for longer");
}

#[test]
fn a_request_looks_again_when_something_before_it_expires() {
    let ([one, two, three], mut record) = (ids(), Record::default());
    ask(&mut record, one, at(100));
    let looks = |turn: Turn| {
        let Turn::Waiting { look_again, .. } = turn else { panic!("{turn:?}") };
        look_again
    };
    assert_eq!(looks(ask(&mut record, two, at(110))), seconds(20), "the lease of the holder");
    assert_eq!(looks(ask(&mut record, three, at(111))), PLACE_TTL - seconds(1), "the place ahead");
}

#[test]
fn a_clock_that_goes_back_shortens_what_is_left() {
    let [one, two, _] = ids();
    let held = Some(Held { id: one, owner: String::new(), until_ms: 900_000, lease_ms: 30_000 });
    let line = vec![Place { id: two, until_ms: 900_000 }];
    let mut record = Record { token: 7, held, line };
    assert_eq!(record.inspect(at(10)).holder.unwrap().lease_left, seconds(30));
    ask(&mut record, two, at(10));
    assert_eq!(record.held.unwrap().until_ms, 40_000);
    assert_eq!(record.line[0].until_ms, 16_000);
}
