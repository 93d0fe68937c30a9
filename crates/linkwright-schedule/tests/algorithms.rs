//! Every algorithm of the registry, over many shapes: it builds or is waived with a reason, and
//! running its operations one after another gives what the spec demands.

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::{Algorithm, REGISTRY};
use linkwright_schedule::ir::{Combine, OpKind};
use linkwright_schedule::{patterns, Expected, Schedule, ScheduleError};
use std::collections::HashMap;

/// A chunk's contributions as a sum of random numbers, one per contribution.
type Print = u128;

fn contribution(rank: u32, chunk: u32) -> Print {
    let mixed = |salt: u64| {
        let mut z = (u64::from(rank) << 32 | u64::from(chunk)).wrapping_add(salt);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let high = mixed(0x9E37_79B9_7F4A_7C15);
    Print::from(high) << 64 | Print::from(mixed(high))
}

/// Run the operations by id; complain about the first chunk that ends wrong.
fn check(schedule: &Schedule) -> Result<(), String> {
    let mut state: HashMap<(u32, u8, u32), Print> = HashMap::new();
    for (id, buffer) in (0..).zip(&schedule.buffers) {
        for rank in 0..schedule.ranks {
            for chunk in 0..buffer.chunks() {
                if let Some(c) = schedule.spec.initial(schedule, rank, buffer, chunk) {
                    state.insert((rank, id, chunk), contribution(rank, c));
                }
            }
        }
    }
    for op in schedule.ops().iter().filter(|op| op.moves_data()) {
        let to = match op.kind {
            OpKind::Local => op.from,
            _ => op.to,
        };
        let targets = match op.kind {
            OpKind::Multicast => schedule.targets(op).to_vec(),
            _ => vec![to],
        };
        for (src, dst, count) in schedule.chunk_ranges(op) {
            for k in 0..count {
                let source = (op.from, op.src_buffer.0, src + k);
                let value = *state.get(&source).ok_or("an empty chunk is sent")?;
                for &target in &targets {
                    let place = (target, op.dst_buffer.0, dst + k);
                    match op.combine {
                        Combine::Replace => drop(state.insert(place, value)),
                        Combine::Reduce => {
                            let there = state.get_mut(&place).ok_or("added to nothing")?;
                            *there = there.wrapping_add(value);
                        }
                    }
                }
            }
        }
    }
    for (id, buffer) in (0..).zip(&schedule.buffers) {
        for rank in 0..schedule.ranks {
            for chunk in 0..buffer.chunks() {
                let wanted = match schedule.spec.expected(schedule, rank, buffer, chunk) {
                    Expected::Any => continue,
                    Expected::One { rank, chunk } => contribution(rank, chunk),
                    Expected::All { chunk } => (0..schedule.ranks)
                        .map(|q| contribution(q, chunk))
                        .fold(0, Print::wrapping_add),
                };
                if state.get(&(rank, id, chunk)) != Some(&wanted) {
                    return Err(format!("rank {rank}: {}[{chunk}] is wrong", buffer.name));
                }
            }
        }
    }
    Ok(())
}

/// Whether it was built; a waiver must say what would do.
fn build_and_check(algorithm: &Algorithm, shape: &Shape) -> bool {
    match (algorithm.build)(shape) {
        Ok(schedule) => {
            let result = check(&schedule);
            assert_eq!(result, Ok(()), "{} {shape:?}", algorithm.key());
            true
        }
        Err(ScheduleError::Waived { reason, .. }) => {
            assert!(reason.contains("use "), "{}: {reason}", algorithm.key());
            false
        }
        Err(error) => panic!("{} {shape:?}: {error}", algorithm.key()),
    }
}

fn rank_counts() -> impl Iterator<Item = u32> {
    (1..=33).chain([64, 100, 128])
}

#[test]
fn every_algorithm_over_ranks_in_a_line() {
    for algorithm in REGISTRY {
        for p in rank_counts() {
            let mut roots = vec![0];
            if algorithm.collective.is_rooted() {
                roots = (0..p).collect();
                if p > 33 {
                    roots = vec![0, 1, p / 2, p - 1];
                }
            }
            for root in roots {
                build_and_check(algorithm, &Shape::new(p, u64::from(p)).with_root(root));
            }
        }
    }
}

#[test]
fn every_algorithm_over_grids() {
    for algorithm in REGISTRY {
        for (columns, rows) in [
            (1, 1),
            (8, 8),
            (4, 2),
            (2, 4),
            (3, 3),
            (5, 3),
            (6, 4),
            (1, 7),
        ] {
            let p = columns * rows;
            let shape = Shape::new(p, u64::from(p) + 1).with_grid(columns, rows);
            for root in [0, p - 1] {
                build_and_check(algorithm, &shape.clone().with_root(root));
            }
        }
    }
}

#[test]
fn only_hamiltonian_cycles_are_ever_waived() {
    let mut waived: Vec<String> = Vec::new();
    for algorithm in REGISTRY {
        let counts: Vec<u32> = rank_counts()
            .filter(|&p| (algorithm.build)(&Shape::new(p, 0)).is_err())
            .collect();
        if !counts.is_empty() {
            waived.push(format!("{} {counts:?}", algorithm.key()));
        }
    }
    let odd = "[2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 26, 29, 30, 31, 33]";
    assert_eq!(
        waived,
        [
            format!("allreduce/hamiltonian_rings {odd}"),
            format!("allreduce/hamiltonian_rings_bidirectional {odd}"),
        ]
    );
}

#[test]
fn impossible_shapes_are_errors_not_panics() {
    for algorithm in REGISTRY {
        for shape in [
            Shape::new(0, 8),
            Shape::new(8, 8).with_root(8),
            Shape::new(8, 8).with_grid(3, 3),
            Shape::new(8, 8).with_grid(0, 3),
        ] {
            let error = (algorithm.build)(&shape).map(drop).unwrap_err();
            assert!(matches!(error, ScheduleError::Shape(_)), "{error}");
        }
    }
}

#[test]
fn the_list_of_patterns_is_known() {
    let names: Vec<&str> = patterns::REGISTRY.iter().map(|p| p.name).collect();
    assert_eq!(names.join("\n"), include_str!("golden/patterns.txt").trim());
}

#[test]
fn keys_are_unique_and_the_list_is_known() {
    let keys: Vec<String> = REGISTRY.iter().map(|a| a.key()).collect();
    assert_eq!(
        keys.join("\n"),
        include_str!("golden/algorithms.txt").trim()
    );
    for algorithm in REGISTRY {
        assert_eq!(keys.iter().filter(|k| **k == algorithm.key()).count(), 1);
        for text in [algorithm.summary, algorithm.description, algorithm.cost] {
            assert!(
                !text.is_empty() && !text.contains("  "),
                "{}",
                algorithm.key()
            );
        }
        assert!(!algorithm.source.is_empty(), "{}", algorithm.key());
    }
}
