//! `Builder`.

use crate::errors;
use crate::schedule::{wrap, Schedule, HINTS};
use linkwright_schedule::builder::{Builder as Writer, Shape, Slot, Written};
use linkwright_schedule::ir::{Buffer, Hint};
use linkwright_schedule::Collective;
use pyo3::prelude::*;

/// Writes a schedule step by step: at this step, who sends which chunks to whom.
#[pyclass(module = "linkwright._native")]
pub struct Builder {
    writer: Option<Writer>,
    slots: Vec<(String, Slot)>,
}

#[pymethods]
impl Builder {
    /// Start a schedule for `collective` over `ranks` ranks and vectors of `elements` elements.
    #[new]
    #[pyo3(signature = (collective, ranks, elements, *, element_bytes=4, root=0, grid=None))]
    fn new(
        collective: &str,
        ranks: u32,
        elements: u64,
        element_bytes: u32,
        root: u32,
        grid: Option<(u32, u32)>,
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
            grid,
            elements,
            element_bytes,
            rings: Vec::new(),
        };
        shape.check().map_err(errors::schedule)?;
        Ok(Builder {
            writer: Some(Writer::new(known, &shape)),
            slots: Vec::new(),
        })
    }

    /// Declare buffer `name` in `blocks` blocks: the vector divided by `parts`, at every rank or
    /// only at one participant.
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

    /// Begin the next step.
    fn step(&mut self) -> PyResult<()> {
        self.writer()?.step();
        Ok(())
    }

    /// Add a passive memory; gives its participant number.
    fn memory(&mut self) -> PyResult<u32> {
        Ok(self.writer()?.memory())
    }

    /// `source` pushes `count` chunks of `buffer` from `first` on to `target`, into `into` (default:
    /// the same buffer) from chunk `at` (default: `first`) on; with `reduce` they are combined. With
    /// `get` the target pulls them. `hint` is one of `+x -x +y -y`; with `fenced` whoever initiates it first
    /// finishes everything earlier.
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

    /// Like `put`, for the chunks `blocks` (ascending, with gaps) of both buffers in one transfer.
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

    /// `source` pushes one chunk to all `targets` at once; `fenced` as for `put`.
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

    /// `rank` copies chunks of its own; with `reduce` it combines them; `fenced` as for `put`.
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

    /// `rank` computes `operations`.
    fn compute(&mut self, rank: u32, operations: u64) -> PyResult<()> {
        self.writer()?.compute(rank, operations);
        Ok(())
    }

    /// Find the hazards and close the schedule.
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
    let known = HINTS.iter().find(|known| known.0 == name);
    known.map(|known| known.1).ok_or_else(|| {
        errors::raise(
            "UnknownNameError",
            format!("unknown hint `{name}`; known: +x, -x, +y, -y"),
        )
    })
}
