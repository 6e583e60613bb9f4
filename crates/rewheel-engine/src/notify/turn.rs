//! Decides which holder announces a dead letter.

use rewheel_core::{HolderId, JobId};
use std::time::Duration;

/// Maximum rank: after this many waits an engine announces in any case.
const RANK_MAX: u32 = 9;

/// Returns whether `me` announces a job that died elsewhere this long ago.
///
/// The engine where the job died announces it at once. The others do so only if it does not, each
/// one wait later than the previous one, in an order that differs for each job. So a fleet
/// announces a dead letter once, as long as one engine does it in time.
pub(super) fn is_turn(
    job: JobId,
    me: HolderId,
    living: &[HolderId],
    dead_for: Duration,
    patience: Duration,
) -> bool {
    let others = || living.iter().filter(|holder| **holder != me);
    if others().next().is_none() {
        return true;
    }
    let score = |holder: HolderId| (holder.score(&job.to_bytes()), holder);
    let before = others().filter(|holder| score(**holder) > score(me)).count();
    let rank = u32::try_from(before).unwrap_or(RANK_MAX).min(RANK_MAX);
    dead_for >= patience.saturating_mul(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::is_turn;
    use rewheel::{Random, seconds};
    use rewheel_core::{HolderId, JobId, Timestamp};
    use std::time::Duration;

    const PATIENCE: Duration = seconds(60);

    fn fleet(count: usize) -> (Vec<HolderId>, Random) {
        let random = Random::seeded(7);
        let at = Timestamp::from_millis(0);
        ((0..count).map(|_| HolderId::new(at, &random)).collect(), random)
    }

    fn tellers(job: JobId, living: &[HolderId], dead_for: Duration) -> Vec<usize> {
        let turn = |(_, me): &(usize, &HolderId)| is_turn(job, **me, living, dead_for, PATIENCE);
        living.iter().enumerate().filter(turn).map(|(index, _)| index).collect()
    }

    #[test]
    fn no_other_node_notifies_before_its_wait_is_over_then_one_more_each_time() {
        let (living, random) = fleet(3);
        let job = JobId::new(Timestamp::from_millis(0), &random);
        let counts: Vec<usize> =
            [0, 59, 60, 119, 120, 180].map(|at| tellers(job, &living, seconds(at)).len()).into();
        assert_eq!(counts, [0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn who_is_alone_need_not_wait() {
        let (living, random) = fleet(2);
        let job = JobId::new(Timestamp::from_millis(0), &random);
        assert!(is_turn(job, living[0], &living[..1], seconds(0), PATIENCE));
        assert!(is_turn(job, living[0], &[], seconds(0), PATIENCE));
        assert!(!is_turn(job, living[0], &living[1..], seconds(0), PATIENCE));
    }

    #[test]
    fn the_first_turn_is_spread_over_the_fleet() {
        let (living, random) = fleet(4);
        let mut counts = [0; 4];
        for _ in 0..4_000 {
            let job = JobId::new(Timestamp::from_millis(0), &random);
            counts[tellers(job, &living, PATIENCE)[0]] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn no_node_waits_for_ever_in_a_large_fleet() {
        let (living, random) = fleet(100);
        let job = JobId::new(Timestamp::from_millis(0), &random);
        assert_eq!(tellers(job, &living, PATIENCE * 10).len(), 100);
    }
}
