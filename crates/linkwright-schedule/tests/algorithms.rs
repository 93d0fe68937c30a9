//! Every algorithm of the registry, over many shapes: it is proved right or waived with a reason.

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::{Algorithm, REGISTRY};
use linkwright_schedule::verify::verify;
use linkwright_schedule::{patterns, ScheduleError};

/// A waiver must say what would do.
fn build_and_verify(algorithm: &Algorithm, shape: &Shape) {
    match (algorithm.build)(shape) {
        Ok(schedule) => {
            if let Err(error) = verify(&schedule) {
                panic!("{} {shape:?}: {error}", algorithm.key());
            }
        }
        Err(ScheduleError::Waived { reason, .. }) => {
            assert!(reason.contains("use "), "{}: {reason}", algorithm.key());
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
            let roots = match algorithm.collective.is_rooted() {
                true => p,
                false => 1,
            };
            for root in 0..roots {
                build_and_verify(algorithm, &Shape::new(p, u64::from(p)).with_root(root));
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
                build_and_verify(algorithm, &shape.clone().with_root(root));
            }
        }
    }
}

#[test]
fn only_cycles_pairs_and_what_needs_a_grid_are_ever_waived() {
    let mut waived: Vec<String> = Vec::new();
    for algorithm in REGISTRY {
        let counts: Vec<u32> = rank_counts()
            .filter(|&p| (algorithm.build)(&Shape::new(p, 0)).is_err())
            .collect();
        if !counts.is_empty() {
            waived.push(format!("{} {counts:?}", algorithm.key()));
        }
    }
    let all: Vec<u32> = rank_counts().collect();
    let unpaired: Vec<u32> = (3..=33).step_by(2).collect();
    let odd = "[2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 26, 29, 30, 31, 33]";
    assert_eq!(
        waived,
        [
            format!("allreduce/hamiltonian_rings {odd}"),
            format!("allreduce/hamiltonian_rings_bidirectional {odd}"),
            format!("allreduce/nvls_tree {all:?}"),
            format!("allreduce/hierarchical {all:?}"),
            format!("reduce_scatter/hierarchical {all:?}"),
            format!("allgather/neighbor_exchange {unpaired:?}"),
            format!("allgather/hierarchical {all:?}"),
            format!("broadcast/hierarchical {all:?}"),
            format!("reduce/by_rows {all:?}"),
            format!("reduce/hierarchical {all:?}"),
            format!("alltoall/rails {all:?}"),
            format!("alltoallv/rails {all:?}"),
            format!("alltoallv/rails_chunked {all:?}"),
            format!("dispatch/rails {all:?}"),
            format!("dispatch/rails_chunked {all:?}"),
            format!("combine/rails {all:?}"),
            format!("combine/rails_chunked {all:?}"),
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
