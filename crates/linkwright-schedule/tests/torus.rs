//! Algorithms on all ports of a torus: proved right for every shape, with the counts of the papers.

use linkwright_schedule::builder::{Shape, OWN_SCRATCH_BYTES};
use linkwright_schedule::collectives::build;
use linkwright_schedule::ir::{Hint, Op, OpKind, Schedule};
use linkwright_schedule::verify::verify;
use std::collections::{BTreeMap, BTreeSet};

const SWING: &str = "allreduce/swing_multiport_latency";
const SWING_BLOCKS: &str = "allreduce/swing_multiport_bandwidth";
const DOUBLING: &str = "allreduce/mirrored_doubling_latency";
const DOUBLING_BLOCKS: &str = "allreduce/mirrored_doubling_bandwidth";
const BUCKET: &str = "allreduce/bucket_multiport";

const ALL: [&str; 5] = [SWING, SWING_BLOCKS, DOUBLING, DOUBLING_BLOCKS, BUCKET];

fn made(key: &str, sides: &[u32], elements: u64) -> Schedule {
    let shape = Shape::new(sides.iter().product(), elements).with_sides(sides);
    build(key, &shape).unwrap()
}

fn prove(key: &str, sides: &[u32], elements: u64) -> Schedule {
    let schedule = made(key, sides, elements);
    if let Err(error) = verify(&schedule) {
        panic!("{key} on {sides:?}: {error}");
    }
    schedule
}

fn notices(schedule: &Schedule) -> usize {
    let ops = schedule.ops().iter();
    ops.filter(|op| op.kind == OpKind::Notice).count()
}

fn puts(schedule: &Schedule) -> impl Iterator<Item = &Op> {
    schedule.ops().iter().filter(|op| op.kind == OpKind::Put)
}

fn steps(schedule: &Schedule) -> usize {
    let steps: BTreeSet<u32> = puts(schedule).map(|op| op.step).collect();
    steps.len()
}

/// Whom `rank` sends to in one copy, step by step, with the chunks within the part of that copy.
fn sent(schedule: &Schedule, rank: u32, copy: u8) -> Vec<(u32, Vec<u32>)> {
    let slices = schedule.buffers[0].slices;
    let own = puts(schedule).filter(|op| (op.from, op.lane) == (rank, copy));
    own.map(|op| {
        let ranges = schedule.chunk_ranges(op);
        let chunks = ranges.flat_map(|(src, _, count)| src..src + count);
        (
            op.to,
            chunks.map(|c| c - u32::from(copy) * slices).collect(),
        )
    })
    .collect()
}

fn partners(key: &str, rank: u32, copy: u8) -> Vec<u32> {
    let sent = sent(&made(key, &[4, 4], 16), rank, copy);
    sent.into_iter().map(|(to, _)| to).collect()
}

#[test]
fn every_plane_up_to_12_by_12() {
    for (columns, rows) in (1..=12).flat_map(|c| (1..=12).map(move |r| (c, r))) {
        for key in ALL {
            let schedule = prove(key, &[columns, rows], u64::from(columns * rows) + 3);
            assert_eq!(notices(&schedule), 0, "{key} on {columns}x{rows}");
        }
    }
}

#[test]
fn one_to_four_dimensions() {
    let three = |n: u32| [2 + n % 4, 2 + n / 4 % 4, 2 + n / 16].to_vec();
    let four = [[2, 2, 2, 2], [3, 2, 4, 2], [5, 3, 2, 3], [1, 6, 1, 3]];
    let lines = (1..=40).map(|side| vec![side]);
    let planes = lines.chain((0..64).map(three));
    for sides in planes.chain(four.map(|sides| sides.to_vec())) {
        for key in ALL {
            for elements in [7, 1000] {
                assert_eq!(notices(&prove(key, &sides, elements)), 0, "{key} {sides:?}");
            }
        }
    }
}

/// The fewest bytes: S (p-1)/p for a reduce-scatter and for an allgather, 1/(2D) of it from each port.
#[test]
fn blocks_leave_every_port_alike() {
    for (key, sides) in [
        (SWING_BLOCKS, vec![8, 8]),
        (SWING_BLOCKS, vec![4, 2]),
        (SWING_BLOCKS, vec![6, 10]),
        (SWING_BLOCKS, vec![4, 4, 4]),
        (DOUBLING_BLOCKS, vec![8, 8]),
        (DOUBLING_BLOCKS, vec![4, 4, 4]),
        (BUCKET, vec![8, 8]),
        (BUCKET, vec![5, 3, 2]),
    ] {
        let ranks: u32 = sides.iter().product();
        let copies = 2 * sides.len() as u64;
        let part = 4 * u64::from(ranks);
        let schedule = made(key, &sides, copies * u64::from(ranks));
        let mut bytes: BTreeMap<(u32, u8), u64> = BTreeMap::new();
        for op in puts(&schedule) {
            *bytes.entry((op.from, op.lane)).or_default() += schedule.op_bytes(op);
        }
        assert_eq!(bytes.len() as u64, copies * u64::from(ranks), "{key}");
        let due = 2 * part * u64::from(ranks - 1) / u64::from(ranks);
        assert!(bytes.values().all(|&found| found == due), "{key} {sides:?}");
    }
}

/// Off powers of two Swing still moves the fewest bytes, all ports of a rank together: odd sides, too.
#[test]
fn swing_moves_no_byte_twice() {
    for sides in [[3, 3], [5, 7], [6, 9], [11, 2], [12, 12]] {
        let ranks: u32 = sides.iter().product();
        let schedule = made(SWING_BLOCKS, &sides, 4 * u64::from(ranks));
        let due = 2 * 16 * u64::from(ranks - 1);
        assert!(
            schedule.sent_bytes().iter().all(|&sent| sent == due),
            "{sides:?}"
        );
    }
}

#[test]
fn steps_are_those_of_the_papers() {
    let count = |key, sides: &[u32]| steps(&made(key, sides, 64));
    // log2 p and 2 log2 p; along a side of 6, log2 6 is rounded up to 3.
    assert_eq!(count(SWING, &[8, 8]), 6);
    assert_eq!(count(SWING_BLOCKS, &[8, 8]), 12);
    assert_eq!(count(SWING_BLOCKS, &[16, 4]), 12);
    assert_eq!(count(SWING_BLOCKS, &[6, 6]), 12);
    assert_eq!(count(SWING_BLOCKS, &[4, 4, 4]), 12);
    assert_eq!(count(DOUBLING, &[8, 8]), 6);
    assert_eq!(count(DOUBLING_BLOCKS, &[8, 8]), 12);
    // Folds in and out along both axes of 6; log2 4 = 2 steps along each.
    assert_eq!(count(DOUBLING, &[6, 6]), 4 + 2 * 2);
    // 2 (sum of sides - D)
    assert_eq!(count(BUCKET, &[8, 8]), 28);
    assert_eq!(count(BUCKET, &[5, 3, 2]), 2 * (10 - 3));
}

/// On equal sides no two copies leave a rank along the same axis in the same direction.
#[test]
fn each_copy_has_a_port_to_itself() {
    for key in [SWING, SWING_BLOCKS, DOUBLING, DOUBLING_BLOCKS, BUCKET] {
        for side in [2, 4, 8] {
            let schedule = made(key, &[side, side], 256);
            let ports: BTreeSet<_> = puts(&schedule)
                .map(|op| (op.step, op.from, op.hint as u8))
                .collect();
            assert_eq!(
                ports.len(),
                puts(&schedule).count(),
                "{key} on {side}x{side}"
            );
            assert!(puts(&schedule).all(|op| op.hint != Hint::None));
        }
    }
}

/// Rank 0 is even along both axes: x+1, y+1, x-1, y-1 on copy 0, y first on copy 1, the other way on the
/// mirrored ones. Rank 5 = (1, 1) is odd: the other way round.
#[test]
fn partners_of_swing_on_4x4() {
    assert_eq!(partners(SWING, 0, 0), [1, 4, 3, 12]);
    assert_eq!(partners(SWING, 0, 1), [4, 1, 12, 3]);
    assert_eq!(partners(SWING, 0, 2), [3, 12, 1, 4]);
    assert_eq!(partners(SWING, 0, 3), [12, 3, 4, 1]);
    assert_eq!(partners(SWING, 5, 0), [4, 1, 6, 9]);
    assert_eq!(partners(SWING, 5, 3), [9, 6, 1, 4]);
}

/// x xor 1, y xor 1, x xor 2, y xor 2; mirrored, as far on the other side.
#[test]
fn partners_of_mirrored_doubling_on_4x4() {
    assert_eq!(partners(DOUBLING, 0, 0), [1, 4, 2, 8]);
    assert_eq!(partners(DOUBLING, 0, 1), [4, 1, 8, 2]);
    assert_eq!(partners(DOUBLING, 0, 2), [3, 12, 2, 8]);
    assert_eq!(partners(DOUBLING, 5, 0), [4, 1, 7, 13]);
    assert_eq!(partners(DOUBLING, 5, 2), [6, 9, 7, 13]);
    assert_eq!(partners(DOUBLING, 5, 3), [9, 6, 13, 7]);
}

/// Copy 0 numbers the block of (x, y) as 4 x + y. Along an axis 0 keeps {0, 3} and gives {1, 2} in its first step,
/// then keeps {0} and gives {3}: the far one first goes to the partner that it will meet no more.
#[test]
fn blocks_of_swing_on_4x4() {
    let due: [(u32, Vec<u32>); 8] = [
        (1, (4..12).collect()),  // x: {1, 2} of all y
        (4, vec![1, 2, 13, 14]), // y: {1, 2} of x in {0, 3}
        (3, vec![12, 15]),       // x: {3} of y in {0, 3}
        (12, vec![3]),           // y: {3} of x = 0
        (12, vec![0]),           // backwards, what 0 has: its own block,
        (3, vec![0, 3]),         // both of its column,
        (4, vec![0, 3, 12, 15]), // those of two columns
        (1, vec![0, 1, 2, 3, 12, 13, 14, 15]),
    ];
    assert_eq!(sent(&made(SWING_BLOCKS, &[4, 4], 64), 0, 0), due);
}

/// Copy 0 sends round each row in the direction of -x: first block column 1, which ends at x = 1 after two more hops.
/// Then the blocks of its own column, 0 to 3, likewise along y.
#[test]
fn blocks_of_the_bucket_on_4x4() {
    let column = |x: u32| (4 * x..4 * x + 4).collect::<Vec<u32>>();
    let due: [(u32, Vec<u32>); 12] = [
        (3, column(1)),
        (3, column(2)),
        (3, column(3)),
        (12, vec![1]),
        (12, vec![2]),
        (12, vec![3]),
        // Backwards, +y then +x: its own block, then what came from behind.
        (4, vec![0]),
        (4, vec![3]),
        (4, vec![2]),
        (1, column(0)),
        (1, column(3)),
        (1, column(2)),
    ];
    assert_eq!(sent(&made(BUCKET, &[4, 4], 64), 0, 0), due);
}

/// Six exchanges of a vector take six landings. With room for two, later ones wait for a notice; with room for none,
/// all but the first do, as with one scratch buffer.
#[test]
fn scratch_of_its_own_as_long_as_there_is_room() {
    let notices = |vectors: u64| notices(&prove(SWING, &[8, 8], OWN_SCRATCH_BYTES / 4 / vectors));
    assert_eq!(notices(6), 0);
    assert!(notices(2) > 0);
    let none = made(SWING, &[8, 8], OWN_SCRATCH_BYTES / 4 + 1);
    let waiting = none.ops().iter().filter(|op| op.kind == OpKind::Notice);
    assert_eq!(waiting.count(), 5 * 64 * 4);
}
