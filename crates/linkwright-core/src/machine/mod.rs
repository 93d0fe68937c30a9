//! A described machine: a TOML file read into a [`Machine`].
//!
//! The file states everything about a machine; no number of a machine is in code. It has these
//! tables:
//!
//! | table | says | read by |
//! |---|---|---|
//! | `[machine]` | `name`, `summary`, `description`, `sources`, `format = 1`, optional `clock` | here |
//! | `[[level]]` | the hierarchy, outermost first | [`levels`] |
//! | `[endpoints]` | ranks, places, memories | [`endpoints`], [`ranks`] |
//! | `[fabric]` | `kind` and the parameters of that model | the fabric, through [`Section`] |
//! | `[path.NAME]` | software costs of one way to move data | [`path`] |
//! | `[hints]` | networks for a schedule's hints; optional | [`hints`] |
//! | `[issue]` | how many transfers a rank keeps under way; optional | [`issue`] |
//! | `[traffic]` | how traffic patterns run by default; optional | [`traffic`] |
//! | `[noise]` | how times differ from launch to launch; optional | [`noise`] |
//! | `[library]` | the library whose plans are the machine's own algorithms; optional | [`library`] |
//! | `[[rule]]` | structural rules of the model, with evidence; optional | [`rules`] |
//! | `[probe.NAME]` | parameters of probes, such as memory levels; optional | the probe's model, through [`Section`] |
//! | `[cluster]` | what a node is to networks; optional | [`Cluster`] |
//! | `[facts]` | numbers for people and reports, which no model reads; optional | |
//!
//! A number is `{ value, unit, status, source }`; see [`mod@unit`] for the closed list of units and
//! [`Status`] for the five statuses. Structure (a grid, a level's count) is a bare integer whose
//! table names its `source`. Unknown keys are errors everywhere; those of `[fabric]` are found when
//! the fabric has read it ([`Section::finish`]).
//!
//! A machine of *open size* (`count = "any"`, `grid = "any"`) has no endpoints until
//! [`Machine::with_endpoints`] or [`Machine::with_sides`] gives it some.

mod compose;
pub mod edges;
pub mod endpoints;
pub mod hints;
pub mod issue;
pub mod levels;
pub mod library;
mod memo;
pub mod memory;
pub mod noise;
mod number;
mod numbers;
pub mod path;
pub mod protocol;
mod ranks;
mod recorder;
pub mod rules;
mod scalar;
mod section;
mod text;
pub mod traffic;
mod tree;
pub mod unit;
mod varied;

pub use compose::{
    Cluster, ClusterNetwork, Draft, File, Files, Listed, ListedLink, Variant, ROUTINGS,
};
pub use endpoints::{Endpoint, EndpointKind};
pub use hints::Hints;
pub use levels::{Level, Nearness};
pub use library::Library;
pub use memo::Memo;
pub use memory::Memory;
pub use noise::Noise;
pub use number::Status;
pub use numbers::NumberRow;
pub use path::{Completion, Engine, Path, Scratch};
pub use protocol::Protocol;
pub use ranks::{Grid, OpenSize, Place};
pub use recorder::{RecordedForm, RecordedTable, Recorder};
pub use rules::Rule;
pub use section::Section;
pub use traffic::PatternDefaults;

use std::sync::Arc;

use crate::error::MachineError;
use crate::ids::EndpointId;
use crate::issue::Issue;
use crate::probes::CATALOGUE;
use crate::units::Clock;
use endpoints::Layout;
use ranks::{by, places_of, Size, MOST_ENDPOINTS, TOO_MANY};
use section::Context;
use tree::{Table, Value};

/// A machine, read from its file and checked.
#[derive(Clone, Debug)]
pub struct Machine {
    name: String,
    summary: String,
    description: String,
    sources: Vec<String>,
    context: Context,
    tree: Table,
    size: Size,
    layout: Layout,
    fabric_kind: String,
    paths: Vec<Path>,
    hints: Hints,
    issue: Option<Issue>,
    traffic: Option<PatternDefaults>,
    noise: Option<Noise>,
    library: Option<Library>,
    rules: Vec<Rule>,
    memo: Memo,
    /// What it is to networks, if it is a node.
    cluster: Option<Cluster>,
    /// Its text, while the tree is that of a text.
    text: Option<Arc<str>>,
}

/// The format of machine files that this version reads.
const FORMAT: u64 = 1;

/// The most characters of a machine's name, which a file system must hold with a suffix.
const NAME_MOST: usize = 100;
const NAME_CURE: &str = "names no file; write at most 100 letters, digits, dots, dashes and \
                         underscores that begin with a letter or digit";

/// Whether a machine may be called this: copies of its file are, so a name is never a path.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    name.len() <= NAME_MOST
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

impl Machine {
    /// Read a machine file. `file` is its name, for messages.
    pub fn parse(text: &str, file: &str) -> Result<Machine, MachineError> {
        let context = Context {
            file: file.to_string(),
            clock: None,
            recorder: None,
        };
        let mut tree = tree::parse(text, file)?;
        let cluster = compose::take_cluster(&mut tree, &context)?;
        let mut found = Machine::assemble(tree, context, Size::Unstated)?;
        (found.cluster, found.text) = (cluster, Some(text.into()));
        Ok(found)
    }

    fn assemble(tree: Table, mut context: Context, size: Size) -> Result<Machine, MachineError> {
        // The clock comes first: the other tables need it to understand cycles.
        context.clock = None;
        context.clock = Section::root(&context, &tree)
            .section("machine")?
            .optional_clock("clock")?;

        let mut root = Section::root(&context, &tree);
        let mut head = root.section("machine")?;
        let name = head.text("name")?;
        if !is_name(&name) {
            return Err(
                head.inconsistent("name", format!("\"{}\" {NAME_CURE}", name.escape_debug()))
            );
        }
        let summary = head.text("summary")?;
        let description = head.text("description")?;
        let sources = head.texts("sources")?;
        head.optional_clock("clock")?;
        let format = head.integer("format")?;
        if format != FORMAT {
            let problem = format!("format {format} is not known; this version reads {FORMAT}");
            return Err(head.inconsistent("format", problem));
        }
        head.finish()?;

        let levels = root.sections("level")?;
        let layout = endpoints::read(root.section("endpoints")?, levels, size.clone())?;
        let fabric_kind = root.section("fabric")?.text("kind")?;
        let hints = root.optional_section("hints")?.map(Hints::read);
        let hints = hints.transpose()?.unwrap_or_default();
        let levels: Vec<&str> = layout.levels.iter().map(|l| l.name.as_str()).collect();
        let paths = path::read(root.section("path")?, hints.networks(), &levels)?;
        let issue = root.optional_section("issue")?.map(issue::read);
        let issue = issue.transpose()?;
        let traffic = root.optional_section("traffic")?;
        let traffic = traffic
            .map(|s| PatternDefaults::read(s, &paths))
            .transpose()?;
        let noise = root.optional_section("noise")?;
        let noise = noise.map(Noise::read).transpose()?;
        let library = root.optional_section("library")?;
        let library = library.map(|s| Library::read(s, hints.networks(), &paths));
        let library = library.transpose()?;
        let rules = rules::read(root.sections("rule")?)?;
        if let Some(facts) = root.optional_section("facts")? {
            check_facts(&facts)?;
        }
        if let Some(probes) = root.optional_section("probe")? {
            check_probes(probes)?;
        }
        root.optional_section("cluster")?; // read before, for networks
        root.finish()?;
        Ok(Machine {
            memo: Memo::default(),
            name,
            summary,
            description,
            sources,
            size,
            layout,
            fabric_kind,
            paths,
            hints,
            issue,
            traffic,
            noise,
            library,
            rules,
            context,
            tree,
            cluster: None,
            text: None,
        })
    }

    /// Key of the machine, such as `wormhole-n150`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// A paragraph.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Titles of the documents that the numbers come from.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// Name of the file, for messages.
    pub fn file(&self) -> &str {
        &self.context.file
    }

    /// The clock that `cycle` means, where the machine has one.
    pub fn clock(&self) -> Option<Clock> {
        self.context.clock
    }

    /// The hierarchy from outermost to innermost.
    pub fn levels(&self) -> &[Level] {
        &self.layout.levels
    }

    /// How many operating systems the ranks share, equally and in order; `None` where the file states none.
    pub fn hosts(&self) -> Option<usize> {
        self.layout.hosts
    }

    /// Which ranks share which levels.
    pub fn nearness(&self) -> Nearness {
        Nearness::of(&self.layout.levels)
    }

    /// Ranks in order, then memories. Without ranks while the size is open.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.layout.endpoints
    }

    /// The endpoint with this identifier.
    pub fn endpoint(&self, id: EndpointId) -> &Endpoint {
        &self.layout.endpoints[id.index()]
    }

    /// Number of rank endpoints; they are `0..ranks()`.
    pub fn ranks(&self) -> usize {
        self.layout.ranks.count
    }

    /// Number of memory endpoints; they follow the ranks.
    pub fn memories(&self) -> usize {
        self.layout.endpoints.len() - self.ranks()
    }

    /// The grid of places, hidden lines included.
    pub fn grid(&self) -> Option<Grid> {
        self.layout.ranks.grid
    }

    /// The grid of ranks, where the ranks form one of two sides; rank = row-major.
    pub fn rank_grid(&self) -> Option<Grid> {
        match self.sides() {
            &[columns, rows] => Some(Grid::new(columns, rows)),
            _ => None,
        }
    }

    /// Sides of the grid of ranks, of any number, where the ranks form one: columns, rows, ...
    pub fn sides(&self) -> &[u32] {
        &self.layout.ranks.sides
    }

    /// The size that the file leaves open, `None` on a machine of fixed size.
    pub fn open_size(&self) -> Option<OpenSize> {
        self.layout.ranks.open
    }

    /// This machine with `ranks` ranks.
    ///
    /// A machine of fixed size accepts only its own number.
    pub fn with_endpoints(&self, ranks: usize) -> Result<Machine, MachineError> {
        match self.open_size() {
            Some(_) if ranks > MOST_ENDPOINTS => Err(self.wrong_size(format!(
                "{ranks} ranks asked for; {TOO_MANY}, ask for fewer"
            ))),
            Some(OpenSize::Count) if ranks > 0 => self.resized(Size::Count(ranks)),
            Some(OpenSize::Grid) if ranks > 0 => {
                let rows = (1..=ranks.isqrt()).rev().find(|r| ranks % r == 0);
                let rows = rows.expect("one divides every number");
                Err(self.wrong_size(format!(
                    "{ranks} ranks do not fix a grid; give one, such as {}x{rows}",
                    ranks / rows
                )))
            }
            None if ranks == self.ranks() => Ok(self.clone()),
            None => Err(self.wrong_size(format!(
                "has {} ranks, not {ranks}; ask for {}",
                self.ranks(),
                self.ranks()
            ))),
            Some(_) => Err(self.wrong_size("0 ranks asked for; ask for at least 1".to_string())),
        }
    }

    /// This machine with a grid of ranks. A machine of fixed size accepts only its own.
    pub fn with_grid(&self, grid: Grid) -> Result<Machine, MachineError> {
        self.with_sides(&[grid.columns, grid.rows])
    }

    /// The same with a grid of any number of sides.
    pub fn with_sides(&self, sides: &[u32]) -> Result<Machine, MachineError> {
        if self.open_size().is_none() {
            return match self.sides() {
                own if own == sides => Ok(self.clone()),
                [] => {
                    Err(self
                        .wrong_size("its ranks do not form a grid; ask without one".to_string()))
                }
                own => Err(self.wrong_size(format!(
                    "its ranks form a grid of {}, not {}; ask for that",
                    by(own),
                    by(sides)
                ))),
            };
        }
        let Some(places) = places_of(sides).filter(|_| !sides.is_empty()) else {
            return Err(
                self.wrong_size(match sides.contains(&0) || sides.is_empty() {
                    true => format!("a grid of {} is empty; ask for at least 1x1", by(sides)),
                    false => format!(
                        "a grid of {} asked for; {TOO_MANY}, ask for a smaller one",
                        by(sides)
                    ),
                }),
            );
        };
        match self.open_size() {
            Some(OpenSize::Grid) => self.resized(Size::Sides(sides.to_vec())),
            _ => self.with_endpoints(places),
        }
    }

    fn resized(&self, size: Size) -> Result<Machine, MachineError> {
        let mut found = Machine::assemble(self.tree.clone(), self.context.clone(), size)?;
        found.cluster.clone_from(&self.cluster);
        found.text.clone_from(&self.text);
        Ok(found)
    }

    /// This machine with another tree.
    fn changed(&self, tree: Table) -> Result<Machine, MachineError> {
        let mut found = Machine::assemble(tree, self.context.clone(), self.size.clone())?;
        found.cluster.clone_from(&self.cluster);
        Ok(found)
    }

    fn wrong_size(&self, problem: String) -> MachineError {
        MachineError::WrongSize {
            machine: self.name.clone(),
            problem,
        }
    }

    /// Which interconnect model the file asks for.
    pub fn fabric_kind(&self) -> &str {
        &self.fabric_kind
    }

    /// The parameters of the interconnect model; `kind` counts as read.
    pub fn fabric_section(&self) -> Section<'_> {
        let mut root = Section::root(&self.context, &self.tree);
        let fabric = root.section("fabric");
        let mut fabric = fabric.expect("checked when the file was read");
        fabric.variant(&self.fabric_kind);
        fabric
    }

    /// The parameters in `[probe.TABLE]`, where the file has that table.
    pub fn probe_section(&self, table: &str) -> Option<Section<'_>> {
        let mut root = Section::root(&self.context, &self.tree);
        let probes = root.optional_section("probe");
        let mut probes = probes.expect("checked when the file was read")?;
        let found = probes.optional_section(table);
        found.expect("checked when the file was read")
    }

    /// The paths, the default first.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The path used where a run names none.
    pub fn default_path(&self) -> &Path {
        &self.paths[0]
    }

    /// The path of this name.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.paths.iter().find(|p| p.name == name)
    }

    /// The structural rules of the model, in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What a schedule's hints mean here.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// The issue policy of a run that names none, where the file states one.
    pub fn issue(&self) -> Option<Issue> {
        self.issue
    }

    /// How traffic patterns run by default, where the file says so.
    pub fn traffic(&self) -> Option<&PatternDefaults> {
        self.traffic.as_ref()
    }

    /// How its times differ from launch to launch, where the file says so.
    pub fn noise(&self) -> Option<Noise> {
        self.noise
    }

    /// The library that the machine runs, where the file states one.
    pub fn library(&self) -> Option<&Library> {
        self.library.as_ref()
    }

    /// What readers have worked out of this machine.
    pub fn memo(&self) -> &Memo {
        &self.memo
    }
}

/// Each `[probe.TABLE]` is a table that some probe reads.
fn check_probes(mut probes: Section<'_>) -> Result<(), MachineError> {
    for description in CATALOGUE {
        probes.optional_section(description.table)?;
    }
    probes.finish()
}

/// Facts are numbers and texts, nothing deeper.
fn check_facts(facts: &Section<'_>) -> Result<(), MachineError> {
    for (key, node) in facts.entries() {
        if !matches!(node.value, Value::Number(_) | Value::Text(_)) {
            return Err(MachineError::WrongType {
                at: facts.at(key),
                found: node.value.found(),
                needed: format!("a text or {}", number::NUMBER_FORM),
            });
        }
    }
    Ok(())
}
