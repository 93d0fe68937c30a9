//! Plans derived by hand, refusals, round trips, damaged files.

mod by_hand;
mod mutants;
mod refusals;
mod round_trips;

use super::{read, FORMAT};
use linkwright_schedule::ir::{OpKind, Schedule};
use serde_json::{json, Value};

/// A plan of one list of thread blocks for each GPU. Every GPU has a memory channel and a port channel to each other
/// one, and reaches buffer b (i, o, s: 0, 1, 2) of the k-th other GPU as `3 * k + b`.
fn plan(collective: &str, inplace: bool, chunks: [u32; 3], gpus: Vec<Vec<Vec<Value>>>) -> Value {
    let count = gpus.len();
    let gpu = |(id, blocks): (usize, Vec<Vec<Value>>)| {
        let others: Vec<usize> = (0..count).filter(|&other| other != id).collect();
        let places: Vec<usize> = (0..others.len()).collect();
        let buffers: Vec<Value> = (others.iter().flat_map(|rank| ["i", "o", "s"].map(|space| (rank, space))))
            .map(|(rank, space)| json!({"rank": rank, "type": space, "access_channel_types": ["memory", "port"]}))
            .collect();
        let ids: Vec<usize> = (0..buffers.len()).collect();
        let both = |name: &str, id: usize| match name {
            "channels" => json!([
                {"channel_type": "memory", "channel_ids": places.iter().map(|k| k * 4 + id).collect::<Vec<_>>()},
                {"channel_type": "port", "channel_ids": places.iter().map(|k| k * 4 + id).collect::<Vec<_>>()}]),
            _ => json!([{"access_channel_type": "memory", "remote_buffer_ids": ids},
                        {"access_channel_type": "port", "remote_buffer_ids": ids}]),
        };
        let blocks = blocks.into_iter().enumerate().map(|(id, ops)| {
            json!({"id": id, "ops": ops, "channels": both("channels", id), "remote_buffer_refs": both("refs", id)})
        });
        // Thread block t uses the t-th of four channels to each GPU.
        let connected: Vec<usize> = others.iter().flat_map(|&other| [other; 4]).collect();
        json!({
            "id": id, "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": chunks[2],
            "threadblocks": blocks.collect::<Vec<_>>(),
            "channels": [{"channel_type": "memory", "connected_to": connected},
                         {"channel_type": "port", "connected_to": connected}],
            "remote_buffers": buffers, "semaphores": [{"init_value": 0}]
        })
    };
    let gpus: Vec<Value> = gpus.into_iter().enumerate().map(gpu).collect();
    json!({"name": "by_hand", "collective": collective, "protocol": "Simple", "inplace": inplace, "gpus": gpus})
}

/// An operation on channel 0 of a kind.
fn channel(name: &str, kind: &str) -> Value {
    json!({"name": name, "channel_ids": [0], "channel_type": kind})
}

fn signal() -> Value {
    channel("signal", "memory")
}

fn wait() -> Value {
    channel("wait", "memory")
}

fn nop() -> Value {
    json!({"name": "nop"})
}

/// Own chunks.
fn near(space: &str, index: u32, size: u32) -> Value {
    json!({"type": space, "index": index, "size": size})
}

/// Chunks of the other GPU.
fn far(space: &str, index: u32, size: u32) -> Value {
    let id = ["i", "o", "s"].iter().position(|&known| known == space);
    json!({"buffer_id": id, "index": index, "size": size})
}

/// An operation that moves data through memory.
fn moves(name: &str, src: &[Value], dst: &[Value]) -> Value {
    json!({"name": name, "src_buff": src, "dst_buff": dst, "channel_type": "memory"})
}

/// Two GPUs put their blocks of an allgather to each other.
fn gather() -> Value {
    let gpu = |r: u32| {
        vec![vec![
            channel("rlxsignal", "memory"),
            channel("rlxwait", "memory"),
            nop(),
            moves("put", &[near("o", r, 1)], &[far("o", r, 1)]),
            nop(),
            signal(),
            wait(),
        ]]
    };
    plan("allgather", true, [1, 2, 0], vec![gpu(0), gpu(1)])
}

fn accepted(plan: &Value) -> Schedule {
    match read(&plan.to_string()) {
        Ok(schedule) => schedule,
        Err(error) => panic!("{error}"),
    }
}

/// (kind, from, to, first destination chunk, chunks, reduces, lane) of each operation.
type Line = (OpKind, u32, u32, u32, u32, bool, u8);

fn lines(schedule: &Schedule) -> Vec<Line> {
    use linkwright_schedule::ir::Combine;
    let line = |op: &linkwright_schedule::ir::Op| {
        let count = schedule.chunk_ranges(op).map(|range| range.2).sum();
        let first = schedule.chunk_ranges(op).next().map_or(0, |range| range.1);
        (
            op.kind,
            op.from,
            op.to,
            first,
            count,
            op.combine == Combine::Reduce,
            op.lane,
        )
    };
    schedule.ops().iter().map(line).collect()
}
