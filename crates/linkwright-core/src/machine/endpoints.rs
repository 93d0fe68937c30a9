//! Where ranks run and where data lie: `[[level]]` and `[endpoints]`.
//!
//! A machine has *rank* endpoints, which issue operations, and *memory* endpoints, which only hold
//! data (a DRAM channel). Ranks come first: endpoint `r` is the place of rank `r` unless the run
//! places ranks otherwise; memories follow. Ranks are given in one of four ways:
//!
//! ```text
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

/// More endpoints than this are a slip of the pen, not a machine.
const MOST_ENDPOINTS: usize = 1 << 24;

/// Where the ranks are: how many, on which places, on which grids.
struct Ranks {
    open: Option<OpenSize>,
    count: usize,
    places: Option<Vec<Place>>,
    grid: Option<Grid>,
    rank_grid: Option<Grid>,
}

/// Read `[endpoints]` and `[[level]]`, at the size asked for.
pub(crate) fn read(
    mut s: Section<'_>,
    levels: Vec<Section<'_>>,
    asked: Asked,
) -> Result<Layout, MachineError> {
    s.text("source")?;
    let ranks = read_ranks(&mut s, asked)?;
    let default = if ranks.places.is_some() {
        "rank {i} ({x},{y})"
    } else {
        "rank {i}"
    };
    let pattern = (s.optional_text("name")?).unwrap_or_else(|| default.to_string());
    let capacity = s.optional_bytes("capacity")?;
    let mut endpoints: Vec<Endpoint> = (0..ranks.count)
        .map(|i| {
            let place = ranks.places.as_ref().map(|p| p[i]);
            endpoint(&pattern, i, place, EndpointKind::Rank, capacity)
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

fn read_ranks(s: &mut Section<'_>, asked: Asked) -> Result<Ranks, MachineError> {
    if s.has("grid") {
        if s.has("count") {
            return Err(s.inconsistent("count", "`count` and `grid` exclude each other; keep one"));
        }
        return read_grid(s, asked);
    }
    let open = s.is_any("count");
    let count = match asked {
        _ if !open => read_size(s, "count")?,
        Asked::Count(n) => n,
        _ => 0,
    };
    Ok(Ranks {
        open: open.then_some(OpenSize::Count),
        count,
        places: None,
        grid: None,
        rank_grid: None,
    })
}

fn read_grid(s: &mut Section<'_>, asked: Asked) -> Result<Ranks, MachineError> {
    if s.is_any("grid") {
        let (places, grid) = match asked {
            Asked::Grid(grid) => (all_places(grid), Some(grid)),
            _ => (Vec::new(), None),
        };
        return Ok(Ranks {
            open: Some(OpenSize::Grid),
            count: places.len(),
            places: Some(places),
            grid,
            rank_grid: grid,
        });
    }
    let sides = s.optional_integers("grid")?.unwrap_or_default();
    let [columns, rows] = sides[..] else {
        return Err(s.inconsistent("grid", "a grid is `[columns, rows]` or \"any\""));
    };
    let places = (columns.checked_mul(rows)).ok_or_else(|| s.inconsistent("grid", TOO_MANY))?;
    to_size(s, "grid", places)?;
    let grid = Grid {
        columns: columns as u32,
        rows: rows as u32,
    };
    let columns = s.optional_integers("columns")?;
    let rows = s.optional_integers("rows")?;
    let list = s.optional_places("places")?;
    let (used, rank_grid) = match (columns, rows, list) {
        (None, None, None) => (all_places(grid), Some(grid)),
        (None, None, Some(list)) => (on_grid(s, "places", &list, grid)?, None),
        (Some(xs), Some(ys), None) => {
            let crossings: Vec<(u64, u64)> =
                (ys.iter().flat_map(|&y| xs.iter().map(move |&x| (x, y)))).collect();
            let rank_grid = Grid {
                columns: xs.len() as u32,
                rows: ys.len() as u32,
            };
            (on_grid(s, "columns", &crossings, grid)?, Some(rank_grid))
        }
        _ => {
            let key = if s.has("columns") { "columns" } else { "rows" };
            let problem = "`columns` and `rows` go together, and exclude `places`";
            return Err(s.inconsistent(key, problem));
        }
    };
    Ok(Ranks {
        open: None,
        count: used.len(),
        places: Some(used),
        grid: Some(grid),
        rank_grid,
    })
}

const TOO_MANY: &str = "a machine has between 1 and 16,777,216 endpoints";

fn read_size(s: &mut Section<'_>, key: &str) -> Result<usize, MachineError> {
    let n = s.integer(key)?;
    to_size(s, key, n)
}

fn to_size(s: &Section<'_>, key: &str, n: u64) -> Result<usize, MachineError> {
    match usize::try_from(n) {
        Ok(n) if (1..=MOST_ENDPOINTS).contains(&n) => Ok(n),
        _ => Err(s.inconsistent(key, TOO_MANY)),
    }
}

fn all_places(grid: Grid) -> Vec<Place> {
    (0..grid.rows)
        .flat_map(|y| (0..grid.columns).map(move |x| Place { x, y }))
        .collect()
}

/// The places, each on the grid and none twice.
fn on_grid(
    s: &Section<'_>,
    key: &str,
    places: &[(u64, u64)],
    grid: Grid,
) -> Result<Vec<Place>, MachineError> {
    if places.is_empty() {
        return Err(s.inconsistent(key, "no place is left; name at least one"));
    }
    let mut seen = BTreeSet::new();
    let check = |&(x, y): &(u64, u64)| {
        if x >= u64::from(grid.columns) || y >= u64::from(grid.rows) {
            let Grid { columns, rows } = grid;
            let problem = format!(
                "place [{x}, {y}] lies outside the grid of {columns} columns and {rows} rows; \
                 both count from 0"
            );
            return Err(s.inconsistent(key, problem));
        }
        let place = Place {
            x: x as u32,
            y: y as u32,
        };
        if !seen.insert(place) {
            let problem = format!("place [{x}, {y}] is named twice; keep one");
            return Err(s.inconsistent(key, problem));
        }
        Ok(place)
    };
    places.iter().map(check).collect()
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
