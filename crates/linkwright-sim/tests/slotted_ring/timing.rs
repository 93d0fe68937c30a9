//! Times derived by hand, in bus cycles.
//!
//! Alone on the chip a command takes issue 5 + flow-through 15 + snoop 50 + data 70 = 140 cycles, 87.5
//! ns, while its lines fit the data phase, and 8 more for each further line.

use crate::common::{delivered, machine, message, ring, run, CYCLE, MEMORY};
use linkwright_sim::fabric::{Fabric, MsgKind};
use linkwright_sim::fabrics::slotted_ring::RingConfig;

const ALONE: u64 = 5 + 15 + 50 + 70;

fn alone(changes: &[(&str, &str)], kind: MsgKind, other: u32, bytes: u64) -> u64 {
    let mut ring = ring(changes);
    let message = message(0, kind, 0, other, bytes);
    let done = run(&mut ring, &[message]);
    let time = delivered(&done, 0);
    assert_eq!(ring.quiet(&message).0, time * CYCLE, "{bytes} bytes");
    time
}

#[test]
fn one_command_between_local_stores() {
    for kind in [MsgKind::Put, MsgKind::Get] {
        // Reading (ii): four lines fit the data phase of 70 cycles.
        for (bytes, more) in [
            (1, 0),
            (16, 0),
            (128, 0),
            (512, 0),
            (640, 8),
            (16 << 10, 8 * 124),
        ] {
            assert_eq!(alone(&[], kind, 1, bytes), ALONE + more, "{bytes} bytes");
        }
        // Reading (i): only one does.
        for lines in [1, 2, 4, 128] {
            let time = alone(&[("data_lines", "1")], kind, 1, 128 * lines);
            assert_eq!(time, ALONE + 8 * (lines - 1), "{lines} lines");
        }
    }
}

#[test]
fn main_memory() {
    assert_eq!(alone(&[], MsgKind::Put, MEMORY, 16 << 10), ALONE + 8 * 124);
    // A read waits for the memory, 104 cycles.
    assert_eq!(alone(&[], MsgKind::Get, MEMORY, 128), ALONE + 104);
    // Of many lines 16 are in flight; each is so for 50 + 104 + 8 + 38 cycles: 8 rounds of 16 lines,
    // the last of which ends 15 lines later, plus 20 to get to the bus.
    let round = 50 + 104 + 8 + 38;
    assert_eq!(
        alone(&[], MsgKind::Get, MEMORY, 16 << 10),
        20 + 8 * round + 15 * 8
    );
}

#[test]
fn distance_does_not_matter_alone() {
    let times: Vec<u64> = (1..8)
        .map(|other| alone(&[], MsgKind::Put, other, 4096))
        .collect();
    assert_eq!(times, [ALONE + 8 * 28; 7]);
}

#[test]
fn large_and_odd_messages_become_several_commands() {
    // 1000 = 992 + 8: the one line of the second command follows the eight of the first, of which the
    // last is partial and takes a whole slot; then begins its own data phase of 70.
    assert_eq!(alone(&[], MsgKind::Put, 1, 1000), 5 + 15 + 50 + 8 * 8 + 70);
    let bytes = [("partial_line", "\"bytes\"")];
    assert_eq!(
        alone(&bytes, MsgKind::Put, 1, 1000),
        5 + 15 + 50 + 7 * 8 + 6 + 70
    );
    // 32 KB: the lines of the second command follow those of the first without a gap.
    assert_eq!(alone(&[], MsgKind::Put, 1, 32 << 10), ALONE + 8 * 252);
}

#[test]
fn a_notice_is_a_signal_of_four_bytes() {
    assert_eq!(alone(&[], MsgKind::Notice, 3, 0), ALONE);
}

#[test]
fn a_page_walk_delays_every_command() {
    assert_eq!(
        alone(&[("translation", "\"misses\"")], MsgKind::Put, 1, 128),
        ALONE + 500
    );
}

#[test]
fn a_partial_line_takes_its_bytes_or_a_whole_line() {
    // Eight commands of 16 bytes: one per 5 cycles; with whole lines one per 8.
    let last = |word: &str| {
        let mut ring = ring(&[("partial_line", word)]);
        let messages: Vec<_> = (0..8).map(|i| message(i, MsgKind::Put, 0, 1, 16)).collect();
        delivered(&run(&mut ring, &messages), 7)
    };
    assert_eq!(last("\"bytes\""), ALONE + 7 * 5);
    assert_eq!(last("\"whole\""), ALONE + 7 * 8);
}

#[test]
fn a_full_queue_holds_the_next_command_back() {
    // Sixteen commands are queued every 5 cycles; the first is complete at 140 and lets the
    // seventeenth in, which is ready 15 cycles later. Lines of one cycle each queue nowhere.
    let mut ring = ring(&[("partial_line", "\"bytes\"")]);
    let messages: Vec<_> = (0..17)
        .map(|i| message(i, MsgKind::Put, 0, 1, 16))
        .collect();
    let done = run(&mut ring, &messages);
    assert_eq!(delivered(&done, 15), ALONE + 15 * 5);
    assert_eq!(delivered(&done, 16), ALONE + 15 + 50 + 70);
}

#[test]
fn inconsistent_parameters_are_refused() {
    for (key, value, says) in [
        ("snoop", "101", "not a whole number of bus cycles"),
        ("data_lines", "9", "shorter than the lines it covers"),
        ("lines_in_flight", "0", "write at least 1"),
        ("rings_clockwise", "254", "at most 8 rings"),
        ("rings_clockwise", "257", "257 are more than this model"),
        ("tie", "\"left\"", "either"),
        (
            "memory_controller",
            "\"MIX\"",
            "no element is called \"MIX\"",
        ),
    ] {
        let changed = machine(&[(key, value)]);
        let error = RingConfig::from_machine(&changed).unwrap_err().to_string();
        assert!(error.contains(says), "{key}: {error}");
    }
}
