//! Where ranks run and where data lie: `[[level]]` and `[endpoints]`.
//!
//! A machine has *rank* endpoints, which issue operations, and *memory* endpoints, which only hold
//! data (a DRAM channel). Ranks come first: endpoint `r` is the place of rank `r` unless the run
//! places ranks otherwise; memories follow. Ranks are given in one of five ways:
//!
//! ```text
//! names = ["host", "card"]                 one endpoint per name, without places
//! count = 16                               16 endpoints without places
//! count = "any"                            as many as a run asks for
//! grid = [10, 12]                          columns, rows; every place is a rank, row by row
//!   columns = [1, 2, ..] rows = [1, ..]      ... or only where these lines cross
//!   places = [[1, 1], [2, 1], ..]            ... or only these, in this order
//! grid = "any"                             a grid of the size a run asks for
//! ```
//!
//! On a grid with `columns` and `rows`, rank `r = ly * columns + lx` sits at
//! `(columns[lx], rows[ly])`: a logical grid inside a physical one, whose other lines carry traffic
//! but no ranks. `name` is a pattern of `{i}`, `{x}` and `{y}`.
//!
//! The levels are the hierarchy from outermost to innermost; their counts multiply to the ranks.

use std::collections::BTreeSet;

use super::ranks::{self, on_grid, read_size};
use super::section::Section;
use crate::error::MachineError;
use crate::units::Bytes;

/// Whether an endpoint acts or only holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointKind {
    /// Issues operations.
    Rank,
    /// Passive: holds data.
    Memory,
}

/// A place of a grid: column `x`, row `y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Column.
    pub x: u32,
    /// Row.
    pub y: u32,
}

/// Size of a grid; the same for physical places and for ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of columns, the extent in x.
    pub columns: u32,
    /// Number of rows, the extent in y.
    pub rows: u32,
}

impl Grid {
    /// Number of places.
    pub fn places(self) -> usize {
        self.columns as usize * self.rows as usize
    }
}

/// Something that can send, receive or hold data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name, unique within the machine.
    pub name: String,
    /// Where it is, on a machine with a grid.
    pub place: Option<Place>,
    /// Whether it acts or only holds data.
    pub kind: EndpointKind,
    /// Room for data, where the machine file says so.
    pub capacity: Option<Bytes>,
}

/// One level of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Name, such as `chip`.
    pub name: String,
    /// How many of these are in one of the level outside it.
    pub count: usize,
}

/// What a machine of open size still needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenSize {
    /// A number of ranks.
    Count,
    /// A grid of ranks.
    Grid,
}

/// The size a run asks of a machine of open size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    Count(usize),
    Grid(Grid),
}

/// `[endpoints]` and `[[level]]`, read.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub open: Option<OpenSize>,
    pub endpoints: Vec<Endpoint>,
    pub ranks: usize,
    pub grid: Option<Grid>,
    pub rank_grid: Option<Grid>,
    pub levels: Vec<Level>,
}

/// Read `[endpoints]` and `[[level]]`, at the size asked for.
pub(crate) fn read(
    mut s: Section<'_>,
    levels: Vec<Section<'_>>,
    asked: Asked,
) -> Result<Layout, MachineError> {
    s.text("source")?;
    let ranks = ranks::read(&mut s, asked)?;
    let default = if ranks.places.is_some() {
        "rank {i} ({x},{y})"
    } else {
        "rank {i}"
    };
    let pattern = (s.optional_text("name")?).unwrap_or_else(|| default.to_string());
    let names = match s.has("names") {
        true => s.texts("names")?,
        false => Vec::new(),
    };
    let capacity = s.optional_bytes("capacity")?;
    let mut endpoints: Vec<Endpoint> = (0..ranks.count)
        .map(|i| {
            let place = ranks.places.as_ref().map(|p| p[i]);
            let name = names.get(i).unwrap_or(&pattern);
            endpoint(name, i, place, EndpointKind::Rank, capacity)
        })
        .collect();
    for memory in s.sections("memory")? {
        endpoints.extend(read_memory(memory, ranks.grid)?);
    }
    check_names(&s, &endpoints)?;
    let levels = read_levels(&s, levels, ranks.count, ranks.open.is_some())?;
    s.finish()?;
    Ok(Layout {
        open: ranks.open,
        endpoints,
        ranks: ranks.count,
        grid: ranks.grid,
        rank_grid: ranks.rank_grid,
        levels,
    })
}

fn endpoint(
    pattern: &str,
    i: usize,
    place: Option<Place>,
    kind: EndpointKind,
    capacity: Option<Bytes>,
) -> Endpoint {
    let mut name = pattern.replace("{i}", &i.to_string());
    if let Some(Place { x, y }) = place {
        name = name.replace("{x}", &x.to_string());
        name = name.replace("{y}", &y.to_string());
    }
    Endpoint {
        name,
        place,
        kind,
        capacity,
    }
}

fn read_memory(mut s: Section<'_>, grid: Option<Grid>) -> Result<Vec<Endpoint>, MachineError> {
    s.text("source")?;
    let pattern = s.text("name")?;
    let capacity = s.optional_bytes("capacity")?;
    let places = match (s.optional_places("places")?, grid) {
        (Some(list), Some(grid)) => Some(on_grid(&s, "places", &list, grid)?),
        (Some(_), None) => {
            let problem = "places need a machine with a fixed grid; write `count`";
            return Err(s.inconsistent("places", problem));
        }
        (None, _) => None,
    };
    let count = match &places {
        Some(places) => places.len(),
        None => read_size(&mut s, "count")?,
    };
    s.finish()?;
    Ok((0..count)
        .map(|i| {
            let place = places.as_ref().map(|p| p[i]);
            endpoint(&pattern, i, place, EndpointKind::Memory, capacity)
        })
        .collect())
}

/// Names are how people point at endpoints, so two may not share one.
fn check_names(s: &Section<'_>, endpoints: &[Endpoint]) -> Result<(), MachineError> {
    let mut seen = BTreeSet::new();
    match endpoints.iter().find(|e| !seen.insert(e.name.as_str())) {
        None => Ok(()),
        Some(twice) => {
            let problem = format!(
                "two endpoints are named \"{}\"; put `{{i}}`, `{{x}}` or `{{y}}` into `name`",
                twice.name
            );
            Err(s.inconsistent("name", problem))
        }
    }
}

fn read_levels(
    endpoints: &Section<'_>,
    sections: Vec<Section<'_>>,
    ranks: usize,
    open: bool,
) -> Result<Vec<Level>, MachineError> {
    let mut levels: Vec<Level> = Vec::with_capacity(sections.len());
    let mut free = None;
    for mut s in sections {
        let name = s.text("name")?;
        if levels.iter().any(|l| l.name == name) {
            let problem = format!("two levels are named \"{name}\"; rename one");
            return Err(s.inconsistent("name", problem));
        }
        let count = if s.is_any("count") {
            if !open || free.is_some() {
                let problem = "\"any\" may stand at one level, of a machine whose \
                               [endpoints] are \"any\" too; write a number";
                return Err(s.inconsistent("count", problem));
            }
            free = Some(levels.len());
            1
        } else {
            read_size(&mut s, "count")?
        };
        s.text("source")?;
        s.finish()?;
        levels.push(Level { name, count });
    }
    let product = levels
        .iter()
        .try_fold(1usize, |a, l| a.checked_mul(l.count));
    let product = product.unwrap_or(usize::MAX);
    match free {
        Some(level) if ranks % product == 0 => levels[level].count = ranks / product,
        _ if open && ranks == 0 || product == ranks => {}
        _ => {
            let problem = format!(
                "{ranks} ranks, but the counts of [[level]] multiply to {product}; correct one side"
            );
            return Err(endpoints.inconsistent("", problem));
        }
    }
    Ok(levels)
}
