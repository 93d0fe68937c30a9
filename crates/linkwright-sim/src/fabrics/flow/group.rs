//! A message between more than two, and the branches by which it travels; [`super::groups`] works them out.

use linkwright_core::TimePs;
use rustc_hash::FxHashMap;

/// Who takes part in a message, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    /// One for a multicast.
    pub sources: Vec<u32>,
    pub targets: Vec<u32>,
    pub network: u8,
    pub combines: bool,
}

/// A target of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    /// Its place in the set of targets.
    pub place: u32,
    /// How long the last byte takes to it.
    pub timing: u32,
    /// From the delivery until the initiator knows of it.
    pub back: TimePs,
}

/// One flow of a message to several targets, or from several sources.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub route: u32,
    pub targets: Vec<Reached>,
}

/// The branches of all groups so far.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub known: FxHashMap<Group, Option<(u32, u32)>>,
    pub branches: Vec<Branch>,
}
