//! What must move, whatever the schedule.
//!
//! With S the message size and p ranks:
//!
//! ```text
//!                    into rank r        out of rank r      received by all    out of a ranks
//!   allreduce        S                  S                  2 (p-1) S          S
//!   reduce_scatter   S / p              S (p-1) / p        (p-1) S            S (p-a) / p
//!   allgather        S (p-1) / p        S / p              (p-1) S            S a / p
//!   broadcast        S, not the root    S, the root        (p-1) S            S, with the root
//!   reduce           S, the root        S, not the root    (p-1) S            S, without the root
//!   gather           S (p-1) / p, root  S / p, not root    (p-1) S / p        S a / p, without the root
//!   scatter          S / p, not root    S (p-1) / p, root  (p-1) S / p        S (p-a) / p, with the root
//!   alltoall         S (p-1) / p        S (p-1) / p        (p-1) S            S a (p-a) / p
//! ```
//!
//! An uneven exchange is the copies that its blocks state, each of which leaves its source once for all that need it;
//! of a combine, what returns for one source may be added up anywhere, so that it enters the source once.
//!
//! Where switches combine, all together receive only the sum of what goes into each rank.
//!
//! An allreduce: every element must be received p-1 times to be summed and p-1 times to be spread. A traffic pattern is
//! its messages.
//!
//! Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience"
//! (2007); Patarasuk and Yuan (JPDC 2009).

use crate::fabric::CheapCopies;
use crate::messages::Messages;
use crate::network::NetworkCut;
use crate::prepared::Prepared;
use linkwright_schedule::classes::{Class, Classes, Copies, MAX_NODE};
use linkwright_schedule::ir::{Holders, Op, OpKind, Schedule};
use linkwright_schedule::{Collective, Shape};
use std::collections::BTreeMap;

/// Cuts that flows are compared with at once.
const AT_ONCE: usize = 128;

/// Bytes that one participant has for others, each of which needs them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    from: u32,
    to: Vec<u32>,
    bytes: u64,
}

impl Flow {
    /// What `from` has for others than itself.
    fn new(from: u32, to: &[u32], bytes: u64) -> Option<Self> {
        let to: Vec<u32> = to.iter().copied().filter(|&to| to != from).collect();
        (!to.is_empty()).then_some(Flow { from, to, bytes })
    }

    /// The cuts that it leaves and that it enters, bit by bit as in `sides`.
    fn crosses(&self, sides: &[u128]) -> (u128, u128) {
        let home = sides[self.from as usize];
        let (mut without, mut within) = (0, 0);
        for &to in &self.to {
            let side = sides[to as usize];
            (without, within) = (without | !side, within | side);
        }
        (home & without, !home & within)
    }
}

/// A collective of equal vectors or blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Which.
    pub collective: Collective,
    /// Ranks, p.
    pub ranks: u32,
    /// The special rank of a rooted one.
    pub root: u32,
    /// Message size S.
    pub bytes: u64,
}

impl Whole {
    /// Bytes that must leave and that must enter `rank`.
    fn through_rank(&self, rank: u32) -> (u64, u64) {
        if self.ranks < 2 {
            return (0, 0);
        }
        let (bytes, block) = (self.bytes, self.bytes / u64::from(self.ranks));
        let (others, is_root) = (bytes - block, rank == self.root);
        let either = |at_root, elsewhere| if is_root { at_root } else { elsewhere };
        match self.collective {
            Collective::Allreduce => (bytes, bytes),
            Collective::ReduceScatter => (others, block),
            Collective::Allgather => (block, others),
            Collective::Broadcast => either((bytes, 0), (0, bytes)),
            Collective::Reduce => either((0, bytes), (bytes, 0)),
            Collective::Gather => either((0, others), (block, 0)),
            Collective::Scatter => either((others, 0), (0, block)),
            Collective::Alltoall => (others, others),
            _ => (0, 0),
        }
    }
}

/// What must move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A collective with a postcondition.
    Collective(Whole),
    /// The messages of a traffic pattern, those of a pair together.
    Pattern(Vec<Flow>),
    /// The blocks of an uneven exchange.
    Exchange {
        /// From one rank to others.
        out: Vec<Flow>,
        /// To one rank, `from`, where what the others, `to`, have is combined.
        back: Vec<Flow>,
    },
}

impl Demand {
    /// What the schedule of `prepared` is for.
    pub(crate) fn of(prepared: &Prepared<'_>) -> Self {
        let schedule = prepared.messages.schedule;
        match schedule.spec.collective {
            Collective::Pattern => Demand::Pattern(flows(&prepared.messages)),
            collective if collective.is_uneven() => exchanged(schedule),
            collective => Demand::Collective(Whole {
                collective,
                ranks: prepared.setup.alike.unwrap_or(schedule.ranks),
                root: schedule.spec.root,
                bytes: schedule.size_bytes(),
            }),
        }
    }

    /// What `collective` demands of a shape, whose size is rounded as algorithms do.
    pub fn new(collective: Collective, shape: &Shape) -> Self {
        if collective.is_uneven() {
            return copied(collective, shape);
        }
        let elements = match collective.is_blocked() {
            true => shape.elements - shape.elements % u64::from(shape.ranks.max(1)),
            false => shape.elements,
        };
        Demand::Collective(Whole {
            collective,
            ranks: shape.ranks,
            root: shape.root,
            bytes: elements * u64::from(shape.element_bytes),
        })
    }

    /// The collective, unless traffic or an uneven exchange is demanded.
    pub fn collective(&self) -> Option<Whole> {
        match self {
            Demand::Collective(whole) => Some(*whole),
            Demand::Pattern(_) | Demand::Exchange { .. } => None,
        }
    }

    /// Whether it is a barrier.
    pub(super) fn is_barrier(&self) -> bool {
        self.collective()
            .is_some_and(|whole| whole.collective == Collective::Barrier)
    }

    /// Bytes that must leave and that must enter each of `ranks`; of a pattern, of the first participants.
    pub(super) fn through(&self, ranks: &[u32]) -> Vec<(u64, u64)> {
        match self {
            Demand::Pattern(flows) => through_each(flows, ranks.len()),
            Demand::Exchange { out, back } => {
                let back = through_each(back, ranks.len());
                let both = through_each(out, ranks.len()).into_iter().zip(back);
                both.map(|(out, back)| (out.0 + back.1, out.1 + back.0))
                    .collect()
            }
            Demand::Collective(whole) => {
                ranks.iter().map(|&rank| whole.through_rank(rank)).collect()
            }
        }
    }

    /// Bytes that all participants must receive together, memories included; 0 for a pattern.
    pub fn received(&self) -> u64 {
        let Some(whole) = self.collective() else {
            return 0;
        };
        let (ranks, bytes) = (u64::from(whole.ranks.max(1)), whole.bytes);
        let others = ranks - 1;
        match whole.collective {
            Collective::Allreduce => 2 * others * bytes,
            Collective::Gather | Collective::Scatter => others * (bytes / ranks),
            Collective::Barrier | Collective::Pattern => 0,
            _ => others * bytes,
        }
    }

    /// The same where data for many occupy ports for a shorter time: the bytes that take as long at that faster rate.
    ///
    /// A byte that only one participant needs is of use to one target of a message, and so is a contribution, which
    /// must be added once. Either takes the longer time, or that of many useless copies. In an allreduce, p - 1
    /// contributions are added until the first participant has the sum, and p - 1 copies follow until all others have
    /// it. A message to m targets may be a contribution at one of them and a copy at the m - 1 others, all at the
    /// faster rate. If the slower rate takes t times as long, each of these at most (p - 1) / (m - 1) messages saves
    /// 1 - 1/t of a contribution.
    pub fn received_apart(&self, copies: CheapCopies) -> u64 {
        let (all, times) = (u128::from(self.received()), u128::from(copies.times));
        let Some(whole) = self.collective() else {
            return 0;
        };
        let counted = match whole.collective {
            Collective::Allgather | Collective::Broadcast => all,
            Collective::Allreduce => {
                let others = u128::from(copies.targets.max(2)) - 1;
                all / 2 * (times + 1) - all / 2 * (times - 1) / others
            }
            _ => all * times,
        };
        u64::try_from(counted).unwrap_or(u64::MAX)
    }

    /// The same where data may be combined before anybody receives them: what each participant needs of the others.
    pub fn received_combined(&self) -> u64 {
        let into = |whole: Whole| (0..whole.ranks).map(move |rank| whole.through_rank(rank).1);
        self.collective().into_iter().flat_map(into).sum()
    }

    /// Bytes that must leave, and that must enter, the participants inside each of `cuts`.
    pub fn across(&self, cuts: &[NetworkCut]) -> Vec<(u64, u64)> {
        let none: &[Flow] = &[];
        let (out, back) = match self {
            Demand::Pattern(flows) => (&flows[..], none),
            Demand::Exchange { out, back } => (&out[..], &back[..]),
            Demand::Collective(_) => {
                let both = cuts.iter().map(|cut| {
                    let others: Vec<bool> = cut.inside.iter().map(|is| !is).collect();
                    (self.out_of(&cut.inside), self.out_of(&others))
                });
                return both.collect();
            }
        };
        let mut found = vec![(0, 0); cuts.len()];
        for (cuts, found) in cuts.chunks(AT_ONCE).zip(found.chunks_mut(AT_ONCE)) {
            let sides = sides(cuts);
            for flow in out {
                let (leaves, enters) = flow.crosses(&sides);
                bits(leaves).for_each(|cut| found[cut].0 += flow.bytes);
                bits(enters).for_each(|cut| found[cut].1 += flow.bytes);
            }
            for flow in back {
                let (leaves, enters) = flow.crosses(&sides);
                bits(leaves).for_each(|cut| found[cut].1 += flow.bytes);
                bits(enters).for_each(|cut| found[cut].0 += flow.bytes);
            }
        }
        found
    }

    /// Bytes of a collective that must leave the participants `inside`, for the others.
    fn out_of(&self, inside: &[bool]) -> u64 {
        let Some(all) = self.collective() else {
            return 0;
        };
        let (collective, bytes) = (all.collective, all.bytes);
        let (ranks, root) = (u64::from(all.ranks), all.root as usize);
        let count = inside.iter().filter(|&&is| is).count() as u64;
        if count == 0 || count == ranks {
            return 0;
        }
        let block = bytes / ranks;
        let where_ = |holds: bool, bytes: u64| if holds { bytes } else { 0 };
        match collective {
            Collective::Allreduce => bytes,
            Collective::ReduceScatter => block * (ranks - count),
            Collective::Allgather => block * count,
            Collective::Broadcast => where_(inside[root], bytes),
            Collective::Reduce => where_(!inside[root], bytes),
            Collective::Gather => where_(!inside[root], block * count),
            Collective::Scatter => where_(inside[root], block * (ranks - count)),
            Collective::Alltoall => block * count * (ranks - count),
            _ => 0,
        }
    }
}

/// The blocks of a schedule's input and where the output has them.
fn exchanged(schedule: &Schedule) -> Demand {
    let (mut out, mut back) = (Vec::new(), Vec::new());
    let output = schedule
        .buffer_named("output")
        .map(|id| schedule.buffer(id));
    let (from, into) = (schedule.holders(), Holders::of(output));
    let parts = output.and_then(|output| Some((output, output.parts.as_deref()?)));
    let (Some((output, parts)), true) = (parts, schedule.ranks > 1) else {
        return Demand::Exchange { out, back };
    };
    let mut seen = vec![false; into.classes()];
    for (block, &class) in (0u32..).zip(&parts.classes) {
        if std::mem::replace(&mut seen[class as usize], true) {
            continue;
        }
        let chunks = block * output.slices..(block + 1) * output.slices;
        let span = output.span(schedule.elements, chunks);
        let bytes = (span.end - span.start) * u64::from(schedule.element_bytes);
        let (list, flow) = match (from.at(class), into.at(class)) {
            (&[from], to) => (&mut out, Flow::new(from, to, bytes)),
            (others, &[at]) => (&mut back, Flow::new(at, others, bytes)),
            _ => continue,
        };
        list.extend(flow);
    }
    Demand::Exchange { out, back }
}

/// The fewest copies that algorithms for `shape` send: a token leaves its source once for all ranks, where these are few
/// enough to be told apart, or else for each node, or without nodes for each rank.
fn copied(collective: Collective, shape: &Shape) -> Demand {
    let copies = match (shape.ranks, shape.plane()) {
        (ranks @ ..=MAX_NODE, _) => Copies::Node(ranks),
        (_, Some((columns @ ..=MAX_NODE, _))) => Copies::Node(columns),
        _ => Copies::Rank,
    };
    let classes = Classes::of(shape, copies);
    let flows = classes.map_or_else(
        |_| Vec::new(),
        |classes| {
            let each = classes.elements / classes.of * u64::from(shape.element_bytes);
            let flow = |class: &Class| Flow::new(class.source, &class.targets, class.units * each);
            classes.all.iter().filter_map(flow).collect()
        },
    );
    match collective {
        Collective::Combine => Demand::Exchange {
            out: Vec::new(),
            back: flows,
        },
        _ => Demand::Exchange {
            out: flows,
            back: Vec::new(),
        },
    }
}

/// The messages of a schedule between different participants, those of one pair together.
fn flows(messages: &Messages<'_>) -> Vec<Flow> {
    let schedule = messages.schedule;
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut flows = Vec::new();
    // No one participant sends or receives what is combined on the way.
    let alone = |op: &&Op| op.is_message() && op.kind != OpKind::Aggregate;
    for op in schedule.ops().iter().filter(alone) {
        let (bytes, targets) = (messages.bytes(op), schedule.targets(op));
        match *targets {
            _ if bytes == 0 => {}
            [to] if to == op.from => {}
            [to] => *pairs.entry((op.from, to)).or_default() += bytes,
            _ => flows.push(Flow {
                from: op.from,
                to: targets
                    .iter()
                    .copied()
                    .filter(|&to| to != op.from)
                    .collect(),
                bytes,
            }),
        }
    }
    flows.extend(pairs.into_iter().map(|((from, to), bytes)| Flow {
        from,
        to: vec![to],
        bytes,
    }));
    flows
}

/// Bytes out of and into each of the first `count` participants.
fn through_each(flows: &[Flow], count: usize) -> Vec<(u64, u64)> {
    let mut through = vec![(0, 0); count];
    for flow in flows.iter().filter(|flow| !flow.to.is_empty()) {
        through[flow.from as usize].0 += flow.bytes;
        for &to in &flow.to {
            through[to as usize].1 += flow.bytes;
        }
    }
    through
}

/// By participant, the cuts that it is inside of, as bits.
fn sides(cuts: &[NetworkCut]) -> Vec<u128> {
    let count = cuts.first().map_or(0, |cut| cut.inside.len());
    let side = |at: usize| {
        let inside = (0..).zip(cuts).filter(|(_, cut)| cut.inside[at]);
        inside.fold(0u128, |side, (bit, _)| side | 1 << bit)
    };
    (0..count).map(side).collect()
}

/// The numbers of the bits that are set.
fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        next
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 13 ranks, 120 B: 12 x 120 = 1440 B are received. Blocks for one rank count twice. An allreduce receives 2880 B.
    /// Half of them, the contributions, count twice, less a third of that half: for every three copies, there may be
    /// one message that is also a contribution.
    #[test]
    fn data_for_one_take_longer_than_data_for_many() {
        let copies = CheapCopies {
            targets: 4,
            times: 2,
        };
        let of = |collective| {
            let demand = Demand::Collective(Whole {
                collective,
                ranks: 13,
                root: 0,
                bytes: 120,
            });
            (demand.received(), demand.received_apart(copies))
        };
        assert_eq!(of(Collective::Allgather), (1440, 1440));
        assert_eq!(of(Collective::ReduceScatter), (1440, 2880));
        assert_eq!(of(Collective::Allreduce), (2880, 3 * 1440 - 480));
    }
}
