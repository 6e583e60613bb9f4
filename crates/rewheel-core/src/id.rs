//! Identifiers of jobs and holders, fences and versions.

use crate::timestamp::Timestamp;
use rewheel::Random;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Error: the text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid id: use a UUID such as 0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e")]
pub struct IdError(String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Creates an id. A newer id sorts after an older id, which keeps indexes compact. Nothing else depends on the time in an id.
            pub fn new(now: Timestamp, random: &Random) -> $name {
                let mut bytes = [0; 10];
                bytes[..8].copy_from_slice(&random.next().to_le_bytes());
                bytes[8..].copy_from_slice(&random.next().to_le_bytes()[..2]);
                let millis = u64::try_from(now.as_millis()).unwrap_or(0);
                $name(uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid())
            }

            /// Creates an id from the 16 bytes that a store holds.
            pub const fn from_bytes(bytes: [u8; 16]) -> $name {
                $name(Uuid::from_bytes(bytes))
            }

            /// Returns the 16 bytes that a store holds.
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$name, IdError> {
                // Accept the printed form only: people and scripts compare ids as text.
                let id = Uuid::try_parse(text).map_err(|_| IdError(text.to_owned()))?;
                if id.to_string() == text { Ok($name(id)) } else { Err(IdError(text.to_owned())) }
            }
        }
    };
}

id! {
    /// Identifies a job. The submitter creates it before the insert, so that an insert whose response was lost can be repeated.
    ///
    /// ```
    /// use rewheel::Random;
    /// use rewheel_core::{JobId, Timestamp};
    ///
    /// let random = Random::seeded(1);
    /// let earlier = JobId::new(Timestamp::from_millis(1_000), &random);
    /// let later = JobId::new(Timestamp::from_millis(1_001), &random);
    /// assert!(earlier < later);
    /// assert_eq!(later.to_string().parse(), Ok(later));
    /// ```
    JobId
}

id! {
    /// Identifies a holder: one start of an engine, or one remote worker. Each start has a new id, and a dead id is never used
    /// again.
    HolderId
}

impl HolderId {
    /// Returns the score of this holder for an item; the holder with the highest score owns the item. All nodes that know
    /// the same holders compute the same owner. When a holder leaves, only its own items get another owner.
    pub fn score(self, what: &[u8]) -> u64 {
        hash(what.iter().copied().chain(self.to_bytes()))
    }
}

/// FNV-1a with a final mixing step, since its low bits depend little on the first bytes. The result must stay the same on every
/// node and in every version: lanes of stored jobs depend on it.
pub(crate) fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let sum = (sum ^ (sum >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    sum ^ (sum >> 29)
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Creates the value from the number that a store holds.
            pub const fn new(number: u64) -> $name {
                $name(number)
            }

            /// Returns the number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Returns the next value.
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Increases with every lease write of a job, including sticky retries. A holder that was suspended for longer than its lease
    /// still believes that it holds the job; the larger fence makes its late write match no row.
    Fence
}

number! {
    /// Increases with every visible change of a job; serves as its `ETag`.
    Version
}

number! {
    /// The number of a release in a group. It grows with every release of any group, so a later release of the same group has a
    /// larger number.
    Turn
}
