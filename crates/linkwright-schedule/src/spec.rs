//! What a schedule is to achieve: initial state and postcondition, chunk by chunk.
//!
//! A *contribution* is one chunk of one rank's initial data, written `(rank, chunk)`. The initial
//! state puts one contribution into some chunks; the postcondition demands that some chunks end
//! with exactly a set of contributions, each once. Where the table says "in place", input and
//! output are one buffer called `output`; elsewhere the input must be unchanged at the end. A
//! collective that is in place here may also be asked for *out of place*, as plans of other tools
//! have it: then `input` holds the data at the start, only those, and `output` nothing.
//!
//! | collective | initial | at the end |
//! |---|---|---|
//! | allreduce (in place) | `output[c]` of r is (r, c) | `output[c]` everywhere: (q, c) of all q |
//! | reduce (in place) | as allreduce | the same at the root; others undefined |
//! | broadcast (in place) | `output[c]` of the root is (root, c) | the same everywhere |
//! | reduce_scatter (in place) | as allreduce | block r of `output` at r: (q, c) of all q |
//! | allgather (in place) | block r of `output` at r is (r, c) | block q everywhere: (q, c) |
//! | gather | `input[s]` of r is (r, s) | block r of `output` at the root: (r, s) |
//! | scatter | `input[c]` of the root is (root, c) | `output` of r: block r of the root's |
//! | alltoall | `input[c]` of r is (r, c) | block q of `output` at r: (q, block r of q's input) |
//! | alltoallv, dispatch, combine | block b of `input`, at its rank r, is (r, class of b) | block b of `output`, at its rank: (q, class of b) of all q that have this class in `input` |
//! | barrier | as allgather, chunks without bytes (tokens) | as allgather |
//! | pattern | nothing | nothing; only bounds and routes are checked |

use crate::ir::buffer::Buffer;

linkwright_core::words! {
    /// Kinds of collective, named as in MPI.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Collective {
        /// Everyone gets the combination of all vectors.
        Allreduce = "allreduce",
        /// Everyone gets its block of the combination.
        ReduceScatter = "reduce_scatter",
        /// Everyone gets everyone's block.
        Allgather = "allgather",
        /// Everyone gets the root's vector.
        Broadcast = "broadcast",
        /// The root gets the combination.
        Reduce = "reduce",
        /// The root gets everyone's block.
        Gather = "gather",
        /// Everyone gets its block of the root's vector.
        Scatter = "scatter",
        /// Everyone gets one block from everyone.
        Alltoall = "alltoall",
        /// Everyone gets what everyone has for it, in blocks of any length.
        Alltoallv = "alltoallv",
        /// Every token reaches the ranks of its experts.
        Dispatch = "dispatch",
        /// What the experts made of every token is combined where the token came from.
        Combine = "combine",
        /// No one leaves before everyone has entered.
        Barrier = "barrier",
        /// Traffic without a postcondition.
        Pattern = "pattern",
    }
}

impl Collective {
    /// Whether S is p equal blocks, so that the element count is rounded down to a multiple of p.
    pub fn is_blocked(self) -> bool {
        matches!(
            self,
            Collective::ReduceScatter
                | Collective::Allgather
                | Collective::Gather
                | Collective::Scatter
                | Collective::Alltoall
        )
    }

    /// Whether input and output are one buffer, unless a spec is out of place.
    pub fn is_in_place(self) -> bool {
        matches!(
            self,
            Collective::Allreduce
                | Collective::Reduce
                | Collective::Broadcast
                | Collective::ReduceScatter
                | Collective::Allgather
        )
    }

    /// Whether one rank is special.
    pub fn is_rooted(self) -> bool {
        matches!(
            self,
            Collective::Broadcast | Collective::Reduce | Collective::Gather | Collective::Scatter
        )
    }

    /// Whether contributions are combined.
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Collective::Allreduce
                | Collective::ReduceScatter
                | Collective::Reduce
                | Collective::Combine
        )
    }

    /// Whether blocks have lengths of their own, which [`crate::exchange::UnevenExchange`] states.
    pub fn is_uneven(self) -> bool {
        matches!(
            self,
            Collective::Alltoallv | Collective::Dispatch | Collective::Combine
        )
    }

    /// `bus_bw / alg_bw` over `p` ranks, as defined by nccl-tests.
    pub fn bus_factor(self, p: u32) -> f64 {
        let p = f64::from(p);
        match self {
            Collective::Allreduce => 2.0 * (p - 1.0) / p,
            _ if self.is_blocked() => (p - 1.0) / p,
            _ => 1.0,
        }
    }
}

/// What a chunk must hold at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Anything.
    Any,
    /// Contribution `chunk` of this one rank.
    One {
        /// Contributing rank.
        rank: u32,
        /// Chunk index in the contributor's initial buffer.
        chunk: u32,
    },
    /// Contribution `chunk` of every rank, each once.
    All {
        /// Chunk index in the contributors' initial buffers.
        chunk: u32,
    },
    /// Contribution `chunk` of every rank that has it at the start, each once.
    Held {
        /// Class and slice of the contributors' blocks.
        chunk: u32,
    },
}

/// Initial state and postcondition of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What is to be achieved.
    pub collective: Collective,
    /// The special rank of rooted collectives, else 0.
    pub root: u32,
    /// How often the collective runs back to back; see [`Spec::multiplicity`].
    pub repeats: u32,
    /// Whether a collective that is usually in place has its data in `input` and its result in `output`.
    pub out_of_place: bool,
}

impl Spec {
    /// The collective once, in place if it can be.
    pub fn new(collective: Collective, root: u32) -> Self {
        Spec {
            collective,
            root,
            repeats: 1,
            out_of_place: false,
        }
    }

    /// How often each contribution of [`Expected::All`] is counted at the end, where 64 bits hold it.
    ///
    /// An allreduce in place that runs again combines p equal vectors, so each contribution counts p times as
    /// often as before: p^(repeats - 1). Out of place, each run counts the same input once.
    pub fn multiplicity(&self, ranks: u32) -> Option<u64> {
        match self.out_of_place || self.collective.is_uneven() {
            true => Some(1),
            false => u64::from(ranks).checked_pow(self.repeats - 1),
        }
    }

    /// The contribution chunk that `buffer[chunk]` of `participant`, one of `ranks` or a memory, holds at the
    /// start, if any.
    #[inline]
    pub fn initial(
        &self,
        ranks: u32,
        participant: u32,
        buffer: &Buffer,
        chunk: u32,
    ) -> Option<u32> {
        if participant >= ranks {
            return None;
        }
        let block = chunk / buffer.slices;
        let holds = match self.collective {
            _ if buffer.parts.is_some() => {
                let named = self.collective.is_uneven() && buffer.name == "input";
                let class = buffer.class_at(participant, chunk);
                return class.filter(|_| named);
            }
            _ if self.out_of_place => {
                buffer.name == "input"
                    && (self.collective != Collective::Broadcast || participant == self.root)
            }
            Collective::Allreduce | Collective::Reduce | Collective::ReduceScatter => {
                buffer.name == "output"
            }
            Collective::Broadcast => buffer.name == "output" && participant == self.root,
            Collective::Allgather | Collective::Barrier => {
                buffer.name == "output" && block == participant
            }
            Collective::Gather | Collective::Alltoall => buffer.name == "input",
            Collective::Scatter => buffer.name == "input" && participant == self.root,
            Collective::Alltoallv
            | Collective::Dispatch
            | Collective::Combine
            | Collective::Pattern => false,
        };
        holds.then_some(chunk)
    }

    /// What `buffer[chunk]` of `participant`, one of `ranks` or a memory, must hold at the end.
    #[inline]
    pub fn expected(&self, ranks: u32, participant: u32, buffer: &Buffer, chunk: u32) -> Expected {
        if participant >= ranks {
            return Expected::Any;
        }
        let (block, slice) = (chunk / buffer.slices, chunk % buffer.slices);
        let one = |rank, chunk| Expected::One { rank, chunk };
        if buffer.name == "input" {
            return match self.initial(ranks, participant, buffer, chunk) {
                Some(chunk) => one(participant, chunk),
                None => Expected::Any,
            };
        }
        if buffer.name != "output" {
            return Expected::Any;
        }
        match self.collective {
            Collective::Allreduce => Expected::All { chunk },
            Collective::Reduce if participant == self.root => Expected::All { chunk },
            Collective::ReduceScatter if self.out_of_place => Expected::All {
                chunk: participant * buffer.slices + slice,
            },
            Collective::ReduceScatter if block == participant => Expected::All { chunk },
            Collective::Allgather if self.out_of_place => one(block, slice),
            Collective::Broadcast => one(self.root, chunk),
            Collective::Allgather | Collective::Barrier => one(block, chunk),
            Collective::Gather if participant == self.root => one(block, slice),
            Collective::Scatter => one(self.root, participant * buffer.slices + slice),
            Collective::Alltoall => one(block, participant * buffer.slices + slice),
            Collective::Alltoallv | Collective::Dispatch | Collective::Combine => {
                match buffer.class_at(participant, chunk) {
                    Some(chunk) => Expected::Held { chunk },
                    None => Expected::Any,
                }
            }
            Collective::Reduce
            | Collective::ReduceScatter
            | Collective::Gather
            | Collective::Pattern => Expected::Any,
        }
    }
}
