//! `Builder`.

use crate::errors;
use crate::schedule::{wrap, Schedule};
use linkwright_schedule::builder::{Builder as Writer, Shape, Slot, Written};
use linkwright_schedule::ir::{Buffer, Hint};
use linkwright_schedule::Collective;
use pyo3::prelude::*;

/// Writes a schedule step by step: at this step, who sends which chunks to whom.
///
/// `linkwright.Builder` makes one from a size; it documents the idea.
#[pyclass(subclass, module = "linkwright._native")]
pub struct Builder {
    writer: Option<Writer>,
    slots: Vec<(String, Slot)>,
}

#[pymethods]
impl Builder {
    /// Start a schedule for `collective` over `ranks` ranks and vectors of `elements` elements of `element_bytes`.
    #[new]
    #[pyo3(signature = (collective, ranks, elements, *, element_bytes=4, root=0, grid=None, out_of_place=false))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python class
    fn new(
        collective: &str,
        ranks: u32,
        elements: u64,
        element_bytes: u32,
        root: u32,
        grid: Option<Vec<u32>>,
        out_of_place: bool,
    ) -> PyResult<Self> {
        let known = Collective::from_name(collective).ok_or_else(|| {
            let names = Collective::ALL.map(Collective::name).join(", ");
            errors::raise(
                "UnknownNameError",
                format!("unknown collective `{collective}`; known: {names}"),
            )
        })?;
        let shape = Shape {
            ranks,
            root,
            grid: grid.unwrap_or_default(),
            elements,
            element_bytes,
            rings: Vec::new(),
            exchange: None,
        };
        shape.check().map_err(errors::schedule)?;
        let mut writer = Writer::new(known, &shape);
        if out_of_place {
            writer.out_of_place();
        }
        Ok(Builder {
            writer: Some(writer),
            slots: Vec::new(),
        })
    }

    /// Declare a buffer, which every rank has and operations address by chunk.
    ///
    /// Args:
    ///     name: the name of the buffer; the collective reads and writes `input` and `output`.
    ///     blocks: the number of equal chunks.
    ///     parts: the buffer holds the vector divided by this number.
    ///     only_at: the one participant that has the buffer; by default every rank.
    /// Raises:
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("broadcast", 2, "4K")
    ///     >>> builder.buffer("output", 4)
    #[pyo3(signature = (name, blocks=1, *, parts=1, only_at=None))]
    fn buffer(
        &mut self,
        name: &str,
        blocks: u32,
        parts: u32,
        only_at: Option<u32>,
    ) -> PyResult<()> {
        let mut buffer = Buffer::vector(name, blocks);
        buffer.div = parts;
        if let Some(participant) = only_at {
            buffer = buffer.only_at(participant);
        }
        let slot = self.writer()?.buffer(buffer);
        self.slots.push((name.to_string(), slot));
        Ok(())
    }

    /// Begin the next step; all operations of a step happen at once.
    ///
    /// Raises:
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("broadcast", 2, "4K")
    ///     >>> builder.step()
    fn step(&mut self) -> PyResult<()> {
        self.writer()?.step();
        Ok(())
    }

    /// Add a passive memory, which takes part in operations but starts none.
    ///
    /// Returns:
    ///     Its participant number; memories follow the ranks.
    /// Raises:
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.Builder("pattern", 2, "4K").memory()
    ///     2
    fn memory(&mut self) -> PyResult<u32> {
        Ok(self.writer()?.memory())
    }

    /// Move chunks from one participant to another.
    ///
    /// Args:
    ///     source: the participant that the chunks come from; it pushes them.
    ///     target: the participant that they go to.
    ///     buffer: the buffer at the source.
    ///     first: the first chunk at the source.
    ///     count: the number of chunks.
    ///     into: the buffer at the target; by default the same one.
    ///     at: the first chunk at the target; by default `first`.
    ///     reduce: combine with what the target holds, instead of overwriting it.
    ///     get: let the target pull the chunks.
    ///     hint: the direction to leave by on a torus: `+x`, `-x`, `+y` or `-y`; empty for any.
    ///     fenced: whoever starts the transfer finishes everything earlier first.
    /// Raises:
    ///     UnknownNameError: the buffer or the hint does not exist.
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("broadcast", 3, "4K")
    ///     >>> builder.buffer("output")
    ///     >>> for rank in range(2):
    ///     ...     builder.step()
    ///     ...     builder.put(rank, rank + 1, "output", 0)
    ///     >>> print(lw.verify(builder.finish()))
    ///     2 operations, 2 messages, 0 notices; 1 hazards ordered; exact contributions
    #[pyo3(signature = (source, target, buffer, first, count=1, *, into=None, at=None, reduce=false, get=false, hint="", fenced=false))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn put(
        &mut self,
        source: u32,
        target: u32,
        buffer: &str,
        first: u32,
        count: u32,
        into: Option<&str>,
        at: Option<u32>,
        reduce: bool,
        get: bool,
        hint: &str,
        fenced: bool,
    ) -> PyResult<()> {
        let hint = hint_named(hint)?;
        let from = self.slot(buffer)?.chunks(first, count);
        let at = at.unwrap_or(first);
        let to = self.slot(into.unwrap_or(buffer))?.chunks(at, count);
        let writer = self.writer()?;
        let written = match get {
            true => writer.get(source, from, target, to),
            false => writer.put(source, from, target, to),
        };
        choose(written.hint(hint), reduce, fenced);
        Ok(())
    }

    /// Move chunks that need not be adjacent, in one transfer.
    ///
    /// Args:
    ///     source: the participant that the chunks come from.
    ///     target: the participant that they go to.
    ///     buffer: the buffer at the source.
    ///     blocks: the chunks, ascending; the same ones at both ends.
    ///     into: the buffer at the target; by default the same one.
    ///     reduce: as for `put`.
    ///     get: as for `put`.
    ///     hint: as for `put`.
    ///     fenced: as for `put`.
    /// Raises:
    ///     UnknownNameError: the buffer or the hint does not exist.
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("pattern", 2, "4K")
    ///     >>> builder.buffer("output", 4)
    ///     >>> builder.step()
    ///     >>> builder.put_blocks(0, 1, "output", [0, 2])
    ///     >>> builder.finish().operations()["runs"].tolist()
    ///     [2]
    #[pyo3(signature = (source, target, buffer, blocks, *, into=None, reduce=false, get=false, hint="", fenced=false))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn put_blocks(
        &mut self,
        source: u32,
        target: u32,
        buffer: &str,
        blocks: Vec<u32>,
        into: Option<&str>,
        reduce: bool,
        get: bool,
        hint: &str,
        fenced: bool,
    ) -> PyResult<()> {
        let hint = hint_named(hint)?;
        let (from, to) = (self.slot(buffer)?, self.slot(into.unwrap_or(buffer))?);
        let writer = self.writer()?;
        let written = match get {
            true => writer.get_blocks(source, from, target, to, &blocks),
            false => writer.put_blocks(source, from, target, to, &blocks),
        };
        choose(written.hint(hint), reduce, fenced);
        Ok(())
    }

    /// Move one chunk from a rank to several at once.
    ///
    /// Args:
    ///     source: the rank that pushes the chunk.
    ///     targets: the ranks that it goes to.
    ///     buffer: the buffer at the source.
    ///     chunk: the chunk at the source.
    ///     into: the buffer at the targets; by default the same one.
    ///     at: the chunk at the targets; by default `chunk`.
    ///     fenced: as for `put`.
    /// Raises:
    ///     UnknownNameError: the buffer does not exist.
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("broadcast", 3, "4K")
    ///     >>> builder.buffer("output")
    ///     >>> builder.step()
    ///     >>> builder.multicast(0, [1, 2], "output", 0)
    ///     >>> builder.finish().operations()["kind"]
    ///     ['multicast']
    #[pyo3(signature = (source, targets, buffer, chunk, *, into=None, at=None, fenced=false))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn multicast(
        &mut self,
        source: u32,
        targets: Vec<u32>,
        buffer: &str,
        chunk: u32,
        into: Option<&str>,
        at: Option<u32>,
        fenced: bool,
    ) -> PyResult<()> {
        let from = self.slot(buffer)?.at(chunk);
        let to = self.slot(into.unwrap_or(buffer))?.at(at.unwrap_or(chunk));
        let written = self.writer()?.multicast(source, from, &targets, to);
        choose(written, false, fenced);
        Ok(())
    }

    /// Combine the same chunks of several participants on the way to several targets, into the same chunks of each.
    ///
    /// A participant may be on both sides, also in place. The first target issues the aggregation.
    ///
    /// Args:
    ///     sources: the participants whose data are combined.
    ///     targets: the participants that get the result.
    ///     buffer: the buffer at the sources.
    ///     chunk: the first chunk at the sources.
    ///     into: the buffer at the targets; by default the same one.
    ///     at: the first chunk at the targets; by default `chunk`.
    ///     count: the number of chunks.
    ///     reduce: combine with what is there, instead of overwriting it.
    ///     fenced: as for `put`.
    /// Raises:
    ///     UnknownNameError: a buffer does not exist.
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("allreduce", 3, "4K")
    ///     >>> builder.buffer("output")
    ///     >>> builder.step()
    ///     >>> builder.aggregate([0, 1, 2], [0, 1, 2], "output", 0)
    ///     >>> schedule = builder.finish()
    ///     >>> schedule.operations()["kind"], schedule.aggregations
    ///     (['aggregate'], [(0, 0)])
    #[pyo3(signature = (
        sources, targets, buffer, chunk, *, into=None, at=None, count=1, reduce=false, fenced=false
    ))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn aggregate(
        &mut self,
        sources: Vec<u32>,
        targets: Vec<u32>,
        buffer: &str,
        chunk: u32,
        into: Option<&str>,
        at: Option<u32>,
        count: u32,
        reduce: bool,
        fenced: bool,
    ) -> PyResult<()> {
        let from = self.slot(buffer)?.chunks(chunk, count);
        let to = self
            .slot(into.unwrap_or(buffer))?
            .chunks(at.unwrap_or(chunk), count);
        let written = self.writer()?.aggregate(&sources, from, &targets, to);
        choose(written, reduce, fenced);
        Ok(())
    }

    /// Copy or combine chunks within one rank.
    ///
    /// Args:
    ///     rank: the rank.
    ///     buffer: the buffer to read.
    ///     first: the first chunk to read.
    ///     into: the buffer to write.
    ///     at: the first chunk to write.
    ///     count: the number of chunks.
    ///     reduce: combine with what is there, instead of overwriting it.
    ///     fenced: as for `put`.
    /// Raises:
    ///     UnknownNameError: a buffer does not exist.
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("pattern", 2, "4K")
    ///     >>> builder.buffer("output", 4)
    ///     >>> builder.step()
    ///     >>> builder.local(0, "output", 0, "output", 1)
    ///     >>> builder.finish().operations()["kind"]
    ///     ['local']
    #[pyo3(signature = (rank, buffer, first, into, at, count=1, *, reduce=false, fenced=false))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn local(
        &mut self,
        rank: u32,
        buffer: &str,
        first: u32,
        into: &str,
        at: u32,
        count: u32,
        reduce: bool,
        fenced: bool,
    ) -> PyResult<()> {
        let from = self.slot(buffer)?.chunks(first, count);
        let to = self.slot(into)?.chunks(at, count);
        choose(self.writer()?.local(rank, from, to), reduce, fenced);
        Ok(())
    }

    /// Let a rank compute.
    ///
    /// Args:
    ///     rank: the rank.
    ///     operations: the number of arithmetic operations.
    /// Raises:
    ///     UsageError: the builder is finished.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("pattern", 2, "4K")
    ///     >>> builder.step()
    ///     >>> builder.compute(0, 1_000_000)
    ///     >>> builder.finish().operations()["kind"]
    ///     ['compute']
    fn compute(&mut self, rank: u32, operations: u64) -> PyResult<()> {
        self.writer()?.compute(rank, operations);
        Ok(())
    }

    /// Find the hazards, order the operations and close the builder.
    ///
    /// Returns:
    ///     The schedule.
    /// Raises:
    ///     ScheduleError: an operation names what does not exist or contradicts another.
    ///     UsageError: the builder is finished already.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> builder = lw.Builder("pattern", 2, "4K")
    ///     >>> builder.buffer("output")
    ///     >>> builder.step()
    ///     >>> builder.put(0, 1, "output", 0)
    ///     >>> builder.finish()
    ///     <Schedule pattern over 2 ranks: 1 operations, 1 messages>
    fn finish(&mut self, py: Python<'_>) -> PyResult<Schedule> {
        self.writer()?;
        let writer = self.writer.take();
        wrap(py.detach(|| writer.expect("checked above").finish()))
    }
}

impl Builder {
    fn writer(&mut self) -> PyResult<&mut Writer> {
        self.writer.as_mut().ok_or_else(|| {
            errors::raise(
                "UsageError",
                "this builder has been finished; start a new one",
            )
        })
    }

    fn slot(&self, name: &str) -> PyResult<Slot> {
        let known = self.slots.iter().find(|slot| slot.0 == name);
        known.map(|slot| slot.1).ok_or_else(|| {
            errors::raise(
                "UnknownNameError",
                format!("unknown buffer `{name}`; declare it with `buffer(\"{name}\", blocks)`"),
            )
        })
    }
}

/// What `put` and its like may ask for besides.
fn choose(written: Written<'_>, reduce: bool, fenced: bool) {
    let written = match reduce {
        true => written.reduce(),
        false => written,
    };
    if fenced {
        written.fenced();
    }
}

fn hint_named(name: &str) -> PyResult<Hint> {
    if name.is_empty() {
        return Ok(Hint::None);
    }
    Hint::from_name(name).ok_or_else(|| {
        errors::raise(
            "UnknownNameError",
            format!("unknown hint `{name}`; known: +x, -x, +y, -y"),
        )
    })
}
