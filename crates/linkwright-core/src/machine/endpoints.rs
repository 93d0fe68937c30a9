//! Where ranks run and where data lie: `[endpoints]`.
//!
//! A machine has *rank* endpoints, which issue operations, and *memory* endpoints, which only hold
//! data (a DRAM channel). Ranks come first: endpoint `r` is the place of rank `r` unless the run
//! places ranks otherwise; memories follow. [`ranks`] reads how many ranks there are and where.
//! `name` is a pattern of `{i}`, `{x}`, `{y}` and `{at}`: its number, its column and row, and all coordinates
//! of a grid of any number of sides, as in `1,0,3`.

use std::collections::BTreeSet;

use super::levels::{self, Level};
use super::ranks::{self, by, on_grid, read_size, Grid, Place, Ranks, Size};
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

/// `[endpoints]` and `[[level]]`, read.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub ranks: Ranks,
    /// Ranks first.
    pub endpoints: Vec<Endpoint>,
    pub levels: Vec<Level>,
    pub hosts: Option<usize>,
}

/// Read `[endpoints]` and `[[level]]`, at the size asked for.
pub(super) fn read(
    mut s: Section<'_>,
    levels: Vec<Section<'_>>,
    size: Size,
) -> Result<Layout, MachineError> {
    s.text("source")?;
    let ranks = ranks::read(&mut s, size)?;
    let default = match (&ranks.places, &ranks.sides[..]) {
        (Some(_), _) => "rank {i} ({x},{y})",
        (None, []) => "rank {i}",
        (None, _) => "rank {i} ({at})",
    };
    let pattern = (s.optional_text("name")?).unwrap_or_else(|| default.to_string());
    let is_flat = pattern.contains("{x}") || pattern.contains("{y}");
    if is_flat && ranks.places.is_none() && !ranks.sides.is_empty() {
        let problem = format!(
            "`{pattern}` suits a grid of two sides, not {}; ask for two sides, or name endpoints by `{{at}}`",
            by(&ranks.sides)
        );
        return Err(s.inconsistent("name", problem));
    }
    let names = s.optional_texts("names")?.unwrap_or_default();
    let capacity = s.optional_bytes("capacity")?;
    let hosts = read_hosts(&mut s, ranks.count)?;
    let mut endpoints: Vec<Endpoint> = (0..ranks.count)
        .map(|i| {
            let place = ranks.places.as_ref().map(|p| p[i]);
            let name = names.get(i).unwrap_or(&pattern);
            let mut rank = endpoint(name, i, place, EndpointKind::Rank, capacity);
            if rank.name.contains("{at}") {
                rank.name = rank.name.replace("{at}", &at(&ranks, i));
            }
            rank
        })
        .collect();
    for memory in s.sections("memory")? {
        endpoints.extend(read_memory(memory, ranks.grid)?);
    }
    check_names(&s, &endpoints)?;
    let levels = levels::read(&s, levels, ranks.count, ranks.open.is_some())?;
    s.finish()?;
    Ok(Layout {
        ranks,
        endpoints,
        levels,
        hosts,
    })
}

/// How many operating systems the ranks share, each as many ranks that follow each other.
pub(super) fn read_hosts(s: &mut Section<'_>, ranks: usize) -> Result<Option<usize>, MachineError> {
    if !s.has("hosts") {
        return Ok(None);
    }
    let hosts = read_size(s, "hosts")?;
    if ranks % hosts != 0 {
        let problem = format!("{ranks} ranks cannot share {hosts} hosts equally; correct one side");
        return Err(s.inconsistent("hosts", problem));
    }
    Ok(Some(hosts))
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

/// Where rank `i` is, in words.
fn at(ranks: &Ranks, i: usize) -> String {
    let all = match &ranks.places {
        Some(places) => vec![places[i].x as usize, places[i].y as usize],
        None => ranks.coordinates(i),
    };
    let words: Vec<String> = all.iter().map(usize::to_string).collect();
    words.join(",")
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
                "two endpoints are named \"{}\"; put `{{i}}` or `{{at}}` into `name`",
                twice.name
            );
            Err(s.inconsistent("name", problem))
        }
    }
}
