//! Counts the jobs of one kind or one tenant in this engine.

use rewheel_core::Ramp;

/// Number of jobs that were claimed, wait for a slot and run.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Jobs that claims in progress may return.
    asked: usize,
    /// Jobs that are due here and wait for a slot.
    queued: usize,
    running: usize,
    /// Attempts from before an outage of the dependency. They may hang until their timeout: they take slots, but do not say
    /// whether the dependency is back.
    old: usize,
    /// Increases when running attempts become old.
    outages: u64,
    /// Number of attempts that may run while the kind recovers from an outage.
    ramp: Option<Ramp>,
}

impl Load {
    pub(super) fn ask(&mut self, jobs: usize) {
        self.asked += jobs;
    }

    pub(super) fn unask(&mut self, jobs: usize) {
        self.asked = self.asked.saturating_sub(jobs);
    }

    pub(super) fn queue(&mut self) {
        self.queued += 1;
    }

    pub(super) fn unqueue(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Begins an attempt. Returns the outage count, which [`Load::end`] needs.
    pub(super) fn begin(&mut self) -> u64 {
        self.running += 1;
        self.outages
    }

    /// Ends an attempt that began at this outage count.
    pub(super) fn end(&mut self, outages: u64) {
        let count = if outages == self.outages { &mut self.running } else { &mut self.old };
        *count = count.saturating_sub(1);
    }

    /// Records that the dependency is down: running attempts become old.
    pub(super) fn set_aside(&mut self) {
        if self.running > 0 {
            self.old += self.running;
            self.running = 0;
            self.outages += 1;
        }
    }

    /// Returns the number of running attempts, including old ones.
    pub(super) const fn running(&self) -> usize {
        self.running + self.old
    }

    /// Returns the number of running attempts that began since the last outage.
    pub(super) const fn running_since(&self) -> usize {
        self.running
    }

    /// Returns the number of running attempts from before an outage.
    pub(super) const fn old(&self) -> usize {
        self.old
    }

    /// Returns whether all running attempts are from before an outage. Then one more attempt may run, whatever the limits: it has
    /// to test whether the dependency is back.
    pub(super) const fn only_old_runs(&self) -> bool {
        self.running == 0 && self.old > 0
    }

    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the number of jobs that were claimed or wait.
    pub(super) const fn waiting(&self) -> usize {
        self.asked + self.queued
    }

    /// Returns the number of jobs that were claimed, wait or run.
    pub(super) const fn all(&self) -> usize {
        self.fresh() + self.old
    }

    /// The same without attempts from before an outage.
    pub(super) const fn fresh(&self) -> usize {
        self.asked + self.queued + self.running
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.all() == 0
    }

    /// Returns how many more jobs to claim, where up to `most` may run: nearly as many again wait, so that no slot waits for the
    /// store. A fifth less, so that there is always capacity to claim other jobs. Of the jobs that are being claimed only those
    /// of the same claim count here, `mine`: the engine's capacity for all jobs limits the others, and claims from a distant
    /// store must overlap.
    pub(super) fn room(&self, most: usize, mine: usize) -> usize {
        let most = most.saturating_mul(2).saturating_sub(most.div_ceil(5));
        let of_ramp = self.ramp().map_or(usize::MAX, |ramp| ramp.saturating_sub(self.fresh()));
        most.saturating_sub(self.queued + self.running() + mine).min(of_ramp)
    }

    /// Returns whether the ramp allows one more attempt.
    pub(super) fn ramp_allows(&self) -> bool {
        self.ramp.is_none_or(|ramp| ramp.allows(self.running))
    }

    /// Returns how many attempts may run while it recovers from an outage.
    pub(super) fn ramp(&self) -> Option<usize> {
        self.ramp.map(Ramp::limit)
    }

    /// Returns whether it recovers from an outage.
    pub(super) const fn is_ramping(&self) -> bool {
        self.ramp.is_some()
    }

    /// Starts the ramp: one attempt at first.
    pub(super) fn ramp_up(&mut self) {
        self.ramp = Some(Ramp::START);
    }

    /// Continues the ramp after a success.
    pub(super) fn succeeded(&mut self, slots: usize) {
        self.ramp = self.ramp.and_then(|ramp| ramp.succeeded(slots));
    }

    /// Continues the ramp after a failure. If more attempts fail than succeed, the breaker opens.
    pub(super) fn failed(&mut self) {
        self.ramp = self.ramp.map(Ramp::failed);
    }
}

#[cfg(test)]
mod tests {
    use super::Load;

    /// Begins as many attempts as the ramp allows.
    fn fill(load: &mut Load) -> Vec<u64> {
        let mut begun = Vec::new();
        while load.ramp_allows() && begun.len() < 100 {
            begun.push(load.begin());
        }
        begun
    }

    #[test]
    fn a_ramp_doubles_with_each_round_of_successes_and_shrinks_with_failures() {
        let mut load = Load::default();
        load.ramp_up();
        let mut rounds = Vec::new();
        for _ in 0..4 {
            let running = fill(&mut load);
            rounds.push(running.len());
            for outages in running {
                load.succeeded(100);
                load.end(outages);
            }
        }
        assert_eq!(rounds, [1, 2, 4, 8]);
        (0..8).for_each(|_| load.failed());
        assert_eq!(load.room(100, 0), 8);
        (0..20).for_each(|_| load.failed());
        assert_eq!(load.room(100, 0), 1);
    }

    #[test]
    fn a_ramp_ends_though_some_fail_as_they_always_do() {
        let mut load = Load::default();
        load.ramp_up();
        for number in 0..1_000 {
            if number % 5 == 0 { load.failed() } else { load.succeeded(256) }
        }
        assert!(!load.is_ramping());
    }

    #[test]
    fn a_ramp_ends_when_there_is_one_for_each_slot() {
        let mut load = Load::default();
        load.ramp_up();
        (0..4).for_each(|_| load.succeeded(4));
        assert_eq!(load.room(10, 0), 18);
    }

    #[test]
    fn old_attempts_end_as_old_ones() {
        let mut load = Load::default();
        let (old, other) = (load.begin(), load.begin());
        load.set_aside();
        load.set_aside();
        assert!(load.only_old_runs() && load.fresh() == 0 && load.running() == 2);
        let probe = load.begin();
        assert!(!load.only_old_runs());
        load.end(old);
        load.end(probe);
        load.end(other);
        assert!(load.is_idle());
    }

    #[test]
    fn what_waits_takes_room() {
        let mut load = Load::default();
        load.ask(2);
        load.queue();
        assert_eq!((load.room(10, 0), load.all()), (17, 3));
        load.unask(2);
        load.unqueue();
        assert_eq!(load.room(10, 0), 18);
    }
}
