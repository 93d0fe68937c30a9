//! `Schedule`.

use std::sync::{Arc, OnceLock};

use crate::errors;
use crate::hints::{self, row, Column, Typed};
use crate::html;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::classes;
use linkwright_schedule::exchange::{Routing, UnevenExchange};
use linkwright_schedule::ir::Hint;
use linkwright_schedule::own_scratch::own_scratch;
use linkwright_schedule::pull::{pull, Pulled};
use linkwright_schedule::{collectives, patterns, side_by_side, text, transforms, verify, windows};
use linkwright_schedule::{Schedule as Ordered, Verified, VerifyError};
use numpy::IntoPyArray;
use pyo3::prelude::*;

/// What to move, where to and in which order, without any time. It never changes.
///
/// `linkwright.schedule` builds one from a registered algorithm, `linkwright.Builder` one of your own, and
/// the transforms (`pipeline`, `stripe`, `refine`, `windows`, `unfuse`, `own_scratch`, `pull`, `repeat`, `relabel`,
/// `first_steps`, `side_by_side`) make one from another. Whatever runs a schedule verifies it first, once. `len` counts
/// its operations.
///
/// Example:
///     >>> import linkwright as lw
///     >>> schedule = lw.schedule("allreduce", "ring", ranks=4, size="4K")
///     >>> schedule
///     <Schedule allreduce over 4 ranks: 24 operations, 24 messages>
///     >>> schedule.collective, schedule.ranks, schedule.root, schedule.memories
///     ('allreduce', 4, 0, 0)
///     >>> schedule.size_bytes, schedule.element_bytes, schedule.messages, len(schedule)
///     (4096, 4, 24, 24)
#[pyclass(frozen, module = "linkwright._native")]
pub struct Schedule {
    ordered: Arc<Ordered>,
    verified: OnceLock<Result<Verified, VerifyError>>,
    /// Whether it is what a machine and its path made of another one.
    lowered: bool,
}

impl Schedule {
    /// A schedule that has not been verified yet.
    pub fn new(ordered: Ordered) -> Self {
        Schedule::of(Arc::new(ordered))
    }

    /// The same of one that others hold, too.
    pub fn of(ordered: Arc<Ordered>) -> Self {
        Schedule {
            ordered,
            verified: OnceLock::new(),
            lowered: false,
        }
    }

    /// A schedule as a machine and its path need it.
    pub fn lowered(ordered: Ordered) -> Self {
        Schedule {
            lowered: true,
            ..Schedule::new(ordered)
        }
    }

    /// Whether a machine and its path need no other schedule than this one.
    pub fn is_lowered(&self) -> bool {
        self.lowered
    }

    /// The schedule as it is, to read and to rewrite.
    pub fn ordered(&self) -> &Ordered {
        &self.ordered
    }

    /// The schedule for another thread.
    pub fn shared(&self) -> Arc<Ordered> {
        self.ordered.clone()
    }

    /// The schedule to be run: verified on first use and refused if it is wrong.
    pub fn proved(&self, py: Python<'_>) -> PyResult<&Ordered> {
        let proof = py.detach(|| self.proof().as_ref().map_err(Clone::clone));
        proof.map(|_| &*self.ordered).map_err(errors::verify)
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
    /// Build the schedule of a registered algorithm.
    ///
    /// Args:
    ///     key: `collective/name`, such as `allreduce/ring`; `linkwright list algorithms` shows all.
    ///     ranks: the number of ranks, at least 1.
    ///     elements: the length of one vector in elements, S / `element_bytes`.
    ///     element_bytes: the bytes of one element.
    ///     root: the rank that a rooted collective starts or ends at.
    ///     grid: the sides, (columns, rows, ...), for algorithms that need a grid.
    ///     rings: orders of the ranks, for ring algorithms; by default one ring in rank order.
    ///     counts: of an uneven exchange, the elements that each rank has for each rank, row by row.
    ///     routing: of a dispatch or a combine, in place of counts: experts, experts of a token, elements of a token,
    ///         skew of the Zipf distribution in thousandths and seed; a vector is the tokens of one rank.
    ///     owners: of a routing, the rank that serves each expert to each rank with tokens, row by row; by default each
    ///         rank owns as many consecutive experts.
    /// Returns:
    ///     The schedule.
    /// Raises:
    ///     WaivedError: the algorithm cannot serve this shape.
    ///     UnknownNameError: there is no such algorithm.
    ///     ShapeError: the shape makes no sense.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.Schedule.build("allreduce/ring", 4, 1024)
    ///     <Schedule allreduce over 4 ranks: 24 operations, 24 messages>
    #[staticmethod]
    #[pyo3(signature = (key, ranks, elements, *, element_bytes=4, root=0, grid=None, rings=None, counts=None, routing=None, owners=None))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn build(
        py: Python<'_>,
        key: &str,
        ranks: u32,
        elements: u64,
        element_bytes: u32,
        root: u32,
        grid: Option<Vec<u32>>,
        rings: Option<Vec<Vec<u32>>>,
        counts: Option<Vec<u64>>,
        routing: Option<Routed>,
        owners: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let shape = Shape {
            rings: rings.unwrap_or_default(),
            exchange: exchange(counts, routing, owners.unwrap_or_default()),
            ..shape(ranks, elements, element_bytes, root, grid)
        };
        wrap(py.detach(|| collectives::build(key, &shape)))
    }

    /// Build the schedule of a traffic pattern.
    ///
    /// Args:
    ///     key: `pattern/name` or `name`; `linkwright list patterns` shows all.
    ///     ranks: the number of ranks, at least 1.
    ///     elements: the length of one message in elements.
    ///     element_bytes: the bytes of one element.
    ///     root: the rank that a pattern with a center starts or ends at.
    ///     grid: the sides, (columns, rows), for patterns that need a grid.
    ///     seed: the seed of random patterns.
    ///     count: the number of messages per pair.
    ///     both_ways: whether messages also go back.
    /// Returns:
    ///     The schedule.
    /// Raises:
    ///     WaivedError: the pattern cannot serve this shape.
    ///     UnknownNameError: there is no such pattern.
    ///     ShapeError: the shape makes no sense.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.Schedule.pattern("pairs", 4, 1024, both_ways=True).messages
    ///     4
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
        grid: Option<Vec<u32>>,
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

    /// Read the text form of a schedule.
    ///
    /// Args:
    ///     content: the text, as `text` writes it; docs/schedules.md describes the format.
    ///     file: the name of the file, for messages.
    /// Returns:
    ///     The schedule.
    /// Raises:
    ///     FileError: the text is not a schedule (`schedule.syntax`); the message names the line.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> ring = lw.schedule("allreduce", "ring", ranks=4, size="4K")
    ///     >>> lw.Schedule.parse(ring.text()).text() == ring.text()
    ///     True
    #[staticmethod]
    #[pyo3(signature = (content, file="schedule"))]
    fn parse(py: Python<'_>, content: &str, file: &str) -> PyResult<Self> {
        let read = py.detach(|| text::parse(content));
        let ordered = read.map_err(|error| errors::parse(file, &error))?;
        Ok(Schedule::new(ordered))
    }

    /// The text form of the schedule, which `parse` reads back to the same schedule.
    ///
    /// Returns:
    ///     The text, one operation per line.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.schedule("allreduce", "ring", ranks=4, size="4K").text().splitlines()[:2]
    ///     ['linkwright-schedule 1', 'ranks 4']
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| text::print(&self.ordered))
    }

    /// The schedule in a format of another tool.
    ///
    /// Args:
    ///     format: the key of the format; `linkwright list plans` shows all.
    /// Returns:
    ///     The text of the file.
    /// Raises:
    ///     UnknownNameError: there is no such format.
    ///     VerifyError: the schedule is wrong.
    ///     WaivedError: the format cannot express the schedule; the message says what.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> ring = lw.schedule("allreduce", "ring", ranks=4, size="4K")
    ///     >>> ring.export("lw") == ring.text()
    ///     True
    fn export(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let known = linkwright_plans::find(format).ok_or_else(|| unknown_format(format))?;
        let ordered = self.proved(py)?;
        let written = py.detach(|| (known.write)(ordered));
        written.map_err(|error| errors::inexpressible(format, &error))
    }

    /// The same schedule over vectors of another size: its chunks are cuts of a vector.
    ///
    /// Args:
    ///     elements: the length of one vector in elements; rounded down to equal blocks where S counts those.
    ///     element_bytes: the bytes of one element.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ShapeError: the schedule computes, so its size is fixed, or 64 bits do not count the size.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.schedule("allreduce", "ring", ranks=4, size="4K").resized(100, 8).size_bytes
    ///     800
    #[pyo3(signature = (elements, element_bytes=4))]
    fn resized(&self, py: Python<'_>, elements: u64, element_bytes: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::resized(&self.ordered, elements, element_bytes)))
    }

    /// Copies and pickles are made from the text.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let parse = py.get_type::<Schedule>().getattr("parse")?;
        Ok((parse, (self.text(py),)))
    }

    /// Cut every transfer into slices that follow each other, so that a relay passes on the first while the next arrives.
    ///
    /// Args:
    ///     slices: the number of slices, at least 1.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: the operations cannot be cut this way.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> len(lw.schedule("allreduce", "ring", ranks=4, size="4K").pipeline(2))
    ///     48
    fn pipeline(&self, py: Python<'_>, slices: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::pipeline(&self.ordered, slices)))
    }

    /// Cut every transfer into parts, each on a lane of its own, so that they move at the same time.
    ///
    /// Args:
    ///     lanes: the number of lanes, at least 1.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: the operations cannot be cut this way.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> sorted(set(lw.schedule("allreduce", "ring", ranks=4, size="4K").stripe(2).operations()["lane"].tolist()))
    ///     [0, 1]
    fn stripe(&self, py: Python<'_>, lanes: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::stripe(&self.ordered, lanes)))
    }

    /// Cut every chunk and leave the operations whole, so that `windows` finds borders inside a chunk.
    ///
    /// Args:
    ///     slices: the number of chunks that each chunk becomes, at least 1.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: the chunks cannot be cut this way.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> len(lw.schedule("allreduce", "ring", ranks=4, size="4K").refine(2))
    ///     24
    fn refine(&self, py: Python<'_>, slices: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::refine(&self.ordered, slices)))
    }

    /// Cut transfers that combine into windows with a signal each, as GPU kernels do.
    ///
    /// Args:
    ///     windows: the number of windows of one vector, at least 1.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: the operations cannot be cut this way.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> len(lw.schedule("allreduce", "ring", ranks=4, size="4K").windows(2))
    ///     44
    fn windows(&self, py: Python<'_>, windows: u32) -> PyResult<Self> {
        wrap(py.detach(|| windows::windows(&self.ordered, windows)))
    }

    /// Make every combination at a destination a local operation after a copy, for paths that only copy.
    ///
    /// Returns:
    ///     The new schedule.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> sorted(set(lw.schedule("allreduce", "ring", ranks=4, size="4K").unfuse().operations()["kind"]))
    ///     ['local', 'put']
    fn unfuse(&self, py: Python<'_>) -> PyResult<Self> {
        wrap(py.detach(|| transforms::unfuse(&self.ordered)))
    }

    /// Let every contribution land in scratch of its own, within 16 MiB a rank, so that none waits until scratch is ready.
    ///
    /// Returns:
    ///     The new schedule.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> schedule = lw.schedule("allreduce", "recursive_doubling_latency", ranks=8, size="4K")
    ///     >>> schedule.messages, schedule.own_scratch().messages
    ///     (40, 24)
    fn own_scratch(&self, py: Python<'_>) -> PyResult<Self> {
        wrap(py.detach(|| own_scratch(&self.ordered)))
    }

    /// Let receivers read what senders write to them, so that no rank has to be told that data are there.
    ///
    /// Args:
    ///     everything: also what a rank has only received, which is read behind a notice; else what is there from the
    ///         start.
    ///     lanes: the number of lanes that the reads of each rank take in turn, at least 1; by default those of the
    ///         writes.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: the schedule has waits besides those for its hazards.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.schedule("allgather", "linear", ranks=4, size="4K").pull()
    ///     <Schedule allgather over 4 ranks: 12 operations, 12 messages>
    #[pyo3(signature = (*, everything = false, lanes = None))]
    fn pull(&self, py: Python<'_>, everything: bool, lanes: Option<u32>) -> PyResult<Self> {
        let which = match everything {
            true => Pulled::Everything,
            false => Pulled::Initial,
        };
        wrap(py.detach(|| pull(&self.ordered, which, lanes)))
    }

    /// Run the schedule several times back to back.
    ///
    /// Args:
    ///     times: the number of runs, at least 1.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: the schedule leaves partial results behind, so it cannot be repeated.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.schedule("allreduce", "ring", ranks=4, size="4K").repeat(2).messages
    ///     52
    fn repeat(&self, py: Python<'_>, times: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::repeat(&self.ordered, times)))
    }

    /// Keep the first steps, with their waits; the result only moves data.
    ///
    /// Args:
    ///     steps: the number of steps, at least 1.
    /// Returns:
    ///     The new schedule, whose collective is `pattern`.
    /// Raises:
    ///     ShapeError: there are 0 steps.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> first = lw.schedule("allreduce", "ring", ranks=4, size="4K").first_steps(2)
    ///     >>> first.steps, len(first)
    ///     (2, 8)
    fn first_steps(&self, py: Python<'_>, steps: u32) -> PyResult<Self> {
        wrap(py.detach(|| transforms::first_steps(&self.ordered, steps)))
    }

    /// Run other schedules at the same time, on the ranks behind those of this one; the result only moves data.
    ///
    /// Args:
    ///     others: schedules over vectors of the same size.
    /// Returns:
    ///     The new schedule, whose collective is `pattern`; nothing of one waits for another.
    /// Raises:
    ///     ShapeError: the sizes differ.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> ring = lw.schedule("allreduce", "ring", ranks=4, size="4K")
    ///     >>> ring.side_by_side([ring, ring])
    ///     <Schedule pattern over 12 ranks: 72 operations, 72 messages>
    fn side_by_side(&self, py: Python<'_>, others: Vec<PyRef<'_, Schedule>>) -> PyResult<Self> {
        let others = others.iter().map(|other| other.shared());
        let parts: Vec<_> = std::iter::once(self.shared()).chain(others).collect();
        wrap(py.detach(|| side_by_side(&parts.iter().map(|part| &**part).collect::<Vec<_>>())))
    }

    /// Exchange the parts that ranks play: the same algorithm over another order of ranks.
    ///
    /// Args:
    ///     parts: for each rank r, the rank whose part it plays; a permutation of 0 to `ranks` - 1.
    /// Returns:
    ///     The new schedule.
    /// Raises:
    ///     ScheduleError: `parts` is not a permutation of the ranks.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.schedule("broadcast", "ring", ranks=3, size="4K").relabel([0, 2, 1]).operations()["to"].tolist()
    ///     [2, 1]
    fn relabel(&self, py: Python<'_>, parts: Vec<u32>) -> PyResult<Self> {
        wrap(py.detach(|| transforms::relabel(&self.ordered, &parts)))
    }

    /// Prove that the schedule is right in every execution.
    ///
    /// `linkwright.verify` gives the same as a `Proof`.
    ///
    /// Returns:
    ///     What was proved, in numbers: `operations, messages, notices, edges, chunk_moves, hazards,
    ///     long_searches`, and `exact`, whether contributions were counted exactly or by fingerprints.
    /// Raises:
    ///     VerifyError: the schedule is wrong; `code` says which property it lacks.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> proved = lw.schedule("allreduce", "ring", ranks=4, size="4K").verify()
    ///     >>> proved["operations"], proved["hazards"], proved["exact"]
    ///     (24, 40, True)
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Typed<'py, hints::ProvedRow>> {
        let proof = py.detach(|| self.proof().clone());
        let proved = proof.map_err(errors::verify)?;
        Ok(row!(
            py,
            ..proved.{operations, messages, notices, edges, chunk_moves, hazards, long_searches, exact},
        ))
    }

    /// The collective that the schedule carries out, or `pattern`.
    #[getter]
    fn collective(&self) -> &'static str {
        self.ordered.spec.collective.name()
    }

    /// The rank that a rooted collective starts or ends at; 0 of others.
    #[getter]
    fn root(&self) -> u32 {
        self.ordered.spec.root
    }

    /// The number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.ordered.ranks
    }

    /// The number of passive memories.
    #[getter]
    fn memories(&self) -> u32 {
        self.ordered.memories
    }

    /// The ranks of each set; `to` of a multicast or a barrier is the index of one.
    #[getter]
    fn sets(&self) -> Vec<Vec<u32>> {
        self.ordered.sets.clone()
    }

    /// The sources and the targets of each aggregation, as indices into `sets`; its `to` is an index here.
    #[getter]
    fn aggregations(&self) -> Vec<(u32, u32)> {
        self.ordered.aggregations.clone()
    }

    /// The bytes of one element.
    #[getter]
    fn element_bytes(&self) -> u32 {
        self.ordered.element_bytes
    }

    /// The message size S of the collective, in bytes.
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.ordered.size_bytes()
    }

    /// The number of steps.
    #[getter]
    fn steps(&self) -> usize {
        self.ordered.step_count()
    }

    /// The number of messages, notices included.
    #[getter]
    fn messages(&self) -> usize {
        self.ordered.message_count()
    }

    /// The operations of the schedule as columns, by operation id.
    ///
    /// Returns:
    ///     `kind` and `hint`, lists of text; `from`, `to` (participants), `step`, `lane`, `bytes` and
    ///     `runs` (contiguous pieces), uint64 arrays. All have one entry per operation.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> table = lw.schedule("broadcast", "ring", ranks=3, size="4K").operations()
    ///     >>> table["kind"], table["from"].tolist(), table["to"].tolist(), table["bytes"].tolist()
    ///     (['put', 'put'], [0, 1], [1, 2], [4096, 4096])
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Typed<'py, hints::OperationColumns>> {
        let (schedule, ops) = (&self.ordered, self.ordered.ops());
        let column = |of: &dyn Fn(&linkwright_schedule::ir::Op) -> u64| {
            ops.iter().map(of).collect::<Vec<u64>>().into_pyarray(py)
        };
        Ok(row!(
            py,
            kind = ops.iter().map(|op| op.kind.name()).collect::<Vec<_>>(),
            from = column(&|op| u64::from(op.from)),
            to = column(&|op| u64::from(op.to)),
            step = column(&|op| u64::from(op.step)),
            lane = column(&|op| u64::from(op.lane)),
            bytes = column(&|op| schedule.op_bytes(op)),
            runs = column(&|op| u64::from(schedule.op_runs(op))),
            hint = ops.iter().map(|op| hint_name(op.hint)).collect::<Vec<_>>(),
        ))
    }

    /// Bytes that each participant gives to others; a multicast counts once for each target, an
    /// aggregation once for each source.
    ///
    /// Returns:
    ///     A uint64 array with one entry per participant, ranks first.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.schedule("broadcast", "ring", ranks=3, size="4K").sent_bytes().tolist()
    ///     [4096, 4096, 0]
    fn sent_bytes<'py>(&self, py: Python<'py>) -> Typed<'py, Column<u64>> {
        Typed::new(self.ordered.sent_bytes().into_pyarray(py))
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

    fn _repr_html_(&self) -> String {
        let rows = [
            ("ranks", self.ordered.ranks.to_string()),
            ("size", format!("{} B", self.size_bytes())),
            ("operations", self.ordered.ops().len().to_string()),
            ("messages", self.ordered.message_count().to_string()),
        ];
        html::table(&format!("schedule of {}", self.collective()), &rows)
    }
}

fn unknown_format(key: &str) -> PyErr {
    let known = linkwright_plans::FORMATS.iter().map(|format| format.key);
    let known = known.collect::<Vec<_>>().join(", ");
    let message = format!("no format of schedules `{key}`; known: {known}");
    errors::raise("UnknownNameError", message)
}

/// What an algorithm or a pattern is asked for.
pub fn shape(
    ranks: u32,
    elements: u64,
    element_bytes: u32,
    root: u32,
    grid: Option<Vec<u32>>,
) -> Shape {
    Shape {
        root,
        grid: grid.unwrap_or_default(),
        element_bytes,
        ..Shape::new(ranks, elements)
    }
}

/// Tokens of each rank (row by row) that want each expert, as a routing draws them; the arguments are those of
/// `Schedule.build`.
#[pyfunction]
pub fn expert_loads(ranks: u32, elements: u64, routing: Routed) -> PyResult<Vec<u64>> {
    let shape = shape(ranks, elements, 1, 0, None);
    classes::expert_loads(&shape, &routed(routing, Vec::new())).map_err(errors::schedule)
}

/// Refuse a routing whose experts `ranks` ranks do not own alike, or among which its tokens cannot choose.
#[pyfunction]
pub fn check_routing(ranks: u32, routing: Routed) -> PyResult<()> {
    let checked = shape(ranks, 0, 1, 0, None).check();
    let routing = routed(routing, Vec::new());
    checked
        .and_then(|()| routing.check(ranks))
        .map_err(errors::schedule)
}

/// Experts, experts of a token, elements of a token, thousandths of skew, and seed.
pub type Routed = (u32, u32, u64, u32, u64);

/// The exchange of these keywords of `Schedule.build`.
pub fn exchange(
    counts: Option<Vec<u64>>,
    routing: Option<Routed>,
    owners: Vec<u32>,
) -> Option<Arc<UnevenExchange>> {
    let routed = routing.map(|routing| UnevenExchange::Routed(routed(routing, owners)));
    counts.map(UnevenExchange::Counts).or(routed).map(Arc::new)
}

fn routed(routing: Routed, owners: Vec<u32>) -> Routing {
    let (experts, topk, token_elements, skew_permille, seed) = routing;
    Routing {
        experts,
        topk,
        token_elements,
        skew_permille,
        seed,
        owners,
    }
}

fn hint_name(hint: Hint) -> &'static str {
    match hint {
        Hint::None => "",
        way => way.name(),
    }
}

/// The random bits from which the proofs of this process follow, 32 hexadecimal digits.
#[pyfunction]
pub fn proof_key() -> String {
    format!("{:032x}", verify::proof_key())
}
