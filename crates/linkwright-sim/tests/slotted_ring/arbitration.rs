//! The arbiter by hand, in bus cycles: whose line starts when.
//!
//! A command of one line is ready 70 cycles after its issue (5 + 15 + 50) plus the turns that others had
//! at the command network. Positions on the ring: SPE3 at 2, SPE6, 4, 2 and 0 at 7 to 10, memory at 11.

use crate::common::{delivered, machine, message, ring, run, MEMORY};
use linkwright_sim::fabric::MsgKind;
use linkwright_sim::fabrics::slotted_ring::{RingConfig, SlottedRing, Start};

/// (cycle, position of the source) of every start of these (kind, own, other, bytes).
fn starts(changes: &[(&str, &str)], messages: &[(MsgKind, u32, u32, u64)]) -> Vec<(u64, u8)> {
    let mut ring = ring(changes);
    ring.record_starts();
    let messages: Vec<_> = (0u32..)
        .zip(messages)
        .map(|(op, &(kind, own, other, bytes))| message(op, kind, own, other, bytes))
        .collect();
    run(&mut ring, &messages);
    let when = |start: &Start| (start.cycle, start.from);
    ring.starts().iter().map(when).collect()
}

#[test]
fn the_oldest_line_for_a_receiver_goes_first() {
    // Ready at 70, 71, 72. SPE0 receives SPE2's line from 70 to 78. SPE4's, a segment further away, starts
    // at 77 and arrives from 78 to 86. SPE3's, four segments away, starts at 83.
    let put = |own| (MsgKind::Put, own, 0, 128);
    let lines = [put(2), put(4), put(3)];
    assert_eq!(starts(&[], &lines), [(70, 9), (77, 8), (83, 2)]);
    // In turn, SPE3's line may start at 75 already, before SPE4's can.
    let turns = [("receiver_order", "\"round_robin\"")];
    assert_eq!(starts(&turns, &lines), [(70, 9), (75, 2), (85, 8)]);
}

#[test]
fn the_memory_controller_goes_first_at_a_receiver() {
    // SPE2 puts 16 lines into SPE0: ready from 70 on, one start each 8 cycles. The line that SPE0 gets
    // from memory has the second address slot and is ready at 71 + 104 = 175. SPE0 opens at 182, where
    // two older lines of SPE2 still wait.
    let lines = [(MsgKind::Put, 2, 0, 2048), (MsgKind::Get, 0, MEMORY, 128)];
    let found = starts(&[], &lines);
    let last: Vec<_> = found.into_iter().skip(13).collect();
    assert_eq!(last, [(174, 9), (182, 11), (190, 9), (198, 9)]);
}

#[test]
fn the_memory_controller_goes_first_on_a_ring() {
    // One line at a time, clockwise. SPE2 and SPE4 take turns, SPE2 first: 8 lines each for SPE0 and SPE2.
    // Memory's line for SPE1 is ready at 72 + 104 = 176. At 182 it would be SPE2's turn.
    let one_line = [
        ("rings_clockwise", "1"),
        ("rings_counterclockwise", "1"),
        ("transfers_per_ring", "1"),
    ];
    let lines = [
        (MsgKind::Put, 2, 0, 1024),
        (MsgKind::Put, 4, 2, 1024),
        (MsgKind::Get, 1, MEMORY, 128),
    ];
    let found = starts(&one_line, &lines);
    let last: Vec<_> = found.into_iter().skip(12).collect();
    assert_eq!(last, [(166, 9), (174, 8), (182, 11), (190, 9), (198, 8)]);
}

/// When the second line of SPE4 is delivered, behind lines for a receiver that is busy.
fn behind_a_busy_receiver(changes: &[(&str, &str)]) -> u64 {
    let mut ring = ring(changes);
    let messages = [
        message(0, MsgKind::Put, 2, 0, 6 * 128),
        message(1, MsgKind::Put, 4, 6, 128),
        message(2, MsgKind::Put, 4, 6, 128),
    ];
    delivered(&run(&mut ring, &messages), 2)
}

#[test]
fn a_window_of_the_whole_chip_holds_up_lines_whose_way_is_free() {
    // Lines of SPE2 are ready at 70 and 72 to 76 and start each 8 cycles; SPE4's are ready at 71 and 77,
    // where its port is busy until 79. With every line in sight, or one of each source, it starts then.
    for sees in ["\"all\"", "\"oldest\""] {
        assert_eq!(behind_a_busy_receiver(&[("arbiter_sees", sees)]), 79 + 70);
    }
    // A window of four is full of SPE2's second to fifth; its sixth enters at 78, SPE4's at 86.
    assert_eq!(behind_a_busy_receiver(&[]), 87 + 70);
    for (depth, start) in [("3", 95), ("5", 79), ("6", 79)] {
        let found = behind_a_busy_receiver(&[("arbiter_depth", depth)]);
        assert_eq!(found, start + 70, "depth {depth}");
    }
}

/// The longest row of starts without one from `source`, between its first and its last.
fn longest_wait(ring: &SlottedRing, source: u8) -> usize {
    let starts: Vec<bool> = ring.starts().iter().map(|s| s.from == source).collect();
    let parts = starts.split(|&own| own).skip(1);
    let gaps: Vec<usize> = parts.map(<[bool]>::len).collect();
    gaps[..gaps.len() - 1].iter().copied().max().unwrap_or(0)
}

#[test]
fn a_stream_from_memory_starves_nobody() {
    // SPE0 keeps at most 16 lines from memory in flight, so no more can pass a line of SPE2.
    let mut ring = ring(&[]);
    ring.record_starts();
    let messages: Vec<_> = (0..8)
        .flat_map(|i| {
            [
                message(2 * i, MsgKind::Put, 2, 0, 16 << 10),
                message(2 * i + 1, MsgKind::Get, 0, MEMORY, 16 << 10),
            ]
        })
        .collect();
    run(&mut ring, &messages);
    assert!(longest_wait(&ring, 9) <= 16, "{}", longest_wait(&ring, 9));
}

#[test]
fn a_window_starves_nobody_where_all_traffic_goes_one_way() {
    // Each SPE gets from the third one before it on the ring: paths of three to six segments, clockwise.
    let partner = [6, 4, 7, 2, 5, 0, 3, 1];
    let messages: Vec<_> = (0..30 * 8)
        .map(|op| message(op, MsgKind::Get, op % 8, partner[op as usize % 8], 16 << 10))
        .collect();
    // By how much later than the first the last SPE is through half of its 30.
    let spread = |changes: &[(&str, &str)]| {
        let done = run(&mut ring(changes), &messages);
        let half = |own: u32| {
            let times = done.iter().filter(|d| d.op % 8 == own).map(|d| d.at.0);
            times.skip(3 * 15).min().expect("half of them are done") as f64
        };
        let halves: Vec<f64> = (0..8).map(half).collect();
        halves.iter().copied().fold(0.0, f64::max) / halves.iter().copied().fold(f64::MAX, f64::min)
    };
    let window = spread(&[]);
    assert!(window < 1.1, "{window}");
    // Age at receivers alone lets short paths take the segments of long ones in turn.
    let all = spread(&[("arbiter_sees", "\"all\"")]);
    assert!(all > 1.5, "{all}");
}

#[test]
fn a_window_without_places_is_refused() {
    let changed = machine(&[("arbiter_depth", "0")]);
    let error = RingConfig::from_machine(&changed).unwrap_err().to_string();
    assert!(error.contains("write at least 1"), "{error}");
}
