//! DMA programs: fences, lists, queues, mailboxes, signals, atomics, and refused commands.

use crate::common::{machine, CYCLE};
use linkwright_sim::fabrics::slotted_ring::programs::{run, Outcome};
use linkwright_sim::SimError;

const ALONE: u64 = 5 + 15 + 50 + 70;
/// Reading a completion.
const STATUS: u64 = 5;

fn attempt(programs: &[(&str, &[&str])], overwrite: bool) -> Result<Outcome, SimError> {
    let texts = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect();
    let programs: Vec<(String, Vec<String>)> = (programs.iter())
        .map(|(name, lines)| (name.to_string(), texts(lines)))
        .collect();
    run(&machine(&[]), &programs, overwrite)
}

fn outcome(programs: &[(&str, &[&str])]) -> Outcome {
    attempt(programs, false).unwrap_or_else(|e| panic!("{e}"))
}

/// Bus cycles at which the last line of the program is over.
fn finish(outcome: &Outcome, program: usize) -> u64 {
    outcome.lines_ps[program].last().unwrap() / CYCLE
}

fn completions(outcome: &Outcome) -> Vec<u64> {
    outcome.commands.iter().map(|row| row.2.complete).collect()
}

#[test]
fn the_life_of_one_list_command_adds_up_to_table_1() {
    let outcome = outcome(&[("SPE0", &["list put SPE1 128 x 1", "wait"])]);
    let life = outcome.commands[0].2;
    assert_eq!((life.issued, life.queued), (0, 5));
    assert_eq!((life.selected, life.requested), (5 + 15 + 5, 5 + 15 + 5));
    assert_eq!((life.data, life.complete), (75, 145));
    assert_eq!(finish(&outcome, 0), 145 + STATUS);
}

#[test]
fn a_fence_waits_for_its_tag_and_a_barrier_holds_later_ones_too() {
    let times = |second: &str| {
        let lines = [
            "put SPE1 128 tag=1",
            second,
            "put SPE1 128 tag=1",
            "put SPE1 128 tag=2",
            "wait",
        ];
        completions(&outcome(&[("SPE0", &lines)]))
    };
    // Without order one line after another: every 8 cycles.
    assert_eq!(times("put SPE1 128 tag=1"), [140, 148, 156, 164]);
    // The fenced command waits for the first, then still has its snoop ahead; later ones overtake it.
    assert_eq!(
        times("put SPE1 128 tag=1 fence"),
        [140, 150, 158, 140 + 120]
    );
    // Behind a barrier the third waits as well, for the second.
    assert_eq!(
        times("put SPE1 128 tag=1 barrier"),
        [140, 155, 140 + 120, 140 + 240]
    );
}

#[test]
fn the_proxy_queue_comes_after_the_own() {
    let outcome = outcome(&[
        (
            "SPE0",
            &["compute 180", "put SPE1 16384", "put SPE1 16384", "wait"],
        ),
        ("PPE", &["on SPE0 put SPE1 128", "wait"]),
    ]);
    // Queued at 100, before the first of the own: but ready only while those are unrolled.
    let proxy = outcome.commands.iter().find(|row| row.0 == 1).unwrap().2;
    assert_eq!(proxy.queued, 100);
    let own = outcome
        .commands
        .iter()
        .filter(|row| row.0 == 0)
        .map(|row| row.2.selected)
        .max();
    assert!(proxy.selected > own.unwrap());
}

#[test]
fn gets_and_puts_take_turns() {
    let outcome = outcome(&[("SPE0", &["put SPE1 4096", "get SPE2 4096", "wait"])]);
    // The get is selected as soon as it is ready, while the older put has requests left.
    let get = outcome.commands.iter().find(|row| row.1 == 1).unwrap().2;
    assert_eq!(get.selected, 5 + 5 + 15);
    // Sixteen lines in flight, each for 96 cycles, carry both: 64 lines end after 4 such rounds.
    let end = completions(&outcome).into_iter().max().unwrap();
    assert!((20 + 4 * 96..20 + 5 * 96).contains(&end), "{end}");
}

#[test]
fn mailbox_and_signal() {
    let there = outcome(&[("PPE", &["mail SPE1"]), ("SPE1", &["read"])]);
    assert_eq!(finish(&there, 1), 240); // 150 ns
    let round = outcome(&[
        ("SPE0", &["mail SPE1", "read"]),
        ("SPE1", &["read", "mail SPE0"]),
    ]);
    assert_eq!(finish(&round, 0), 480); // 300 ns
    let signals: &[(&str, &[&str])] = &[
        ("SPE0", &["await 6"]),
        ("SPE1", &["signal SPE0 2"]),
        ("SPE2", &["signal SPE0 4"]),
    ];
    // The first comes over three segments and holds the port until 2 + 8 cycles after its start;
    // the second comes over one and starts then.
    assert_eq!(finish(&outcome(signals), 0), ALONE + 10);
}

#[test]
fn a_counter_counts_every_increment_and_lost_reservations_cost_retries() {
    let alone = outcome(&[("SPE0", &["add", "add"])]);
    assert_eq!(alone.retries, [0]);
    let all: Vec<(String, Vec<String>)> = (0..8)
        .map(|i| (format!("SPE{i}"), vec!["add".to_string(); 5]))
        .collect();
    let contended = run(&machine(&[]), &all, false).unwrap();
    assert!(contended.retries.iter().sum::<u64>() > 0);
    assert!(contended.lines_ps.iter().all(|lines| lines.len() == 5));
    // Every conditional write either counted or was tried again.
    let commands = contended.commands.len() as u64;
    assert_eq!(commands, 2 * (40 + contended.retries.iter().sum::<u64>()));
}

#[test]
fn a_full_mailbox_blocks_and_a_circle_is_named() {
    // Four words fit; the fifth waits until one is read, and none is lost.
    let slow = outcome(&[
        ("SPE0", &["mail SPE1"; 5]),
        (
            "SPE1",
            &["compute 4000", "read", "read", "read", "read", "read"],
        ),
    ]);
    assert!(finish(&slow, 0) >= 2000);
    let full = ["mail SPE1"; 5];
    let back = ["mail SPE0"; 5];
    let error = attempt(&[("SPE0", &full), ("SPE1", &back)], false)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("SPE0, line 5: `mail SPE1` waits for room in the mailbox of SPE1"),
        "{error}"
    );
    assert!(
        error.contains("circle: SPE0 waits for SPE1 waits for SPE0"),
        "{error}"
    );
}

#[test]
fn signals_that_overwrite_are_lost() {
    let programs: &[(&str, &[&str])] = &[
        ("SPE0", &["compute 1000", "await 6"]),
        ("SPE1", &["signal SPE0 2"]),
        ("SPE2", &["signal SPE0 4"]),
    ];
    assert!(attempt(programs, false).is_ok());
    let error = attempt(programs, true).unwrap_err().to_string();
    assert!(
        error.contains("SPE0, line 2: `await 6` waits for signal bits 6"),
        "{error}"
    );
}

#[test]
fn a_refused_command_names_the_rule_of_the_hardware() {
    for (line, says) in [
        ("put SPE1 24", "sizes are 1, 2, 4, 8 or a multiple of 16"),
        ("put SPE1 0", "sizes are 1, 2, 4, 8"),
        ("put SPE1 16400", "at most 16384 bytes"),
        (
            "put SPE1 8 at=4",
            "address 4 for a DMA of 8 bytes: must be a multiple of 8",
        ),
        ("get MIC 64 local=8", "must be a multiple of 16"),
        (
            "list put SPE1 128 x 2049",
            "a list of 2049 elements: at most 2048",
        ),
        (
            "on SPE1 list put SPE2 128 x 2",
            "only the own SPU may issue lists",
        ),
        ("put SPE1 16 tag=32", "tags are 0 to 31"),
        ("put SPE9 16", "no element `SPE9`; known: PPE"),
        ("fetch SPE1", "unknown step `fetch`"),
        ("put SPE1 16 tga=3", "unknown word `tga=3`"),
        ("put", "to whom?"),
    ] {
        let error = attempt(&[("SPE0", &["wait", line])], false)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("SPE0, line 2") && error.contains(says),
            "{line}: {error}"
        );
    }
}

#[test]
fn unaligned_addresses_cost_requests() {
    let time = |line: &str| finish(&outcome(&[("SPE0", &[line, "wait"])]), 0);
    let aligned = time("put SPE1 4096");
    // Half a line off at both ends: 33 requests, each of which takes a slot. At one end: one more.
    assert_eq!(time("put SPE1 4096 at=64 local=64"), aligned + 8);
    assert_eq!(time("put SPE1 4096 at=64"), aligned + 16);
}
