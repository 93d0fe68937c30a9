//! `Schedule`.

use std::sync::OnceLock;

use crate::errors;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::ir::{Hint, OpKind};
use linkwright_schedule::{collectives, patterns, text, transforms, verify, windows};
use linkwright_schedule::{Schedule as Ordered, Verified, VerifyError};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What is to be moved, verified before anything runs it.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Schedule {
    ordered: Ordered,
    verified: OnceLock<Result<Verified, VerifyError>>,
}

impl Schedule {
    /// A schedule that has not been verified yet.
    pub fn new(ordered: Ordered) -> Self {
        Schedule {
            ordered,
            verified: OnceLock::new(),
        }
    }

    /// The schedule as it is, to read and to rewrite.
    pub fn ordered(&self) -> &Ordered {
        &self.ordered
    }

    /// The schedule to be run: verified on first use and refused if it is wrong.
    pub fn proved(&self) -> Result<&Ordered, VerifyError> {
        self.proof().as_ref().map_err(Clone::clone)?;
        Ok(&self.ordered)
    }

    fn proof(&self) -> &Result<Verified, VerifyError> {
        self.verified.get_or_init(|| verify(&self.ordered))
    }
}

pub fn wrap(made: linkwright_schedule::error::Result<Ordered>) -> PyResult<Schedule> {
    made.map(Schedule::new).map_err(errors::schedule)
}

#[pymethods]
impl Schedule {
    /// The schedule of algorithm `key` (`collective/name`).
    ///
    /// `elements` counts one vector (S / `element_bytes`); `grid` is (columns, rows); `rings` are orders of the
    /// ranks for ring algorithms.
    #[staticmethod]
    #[pyo3(signature = (key, ranks, elements, *, element_bytes=4, root=0, grid=None, rings=None))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn build(
        py: Python<'_>,
        key: &str,
        ranks: u32,
        elements: u64,
        element_bytes: u32,
        root: u32,
        grid: Option<(u32, u32)>,
        rings: Option<Vec<Vec<u32>>>,
    ) -> PyResult<Self> {
        let shape = Shape {
            rings: rings.unwrap_or_default(),
            ..shape(ranks, elements, element_bytes, root, grid)
        };
        wrap(py.detach(|| collectives::build(key, &shape)))
    }

    /// The schedule of traffic pattern `key` (`pattern/name` or `name`).
    ///
    /// `elements` counts one message; `count` messages per pair, `both_ways` doubles them.
    #[staticmethod]
    #[pyo3(signature = (key, ranks, elements, *, element_bytes=1, root=0, grid=None, seed=0, count=1, both_ways=false))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn pattern(
        py: Python<'_>,
        key: &str,
        ranks: u32,
        elements: u64,
        element_bytes: u32,
        root: u32,
        grid: Option<(u32, u32)>,
        seed: u64,
        count: u32,
        both_ways: bool,
    ) -> PyResult<Self> {
        let traffic = patterns::Traffic {
            shape: shape(ranks, elements, element_bytes, root, grid),
            seed,
            count,
            both_ways,
        };
        let pattern = patterns::find(key).map_err(errors::schedule)?;
        wrap(py.detach(|| (pattern.build)(&traffic)))
    }

    /// Read the canonical text form; `file` is its name, for messages.
    #[staticmethod]
    #[pyo3(signature = (content, file="schedule"))]
    fn parse(py: Python<'_>, content: &str, file: &str) -> PyResult<Self> {
        let read = py.detach(|| text::parse(content));
        let ordered =
            read.map_err(|error| errors::raise("ParseError", format!("{file}: {error}")))?;
        Ok(Schedule::new(ordered))
    }

    /// The canonical text form, which `parse` reads back to the same schedule.
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| text::print(&self.ordered))
    }

    /// Every transfer in `slices` parts that follow each other.
    fn pipeline(&self, py: Python<'_>, slices: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::pipeline(&self.ordered, slices)))
    }

    /// Every transfer in `lanes` parts on as many lanes.
    fn stripe(&self, py: Python<'_>, lanes: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::stripe(&self.ordered, lanes)))
    }

    /// Every chunk cut into `slices`, operations left whole.
    fn refine(&self, py: Python<'_>, slices: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::refine(&self.ordered, slices)))
    }

    /// Combined transfers in `windows` windows with a signal each.
    fn windows(&self, py: Python<'_>, windows: u32) -> PyResult<Self> {
        wrap(py.detach(|| windows::windows(&self.ordered, windows)))
    }

    /// Combinations at the destination as local operations.
    fn unfuse(&self, py: Python<'_>) -> PyResult<Self> {
        wrap(py.detach(|| transforms::unfuse(&self.ordered)))
    }

    /// `times` runs back to back.
    fn repeat(&self, py: Python<'_>, times: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::repeat(&self.ordered, times)))
    }

    /// Rank r plays the part of rank `parts[r]`.
    fn relabel(&self, py: Python<'_>, parts: Vec<u32>) -> PyResult<Self> {
        wrap(py.detach(|| transforms::relabel(&self.ordered, &parts)))
    }

    /// Prove that the schedule is right; gives what was proved, in numbers, and raises if it is wrong.
    ///
    /// Everything that runs a schedule verifies it first, once, so calling this is optional.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let proof = py.detach(|| self.proof().clone());
        let proved = proof.map_err(errors::verify)?;
        let table = PyDict::new(py);
        table.set_item("operations", proved.operations)?;
        table.set_item("messages", proved.messages)?;
        table.set_item("notices", proved.notices)?;
        table.set_item("edges", proved.edges)?;
        table.set_item("chunk_moves", proved.chunk_moves)?;
        table.set_item("hazards", proved.hazards)?;
        table.set_item("long_searches", proved.long_searches)?;
        table.set_item("exact", proved.exact)?;
        Ok(table)
    }

    #[getter]
    fn collective(&self) -> &'static str {
        self.ordered.spec.collective.name()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.ordered.ranks
    }

    #[getter]
    fn memories(&self) -> u32 {
        self.ordered.memories
    }

    /// Bytes of one element.
    #[getter]
    fn element_bytes(&self) -> u32 {
        self.ordered.element_bytes
    }

    /// Message size S of the collective, in bytes.
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.ordered.size_bytes()
    }

    /// Number of messages, notices included.
    #[getter]
    fn messages(&self) -> usize {
        self.ordered.message_count()
    }

    /// One row per operation, by id: `kind, from, to, step, lane, bytes, runs, hint`.
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (schedule, ops) = (&self.ordered, self.ordered.ops());
        let table = PyDict::new(py);
        table.set_item(
            "kind",
            ops.iter().map(|op| kind_name(op.kind)).collect::<Vec<_>>(),
        )?;
        let column = |of: &dyn Fn(&linkwright_schedule::ir::Op) -> u64| {
            ops.iter().map(of).collect::<Vec<u64>>().into_pyarray(py)
        };
        table.set_item("from", column(&|op| u64::from(op.from)))?;
        table.set_item("to", column(&|op| u64::from(op.to)))?;
        table.set_item("step", column(&|op| u64::from(op.step)))?;
        table.set_item("lane", column(&|op| u64::from(op.lane)))?;
        table.set_item("bytes", column(&|op| schedule.op_bytes(op)))?;
        table.set_item("runs", column(&|op| u64::from(schedule.op_runs(op))))?;
        table.set_item(
            "hint",
            ops.iter().map(|op| hint_name(op.hint)).collect::<Vec<_>>(),
        )?;
        Ok(table)
    }

    fn __len__(&self) -> usize {
        self.ordered.ops().len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Schedule {} over {} ranks: {} operations, {} messages>",
            self.collective(),
            self.ordered.ranks,
            self.ordered.ops().len(),
            self.ordered.message_count()
        )
    }
}

fn shape(
    ranks: u32,
    elements: u64,
    element_bytes: u32,
    root: u32,
    grid: Option<(u32, u32)>,
) -> Shape {
    Shape {
        root,
        grid,
        element_bytes,
        ..Shape::new(ranks, elements)
    }
}

fn kind_name(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Put => "put",
        OpKind::Get => "get",
        OpKind::Multicast => "multicast",
        OpKind::Local => "local",
        OpKind::Compute => "compute",
        OpKind::Barrier => "barrier",
        OpKind::Fence => "fence",
        OpKind::Notice => "notice",
    }
}

pub const HINTS: [(&str, Hint); 5] = [
    ("", Hint::None),
    ("+x", Hint::PlusX),
    ("-x", Hint::MinusX),
    ("+y", Hint::PlusY),
    ("-y", Hint::MinusY),
];

fn hint_name(hint: Hint) -> &'static str {
    let known = HINTS.iter().find(|known| known.1 == hint);
    known.expect("every hint is listed").0
}
