//! All-to-all on a torus in rounds whose messages share no link and no port.
//!
//! ```text
//!   a ring of 8, the perfect round     ahead  0 -> 3 -> 4 -> 7 -> 0     four messages, over 3, 1, 3 and 1 links
//!                                      back   6 -> 5 -> 2 -> 1 -> 6     four more, over 1, 3, 1 and 3
//! ```
//!
//! Blocks go straight to their targets, along one axis after the other, and a message on its way keeps all links that
//! it crosses. Two messages that meet therefore stop each other, and those behind them that would meet no other. So every
//! message gets the first round in which nothing else uses one of its links, its source's port or its target's port,
//! and then all messages of a round run at full rate. The longest choose first, because they fit least. On 8 x 8 that
//! makes 90 rounds; 80 are the least, as a link ahead also carries what is half way round.
//!
//! A schedule has no clock, so waits keep the rounds apart: a message waits for the last one before it on each of its
//! links and ports. Who got that one says so when the first of its three pieces is there, and while the notice and the
//! next message are on their way, the rest still flows. Targets pull their blocks, so they know when data are there.
//!
//! The construction of the paper needs n^3 / 8 rounds on n x n, the fewest possible, for n a multiple of 8 and messages
//! that go either way where both are as short. First fit needs about a tenth more than the fewest and serves any sides
//! and any number of axes.

use crate::collectives::common::axis::{axes, distance, shifted, shifts, Axis};
use crate::collectives::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

algorithm! {
    /// rounds of messages that share no link and no port of a torus
    ///
    /// Blocks are pulled straight from their sources, each when the last block before it on its links has begun to
    /// arrive: for large blocks on tori whose links work both ways and whose messages keep the links that they
    /// cross. Without a grid the ranks are one ring.
    pub ALGORITHM = Alltoall "by_rounds" {
        cost: "about n^3/6 rounds on n x n, 3 (p-1) messages and S (p-1)/p bytes per rank",
        needs: "at most 256 ranks",
        source:
            "Hinrichs, Kosak, O'Hallaron, Stricker and Take, \"An architecture for optimal all-to-all personalized \
             communication\" (SPAA 1994), rounds that use each link once and begin link by link without a barrier",
        build: build,
    }
}

/// Pieces of a block. The next message of a link begins behind the first: thirds hide the way of the notice.
const PIECES: u32 = 3;

/// Above that, rings have too many rounds: 8,192 of 256 ranks.
const MOST_RANKS: u32 = 256;

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    if shape.ranks > MOST_RANKS {
        return Err(ALGORITHM.waive(format!(
            "{} ranks; use at most {MOST_RANKS}, or alltoall/by_shifts",
            shape.ranks
        )));
    }
    let mut b = Builder::new(Collective::Alltoall, shape);
    let [input, output] = ["input", "output"].map(|name| {
        b.buffer(Buffer {
            slices: PIECES,
            ..Buffer::vector(name, shape.ranks)
        })
    });
    b.step();
    for rank in 0..shape.ranks {
        let own = |slot: crate::builder::Slot| slot.chunks(rank * PIECES, PIECES);
        b.local(rank, own(input), own(output));
    }
    // By link: who got the last block over it, and the position of its first piece.
    let mut last: BTreeMap<Link, (u32, u32)> = BTreeMap::new();
    for round in rounds(&axes(shape)) {
        b.step();
        for message in round {
            let Message { from, to, links } = message;
            // Whoever got several of them says so once.
            let mut waits: BTreeMap<u32, u32> = BTreeMap::new();
            for (who, position) in links.iter().filter_map(|link| last.get(link)) {
                let latest = waits.entry(*who).or_default();
                *latest = (*latest).max(*position);
            }
            for piece in 0..PIECES {
                let (src, dst) = (to * PIECES + piece, from * PIECES + piece);
                let mut get = b.get(from, input.at(src), to, output.at(dst));
                get = get.lane(piece as u8);
                get = waits.values().fold(get, |get, &earlier| get.after(earlier));
                if piece == 0 {
                    let position = get.position();
                    last.extend(links.iter().map(|&link| (link, (to, position))));
                }
            }
        }
    }
    b.finish()
}

/// A port of a rank: one link ahead and one back for each axis, then the way out of its memory and the way in.
type Link = (u32, u8);

/// A block for another rank, and the links that it crosses.
#[derive(Clone, Debug)]
struct Message {
    from: u32,
    to: u32,
    links: Vec<Link>,
}

/// All messages, by the first round in which each meets no other.
fn rounds(axes: &[Axis]) -> Vec<Vec<Message>> {
    let ranks: u32 = axes.iter().map(|axis| axis.side).product();
    let mut longest: Vec<_> = shifts(axes).collect();
    longest.sort_by_key(|shift| Reverse(distance(axes, shift)));
    let mut taken: BTreeMap<Link, Vec<u64>> = BTreeMap::new();
    let mut rounds: Vec<Vec<Message>> = Vec::new();
    for shift in &longest {
        for from in 0..ranks {
            let to = shifted(axes, from, shift);
            let links = links(axes, from, to);
            let round = first_free(&taken, &links);
            for &link in &links {
                let bits = taken.entry(link).or_default();
                bits.resize(bits.len().max(round / 64 + 1), 0);
                bits[round / 64] |= 1 << (round % 64);
            }
            rounds.resize(rounds.len().max(round + 1), Vec::new());
            rounds[round].push(Message { from, to, links });
        }
    }
    rounds
}

/// The first round in which none of `links` is taken; `taken` has a bit for each round.
fn first_free(taken: &BTreeMap<Link, Vec<u64>>, links: &[Link]) -> usize {
    let bits: Vec<&[u64]> = links
        .iter()
        .filter_map(|link| taken.get(link).map(Vec::as_slice))
        .collect();
    let word = |word: usize| {
        let words = bits.iter().filter_map(|bits| bits.get(word));
        words.fold(0, |all, &one| all | one)
    };
    let free = (0..).map(|at| (at, word(at))).find(|one| one.1 != u64::MAX);
    let (at, word) = free.expect("beyond the last word, all rounds are free");
    at * 64 + word.trailing_ones() as usize
}

/// The shorter way along one axis after the other, ahead where both are as short, with the ports at its ends.
fn links(axes: &[Axis], from: u32, to: u32) -> Vec<Link> {
    let ports = 2 * axes.len() as u8;
    let mut links = vec![(from, ports), (to, ports + 1)];
    let mut rank = from;
    for (number, axis) in (0..).zip(axes) {
        let ahead = (axis.at(to) + axis.side - axis.at(from)) % axis.side;
        let (steps, back) = match 2 * ahead > axis.side {
            true => (axis.side - ahead, true),
            false => (ahead, false),
        };
        for _ in 0..steps {
            links.push((rank, 2 * number + u8::from(back)));
            let step = if back { axis.side - 1 } else { 1 };
            rank = axis.moved(rank, axis.at(rank) + step);
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;
    use std::collections::BTreeSet;

    #[test]
    fn right_on_tori_of_any_sides() {
        for sides in [&[4, 4][..], &[2, 5], &[3, 1, 4], &[2, 3, 4], &[7], &[1]] {
            let p = sides.iter().product();
            let shape = Shape::new(p, u64::from(p) * 5).with_sides(sides);
            verify(&build(&shape).unwrap()).unwrap();
        }
    }

    /// On a ring of 8, a link ahead carries 1 + 2 + 3 + 4 messages and one back 1 + 2 + 3; on 8 x 8, each line of one
    /// axis has 8 times as many. Where sides are short, ports carry the most: p - 1 messages.
    #[test]
    fn messages_of_a_round_share_nothing() {
        for (sides, least) in [
            (&[8][..], 10),
            (&[8, 8], 80),
            (&[5, 7], 34),
            (&[2, 3, 4], 23),
        ] {
            let shape = Shape::new(sides.iter().product(), 1).with_sides(sides);
            let rounds = rounds(&axes(&shape));
            for round in &rounds {
                let all: Vec<Link> = round.iter().flat_map(|one| one.links.clone()).collect();
                assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
            }
            let messages: usize = rounds.iter().map(Vec::len).sum();
            assert_eq!(messages as u32, shape.ranks * (shape.ranks - 1));
            let count = rounds.len();
            assert!(
                count >= least && 10 * count <= 13 * least,
                "{sides:?}: {count}"
            );
        }
    }

    /// From (0, 0) to (2, 3) of 4 x 4: two ahead along x, a tie, and one back along y.
    #[test]
    fn the_shorter_way_and_ahead_in_a_tie() {
        let axes = axes(&Shape::new(16, 16).with_grid(4, 4));
        assert_eq!(
            links(&axes, 0, 14),
            [(0, 4), (14, 5), (0, 0), (1, 0), (2, 3)]
        );
    }
}
