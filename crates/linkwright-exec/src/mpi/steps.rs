//! What the steps of a rank are made of.

use std::ops::Range;

/// A place in the memory of this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a buffer of a participant that lives here.
    Buffer { participant: u32, buffer: u8 },
    /// Where messages wait.
    Staging,
}

/// A place and an offset in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub place: Place,
    pub offset: usize,
}

/// Contiguous bytes to move within this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub from: Spot,
    pub to: Spot,
    pub bytes: usize,
}

/// A message of this rank, in as many parts as its length needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub peer: u32,
    pub tag: u32,
    pub spot: Spot,
    pub bytes: usize,
    /// First of its requests.
    pub request: u32,
}

/// What a rank does, one after the other.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Irecv.
    Post(u32),
    /// Isend.
    Send(u32),
    /// Wait for either.
    Wait(u32),
    /// Wait until at most this many messages of a lane are under way.
    Room { lane: u8, most: u32 },
    /// A message that was begun takes a place of its lane.
    Take { lane: u8, message: u32 },
    /// Overwrite.
    Copy(Range<u32>),
    /// Combine into the destination.
    Reduce(Range<u32>),
    /// Arithmetic without data.
    Compute(u64),
}

/// What one rank does in a repetition.
#[derive(Clone, Debug, Default)]
pub(super) struct RankProgram {
    pub steps: Vec<Step>,
    pub messages: Vec<Message>,
    pub pieces: Vec<Piece>,
    pub staging_bytes: usize,
    pub requests: u32,
    /// Longest part of a message.
    pub part_bytes: usize,
}

pub(super) fn at(place: Place, offset: usize) -> Spot {
    Spot { place, offset }
}

pub(super) fn buffer(participant: u32, buffer: u8) -> Place {
    Place::Buffer {
        participant,
        buffer,
    }
}
