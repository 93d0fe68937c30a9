//! The collectives of the MPI library itself, on the same data and by the same clock as ours.
//!
//! | collective | function | sent | received |
//! |---|---|---|---|
//! | allreduce | Allreduce | n | n |
//! | reduce | Reduce | n | n at the root |
//! | broadcast | Bcast | n of the root | n |
//! | allgather | Allgather | block of n/p | n |
//! | reduce_scatter | Reduce_scatter_block | n | block |
//! | alltoall | Alltoall | n | n |
//! | gather | Gather | block | n at the root |
//! | scatter | Scatter | n of the root | block |
//! | alltoallv, dispatch, combine | Alltoallv | row of the counts | column of the counts |
//! | barrier | Barrier | | |
//!
//! Out of place, as most programs call them; allreduce also in place (`MPI_IN_PLACE`), because our
//! schedules of it work in place.

use super::library::{done, Group, Handle, Library};
use super::waived;
use super::walker::Work;
use crate::buffers::{AlignedBytes, Data};
use crate::error::{ExecError, Result};
use crate::fill::wrong_elements;
use crate::threads::arena::Arena;
use linkwright_schedule::spec::Collective;
use std::ffi::c_int;

/// What to call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which collective.
    pub collective: Collective,
    /// Elements of the whole array.
    pub elements: u64,
    /// Root of rooted ones.
    pub root: u32,
    /// Input and output are one.
    pub in_place: bool,
    /// Of an uneven exchange, the elements that each rank sends each rank, row by row.
    pub counts: Vec<u64>,
}

/// A collective of the library on this rank, ready to run.
pub(super) struct Native<'a> {
    library: &'a Library,
    group: &'a Group,
    call: Call,
    data: Data,
    dtype: Handle,
    op: Handle,
    /// Elements of the whole array, and of one rank's block of it.
    whole: usize,
    block: usize,
    /// Of an uneven exchange, what goes to each rank, and what comes from each.
    sent: Blocks,
    received: Blocks,
    /// What is sent, and what is received.
    memory: Arena,
}

/// Blocks of any length, one behind another, as `MPI_Alltoallv` takes them.
#[derive(Default)]
struct Blocks {
    counts: Vec<c_int>,
    starts: Vec<c_int>,
}

impl Blocks {
    /// Those of these lengths; `None` if they are more than an int counts.
    fn of(lengths: impl Iterator<Item = u64>) -> Option<Self> {
        let mut blocks = Blocks::default();
        let mut next: c_int = 0;
        for length in lengths {
            let length = c_int::try_from(length).ok()?;
            blocks.counts.push(length);
            blocks.starts.push(next);
            next = next.checked_add(length)?;
        }
        Some(blocks)
    }

    fn elements(&self) -> usize {
        self.counts.iter().map(|&count| count as usize).sum()
    }
}

const SEND: usize = 0;
const RECEIVE: usize = 1;

impl<'a> Native<'a> {
    pub(super) fn new(
        library: &'a Library,
        group: &'a Group,
        call: Call,
        data: Data,
    ) -> Result<Self> {
        let dtype = library.handles.dtypes[data.dtype as usize];
        let dtype = dtype.ok_or_else(|| {
            let (dtype, name) = (data.dtype, call.collective.name());
            waived(format!(
                "MPI has no type {dtype}, so its own {name} cannot take it; use f32"
            ))
        })?;
        let op = library.handles.ops[data.op as usize];
        let uncountable = || {
            waived(format!(
                "more elements than the library's own collectives count ({}); use a smaller size",
                c_int::MAX
            ))
        };
        if call.elements > c_int::MAX as u64 {
            return Err(uncountable());
        }
        let (p, me) = (group.size as usize, group.rank as usize);
        let row = call.counts.iter().skip(me * p).take(p).copied();
        let column = call.counts.iter().skip(me).step_by(p).copied();
        let sent = Blocks::of(row).ok_or_else(uncountable)?;
        let received = Blocks::of(column).ok_or_else(uncountable)?;
        let whole = call.elements as usize;
        let block = whole / group.size as usize;
        let mut native = Native {
            library,
            group,
            call,
            data,
            dtype,
            op,
            whole,
            block,
            sent,
            received,
            memory: Arena::of_sizes([].into_iter()),
        };
        let (sent, received) = native.lengths();
        let sizes = [sent, received].map(|elements| elements * data.dtype.size());
        native.memory = Arena::of_sizes(sizes.into_iter());
        Ok(native)
    }

    fn is_root(&self) -> bool {
        self.group.rank == self.call.root
    }

    /// Elements that this rank sends and receives.
    fn lengths(&self) -> (usize, usize) {
        let (whole, block) = (self.whole, self.block);
        let at_root = |elements| if self.is_root() { elements } else { 0 };
        match self.call.collective {
            Collective::Allreduce if self.call.in_place => (0, whole),
            Collective::Allreduce | Collective::Alltoall => (whole, whole),
            Collective::Reduce => (whole, at_root(whole)),
            Collective::Broadcast => (0, whole),
            Collective::Allgather => (block, whole),
            Collective::ReduceScatter => (whole, block),
            Collective::Gather => (block, at_root(whole)),
            Collective::Scatter => (at_root(whole), block),
            of if of.is_uneven() => (self.sent.elements(), self.received.elements()),
            _ => (0, 0),
        }
    }

    /// What the received elements must be: pieces of (elements, contributions).
    fn expected(&self) -> Vec<(usize, Vec<(u32, usize)>)> {
        let (rank, whole, block) = (self.group.rank as usize, self.whole, self.block);
        let ranks = 0..self.group.size;
        let all = |first: usize| ranks.clone().map(|r| (r, first)).collect::<Vec<_>>();
        if self.memory.bytes(RECEIVE) == 0 {
            return Vec::new();
        }
        match self.call.collective {
            Collective::Allreduce | Collective::Reduce => vec![(whole, all(0))],
            Collective::Broadcast => vec![(whole, vec![(self.call.root, 0)])],
            Collective::ReduceScatter => vec![(block, all(rank * block))],
            Collective::Scatter => vec![(block, vec![(self.call.root, rank * block)])],
            Collective::Allgather | Collective::Gather => {
                ranks.map(|r| (block, vec![(r, 0)])).collect()
            }
            Collective::Alltoall => ranks.map(|r| (block, vec![(r, rank * block)])).collect(),
            of if of.is_uneven() => {
                let rows = self.call.counts.chunks(self.group.size as usize);
                let piece = |(r, row): (u32, &[u64])| {
                    let first = row[..rank].iter().sum::<u64>() as usize;
                    (row[rank] as usize, vec![(r, first)])
                };
                ranks.zip(rows).map(piece).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Work for Native<'_> {
    fn fill(&mut self) {
        let (rule, rank) = (self.data.fill(self.group.size), self.group.rank);
        let broadcast = self.call.collective == Collective::Broadcast && self.is_root();
        let given = broadcast || self.call.in_place;
        let receive = self.memory.get_mut(RECEIVE);
        receive.fill(0xa5);
        if given {
            rule.write(rank, 0, receive);
        }
        rule.write(rank, 0, self.memory.get_mut(SEND));
    }

    #[inline(never)]
    fn run(&mut self) -> Result<()> {
        let (f, h) = (&self.library.functions, &self.library.handles);
        let (whole, block) = (self.whole as c_int, self.block as c_int);
        let (t, op, root, comm) = (
            self.dtype,
            self.op,
            self.call.root as c_int,
            self.group.data,
        );
        let (from, to) = (
            self.memory.address(SEND).cast_const(),
            self.memory.address(RECEIVE),
        );
        // SAFETY: buffers of the lengths that the counts name.
        unsafe {
            match self.call.collective {
                Collective::Allreduce => {
                    let from = match self.call.in_place {
                        true => h.in_place as *const u8,
                        false => from,
                    };
                    done("Allreduce", (f.allreduce)(from, to, whole, t, op, comm))
                }
                Collective::Reduce => {
                    done("Reduce", (f.reduce)(from, to, whole, t, op, root, comm))
                }
                Collective::Broadcast => done("Bcast", (f.bcast)(to, whole, t, root, comm)),
                Collective::Allgather => done(
                    "Allgather",
                    (f.allgather)(from, block, t, to, block, t, comm),
                ),
                Collective::ReduceScatter => {
                    let code = (f.reduce_scatter)(from, to, block, t, op, comm);
                    done("Reduce_scatter_block", code)
                }
                Collective::Alltoall => {
                    done("Alltoall", (f.alltoall)(from, block, t, to, block, t, comm))
                }
                Collective::Gather => done(
                    "Gather",
                    (f.gather)(from, block, t, to, block, t, root, comm),
                ),
                Collective::Scatter => done(
                    "Scatter",
                    (f.scatter)(from, block, t, to, block, t, root, comm),
                ),
                Collective::Barrier => done("Barrier", (f.barrier)(comm)),
                of if of.is_uneven() => {
                    let [(sent, sent_at), (received, received_at)] = [&self.sent, &self.received]
                        .map(|blocks| (blocks.counts.as_ptr(), blocks.starts.as_ptr()));
                    done(
                        "Alltoallv",
                        (f.alltoallv)(from, sent, sent_at, t, to, received, received_at, t, comm),
                    )
                }
                _ => Err(waived(
                    "a traffic pattern is not called; run it by its own name",
                )),
            }
        }
    }

    /// What the library sends cannot be seen.
    fn run_watched(&mut self, _latencies_ns: &mut Vec<f64>) -> Result<()> {
        self.run()
    }

    fn check(&self) -> Result<u64> {
        let (rule, size) = (self.data.fill(self.group.size), self.data.dtype.size());
        // SAFETY: nothing is under way between repetitions.
        let mut rest = unsafe { self.memory.get(RECEIVE) };
        let mut checked = 0;
        for (chunk, (elements, contributions)) in self.expected().into_iter().enumerate() {
            let (got, after) = rest.split_at(elements * size);
            rest = after;
            let mut want = AlignedBytes::new(got.len());
            let mut scratch = AlignedBytes::new(got.len());
            rule.expect(&contributions, want.get_mut(), scratch.get_mut());
            let wrong = wrong_elements(self.data.dtype, got, want.get());
            if wrong > 0 {
                return Err(ExecError::WrongResult {
                    executor: "mpi",
                    rank: self.group.rank,
                    buffer: "receive".to_owned(),
                    chunk: chunk as u32,
                    wrong,
                    elements,
                });
            }
            checked += elements as u64;
        }
        Ok(checked)
    }
}
