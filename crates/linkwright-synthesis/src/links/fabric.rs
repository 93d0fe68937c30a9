//! The network of a described machine, as a search sees it.

use super::wires::{Pair, Wires};
use crate::{Graph, Problem, Result};

/// Size of the message from which the latency of a pair is taken: what is stored on the way counts as latency.
const PROBE_BYTES: u64 = 1 << 16;
/// Most lanes of a rank, besides the compute lane.
const LANES: u8 = 254;
/// Most ranks for which ways over memories are searched.
const MOST_RELAYED: u32 = 16;

/// The pairs and links of the problem's path, and how many lanes of a rank lead onto them; `None` where the fabric does
/// not tell its links.
pub fn network(problem: &Problem, graph: &Graph) -> Result<Option<(Wires, u32)>> {
    if graph.capacities.is_empty() {
        return Ok(None);
    }
    let named = problem.path().network;
    let of_lane = |lane: u8| named.unwrap_or_else(|| problem.machine.hints().lane(lane));
    let lanes = (0..LANES).take_while(|&lane| of_lane(lane) == graph.network);
    let lanes = match graph.one_lane() {
        true => 1,
        false => (lanes.count() as u32).clamp(1, graph.path.lanes.unwrap_or(u32::MAX)),
    };
    let all = (0..graph.ranks).flat_map(|from| (0..graph.ranks).map(move |to| (from, to)));
    let pairs = all.filter(|(from, to)| from != to);
    let pairs = pairs
        .filter_map(|(from, to)| pair(graph, from, to))
        .collect();
    let wires = Wires::new(graph.ranks, graph.capacities.clone(), pairs)?;
    Ok(Some((wires, lanes)))
}

fn pair(graph: &Graph, from: u32, to: u32) -> Option<Pair> {
    let wire = graph.wire(from, to)?;
    let quiet = graph.quiet(from, to, PROBE_BYTES)?;
    let alone = Pair {
        from,
        to,
        start_ps: wire.start.0,
        latency_ps: 0,
        rate: wire.rate,
        uses: wire.uses,
    };
    let (before, behind) = graph.software();
    let latency = quiet.0.saturating_sub(alone.time_ps(PROBE_BYTES));
    Some(Pair {
        start_ps: alone.start_ps + before.0,
        latency_ps: latency + behind.0,
        ..alone
    })
}

/// The same network, with the memories of the machine as endpoints after the ranks. `None` where there are no memories,
/// where a rank cannot write or read one, or where there are too many ranks.
pub fn with_memories(graph: &Graph, wires: &Wires) -> Option<Wires> {
    let (ranks, memories) = (wires.ranks(), graph.memories);
    if memories == 0 || ranks > MOST_RELAYED {
        return None;
    }
    let mut pairs = wires.pairs().to_vec();
    for (memory, place) in (ranks..ranks + memories).zip(graph.memory..) {
        for rank in 0..ranks {
            let (put, get) = (pair(graph, rank, place)?, pair(graph, place, rank)?);
            // The writer tells the reader.
            let heard = graph.wire(rank, place)?.start.0;
            pairs.push(Pair {
                to: memory,
                latency_ps: put.latency_ps + heard,
                ..put
            });
            pairs.push(Pair {
                from: memory,
                start_ps: get.start_ps + get.latency_ps,
                ..get
            });
        }
    }
    let wires = Wires::new(ranks + memories, graph.capacities.clone(), pairs).ok()?;
    Some(wires.with_ranks(ranks))
}
