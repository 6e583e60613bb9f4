//! Performance goals, relative to the fastest peer.

/// The maximum time of a subject.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// This many times the peer's time.
    Times(f64),
    /// This many nanoseconds more than the peer.
    Plus(f64),
}

/// A comparison with the fastest of some peers.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    pub peers: &'static [&'static str],
    /// One for each number of threads; a comparison without a limit is only reported.
    pub limits: &'static [(usize, Limit)],
}

/// The result of the comparison.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub versus: &'static str,
    pub ratio: f64,
    /// The largest allowed ratio.
    pub target: Option<f64>,
    pub limit: Option<Limit>,
}

/// Two measurements of the same subject may differ by this much.
const NOISE: f64 = 0.15;

impl Goal {
    pub fn verdict(
        &self,
        threads: usize,
        versus: &'static str,
        ratio: f64,
        peer_nanos: f64,
    ) -> Verdict {
        let limit = self.limits.iter().find(|(of, _)| *of == threads).map(|(_, limit)| *limit);
        let target = limit.map(|limit| match limit {
            Limit::Times(times) => times,
            Limit::Plus(nanos) => (peer_nanos + nanos) / peer_nanos,
        });
        Verdict { versus, ratio, target, limit }
    }
}

impl Verdict {
    /// Returns whether the target was reached, if there is one. "As fast as" allows for noise;
    /// "clearly faster" and "at most this much more" already include it.
    pub fn is_reached(&self) -> Option<bool> {
        let is_parity = matches!(self.limit, Some(Limit::Times(times)) if times == 1.0);
        let noise = if is_parity { NOISE } else { 0.0 };
        self.target.map(|target| self.ratio <= target + noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: Limit, ratio: f64, expected: bool) {
        let limits = Box::leak(Box::new([(1, limit)]));
        let goal = Goal { peers: &["peer"], limits };
        assert_eq!(goal.verdict(1, "peer", ratio, 20.0).is_reached(), Some(expected));
        assert_eq!(goal.verdict(2, "peer", ratio, 20.0).is_reached(), None);
    }

    #[test]
    fn as_fast_as_a_peer_allows_for_noise() {
        check(Limit::Times(1.0), 1.15, true);
        check(Limit::Times(1.0), 1.16, false);
    }

    #[test]
    fn a_little_slower_than_a_peer_does_not() {
        check(Limit::Times(1.02), 1.02, true);
        check(Limit::Times(1.02), 1.03, false);
    }

    #[test]
    fn clearly_faster_than_a_peer_does_not() {
        check(Limit::Times(0.5), 0.5, true);
        check(Limit::Times(0.5), 0.51, false);
    }

    #[test]
    fn so_much_more_than_a_peer_is_reckoned_in_nanoseconds() {
        check(Limit::Plus(10.0), 1.5, true);
        check(Limit::Plus(10.0), 1.51, false);
    }
}
