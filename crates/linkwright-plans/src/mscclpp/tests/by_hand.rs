//! Small plans with the operations that they must become.

use super::*;
use linkwright_schedule::ir::OpKind::{Get, Local, Put};
use linkwright_schedule::Collective;

#[test]
fn an_allgather_is_two_puts_without_waits() {
    let schedule = accepted(&gather());
    assert_eq!(
        lines(&schedule),
        [(Put, 0, 1, 0, 1, false, 0), (Put, 1, 0, 1, 1, false, 0)]
    );
    // Nothing is read that was written, so no operation waits for another.
    assert_eq!(schedule.edge_count(), 0);
    assert_eq!((schedule.elements, schedule.ranks), (2, 2));
}

#[test]
fn reading_reducing_and_sending_is_a_get_and_a_put() {
    // GPU r: x[r] += x'[r], then x'[r] = x[r]; both have x[0] + x'[0], x[1] + x'[1] at the end.
    let gpu = |r: u32| {
        let both = [near("i", r, 1), far("i", r, 1)];
        let ops = vec![
            signal(),
            wait(),
            nop(),
            moves("rres", &both, &both),
            nop(),
            signal(),
            wait(),
        ];
        vec![ops]
    };
    let schedule = accepted(&plan("allreduce", true, [2, 2, 0], vec![gpu(0), gpu(1)]));
    let mut lines = lines(&schedule);
    lines.sort_by_key(|line| (line.3, line.0 == Put));
    assert_eq!(
        lines,
        [
            (Get, 1, 0, 0, 1, true, 0),
            (Put, 0, 1, 0, 1, false, 0),
            (Get, 0, 1, 1, 1, true, 0),
            (Put, 1, 0, 1, 1, false, 0)
        ]
    );
    assert_eq!(schedule.edge_count(), 2); // each put waits for the get before it
}

#[test]
fn packets_need_no_signal() {
    // GPU r sends x to scratch of the other, which adds it: x + x' at both.
    let ops = || {
        let sum = moves(
            "repkt",
            &[near("i", 0, 1), near("s", 0, 1)],
            &[near("i", 0, 1)],
        );
        vec![vec![
            moves("ppkt", &[near("i", 0, 1)], &[far("s", 0, 1)]),
            nop(),
            sum,
        ]]
    };
    let schedule = accepted(&plan("allreduce", true, [1, 1, 1], vec![ops(), ops()]));
    let mut lines = lines(&schedule);
    lines.sort_by_key(|line| (line.0 == Local, line.1));
    assert_eq!(
        lines,
        [
            (Put, 0, 1, 0, 1, false, 0),
            (Put, 1, 0, 0, 1, false, 0),
            (Local, 0, 0, 0, 1, true, 0),
            (Local, 1, 1, 0, 1, true, 0)
        ]
    );
}

#[test]
fn a_group_of_thread_blocks_shares_a_chunk() {
    let gpu = |r: u32| {
        let block = |part: u32| {
            let mut put = moves("put", &[near("o", r, 1)], &[far("o", r, 1)]);
            put["tbg_info"] = json!({"tb_id": part, "tbg_size": 2});
            vec![put, nop(), signal(), wait()]
        };
        vec![block(0), block(1)]
    };
    let schedule = accepted(&plan("allgather", true, [1, 2, 0], vec![gpu(0), gpu(1)]));
    let output = &schedule.buffers[0];
    assert_eq!((output.blocks, output.slices), (2, 2));
    let mut puts: Vec<_> = lines(&schedule)
        .iter()
        .map(|line| (line.1, line.3, line.6))
        .collect();
    puts.sort_unstable();
    // (from, chunk, lane): GPU r sends chunks 2 r and 2 r + 1, each in a lane.
    assert_eq!(puts, [(0, 0, 0), (0, 1, 1), (1, 2, 0), (1, 3, 1)]);
}

#[test]
fn a_port_channel_signals_behind_its_put() {
    let gpu = |r: u32| {
        let mut put = moves("pws", &[near("o", r, 1)], &[far("o", r, 1)]);
        (put["channel_type"], put["channel_ids"]) = (json!("port"), json!([0]));
        vec![vec![put, channel("flush", "port"), channel("wait", "port")]]
    };
    let schedule = accepted(&plan("allgather", true, [1, 2, 0], vec![gpu(0), gpu(1)]));
    assert_eq!(lines(&schedule).len(), 2);
}

#[test]
fn out_of_place_is_kept() {
    let gpu = |r: u32| {
        let ops = vec![
            moves("copy", &[near("i", 0, 1)], &[near("o", r, 1)]),
            moves("put", &[near("i", 0, 1)], &[far("o", r, 1)]),
            nop(),
            signal(),
            wait(),
        ];
        vec![ops]
    };
    let schedule = accepted(&plan("allgather", false, [1, 2, 0], vec![gpu(0), gpu(1)]));
    assert!(schedule.spec.out_of_place && schedule.spec.collective == Collective::Allgather);
    assert_eq!(lines(&schedule).len(), 4);
}

/// GPU 0 sends from one thread block what another has combined.
fn handed_over(release: &[Value], acquire: &[Value]) -> Value {
    // x' comes to scratch; thread block 1 of GPU 0 adds it and hands over to thread block 0, which sends the sum.
    let sum = moves(
        "re",
        &[near("i", 0, 1), near("s", 0, 1)],
        &[near("i", 0, 1)],
    );
    let mut first = vec![signal()];
    first.extend_from_slice(acquire);
    first.extend([
        nop(),
        moves("put", &[near("i", 0, 1)], &[far("i", 0, 1)]),
        nop(),
        signal(),
    ]);
    let mut second = vec![wait(), nop(), sum, nop()];
    second.extend_from_slice(release);
    let other = vec![
        vec![wait(), wait()],
        vec![
            moves("put", &[near("i", 0, 1)], &[far("s", 0, 1)]),
            nop(),
            signal(),
        ],
    ];
    plan(
        "allreduce",
        true,
        [1, 1, 1],
        vec![vec![first, second], other],
    )
}

#[test]
fn semaphores_and_barriers_order_thread_blocks() {
    let named = |name: &str| vec![json!({"name": name, "semaphore_ids": [0]})];
    let barrier = vec![json!({"name": "barrier", "barrier_id": 3, "num_threadblocks": 2})];
    for plan in [
        handed_over(&named("sem_release"), &named("sem_acquire")),
        handed_over(&barrier, &barrier),
    ] {
        let lines = lines(&accepted(&plan));
        let transfers: Vec<_> = lines
            .iter()
            .filter(|line| line.0 != OpKind::Notice)
            .copied()
            .collect();
        assert_eq!(
            transfers,
            [
                (Put, 1, 0, 0, 1, false, 1),
                (Local, 0, 0, 0, 1, true, 1),
                (Put, 0, 1, 0, 1, false, 0)
            ]
        );
    }
    let error = read(&handed_over(&[], &[]).to_string())
        .unwrap_err()
        .to_string();
    assert!(error.contains("nothing orders them"), "{error}");
    let error = read(&handed_over(&[], &named("sem_acquire")).to_string())
        .unwrap_err()
        .to_string();
    assert!(error.contains("is released 0 times"), "{error}");
}
