//! The format number that every holder registers: which stored fields its release can handle.

/// Describes which fields of a job a release can store without loss. Each feature that an older release would damage has a number.
/// While a living holder has a smaller number, the store refuses jobs that use the feature.
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
    /// The format of releases without format numbers. Every release can handle jobs of this format.
    pub const FIRST: Format = Format(0);

    /// Jobs have a parent. An older release loses the parent when it moves a job to another table.
    pub const FOLLOW_UPS: Format = Format(1);

    /// Debounced jobs have lanes of their own. An older release would not claim from them, or claim too early.
    pub const DEBOUNCE: Format = Format(2);

    /// Jobs have an instant. An older release loses the instant when it moves a job to another table.
    pub const SCHEDULES: Format = Format(3);

    /// Jobs have a group. An older release would run them without their order.
    pub const GROUPS: Format = Format(4);

    /// This release.
    pub const CURRENT: Format = Format::GROUPS;

    /// Creates a format from its stored number.
    pub const fn new(number: u32) -> Format {
        Format(number)
    }

    /// Returns the number that is stored.
    pub const fn get(self) -> u32 {
        self.0
    }
}
