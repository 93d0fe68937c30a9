//! Ring algorithms over given orders of the ranks: proved right, or refused with the cure.

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::build;
use linkwright_schedule::verify::verify;

const RINGS: [&str; 5] = [
    "allreduce/ring",
    "reduce_scatter/ring",
    "allgather/ring",
    "broadcast/ring",
    "reduce/ring",
];

#[test]
fn several_rings_are_proved_right() {
    let rings = vec![
        vec![0, 1, 2, 3, 7, 5, 6, 4],
        vec![0, 4, 6, 5, 7, 3, 2, 1],
        vec![0, 2, 6, 7, 4, 5, 1, 3],
    ];
    for key in RINGS {
        for root in [0, 5] {
            for elements in [0, 7, 1000] {
                let shape = Shape::new(8, elements)
                    .with_root(root)
                    .with_rings(rings.clone());
                let schedule = build(key, &shape).unwrap();
                verify(&schedule).unwrap_or_else(|e| panic!("{key}: {e}"));
                assert!(schedule.ops().iter().all(|op| op.lane < 3), "{key}");
            }
        }
    }
}

#[test]
fn rings_that_do_not_exist_are_refused() {
    let problem = |key: &str, ring: Vec<u32>| {
        let shape = Shape::new(4, 16).with_rings(vec![vec![0, 1, 2, 3], ring]);
        build(key, &shape).unwrap_err().to_string()
    };
    let text = problem("allreduce/ring", vec![0, 1, 2]);
    assert!(
        text.contains("ring 1 does not visit rank 3; name each of 0..3 once"),
        "{text}"
    );
    let text = problem("allreduce/ring", vec![0, 1, 2, 2]);
    assert!(text.contains("ring 1: rank 2 stands there twice"), "{text}");
    let text = problem("allreduce/ring", vec![0, 1, 2, 9]);
    assert!(text.contains("ring 1: rank 9 does not exist"), "{text}");
    let text = problem("broadcast/binomial", vec![3, 2, 1, 0]);
    assert!(
        text.contains("does not go round rings; leave them out, or use broadcast/ring"),
        "{text}"
    );
}
