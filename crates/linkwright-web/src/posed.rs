//! What a request poses: the ranks of a machine that take part, where they are, and how much they exchange.

use linkwright_core::Machine;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::Collective;
use linkwright_sim::Placement;
use serde_json::Value;

use crate::machine::few;
use crate::question::{count, Asked};

/// Bytes of an element, f32.
const ELEMENT_BYTES: u32 = 4;

/// The ranks that take part: as many as asked for, by default all.
pub fn ranks(request: &Value, machine: &Machine) -> Asked<usize> {
    let (name, most) = (machine.name(), machine.ranks());
    match count(request, "ranks")?.map_or(most, |ranks| ranks as usize) {
        0 => Err(format!("ranks 0: at least one of {name} takes part")),
        ranks if ranks > most => Err(format!(
            "ranks {ranks}: {name} has {most} ranks; ask for at most that many"
        )),
        ranks => few(ranks as u64).map(|()| ranks),
    }
}

/// How a collective of the size asked for is shared out: on all ranks of a machine, over its grid.
pub fn shape(request: &Value, machine: &Machine, ranks: usize, collective: &str) -> Asked<Shape> {
    let size = count(request, "size")?.unwrap_or(0);
    let element = u64::from(ELEMENT_BYTES);
    if size == 0 && collective != Collective::Barrier.name() {
        return Err(format!(
            "size 0: {collective} moves at least one element of {element} B"
        ));
    }
    if size % element != 0 {
        return Err(format!(
            "size {size}: is not a whole number of f32 elements of {element} B; use {}",
            (size / element * element).max(element)
        ));
    }
    Ok(Shape {
        grid: match ranks == machine.ranks() {
            true => machine.sides().to_vec(),
            false => Vec::new(),
        },
        element_bytes: ELEMENT_BYTES,
        ..Shape::new(ranks as u32, size / element)
    })
}

/// The endpoints of ranks: the first ones; of a cluster, equally many of each node.
pub fn placed(request: &Value, machine: &Machine, ranks: usize) -> Asked<Placement> {
    let nodes = count(request, "nodes")?.unwrap_or(1) as usize;
    if nodes == 1 || ranks == machine.ranks() {
        return Ok(Placement::Identity);
    }
    if ranks % nodes != 0 {
        return Err(format!(
            "ranks {ranks}: do not divide equally among {nodes} nodes; ask for a multiple of {nodes}"
        ));
    }
    let (each, per_node) = (machine.ranks() / nodes, ranks / nodes);
    let at = |rank: usize| (rank / per_node * each + rank % per_node) as u32;
    Ok(Placement::List((0..ranks).map(at).collect()))
}
