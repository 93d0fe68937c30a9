//! What has certainly happened before an operation, as far as a bounded search finds out.

use super::need::Need;
use crate::ir::{Completion, Schedule};

/// Operations visited by one search for an implied edge.
const SEARCH_LIMIT: usize = 48;

/// Set in [`Chains::of`] where the operation is the last of its chain.
const LAST: u32 = 1 << 31;

/// Every operation continues the chain of one whose delivery it waits for, or opens one.
#[derive(Default)]
pub(super) struct Chains {
    /// The chain of each operation, which is the id of its first one.
    of: Vec<u32>,
}

impl Chains {
    /// Whether `op` is the last of its chain.
    #[inline]
    pub fn ends_with(&self, op: u32) -> bool {
        self.of[op as usize] & LAST != 0
    }

    /// The next operation; it continues the chain that ends with `before`.
    #[inline]
    pub fn push(&mut self, before: Option<u32>) {
        let chain = match before {
            Some(before) => {
                self.of[before as usize] &= !LAST;
                self.of[before as usize]
            }
            None => self.of.len() as u32,
        };
        self.of.push(chain | LAST);
    }

    /// Whether `later` stands in the chain of `earlier`, not before it: ids ascend along a chain.
    #[inline]
    fn is_reached_by(&self, earlier: u32, later: u32) -> bool {
        later >= earlier && (self.of[earlier as usize] ^ self.of[later as usize]) & !LAST == 0
    }
}

/// Searches backwards along edges.
#[derive(Default)]
pub(super) struct Search {
    /// What is proven of earlier operations: by the edges chosen so far, and by needs that are met.
    pub proven: Vec<(u32, Completion)>,
    stack: Vec<(u32, Completion)>,
    seen: Vec<u32>,
}

impl Search {
    /// Whether what is proven so far implies that operation `id` meets `need`.
    pub fn proves(&mut self, out: &Schedule, chains: &Chains, id: u32, need: Need) -> bool {
        if self.proven.is_empty() {
            return false;
        }
        let proven = std::mem::take(&mut self.proven);
        let found = self.follows(&proven, out, chains, id, need);
        self.proven = proven;
        found
    }

    /// Whether operation `id` meets `need` once all of `from` has happened.
    pub fn follows(
        &mut self,
        from: &[(u32, Completion)],
        out: &Schedule,
        chains: &Chains,
        id: u32,
        need: Need,
    ) -> bool {
        self.seen.clear();
        self.stack.clear();
        self.stack.extend_from_slice(from);
        while let Some((at, known)) = self.stack.pop() {
            let delivered = known == Completion::Delivered;
            let source_free = known != Completion::DeliveredHere;
            if at == id && (delivered || (source_free && need == Need::SourceFree)) {
                return true;
            }
            if delivered && chains.is_reached_by(id, at) {
                return true;
            }
            // Edges lead to smaller ids, so nothing below `id` can lead to it.
            if at < id || self.seen.len() >= SEARCH_LIMIT || self.seen.contains(&at) {
                continue;
            }
            self.seen.push(at);
            let initiator = out.ops[at as usize].initiator();
            for &edge in out.after(at) {
                let known = out.completion(edge, initiator);
                let known = known.expect("an edge is visible to its waiter");
                self.stack.push((edge.op(), known));
            }
        }
        false
    }
}
