//! `Machine`: a described machine.

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::html;
use crate::network::{NetworkColumns, Routes};
use crate::shelf::Shelf;
use linkwright_core::machine::{
    Draft as Composed, EndpointKind, File, Grid, Listed, ListedLink, Machine as Described,
    OpenSize, Variant,
};
use linkwright_core::random::Random;
use linkwright_sim::fabrics as models;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyTuple};

/// A described machine: endpoints, links, paths and costs, read from a machine file. It never changes.
///
/// `linkwright.machine` loads one by name or path.
///
/// Example:
///     >>> import linkwright as lw
///     >>> machine = lw.machine("wormhole-n150")
///     >>> machine.name, machine.fabric, machine.ranks, machine.memories, machine.open_size
///     ('wormhole-n150', 'torus_noc', 64, 12, None)
///     >>> machine.paths, machine.networks
///     (['metalium', 'ideal', 'stream', 'read'], ['NoC 0', 'NoC 1'])
///     >>> machine.grid, machine.rank_grid, machine.fitted
///     ((10, 12), (8, 8), 16)
///     >>> machine.file, machine.cluster, "[fabric]" in machine.text
///     ('wormhole-n150.toml', None, True)
///     >>> machine.summary.split(":")[0], machine.description[:17], len(machine.sources) > 0
///     ('Tenstorrent Wormhole n150', 'One chip of 10 x ', True)
#[pyclass(frozen, module = "linkwright._native")]
pub struct Machine {
    pub described: Described,
}

/// Let the fabric and the models of probes read their parameters, on the smallest size where it is open.
pub fn check(described: &Described) -> PyResult<()> {
    let smallest = match described.open_size() {
        Some(OpenSize::Count) => described.with_endpoints(2),
        Some(OpenSize::Grid) => described.with_grid(Grid::new(2, 2)),
        None => Ok(described.clone()),
    };
    let smallest = smallest.map_err(errors::machine)?;
    models::build(&smallest).map_err(errors::sim)?;
    linkwright_sim::probes::check(&smallest).map_err(errors::sim)
}

/// A machine that is composed of its file, parts and a network, and not yet checked.
///
/// Messages about the machine count the lines of `text`.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Draft(Composed);

/// The machine as a variant has it.
fn composed(node: &Described, shelf: Shelf<'_, '_>, asked: &Bound<'_, PyAny>) -> PyResult<Draft> {
    let variant = Variant {
        name: asked.call_method1("name", (node.name(),))?.extract()?,
        nodes: asked.getattr("nodes")?.extract()?,
        fabric: asked.getattr("fabric")?.extract()?,
        without: asked.getattr("without")?.extract()?,
        degrade: asked.getattr("degrade")?.extract()?,
    };
    let found = node.composed(&variant, &shelf);
    shelf.found(found).map(Draft)
}

#[pymethods]
impl Draft {
    /// Read the text of a machine file over its parts, as a variant has it.
    ///
    /// Args:
    ///     text: the contents of the file.
    ///     file: the name of the file, for messages.
    ///     shelf: reads what the file names: `part(name)` and `network(name)` give file name and text, `nodes()` the
    ///         machines that can be nodes.
    ///     variant: how the machine differs from its file, a `linkwright.machines.Variant`.
    /// Raises:
    ///     FileError: the text is no tables, parts or network of a machine.
    ///     UsageError: it has no such variant.
    #[new]
    fn new(
        text: String,
        file: String,
        shelf: &Bound<'_, PyAny>,
        variant: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let files = Shelf::new(shelf);
        let draft = Composed::read(File { name: file, text }, &files, None);
        let draft = files.found(draft)?;
        if !variant.is_truthy()? {
            return Ok(Draft(draft));
        }
        let node = draft.machine().map_err(errors::machine)?;
        composed(&node, Shelf::new(shelf), variant)
    }

    /// The text of the machine: that of its file, or as it is composed.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// What messages call the file.
    #[getter]
    fn file(&self) -> &str {
        self.0.file()
    }

    /// The machine.
    ///
    /// Raises:
    ///     FileError: the text is not a machine.
    fn machine(&self) -> PyResult<Machine> {
        let described = self.0.machine().map_err(errors::machine)?;
        check(&described)?;
        Ok(Machine { described })
    }
}

#[pymethods]
impl Machine {
    /// Read the text of a machine file.
    ///
    /// Reading checks every key, including those that only the fabric or the model of a probe knows.
    ///
    /// Args:
    ///     text: the contents of the file, in TOML; docs/formats.md describes the format.
    ///     file: the name of the file, for messages.
    /// Returns:
    ///     The machine.
    /// Raises:
    ///     FileError: the text is not a machine; `code` starts with `machine.`.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.Machine.parse("[machine]", "mine.toml")
    ///     Traceback (most recent call last):
    ///     ...
    ///     linkwright.base.errors.FileError: mine.toml:1: machine: missing key `name`; add it
    #[staticmethod]
    fn parse(text: &str, file: &str) -> PyResult<Self> {
        let described = Described::parse(text, file).map_err(errors::machine)?;
        check(&described)?;
        Ok(Machine { described })
    }

    /// Compose a variant of the machine: copies of it on a network, or the machine without some links.
    ///
    /// Args:
    ///     shelf: reads networks by name, a `linkwright.machines.Shelf`.
    ///     asked: how it differs, a `linkwright.machines.Variant`.
    /// Returns:
    ///     The composed machine, whose `machine()` is checked.
    /// Raises:
    ///     UsageError: the machine has no such variant.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> from pathlib import Path
    ///     >>> from linkwright.machines import Shelf, Variant
    ///     >>> lw.machine("hgx-h100").composed(Shelf(Path()), Variant(2)).machine().ranks
    ///     16
    fn composed(&self, shelf: &Bound<'_, PyAny>, asked: &Bound<'_, PyAny>) -> PyResult<Draft> {
        composed(&self.described, Shelf::new(shelf), asked)
    }

    /// Copies of this node on the network that a description lists.
    ///
    /// Args:
    ///     about: name, summary, and sources besides those of the node and of the network.
    ///     nodes: how many copies.
    ///     network: the network that software and latencies are of; None is that of the node.
    ///     listed: name of the description; (value, unit, status, source) of the rate of a port, or None for that of
    ///         the network; how many ports of a node are connected; switches; and links: (class, width in ports, names
    ///         of ports and switches, the switch that each of them is joined to).
    ///     shelf: reads networks by name, a `linkwright.machines.Shelf`.
    /// Returns:
    ///     The composed machine, whose `machine()` is checked.
    /// Raises:
    ///     UsageError: the machine is no node.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> from pathlib import Path
    ///     >>> from linkwright.machines import Shelf
    ///     >>> links = [("port", 1.0, [f"node {k} NIC {i}" for i in range(8)], "leaf") for k in range(2)]
    ///     >>> listed = "fabric.txt", None, 8, ["leaf"], links
    ///     >>> node = lw.machine("hgx-h100")
    ///     >>> node.joined(("mine", "two nodes", []), 2, None, listed, Shelf(Path())).machine().ranks
    ///     16
    #[allow(clippy::type_complexity)] // one call, whose documentation names the parts
    fn joined(
        &self,
        about: (String, String, Vec<String>),
        nodes: usize,
        network: Option<&str>,
        listed: (
            String,
            Option<(String, String, String, String)>,
            usize,
            Vec<String>,
            Vec<(String, f64, Vec<String>, String)>,
        ),
        shelf: &Bound<'_, PyAny>,
    ) -> PyResult<Draft> {
        let (description, rate, ports, switches, links) = listed;
        let rate = rate.as_ref().map(|(value, unit, status, source)| {
            (
                value.clone(),
                unit.as_str(),
                status.as_str(),
                source.clone(),
            )
        });
        let link = |(class, width, names, other)| ListedLink {
            class,
            width,
            names,
            other,
        };
        let links = links.into_iter().map(link).collect();
        let listed = Listed::new(description, rate, ports, switches, links);
        let listed = listed.map_err(errors::machine)?;
        let (name, summary, sources) = about;
        let shelf = Shelf::new(shelf);
        let about = (name, summary, sources.as_slice());
        let found = self.described.joined(about, nodes, network, listed, &shelf);
        shelf.found(found).map(Draft)
    }

    /// The text of the machine: that of its file; printed anew if it is composed or changed.
    ///
    /// Reading it gives the same machine.
    #[getter]
    fn text(&self) -> String {
        self.described.text().to_string()
    }

    /// What messages call the file.
    #[getter]
    fn file(&self) -> &str {
        self.described.file()
    }

    /// (ports, network) of a machine that can be a node: the names of its network ports, and the network that joins
    /// nodes unless another is asked for; None of other machines.
    #[getter]
    fn cluster(&self) -> Option<(Vec<String>, String)> {
        let cluster = self.described.cluster()?;
        Some((cluster.ports(), cluster.network.clone()))
    }

    /// The machine whose messages between some endpoints go by other nodes of its graph.
    ///
    /// Args:
    ///     routes: (from, to, the nodes between).
    /// Returns:
    ///     The changed machine.
    /// Raises:
    ///     FileError: the graph has no such way.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> machine = lw.machine("hgx-h100").routed([("GPU 0", "GPU 1", ["NVSwitch"])])
    ///     >>> '[fabric.pair."GPU 0 -> GPU 1"]' in machine.text
    ///     True
    fn routed(&self, routes: Vec<(String, String, Vec<String>)>) -> PyResult<Self> {
        let described = self.described.routed(routes).map_err(errors::machine)?;
        check(&described)?;
        Ok(Machine { described })
    }

    /// Choose the number of ranks, for a machine whose file leaves it open.
    ///
    /// Args:
    ///     ranks: the number of endpoints that run ranks, at least 1.
    /// Returns:
    ///     The machine of that size.
    /// Raises:
    ///     FileError: the machine cannot have that size (`machine.wrong-size`).
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.machine("loggp").with_endpoints(8).ranks
    ///     8
    fn with_endpoints(&self, ranks: usize) -> PyResult<Self> {
        let described = self
            .described
            .with_endpoints(ranks)
            .map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// Choose the grid, for a machine whose file leaves it open.
    ///
    /// Args:
    ///     sides: the sides of the grid, each at least 1: columns, rows, ...
    /// Returns:
    ///     The machine of that size.
    /// Raises:
    ///     FileError: the machine cannot have that grid (`machine.wrong-size`).
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.machine("torus-2d").with_grid(4, 2).rank_grid
    ///     (4, 2)
    #[pyo3(signature = (*sides: "int"))]
    fn with_grid(&self, sides: Vec<u32>) -> PyResult<Self> {
        let described = self.described.with_sides(&sides).map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// The name of the machine.
    #[getter]
    fn name(&self) -> &str {
        self.described.name()
    }

    /// The machine in one line.
    #[getter]
    fn summary(&self) -> &str {
        self.described.summary()
    }

    /// The machine in a paragraph.
    #[getter]
    fn description(&self) -> &str {
        self.described.description()
    }

    /// The publications that the numbers come from.
    #[getter]
    fn sources(&self) -> Vec<String> {
        self.described.sources().to_vec()
    }

    /// Whether the file says how times differ from launch to launch.
    #[getter]
    fn noisy(&self) -> bool {
        self.described.noise().is_some()
    }

    /// (path, issue policy) of traffic patterns unless others are asked for, where the file has them.
    #[getter]
    fn traffic(&self) -> Option<(String, String)> {
        let traffic = self.described.traffic()?;
        Some((traffic.path.clone(), traffic.issue.to_string()))
    }

    /// The kind of the fabric, such as `loggp`.
    #[getter]
    fn fabric(&self) -> &str {
        self.described.fabric_kind()
    }

    /// The names of the paths, the default first.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.described
            .paths()
            .iter()
            .map(|path| path.name.clone())
            .collect()
    }

    /// The names of the networks, by number.
    #[getter]
    fn networks(&self) -> Vec<String> {
        self.described.hints().networks().to_vec()
    }

    /// The number of endpoints that run ranks; 0 while the size is open.
    #[getter]
    fn ranks(&self) -> usize {
        self.described.ranks()
    }

    /// The number of memory endpoints.
    #[getter]
    fn memories(&self) -> usize {
        self.described.memories()
    }

    /// What the file leaves open: `ranks`, `grid` or None.
    #[getter]
    fn open_size(&self) -> Option<&'static str> {
        self.described.open_size().map(|open| match open {
            OpenSize::Count => "ranks",
            OpenSize::Grid => "grid",
        })
    }

    /// (columns, rows) of all places, hidden ones included; None unless they form a grid of two sides.
    #[getter]
    fn grid(&self) -> Option<(u32, u32)> {
        self.described.grid().map(|grid| (grid.columns, grid.rows))
    }

    /// Replace one number or choice, which is then listed as assumed.
    ///
    /// Args:
    ///     key: the dotted path of the key, as `numbers` lists it, such as `fabric.latency`.
    ///     value: the new value as the file would write it: `12` or `[1, 2]` for a number, which keeps its
    ///         unit; `"dynamic"` or `true` for a choice.
    /// Returns:
    ///     The changed machine.
    /// Raises:
    ///     FileError: there is no such key, or it cannot have this value.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> slower = lw.machine("loggp").with_value("fabric.latency", "2")
    ///     >>> [(row["value"], row["unit"], row["status"]) for row in slower.numbers() if row["key"] == "fabric.latency"]
    ///     [('2', 'us', 'assumed')]
    fn with_value(&self, key: &str, value: &str) -> PyResult<Self> {
        let described = self
            .described
            .with_value(key, value)
            .map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// Replace several numbers and choices at once, which may depend on each other.
    ///
    /// Args:
    ///     values: the key of each and its new value, as for `with_value`.
    /// Returns:
    ///     The changed machine.
    /// Raises:
    ///     FileError: there is no such key, or it cannot have this value.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> slower = lw.machine("loggp").with_values([("fabric.latency", "2")])
    ///     >>> [row["value"] for row in slower.numbers() if row["key"] == "fabric.latency"]
    ///     ['2']
    fn with_values(&self, values: Vec<(String, String)>) -> PyResult<Self> {
        let values: Vec<_> = values
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        let described = self
            .described
            .with_values(&values)
            .map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// The machine with every rate and time of its fabric drawn again, as it may be just as well.
    ///
    /// Args:
    ///     within: how far a number is off at most, as a share of it: `0.2` is 20 %.
    ///     seed: of the draw.
    /// Returns:
    ///     The changed machine.
    /// Raises:
    ///     FileError: the file holds for its own values only.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> drawn = lw.machine("loggp").varied(0.2, seed=1)
    ///     >>> {row["status"] for row in drawn.numbers() if row["key"] == "fabric.latency"}, drawn.noisy, drawn.traffic
    ///     ({'assumed'}, False, None)
    #[pyo3(signature = (within, *, seed=0))]
    fn varied(&self, within: f64, seed: u64) -> PyResult<Self> {
        if !(0.0..1.0).contains(&within) {
            let message = format!("within {within}: give a share of 0 or more and below 1");
            return Err(errors::raise("UsageError", message));
        }
        let varied = self.described.varied(within, &mut Random::new(seed));
        let described = varied.map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// Sides of the grid of ranks, (columns, rows, ...); None unless they form a grid.
    #[getter]
    fn rank_grid<'py>(&self, py: Python<'py>) -> PyResult<Option<Typed<'py, hints::Sides>>> {
        match self.described.sides() {
            [] => Ok(None),
            sides => Ok(Some(Typed::new(PyTuple::new(py, sides)?))),
        }
    }

    /// The hierarchy of the machine.
    ///
    /// Returns:
    ///     (name, count) of each level, outermost first.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.machine("wormhole-n150").levels()
    ///     [('board', 1), ('chip', 1), ('tile', 64)]
    fn levels(&self) -> Vec<(String, usize)> {
        let levels = self.described.levels().iter();
        levels
            .map(|level| (level.name.clone(), level.count))
            .collect()
    }

    /// How many operating systems the ranks share, equally and in order; None where the machine file states none.
    #[getter]
    fn hosts(&self) -> Option<usize> {
        self.described.hosts()
    }

    /// The endpoints of the machine.
    ///
    /// Returns:
    ///     One dictionary per endpoint, ranks first: `name`, `kind` (`rank` or `memory`), and the place
    ///     `x`, `y` on the grid, None without one.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.machine("wormhole-n150").endpoints()[0]
    ///     {'name': 'tile (1,1)', 'kind': 'rank', 'x': 1, 'y': 1}
    fn endpoints<'py>(&self, py: Python<'py>) -> PyResult<Vec<Typed<'py, hints::EndpointRow>>> {
        let row = |endpoint: &linkwright_core::machine::Endpoint| {
            let memory = endpoint.kind == EndpointKind::Memory;
            Ok(row!(
                py,
                name = &endpoint.name,
                kind = if memory { "memory" } else { "rank" },
                x = endpoint.place.map(|place| place.x),
                y = endpoint.place.map(|place| place.y),
            ))
        };
        self.described.endpoints().iter().map(row).collect()
    }

    /// Every number of the machine file, with its source.
    ///
    /// Returns:
    ///     One dictionary per number: `key`, `value`, `unit`, `status` (documented, measured, derived,
    ///     fitted or assumed) and `source`, all text.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> first = lw.machine("loggp").numbers()[0]
    ///     >>> first["key"], first["value"], first["unit"], first["status"]
    ///     ('fabric.latency', '1', 'us', 'assumed')
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Typed<'py, hints::NumberRow>>> {
        let row = |number: linkwright_core::machine::NumberRow| {
            Ok(row!(
                py,
                ..number.{key, value, unit},
                status = number.status.name(),
                source = number.source,
            ))
        };
        self.described.numbers().into_iter().map(row).collect()
    }

    /// The structural rules of the model.
    ///
    /// Returns:
    ///     One dictionary per rule: `name`, `statement`, `evidence`, and `post_hoc`, whether the rule was
    ///     found by looking at the numbers it explains.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> sorted(lw.machine("vollo-ia420f").rules()[0])
    ///     ['evidence', 'name', 'post_hoc', 'statement']
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Vec<Typed<'py, hints::RuleRow>>> {
        let row = |rule: &linkwright_core::machine::Rule| {
            Ok(row!(py, ..rule.{name, statement, evidence, post_hoc}))
        };
        self.described.rules().iter().map(row).collect()
    }

    /// The communication library that the machine runs.
    ///
    /// Returns:
    ///     A dictionary of `name`, `versions` (the default first), `links` (the number of the network on which
    ///     ranks one link apart are neighbours, or None), `modes` (mode of the library -> path of the machine),
    ///     `hardware` (`gpu` and `host` in words of the library, or None), `training` (the version in a training
    ///     step), `launch_ps` (to start a collective) and `source`; None if the file states no library.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> library = lw.machine("dgx1-p100").library()
    ///     >>> library["name"], library["versions"], library["modes"]["normal"]
    ///     ('nccl', ['1.3.4', '2.3.5'], 'flags')
    fn library<'py>(&self, py: Python<'py>) -> PyResult<Option<Typed<'py, hints::LibraryRow>>> {
        let Some(library) = self.described.library() else {
            return Ok(None);
        };
        let hardware = library.hardware.as_ref();
        Ok(Some(row!(
            py,
            ..library.{name, versions, links, modes},
            hardware = hardware
                .map(|h| [("gpu", &h.gpu), ("host", &h.host)].into_py_dict(py))
                .transpose()?,
            training = &library.training,
            launch_ps = library.launch.0,
            source = &library.source,
        )))
    }

    /// The nodes of the machine, the edges between them, and where each link of a simulation is.
    ///
    /// Returns:
    ///     Columns of `nodes`: `name`, `kind` (`rank`, `memory` or `switch`), coordinates `at` (None without), and
    ///     `group`, the number in `groups` (-1: none). Columns of `edges`, one for both directions: `class`, nodes `a`
    ///     and `b`, `bytes_per_s` of each direction as the file states it, without `share` (None: it does not). Columns
    ///     of `links`, in the order of a simulation: `name`, nodes `a` and `b` from and to which it leads (equal for a
    ///     port, -1: at no node). Nodes around a `ring` bus; `sides` of the grid; names of `groups`, such as `node 3`.
    ///     None while the size is open.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> network = lw.machine("dgx1-p100").network()
    ///     >>> [network["edges"][column][0] for column in ("class", "a", "b", "bytes_per_s")]
    ///     ['nvlink', 0, 1, 20000000000]
    ///     >>> network["nodes"]["name"][:2], network["links"]["name"][0]
    ///     (['GPU 0', 'GPU 1'], 'GPU 0 -> GPU 1')
    fn network<'py>(&self, py: Python<'py>) -> PyResult<Option<Typed<'py, hints::NetworkColumns>>> {
        let sized = self.described.ranks() > 0;
        let network = sized.then(|| py.detach(|| NetworkColumns::of(&self.described)));
        let Some(network) = network.transpose().map_err(errors::sim)? else {
            return Ok(None);
        };
        Ok(Some(Typed::new(network.into_pyobject(py)?)))
    }

    /// The links that long messages between some pairs of endpoints cross, by the machine's first path.
    ///
    /// Args:
    ///     pairs: the endpoints from and to which data move.
    /// Returns:
    ///     Columns: the uses `first[i]..first[i + 1]` are those of pair i, each a `link` of a simulation and how many
    ///     `times` a byte crosses it; `rate` of a pair's message alone, in bytes per second, 0 if none can go; whether
    ///     it `chooses` among other links, too. `bytes_per_s` of every link.
    /// Raises:
    ///     SimError: the fabric cannot be made from the machine file.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> found = lw.machine("dgx1-p100").routes([(0, 1)])
    ///     >>> lw.machine("dgx1-p100").network()["links"]["name"][found["link"][0]]
    ///     'GPU 0 -> GPU 1'
    fn routes<'py>(
        &self,
        py: Python<'py>,
        pairs: Vec<(u32, u32)>,
    ) -> PyResult<Typed<'py, hints::RouteColumns>> {
        let found = py.detach(|| Routes::of(&self.described, &pairs));
        found.map_err(errors::sim)?.into_row(py)
    }

    /// How many numbers are fitted.
    #[getter]
    fn fitted(&self) -> usize {
        self.described.fitted()
    }

    /// The levels of local memory that the machine file describes.
    ///
    /// Returns:
    ///     The bytes of each level, nearest first; empty if none is described.
    /// Example:
    ///     >>> import linkwright as lw
    ///     >>> lw.machine("loggp").memory_levels()
    ///     []
    fn memory_levels(&self) -> Vec<u64> {
        linkwright_sim::probes::memory_levels(&self.described)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Machine {}: {}>",
            self.described.name(),
            self.described.summary()
        )
    }

    fn _repr_html_(&self) -> String {
        let numbers = self.described.numbers().len();
        let size = match self.open_size() {
            Some("grid") => "any grid of ranks".to_owned(),
            Some(_) => "any number of ranks".to_owned(),
            None => format!("{} ranks, {} memories", self.ranks(), self.memories()),
        };
        let rows = [
            ("fabric", self.fabric().to_owned()),
            ("size", size),
            ("paths", self.paths().join(", ")),
            (
                "numbers",
                format!("{numbers}, of which {} fitted", self.fitted()),
            ),
        ];
        html::table(
            &format!("{}: {}", self.described.name(), self.described.summary()),
            &rows,
        )
    }
}
