//! What steps mean, derived by hand.

use super::{allreduce, halves, xml};
use crate::msccl::read;
use linkwright_schedule::ir::{Combine, OpKind};
use linkwright_schedule::Schedule;

/// Operations as `from.buffer[chunk] -> to.buffer[chunk]`, `+>` where they combine.
fn lines(schedule: &Schedule) -> Vec<String> {
    let moves = schedule.ops().iter().filter(|op| op.moves_data());
    moves
        .map(|op| {
            let name = |id| &schedule.buffer(id).name;
            let arrow = if op.combine == Combine::Reduce {
                "+>"
            } else {
                "->"
            };
            let (from, to) = (name(op.src_buffer), name(op.dst_buffer));
            format!(
                "{}.{from}[{}] {arrow} {}.{to}[{}]",
                op.from, op.src, op.to, op.dst
            )
        })
        .collect()
}

#[test]
fn a_step_that_receives_and_sends_is_two_transfers() {
    let schedule = read(&halves()).unwrap();
    let mut moves = lines(&schedule);
    moves.sort();
    let expected = [
        "0.output[0] -> 1.output[0]",
        "0.output[1] +> 1.output[1]",
        "1.output[0] +> 0.output[0]",
        "1.output[1] -> 0.output[1]",
    ];
    assert_eq!(moves, expected);
    assert_eq!((schedule.elements, schedule.ranks), (2, 2));
    assert!(!schedule.spec.out_of_place);
}

#[test]
fn an_exchange_that_the_connection_holds_goes_through_a_relay() {
    // Both send their only chunk before they add what comes: the message of one must leave the chunk first.
    let plan = allreduce(
        1,
        0,
        &[
            "tb 1 1 0\n s i0 i0 1\n rrc i0 i0 1",
            "tb 0 0 0\n s i0 i0 1\n rrc i0 i0 1",
        ],
    );
    let schedule = read(&plan).unwrap();
    let moves = lines(&schedule);
    assert_eq!(moves.len(), 3, "{moves:?}");
    let relayed = moves.iter().filter(|line| line.contains("relay")).count();
    assert_eq!(relayed, 2, "{moves:?}");
}

#[test]
fn what_is_only_passed_on_touches_no_buffer_of_the_plan() {
    // 0 sends to 1, which adds and passes on to 2, which keeps the sum: a reduce to rank 2.
    let head = "proto=\"LL\" coll=\"reduce\" nchunksperloop=\"1\" inplace=\"0\" root=\"2\"";
    let plan = xml(
        head,
        [1, 1, 0],
        &[
            "tb 1 -1 0\n s i0 i0 1",
            "tb 2 0 0\n rrs i0 i0 1",
            "tb -1 1 0\n rrc i0 o0 1",
        ],
    );
    let schedule = read(&plan).unwrap();
    let expected = [
        "0.input[0] -> 1.relay[0]",
        "1.input[0] +> 1.relay[0]",
        "1.relay[0] -> 2.output[0]",
        "2.input[0] +> 2.output[0]",
    ];
    assert_eq!(lines(&schedule), expected);
    assert!(schedule.spec.out_of_place && schedule.spec.root == 2);
}

#[test]
fn a_send_waits_for_what_its_thread_block_received_before() {
    // Rank 1 passes on nothing of what it gets, but its thread block is busy until it came.
    let head = "proto=\"LL\" coll=\"allgather\" nchunksperloop=\"2\" inplace=\"1\"";
    let first = "tb 1 1 0\n s o0 o0 1\n r o1 o1 1";
    let waits = |second: &str| {
        let schedule = read(&xml(head, [1, 2, 0], &[first, second])).unwrap();
        let put = schedule
            .ops()
            .iter()
            .position(|op| op.kind == OpKind::Put && op.from == 1);
        schedule.after(put.unwrap() as u32).len()
    };
    assert_eq!(waits("tb 0 0 0\n r o0 o0 1\n s o1 o1 1"), 1);
    assert_eq!(waits("tb 0 0 0\n s o1 o1 1\n r o0 o0 1"), 0);
}

#[test]
fn dependencies_order_thread_blocks() {
    let plan = |dependency: &str, announced: &str| {
        let second =
            format!("tb -1 0 0\n r o0 s0 1 {announced}\n tb -1 -1 0\n re s0 i0 1 {dependency}");
        let first = "tb 1 -1 0\n s i0 s0 1";
        let head = "proto=\"LL\" coll=\"reduce\" nchunksperloop=\"1\" inplace=\"1\" root=\"1\"";
        read(&xml(head, [1, 1, 1], &[first, &second]))
    };
    assert_eq!(plan("@0.0", "!").unwrap().ops().len(), 2);
    let race = plan("", "").unwrap_err().to_string();
    assert!(
        race.starts_with("gpu 1, tb 1, step 0: touches s[0] of gpu 1 as gpu 1, tb 0, step 0 does"),
        "{race}"
    );
}

#[test]
fn an_order_that_only_messages_make_is_seen() {
    // Rank 0 reads chunk 1 in tb 0 and overwrites it in tb 1, after the sum came back from rank 1.
    let separate = allreduce(
        1,
        0,
        &[
            "tb 1 -1 0\n s i0 i0 1\n tb -1 1 0\n r i0 i0 1",
            "tb 0 0 0\n rrcs i0 i0 1",
        ],
    );
    assert_eq!(read(&separate).unwrap().ops().len(), 2);
}

#[test]
fn in_place_input_and_output_are_the_same_memory() {
    // `i[0]` of rank 1 is `o[1]`: written under one name, sent under the other.
    let head =
        "proto=\"LL\" coll=\"allgather\" nchunksperloop=\"2\" inplace=\"1\" outofplace=\"0\"";
    let plan = xml(
        head,
        [1, 2, 0],
        &[
            "tb 1 1 0\n s i0 o0 1\n r o1 o1 1",
            "tb 0 0 0\n s i0 o1 1\n r o0 o0 1",
        ],
    );
    let mut moves = lines(&read(&plan).unwrap());
    moves.sort();
    assert_eq!(
        moves,
        ["0.output[0] -> 1.output[0]", "1.output[1] -> 0.output[1]"]
    );
}
