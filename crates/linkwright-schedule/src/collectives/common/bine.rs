//! Bine trees: binomial trees along the meetings of Swing, whose branches are a third shorter.
//!
//! ```text
//!   places 0 .. 2^k - 1 from the root, on a ring          k = 3:  round 0    0 -> 3
//!   rho(j) = 1 - 2 + 4 - ... (-2)^j = 1, -1, 3, -5, ...           round 1    0 -> 7    3 -> 4
//!   round j = k-1 .. 0: everyone who has the vector sends it      round 2    0 -> 1    3 -> 2   7 -> 6   4 -> 5
//!   by rho(j) ahead where even, back where odd
//! ```
//!
//! In base -2 those who have the vector before round j are the numbers whose digits 0 .. j are all equal, and their
//! partner is the number with these digits turned, one by one or all at once the same. So the subtree of a place
//! that joins in round j are the numbers which agree with it from digit j on: a run of 2^j consecutive places.
//!
//! ```text
//!   the run begins    lowest(j) = -2 - 8 - 32 ... (odd digits below j)  behind the number with digits 0 .. j-1 all 0,
//!   which is the place itself where it is even, and rho(j-1) before it where it is odd
//! ```
//!
//! Beyond a power of two, the first ranks form pairs which share a place: the second of a pair is a leaf below the
//! first, a step away.
//!
//! Source: De Sensi and others, "Bine trees: enhancing collective operations by optimizing communication locality"
//! (SC 2025).

use super::butterfly::Partners;
use super::tree::Branch;

/// The branches of a tree over `p` ranks, round by round as a broadcast uses them.
pub fn bine(p: u32, root: u32) -> Vec<Vec<Branch>> {
    let places = Places::new(p);
    // Places that have the vector, and where their subtrees begin, as seen from the root.
    let mut reached = vec![(0, 0)];
    let mut tree = Vec::new();
    for j in (0..places.count.ilog2()).rev() {
        let mut round = Vec::new();
        for k in 0..reached.len() {
            let (parent, begin) = reached[k];
            let child = Partners::Swing.of(parent, j, places.count);
            let (first, size) = places.subtree(child, j);
            round.push(Branch {
                parent: places.rank(parent, root),
                child: places.rank(child, root),
                first: (begin, first),
                size,
            });
            reached.push((child, first));
        }
        tree.push(round);
    }
    if places.surplus > 0 {
        let paired = reached.iter().filter(|reached| reached.0 < places.surplus);
        tree.push(
            paired
                .map(|&(place, begin)| places.pair(place, begin, root))
                .collect(),
        );
    }
    tree
}

/// Places of a tree, and the ranks that have one, as seen from the root.
struct Places {
    ranks: u32,
    /// The largest power of two among the ranks.
    count: u32,
    /// Ranks beyond: as many places, from 0 on, have two ranks.
    surplus: u32,
}

impl Places {
    fn new(ranks: u32) -> Self {
        let count = 1 << ranks.max(1).ilog2();
        Places {
            ranks,
            count,
            surplus: ranks.saturating_sub(count),
        }
    }

    /// The first rank of a place, as seen from the root; of one place beyond the last, their number.
    fn first(&self, place: u32) -> u32 {
        place + place.min(self.surplus)
    }

    fn rank(&self, place: u32, root: u32) -> u32 {
        (self.first(place) + root) % self.ranks
    }

    /// The subtree of `place`, which joins in round `j`: its first rank as seen from the root, and its size.
    fn subtree(&self, place: u32, j: u32) -> (u32, u32) {
        // -2 - 8 - 32 ... as many terms as there are odd digits.
        let lowest = -2 * (4i64.pow(j / 2) - 1) / 3;
        let zeros = match place % 2 {
            0 => i64::from(place),
            _ => i64::from(place) - (1 - (-2i64).pow(j)) / 3,
        };
        let start = (zeros + lowest).rem_euclid(i64::from(self.count)) as u32;
        let end = start + (1 << j);
        let round = end.saturating_sub(self.count);
        let size = self.first(end - round) - self.first(start) + self.first(round);
        (self.first(start), size)
    }

    /// The leaf that shares `place`, whose subtree begins at `begin`.
    fn pair(&self, place: u32, begin: u32, root: u32) -> Branch {
        let first = self.first(place) + 1;
        Branch {
            parent: self.rank(place, root),
            child: (first + root) % self.ranks,
            first: (begin, first),
            size: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn eight_places() {
        let pairs = |round: &Vec<Branch>| -> Vec<(u32, u32)> {
            round
                .iter()
                .map(|branch| (branch.parent, branch.child))
                .collect()
        };
        let due = [
            vec![(0, 3)],
            vec![(0, 7), (3, 4)],
            vec![(0, 1), (3, 2), (7, 6), (4, 5)],
        ];
        assert_eq!(bine(8, 0).iter().map(pairs).collect::<Vec<_>>(), due);
    }

    /// Who hangs from `rank`, itself included.
    fn below(tree: &[Vec<Branch>], rank: u32) -> BTreeSet<u32> {
        let mut below = BTreeSet::from([rank]);
        for branch in tree.iter().flatten() {
            if below.contains(&branch.parent) {
                below.insert(branch.child);
            }
        }
        below
    }

    #[test]
    fn subtrees_are_runs() {
        for p in (1..70).chain([128, 200]) {
            for root in [0, p / 2, p - 1] {
                let tree = bine(p, root);
                let mut begins = vec![0; p as usize];
                let mut informed = BTreeSet::from([root]);
                for (round, branches) in tree.iter().enumerate() {
                    for branch in branches {
                        assert!(informed.contains(&branch.parent));
                        assert_eq!(branch.first.0, begins[branch.parent as usize]);
                        let run = (0..branch.size).map(|i| (root + branch.first.1 + i) % p);
                        assert_eq!(below(&tree[round + 1..], branch.child), run.collect());
                        begins[branch.child as usize] = branch.first.1;
                    }
                    informed.extend(branches.iter().map(|branch| branch.child));
                }
                assert_eq!(informed.len() as u32, p);
            }
        }
    }

    #[test]
    fn branches_are_a_third_shorter_than_binomial_ones() {
        let far = |tree: &[Vec<Branch>]| -> Vec<u32> {
            let ahead = |branch: &Branch| (branch.child + 1024 - branch.parent) % 1024;
            let longest =
                |round: &Vec<Branch>| round.iter().map(|b| ahead(b).min(1024 - ahead(b))).max();
            tree.iter().map(|round| longest(round).unwrap()).collect()
        };
        assert_eq!(far(&bine(1024, 7)), [341, 171, 85, 43, 21, 11, 5, 3, 1, 1]);
    }
}
