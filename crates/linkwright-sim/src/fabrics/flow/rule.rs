//! Which of several equally short ways messages take: what a file states; [`super::spread`] follows it.

/// How messages use equal ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Single,
    Hash,
    Spray,
    Adaptive,
}

impl Rule {
    /// In the order of [`ROUTINGS`](linkwright_core::machine::ROUTINGS).
    pub const ALL: [Rule; 4] = [Rule::Single, Rule::Hash, Rule::Spray, Rule::Adaptive];
}

/// The rule of a class of links; one that the file states holds apart from the one that it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    pub rule: Rule,
    pub stated: bool,
}
