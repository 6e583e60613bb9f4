//! Shards: assigns each job to a part of the work.

use crate::id::{HolderId, hash};
use crate::name::{ShardKey, Tenant};

/// A part of the work. Jobs of one shard run on the same holder, as long as this holder has free slots.
///
/// ```
/// use rewheel_core::{Shard, ShardKey, Tenant};
///
/// let acme = Tenant::parse("acme")?;
/// let (one, other) = (ShardKey::parse("cart 1")?, ShardKey::parse("cart 2")?);
/// assert_eq!(Shard::of(Some(&acme), Some(&one)), Shard::of(Some(&acme), Some(&one)));
/// assert_ne!(Shard::of(Some(&acme), Some(&one)), Shard::of(Some(&acme), Some(&other)));
/// assert_eq!(Shard::of(None, None), Shard::NONE);
/// # Ok::<(), rewheel_core::NameError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u16);

impl Shard {
    /// The shard of a job that has neither tenant nor shard key; it belongs to all holders.
    pub const NONE: Shard = Shard(0);

    /// Number of shards that tenants and shard keys are spread over. Each lane in use adds to the cost of every claim. So there
    /// are only 64 shards, which is enough to balance a fleet of about twenty holders.
    pub const SPREAD: u8 = 64;

    /// The stored number of a debounced shard is that of its shard, plus this: the first number that no shard has.
    const DEBOUNCED: u16 = 256;

    /// Creates a shard from a number; 0 is [`Shard::NONE`].
    pub const fn new(number: u8) -> Shard {
        Shard(number as u16)
    }

    /// Creates a shard from its stored number, if there is such a shard.
    pub const fn stored(number: u16) -> Option<Shard> {
        if number < 2 * Shard::DEBOUNCED { Some(Shard(number)) } else { None }
    }

    /// Returns its stored number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the part of this shard with its debounced jobs. They have lanes of their own, because they are claimed only when they
    /// are due: a job that waits in the timing wheel of an engine could not be postponed.
    ///
    /// ```
    /// use rewheel_core::Shard;
    ///
    /// let shard = Shard::new(7);
    /// assert_eq!(shard.debounced().number(), shard.number());
    /// assert_ne!(shard.debounced(), shard);
    /// assert_eq!(shard.debounced().debounced(), shard.debounced());
    /// ```
    #[must_use]
    pub const fn debounced(self) -> Shard {
        Shard(self.0 % Shard::DEBOUNCED + Shard::DEBOUNCED)
    }

    /// Returns whether these are the debounced jobs of a shard.
    pub const fn is_debounced(self) -> bool {
        self.0 >= Shard::DEBOUNCED
    }

    /// Returns its number, which its debounced jobs share.
    pub const fn number(self) -> u8 {
        (self.0 % Shard::DEBOUNCED) as u8
    }

    /// Returns the shard of a tenant and a shard key: 1 to [`Shard::SPREAD`]. Without tenant and
    /// shard key it is [`Shard::NONE`].
    pub fn of(tenant: Option<&Tenant>, key: Option<&ShardKey>) -> Shard {
        if tenant.is_none() && key.is_none() {
            return Shard::NONE;
        }
        let tenant = tenant.map_or("", Tenant::as_str).bytes();
        let key = key.map_or("", ShardKey::as_str).bytes();
        // Names contain no control characters, so the separator keeps (ab, c) and (a, bc) apart.
        let sum = hash(tenant.chain([0]).chain(key));
        Shard((sum % u64::from(Shard::SPREAD)) as u16 + 1)
    }

    /// Returns the owner of the shard among the holders. All nodes that know the same holders agree, and when a holder joins or
    /// leaves, only its own shards move. `None` if there are no holders.
    pub fn owner(self, holders: &[HolderId]) -> Option<HolderId> {
        holders.iter().copied().max_by_key(|holder| (holder.score(&[self.number()]), *holder))
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;
    use crate::{HolderId, ShardKey, Tenant};

    fn holders(count: u8) -> Vec<HolderId> {
        (0..count).map(|nth| HolderId::from_bytes([nth; 16])).collect()
    }

    #[test]
    fn names_are_spread_and_do_not_run_into_each_other() {
        let tenant = |name: &str| Tenant::parse(name).unwrap();
        let mut jobs = [0_usize; 256];
        for nth in 0..6_400 {
            let key = ShardKey::parse(&format!("order {nth}")).unwrap();
            jobs[usize::from(Shard::of(Some(&tenant("acme")), Some(&key)).get())] += 1;
        }
        assert_eq!(jobs[0] + jobs[65..].iter().sum::<usize>(), 0);
        assert!(jobs[1..=64].iter().all(|count| (50..170).contains(count)), "{jobs:?}");
        let key = |name: &str| ShardKey::parse(name).unwrap();
        let one = Shard::of(Some(&tenant("ab")), Some(&key("c")));
        assert_ne!(one, Shard::of(Some(&tenant("a")), Some(&key("bc"))));
    }

    #[test]
    fn a_shard_is_where_it_always_was() {
        // A different number would send stored jobs and later submits to different lanes.
        let tenant = Tenant::parse("acme").unwrap();
        let key = ShardKey::parse("order 17").unwrap();
        let numbers = [
            Shard::of(Some(&tenant), None).get(),
            Shard::of(None, Some(&key)).get(),
            Shard::of(Some(&tenant), Some(&key)).get(),
        ];
        assert_eq!(numbers, [54, 13, 30]);
    }

    #[test]
    fn only_the_shards_of_who_goes_move() {
        let (all, gone) = (holders(5), HolderId::from_bytes([3; 16]));
        let left: Vec<HolderId> = all.iter().copied().filter(|holder| *holder != gone).collect();
        let mut shares = [0_usize; 5];
        for shard in (0..=255).map(Shard::new) {
            let owner = shard.owner(&all).unwrap();
            shares[usize::from(owner.to_bytes()[0])] += 1;
            if owner != gone {
                assert_eq!(shard.owner(&left), Some(owner));
            }
        }
        assert!(shares.iter().all(|share| (25..90).contains(share)), "{shares:?}");
        assert_eq!(Shard::new(1).owner(&[]), None);
    }

    #[test]
    fn debounced_jobs_have_the_owner_of_their_shard() {
        for number in 0..=u8::MAX {
            let (shard, debounced) = (Shard::new(number), Shard::new(number).debounced());
            assert_eq!(debounced.owner(&holders(5)), shard.owner(&holders(5)));
            assert_eq!((shard.is_debounced(), debounced.is_debounced()), (false, true));
            for one in [shard, debounced] {
                assert_eq!((Shard::stored(one.get()), one.number()), (Some(one), number));
            }
        }
        assert_eq!(Shard::stored(512), None);
    }
}
