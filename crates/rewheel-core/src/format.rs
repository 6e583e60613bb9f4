//! The number of a release's stored formats, which every holder registers with.

/// What the rows of a store may contain for a release to handle them without loss. Each feature that an older release would damage
/// has a number. While a holder with a smaller number lives, a job that uses the feature is refused.
///
/// ```
/// use rewheel_core::Format;
///
/// assert!(Format::FIRST < Format::FOLLOW_UPS);
/// assert!(Format::FOLLOW_UPS <= Format::CURRENT);
/// assert_eq!(Format::new(Format::CURRENT.get()), Format::CURRENT);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Format(u32);

impl Format {
    /// Releases before there were numbers. Every release handles jobs of this format.
    pub const FIRST: Format = Format(0);

    /// Jobs have a parent. An older release loses it when it moves the job.
    pub const FOLLOW_UPS: Format = Format(1);

    /// This release.
    pub const CURRENT: Format = Format::FOLLOW_UPS;

    /// Creates a format from its stored number.
    pub const fn new(number: u32) -> Format {
        Format(number)
    }

    /// Returns the number that is stored.
    pub const fn get(self) -> u32 {
        self.0
    }
}
