//! Hosts that asked this node to wait.

use rewheel::Moment;
use rewheel_core::KindName;
use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of hosts to remember. One more is not held: only its own job waits.
const HOSTS_MAX: usize = 10_000;

/// Calls that were put off come back over at most this time after the hold.
const SPREAD_MAX: Duration = Duration::from_secs(60);

/// The held hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    held: HashMap<String, Hold>,
}

#[derive(Debug)]
struct Hold {
    until: Moment,
    /// How long the host asked to wait.
    lasts: Duration,
    /// The kind whose call was refused.
    by: KindName,
}

impl Hosts {
    /// Holds a host. A longer hold stays. Returns whether anything changed.
    pub(super) fn hold(&mut self, host: &str, by: &KindName, until: Moment, now: Moment) -> bool {
        if self.until(host, now).is_some_and(|known| known >= until) {
            return false;
        }
        if self.held.len() >= HOSTS_MAX && !self.held.contains_key(host) {
            self.held.retain(|_, hold| hold.until > now);
            if self.held.len() >= HOSTS_MAX {
                return false;
            }
        }
        let hold = Hold { until, lasts: until.since(now), by: by.clone() };
        self.held.insert(host.to_owned(), hold);
        true
    }

    /// Returns until when a host is held.
    pub(super) fn until(&self, host: &str, now: Moment) -> Option<Moment> {
        self.held.get(host).map(|hold| hold.until).filter(|until| *until > now)
    }

    /// Returns how long a call that is put off waits: until the end of the hold, and a random part of its length, so that not all
    /// come back at once.
    pub(super) fn put_off(&self, host: &str, now: Moment, chance: u64) -> Option<Duration> {
        let hold = self.held.get(host).filter(|hold| hold.until > now)?;
        let spread = hold.lasts.min(SPREAD_MAX);
        let spread = u64::try_from(spread.as_millis()).unwrap_or(u64::MAX).max(1);
        Some(hold.until.since(now) + Duration::from_millis(chance % spread))
    }

    /// Ends the holds of a host, and those that a kind caused.
    pub(super) fn release(&mut self, host: Option<&str>, by: &KindName) {
        self.held.retain(|name, hold| hold.by != *by && Some(name.as_str()) != host);
    }
}

#[cfg(test)]
mod tests {
    use super::{HOSTS_MAX, Hosts};
    use rewheel::{Clock, ManualClock, seconds};
    use rewheel_core::KindName;

    #[test]
    fn a_host_is_held_for_the_longest_time_it_asked_for() {
        let manual = ManualClock::new();
        let clock = Clock::from(&manual);
        let (mut hosts, mail) = (Hosts::default(), KindName::parse("mail").unwrap());
        let now = clock.now();
        assert!(hosts.hold("a", &mail, now.plus(seconds(10)), now));
        assert!(!hosts.hold("a", &mail, now.plus(seconds(5)), now), "a shorter one");
        assert_eq!(hosts.until("a", now), Some(now.plus(seconds(10))));
        assert_eq!(hosts.until("b", now), None);
        for chance in [0, 1, u64::MAX] {
            let wait = hosts.put_off("a", now, chance).unwrap();
            assert!(wait >= seconds(10) && wait < seconds(20), "{wait:?}");
        }
        manual.advance(seconds(10));
        assert_eq!(hosts.until("a", clock.now()), None);
        assert_eq!(hosts.put_off("a", clock.now(), 0), None);
    }

    #[test]
    fn a_kind_ends_only_the_holds_that_concern_it() {
        let clock = Clock::from(&ManualClock::new());
        let [mail, other] = ["mail", "other"].map(|name| KindName::parse(name).unwrap());
        let (mut hosts, now) = (Hosts::default(), clock.now());
        for (host, by) in [("a", &mail), ("b", &other), ("c", &other)] {
            hosts.hold(host, by, now.plus(seconds(10)), now);
        }
        hosts.release(Some("b"), &mail);
        assert_eq!(
            ["a", "b", "c"].map(|host| hosts.until(host, now).is_some()),
            [false, false, true]
        );
    }

    #[test]
    fn ended_holds_make_room() {
        let manual = ManualClock::new();
        let clock = Clock::from(&manual);
        let (mut hosts, mail) = (Hosts::default(), KindName::parse("mail").unwrap());
        let until = clock.now().plus(seconds(10));
        for number in 0..HOSTS_MAX {
            assert!(hosts.hold(&number.to_string(), &mail, until, clock.now()));
        }
        assert!(!hosts.hold("one more", &mail, until, clock.now()));
        manual.advance(seconds(10));
        let now = clock.now();
        assert!(hosts.hold("one more", &mail, now.plus(seconds(10)), now));
        assert_eq!(hosts.held.len(), 1);
    }
}
