//! The bytes of a schedule: how large each buffer is, what is in it at the start, what must be in
//! it at the end.
//!
//! Every element that the spec gives an initial contribution gets the value of [`Fill`] for
//! (rank, element of the rank's initial buffer). Every other byte gets a pattern that no result
//! consists of, so that missing data are noticed. The postcondition names, per chunk, whose
//! contributions it must hold; their values are known, hence so is the chunk. A pattern has no
//! postcondition; what its messages leave is in [`crate::traffic`].

pub use crate::aligned::AlignedBytes;
use crate::dtype::{DType, ReduceOp};
use crate::error::{ExecError, Result};
use crate::fill::{wrong_elements, Fill};
use crate::traffic::Traffic;
use linkwright_core::free_memory::available_memory;
use linkwright_schedule::ir::{Buffer, BufferId, Combine, Holders, Op, Owner, Schedule};
use linkwright_schedule::spec::{Collective, Expected};
use linkwright_schedule::verify::is_deterministic;
use std::ops::Range;

/// What initial memory without a contribution holds.
const UNDEFINED: u8 = 0xa5;

/// Elements checked at a time.
const PIECE: usize = 4096;

/// The data of one execution, besides the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Element type.
    pub dtype: DType,
    /// The reduction.
    pub op: ReduceOp,
    /// Other seeds give other values.
    pub seed: u64,
}

impl Data {
    /// Sums of `dtype`.
    pub const fn sums(dtype: DType, seed: u64) -> Data {
        Data {
            dtype,
            op: ReduceOp::Sum,
            seed,
        }
    }

    /// The values of these data on `ranks` ranks.
    pub fn fill(self, ranks: u32) -> Fill {
        let Data { dtype, op, seed } = self;
        Fill {
            dtype,
            op,
            ranks,
            times: 1,
            seed,
        }
    }
}

/// A contiguous piece of an operation, in bytes of the two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the source buffer.
    pub src: usize,
    /// Offset in the destination buffer.
    pub dst: usize,
    /// Length.
    pub bytes: usize,
}

/// Which operations have an edge that waits for their acknowledgement.
pub(crate) fn acknowledged(schedule: &Schedule) -> Vec<bool> {
    let mut found = vec![false; schedule.ops().len()];
    for id in 0..found.len() as u32 {
        for edge in schedule.after(id).iter().filter(|e| e.is_acknowledged()) {
            found[edge.op() as usize] = true;
        }
    }
    found
}

/// Whether a destination overlaps a source of the same buffer other than its own, in place.
fn overlap_unequally(extents: &[Extent]) -> bool {
    extents.iter().enumerate().any(|(i, to)| {
        extents.iter().enumerate().any(|(j, from)| {
            let apart = to.dst + to.bytes <= from.src || from.src + from.bytes <= to.dst;
            let in_place = i == j && to.dst == from.src;
            !(apart || in_place)
        })
    })
}

/// A schedule together with its data: sizes, initial values, expected values.
#[derive(Clone)]
pub struct Contents<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// Type, operation, seed.
    pub data: Data,
    initial: Option<BufferId>,
    /// Of an uneven exchange, who has each class at the start, and elements of the longest chunk.
    holders: Holders,
    longest: usize,
    /// The contents of a pattern's messages, which its spec leaves open.
    traffic: Option<Traffic>,
}

impl<'a> Contents<'a> {
    /// Checks that the element size matches.
    pub fn new(schedule: &'a Schedule, data: Data) -> Result<Self> {
        if data.dtype.size() as u64 != u64::from(schedule.element_bytes) {
            return Err(ExecError::ElementSize {
                dtype: data.dtype,
                element_bytes: schedule.element_bytes,
            });
        }
        let mut contents = Contents {
            schedule,
            data,
            initial: None,
            holders: schedule.holders(),
            longest: 0,
            traffic: None,
        };
        if !contents.fill().is_exact() {
            return Err(ExecError::Uncountable {
                repeats: schedule.spec.repeats,
                ranks: schedule.ranks,
                dtype: data.dtype,
            });
        }
        contents.initial = contents.initial_buffer();
        if let Some(buffer) = contents
            .initial
            .map(|id| schedule.buffer(id))
            .filter(|b| b.parts.is_some())
        {
            let lengths =
                (0..buffer.chunks()).map(|chunk| buffer.span(schedule.elements, chunk..chunk + 1));
            contents.longest = lengths
                .map(|span| (span.end - span.start) as usize)
                .max()
                .unwrap_or(0);
        }
        contents.traffic = contents.traffic()?;
        Ok(contents)
    }

    /// The values of these data on the schedule's ranks, whose sum may count them more than once.
    fn fill(&self) -> Fill {
        let Schedule { spec, ranks, .. } = self.schedule;
        Fill {
            times: spec.multiplicity(*ranks).unwrap_or(u64::MAX),
            ..self.data.fill(*ranks)
        }
    }

    /// Checks that `copies` sets of all buffers fit into the memory of this machine.
    pub fn check_memory(&self, copies: u32) -> Result<()> {
        let needed_bytes: u128 = self
            .schedule
            .buffers
            .iter()
            .map(|buffer| {
                if buffer.parts.is_some() {
                    // Each rank has its own part only.
                    return u128::from(buffer.elements(self.schedule.elements))
                        * self.data.dtype.size() as u128;
                }
                let owners = match buffer.owner {
                    Owner::Ranks => self.schedule.ranks,
                    Owner::One(_) => 1,
                };
                let elements = u128::from(self.schedule.elements) * u128::from(buffer.mul)
                    / u128::from(buffer.div);
                elements * u128::from(owners) * self.data.dtype.size() as u128
            })
            .sum::<u128>()
            * u128::from(copies);
        let available_bytes = available_memory().unwrap_or(1 << 34);
        if needed_bytes > u128::from(available_bytes) {
            return Err(ExecError::TooLarge {
                ranks: self.schedule.ranks,
                needed_bytes,
                available_bytes,
            });
        }
        Ok(())
    }

    /// Participants, memories included.
    pub fn participants(&self) -> u32 {
        self.schedule.ranks + self.schedule.memories
    }

    /// Bytes of `buffer` at `participant`; 0 where it has none.
    pub fn bytes(&self, participant: u32, buffer: usize) -> usize {
        let buffer = &self.schedule.buffers[buffer];
        match self.owns(participant, buffer) {
            true => {
                let elements = buffer.elements_of(self.schedule.elements, participant);
                elements as usize * self.data.dtype.size()
            }
            false => 0,
        }
    }

    fn owns(&self, participant: u32, buffer: &Buffer) -> bool {
        match buffer.owner {
            Owner::Ranks => participant < self.schedule.ranks,
            Owner::One(one) => one.0 == participant,
        }
    }

    /// The contiguous pieces that operation `id` moves; empty ones are left out.
    pub fn extents(&self, id: u32, op: &Op) -> Result<Vec<Extent>> {
        let mut extents: Vec<Extent> = Vec::new();
        for (src, dst, count) in self.schedule.chunk_ranges(op) {
            self.check_bounds(id, op.from, op.src_buffer, src, count)?;
            for &target in self.schedule.targets(op) {
                self.check_bounds(id, target, op.dst_buffer, dst, count)?;
            }
            let (from, to) = (self.schedule.sources(op)[0], self.schedule.targets(op)[0]);
            let src = self.span(from, op.src_buffer, src..src + count);
            let dst = self.span(to, op.dst_buffer, dst..dst + count);
            if src.len() != dst.len() {
                return Err(ExecError::UnequalChunks {
                    op: id,
                    source_bytes: src.len() as u64,
                    destination_bytes: dst.len() as u64,
                });
            }
            let (bytes, src, dst) = (src.len(), src.start, dst.start);
            match extents.last_mut() {
                _ if bytes == 0 => {}
                Some(last) if last.src + last.bytes == src && last.dst + last.bytes == dst => {
                    last.bytes += bytes;
                }
                _ => extents.push(Extent { src, dst, bytes }),
            }
        }
        Ok(extents)
    }

    /// The pieces that `executor` copies or combines for `target`, without copies of bytes onto themselves.
    pub(crate) fn moves(
        &self,
        executor: &'static str,
        id: u32,
        op: &Op,
        target: u32,
    ) -> Result<Vec<Extent>> {
        let mut extents = self.extents(id, op)?;
        if (op.from, op.src_buffer) == (target, op.dst_buffer) {
            if overlap_unequally(&extents) {
                let reason = format!("operation {id} overwrites what it still has to read; move the data through scratch");
                return Err(ExecError::Waived { executor, reason });
            }
            extents.retain(|e| e.src != e.dst || op.combine == Combine::Reduce);
        }
        Ok(extents)
    }

    /// Executors compute addresses from chunks, so none may lie outside.
    fn check_bounds(
        &self,
        op: u32,
        participant: u32,
        buffer: BufferId,
        first: u32,
        count: u32,
    ) -> Result<()> {
        let described = self.schedule.buffers.get(usize::from(buffer.0));
        let inside = described.is_some_and(|described| {
            self.owns(participant, described)
                && participant < self.participants()
                && u64::from(first) + u64::from(count) <= u64::from(described.held(participant).end)
                && (described.parts.is_none() || first >= described.held(participant).start)
        });
        match inside {
            true => Ok(()),
            false => Err(ExecError::OutOfBounds { op, participant }),
        }
    }

    /// Bytes of chunks within what `who` has of a buffer.
    fn span(&self, who: u32, buffer: BufferId, chunks: Range<u32>) -> Range<usize> {
        let (buffer, n) = (self.schedule.buffer(buffer), self.schedule.elements);
        let elements = buffer.span(n, chunks);
        let first = match buffer.parts {
            None => 0,
            Some(_) => buffer.offset(n, buffer.held(who).start),
        };
        let at = |element: u64| (element - first) as usize * self.data.dtype.size();
        at(elements.start)..at(elements.end)
    }

    /// The buffer that holds contributions at the start.
    fn initial_buffer(&self) -> Option<BufferId> {
        let schedule = self.schedule;
        let index = schedule.buffers.iter().position(|buffer| {
            (0..schedule.ranks).any(|rank| {
                buffer.held(rank).any(|chunk| {
                    schedule
                        .spec
                        .initial(schedule.ranks, rank, buffer, chunk)
                        .is_some()
                })
            })
        })?;
        Some(BufferId(index as u8))
    }

    /// The contents of a pattern's messages; `None` for other schedules, and where they depend on a race.
    fn traffic(&self) -> Result<Option<Traffic>> {
        let schedule = self.schedule;
        if schedule.spec.collective != Collective::Pattern || !is_deterministic(schedule) {
            return Ok(None);
        }
        let sizes = (0..self.participants())
            .flat_map(|who| (0..schedule.buffers.len()).map(move |buffer| (who, buffer)))
            .map(|(who, buffer)| self.bytes(who, buffer))
            .collect();
        let mut traffic = Traffic::new(schedule, self.data.fill(schedule.ranks), sizes);
        for (id, op) in schedule.ops().iter().enumerate() {
            if op.moves_data() {
                for Extent { src, dst, bytes } in self.extents(id as u32, op)? {
                    traffic.follow(schedule, op, src..src + bytes, dst);
                }
            }
        }
        Ok(Some(traffic))
    }

    /// Writes the initial state of one buffer.
    pub fn initialise(&self, participant: u32, buffer: usize, memory: &mut [u8]) {
        if let Some(traffic) = &self.traffic {
            return traffic.initialise(participant, buffer, memory);
        }
        memory.fill(UNDEFINED);
        let (schedule, fill) = (self.schedule, self.fill());
        let description = &schedule.buffers[buffer];
        for chunk in description.held(participant) {
            let spec = &schedule.spec;
            if let Some(given) = spec.initial(schedule.ranks, participant, description, chunk) {
                let span = self.span(participant, BufferId(buffer as u8), chunk..chunk + 1);
                let first = self.first_element(given);
                fill.write(participant, first, &mut memory[span]);
            }
        }
    }

    /// First element of contribution chunk `chunk` in its contributor's initial buffer.
    fn first_element(&self, chunk: u32) -> usize {
        let Some(initial) = self.initial else {
            return 0;
        };
        let buffer = self.schedule.buffer(initial);
        if buffer.parts.is_some() {
            return chunk as usize * self.longest;
        }
        buffer.offset(self.schedule.elements, chunk) as usize
    }

    /// Compares one buffer with the postcondition; returns the number of elements checked.
    pub fn check(
        &self,
        executor: &'static str,
        participant: u32,
        buffer: usize,
        memory: &[u8],
    ) -> Result<u64> {
        if let Some(traffic) = &self.traffic {
            return self.check_traffic(traffic, executor, participant, buffer, memory);
        }
        let schedule = self.schedule;
        let description = &schedule.buffers[buffer];
        let mut checked = 0;
        for chunk in description.held(participant) {
            let spec = &schedule.spec;
            let expected = spec.expected(schedule.ranks, participant, description, chunk);
            if expected == Expected::Any {
                continue;
            }
            let got = &memory[self.span(participant, BufferId(buffer as u8), chunk..chunk + 1)];
            let wrong = self.wrong(got, expected, description.slices);
            let elements = got.len() / self.data.dtype.size();
            if wrong > 0 {
                return Err(ExecError::WrongResult {
                    executor,
                    rank: participant,
                    buffer: description.name.clone(),
                    chunk,
                    wrong,
                    elements,
                });
            }
            checked += elements as u64;
        }
        Ok(checked)
    }

    /// Compares one buffer with what the messages of a pattern leave there.
    fn check_traffic(
        &self,
        traffic: &Traffic,
        executor: &'static str,
        participant: u32,
        buffer: usize,
        memory: &[u8],
    ) -> Result<u64> {
        let size = self.data.dtype.size();
        let (wrong, compared) = traffic.compare(participant, buffer, memory);
        let Some(place) = wrong else {
            return Ok((compared / size) as u64);
        };
        let described = &self.schedule.buffers[buffer];
        let span = |chunk: u32| self.span(participant, BufferId(buffer as u8), chunk..chunk + 1);
        let mut chunks = 0..described.chunks();
        let chunk = chunks
            .find(|&chunk| span(chunk).contains(&place))
            .unwrap_or(0);
        Err(ExecError::WrongResult {
            executor,
            rank: participant,
            buffer: described.name.clone(),
            chunk,
            wrong: 1,
            elements: span(chunk).len() / size,
        })
    }

    /// Elements of `got` that are not what is expected there.
    fn wrong(&self, got: &[u8], expected: Expected, slices: u32) -> usize {
        let mut contributions: Vec<(u32, usize)> = match expected {
            Expected::Any => return 0,
            Expected::One { rank, chunk } => vec![(rank, self.first_element(chunk))],
            Expected::Held { chunk } => {
                let first = self.first_element(chunk);
                let holders = self.holders.at(chunk / slices);
                holders.iter().map(|&rank| (rank, first)).collect()
            }
            Expected::All { chunk } => {
                let first = self.first_element(chunk);
                (0..self.schedule.ranks).map(|rank| (rank, first)).collect()
            }
        };
        let (fill, size) = (self.fill(), self.data.dtype.size());
        let mut want = AlignedBytes::new(PIECE * size);
        let mut scratch = AlignedBytes::new(PIECE * size);
        let mut wrong = 0;
        for piece in got.chunks(PIECE * size) {
            let want = &mut want.get_mut()[..piece.len()];
            fill.expect(&contributions, want, scratch.get_mut());
            if matches!(expected, Expected::All { .. }) {
                fill.multiply(want);
            }
            wrong += wrong_elements(self.data.dtype, piece, want);
            for (_, first) in &mut contributions {
                *first += PIECE;
            }
        }
        wrong
    }
}

/// All buffers of all participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    buffers: Vec<AlignedBytes>,
    per_participant: usize,
}

impl Buffers {
    /// The initial state.
    pub fn initial(contents: &Contents) -> Self {
        let per_participant = contents.schedule.buffers.len();
        let mut buffers = Vec::new();
        for participant in 0..contents.participants() {
            for buffer in 0..per_participant {
                let mut memory = AlignedBytes::new(contents.bytes(participant, buffer));
                contents.initialise(participant, buffer, memory.get_mut());
                buffers.push(memory);
            }
        }
        Buffers {
            buffers,
            per_participant,
        }
    }

    /// One buffer.
    pub fn buffer(&self, participant: u32, buffer: usize) -> &[u8] {
        self.buffers[participant as usize * self.per_participant + buffer].get()
    }

    /// One buffer.
    pub fn buffer_mut(&mut self, participant: u32, buffer: usize) -> &mut [u8] {
        self.buffers[participant as usize * self.per_participant + buffer].get_mut()
    }

    /// Compares everything with the postcondition; returns the number of elements checked.
    pub fn check(&self, contents: &Contents, executor: &'static str) -> Result<u64> {
        let mut checked = 0;
        for participant in 0..contents.participants() {
            for buffer in 0..self.per_participant {
                let memory = self.buffer(participant, buffer);
                if !memory.is_empty() {
                    checked += contents.check(executor, participant, buffer, memory)?;
                }
            }
        }
        Ok(checked)
    }
}
