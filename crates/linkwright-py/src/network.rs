//! The network of a machine in columns: nodes, edges between them, and the ends of each link of a simulation.

use linkwright_core::machine::{EndpointKind, Machine};
use linkwright_core::EndpointId;
use linkwright_sim::fabrics;
use linkwright_sim::network::Wiring;
use linkwright_sim::SimError;
use pyo3::prelude::*;
use pyo3::IntoPyObject;

use crate::hints::{self, row, Column, Typed};

/// What `Machine.network` returns, which documents the columns.
#[derive(IntoPyObject)]
pub struct NetworkColumns {
    nodes: Nodes,
    edges: Edges,
    links: Links,
    ring: Vec<u32>,
    sides: Vec<u32>,
    groups: Vec<String>,
}

/// Endpoints, then switches.
#[derive(Default, IntoPyObject)]
struct Nodes {
    name: Vec<String>,
    kind: Vec<&'static str>,
    at: Vec<Option<Vec<u32>>>,
    group: Vec<i64>,
}

#[derive(IntoPyObject)]
struct Edges {
    class: Vec<String>,
    a: Vec<u32>,
    b: Vec<u32>,
    bytes_per_s: Vec<Option<u64>>,
}

#[derive(IntoPyObject)]
struct Links {
    name: Vec<String>,
    a: Vec<i64>,
    b: Vec<i64>,
}

impl NetworkColumns {
    /// Read the network of the fabric of `machine`.
    pub fn of(machine: &Machine) -> Result<Self, SimError> {
        let fabric = fabrics::lend(machine)?;
        let wiring = fabric.network().wiring();
        let is_placed = machine.endpoints().iter().any(|e| e.place.is_some());
        let sides = match machine.grid().filter(|_| is_placed) {
            Some(grid) => vec![grid.columns, grid.rows],
            None => machine.sides().to_vec(),
        };
        let mut nodes = nodes(machine, &wiring, &sides);
        let groups = grouped(machine, &mut nodes);
        let ends =
            |place: Option<(u32, u32)>| place.map_or((-1, -1), |(a, b)| (a.into(), b.into()));
        let (a, b) = wiring.places.into_iter().map(ends).unzip();
        let name = fabric.links().names.clone();
        Ok(NetworkColumns {
            nodes,
            links: Links { name, a, b },
            edges: Edges {
                a: wiring.edges.iter().map(|edge| edge.a).collect(),
                b: wiring.edges.iter().map(|edge| edge.b).collect(),
                bytes_per_s: wiring.edges.iter().map(|edge| edge.rate).collect(),
                class: wiring.edges.into_iter().map(|edge| edge.class).collect(),
            },
            ring: wiring.ring,
            sides,
            groups,
        })
    }
}

/// What `Machine.routes` returns, which documents the columns.
#[derive(Default)]
pub struct Routes {
    first: Vec<u32>,
    link: Vec<u32>,
    times: Vec<u32>,
    rate: Vec<u64>,
    chooses: Vec<u8>,
    bytes_per_s: Vec<u64>,
}

impl Routes {
    /// Look up the routes of `pairs` of endpoints; those of a pair that has none are empty.
    pub fn of(machine: &Machine, pairs: &[(u32, u32)]) -> Result<Self, SimError> {
        let fabric = fabrics::lend(machine)?;
        let number = machine.paths().first().and_then(|path| path.network);
        let endpoints = machine.endpoints().len() as u32;
        let mut found = Routes {
            first: vec![0],
            bytes_per_s: fabric.network().capacities(),
            ..Routes::default()
        };
        for &(from, to) in pairs {
            let ends = (EndpointId(from), EndpointId(to));
            let wire = (from.max(to) < endpoints)
                .then(|| (fabric.network()).wire(ends.0, ends.1, number.unwrap_or(0)));
            let wire = wire.flatten();
            found.rate.push(wire.as_ref().map_or(0, |wire| wire.rate));
            let chooses = wire.as_ref().is_some_and(|wire| wire.chooses);
            found.chooses.push(u8::from(chooses));
            for (link, times) in wire.map(|wire| wire.uses).unwrap_or_default() {
                found.link.push(link);
                found.times.push(times);
            }
            found.first.push(found.link.len() as u32);
        }
        Ok(found)
    }

    /// Make the columns of them.
    pub fn into_row(self, py: Python<'_>) -> PyResult<Typed<'_, hints::RouteColumns>> {
        Ok(row!(
            py,
            first = &Column::new(py, self.first),
            link = &Column::new(py, self.link),
            times = &Column::new(py, self.times),
            rate = &Column::new(py, self.rate),
            chooses = &Column::new(py, self.chooses),
            bytes_per_s = &Column::new(py, self.bytes_per_s),
        ))
    }
}

/// List endpoints, then switches. If the wiring has edges, ranks without coordinates take those of the grid of ranks.
fn nodes(machine: &Machine, wiring: &Wiring, sides: &[u32]) -> Nodes {
    let mut nodes = Nodes::default();
    for (rank, endpoint) in (0..).zip(machine.endpoints()) {
        let is_rank = endpoint.kind != EndpointKind::Memory;
        let counted = is_rank && !wiring.edges.is_empty() && !sides.is_empty();
        let own = endpoint.place.map(|place| vec![place.x, place.y]);
        nodes.name.push(endpoint.name.clone());
        nodes.kind.push(if is_rank { "rank" } else { "memory" });
        nodes
            .at
            .push(own.or_else(|| counted.then(|| coordinates(rank, sides))));
    }
    for switch in &wiring.switches {
        nodes.name.push(switch.name.clone());
        nodes.kind.push("switch");
        nodes.at.push(switch.at.map(|(x, y)| vec![x, y]));
    }
    nodes
}

/// Coordinates of a rank on a grid of these sides; the first coordinate varies fastest.
fn coordinates(mut rank: u32, sides: &[u32]) -> Vec<u32> {
    let mut along = |&side: &u32| {
        let at = rank % side;
        rank /= side;
        at
    };
    sides.iter().map(&mut along).collect()
}

/// Group nodes by the outermost level that has several parts, and return the names of the groups. The group is read
/// from the name: `node 3 GPU 0` is in `node 3`. If any rank has no such name, there are no groups.
fn grouped(machine: &Machine, nodes: &mut Nodes) -> Vec<String> {
    let outer = machine
        .levels()
        .split_last()
        .map_or(&[][..], |(_, outer)| outer);
    let level = outer.iter().find(|level| level.count > 1);
    let parts = level.map_or(0..0, |level| 0..level.count as i64);
    let part = |name: &String| {
        let rest = name.strip_prefix(&level?.name)?.strip_prefix(' ')?;
        let part: i64 = rest.split_once(' ')?.0.parse().ok()?;
        parts.contains(&part).then_some(part)
    };
    nodes.group = nodes
        .name
        .iter()
        .map(|name| part(name).unwrap_or(-1))
        .collect();
    if nodes.group[..machine.ranks()].contains(&-1) {
        nodes.group.fill(-1);
        return Vec::new();
    }
    let name = |part| level.map(|level| format!("{} {part}", level.name));
    parts.filter_map(name).collect()
}
