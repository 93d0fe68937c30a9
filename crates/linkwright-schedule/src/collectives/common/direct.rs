//! Exchanges inside groups whose members all reach each other: parts go straight to their owners and back.
//!
//! ```text
//!   reduce   everyone sends the owner of each part its contribution, which lands in a place of its own;
//!            the owner adds them up
//!   spread   the owner of a part sends it to everyone
//! ```
//!
//! One message per pair and phase. Each has a lane of its own, as has each addition, so that slices of the
//! second phase (transform `pipeline`) overlap with those of the first.

use std::ops::Range;

use super::forest::Lanes;
use crate::builder::{Builder, Chunks, Slot};
use crate::ir::Buffer;

/// Ranks that exchange, and the chunks of the vector that each of them owns: equally many.
pub struct Group {
    /// The ranks.
    pub members: Vec<u32>,
    /// Chunks of each member.
    pub blocks: Vec<Range<u32>>,
}

impl Group {
    /// (member, member `ahead` places ahead) of all, as places in the group.
    fn pairs(&self, ahead: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let count = self.members.len();
        let ahead = (ahead < count).then_some(ahead);
        ahead
            .into_iter()
            .flat_map(move |ahead| (0..count).map(move |i| (i, (i + ahead) % count)))
    }
}

/// The most members of a group.
fn largest(groups: &[Group]) -> usize {
    groups
        .iter()
        .map(|group| group.members.len())
        .max()
        .unwrap_or(0)
}

/// The vector and how it is cut.
#[derive(Clone, Copy)]
pub struct Cut {
    /// Its buffer.
    pub data: Slot,
    /// Chunks in it.
    pub chunks: u32,
    /// Whether all of them are equally long.
    pub even: bool,
}

/// Where contributions land: member by member in as much as a member owns, or, where blocks differ in length, each
/// in the chunks of a whole vector that it comes from.
struct Places {
    slot: Slot,
    whole: Option<u32>,
}

impl Places {
    fn new(b: &mut Builder, cut: Cut, name: &str, groups: &[Group]) -> Self {
        let members = largest(groups) as u32;
        let owned = groups[0].blocks[0].len() as u32;
        let buffer = match cut.even {
            true => Buffer {
                mul: members * owned,
                div: cut.chunks,
                ..Buffer::vector(name, members * owned)
            },
            false => Buffer {
                mul: members,
                slices: cut.chunks,
                ..Buffer::vector(name, members)
            },
        };
        Places {
            slot: b.buffer(buffer),
            whole: (!cut.even).then_some(cut.chunks),
        }
    }

    /// Where `owner` gets the contribution of `from`.
    fn at(&self, group: &Group, from: usize, owner: usize) -> Chunks {
        let block = &group.blocks[owner];
        let (from, count) = (from as u32, block.len() as u32);
        match self.whole {
            Some(chunks) => self.slot.chunks(from * chunks + block.start, count),
            None => self.slot.chunks(from * count, count),
        }
    }
}

/// Combine every block at its owner; contributions land in a buffer `name`.
pub fn reduce(b: &mut Builder, cut: Cut, name: &str, groups: &[Group], lanes: &mut Lanes) {
    let (places, members) = (Places::new(b, cut, name, groups), largest(groups));
    b.step();
    for ahead in 1..members {
        for group in groups {
            for (i, owner) in group.pairs(ahead) {
                let (from, to) = (group.members[i], group.members[owner]);
                let block = cut.data.range(group.blocks[owner].clone());
                b.put(from, block, to, places.at(group, i, owner))
                    .lane(lanes.next(from));
            }
        }
    }
    for ahead in 1..members {
        b.step();
        for group in groups {
            for (i, owner) in group.pairs(ahead) {
                let rank = group.members[owner];
                let block = cut.data.range(group.blocks[owner].clone());
                b.local(rank, places.at(group, i, owner), block)
                    .reduce()
                    .lane(lanes.next(rank));
            }
        }
    }
}

/// Copy every block from its owner to the other members.
pub fn spread(b: &mut Builder, cut: Cut, groups: &[Group], lanes: &mut Lanes) {
    b.step();
    for ahead in 1..largest(groups) {
        for group in groups {
            for (owner, i) in group.pairs(ahead) {
                let (from, to) = (group.members[owner], group.members[i]);
                let block = cut.data.range(group.blocks[owner].clone());
                b.put(from, block, to, block).lane(lanes.next(from));
            }
        }
    }
}
