//! Uneven exchanges: every algorithm is proved right over random counts and routes, and its blocks are those that a
//! plain list of tokens gives.

use linkwright_schedule::classes::{Classes, Copies};
use linkwright_schedule::collectives::{build, of};
use linkwright_schedule::exchange::{Draw, Routing, UnevenExchange};
use linkwright_schedule::ir::{OpKind, Schedule};
use linkwright_schedule::text::{parse, print};
use linkwright_schedule::transforms::{pipeline, repeat};
use linkwright_schedule::verify::verify;
use linkwright_schedule::{Collective, Shape};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const UNEVEN: [Collective; 3] = [
    Collective::Alltoallv,
    Collective::Dispatch,
    Collective::Combine,
];

fn routing(experts: u32, topk: u32, skew_permille: u32, seed: u64) -> Routing {
    Routing {
        experts,
        topk,
        token_elements: 4,
        skew_permille,
        seed,
        owners: Vec::new(),
    }
}

/// All algorithms of the three collectives over `shape`, each proved, also as text and cut into slices.
fn proved(shape: &Shape) -> Vec<(String, Schedule)> {
    let keys = UNEVEN.into_iter().flat_map(of).map(|one| one.key());
    let made = keys.map(|key| {
        let schedule = build(&key, shape).unwrap_or_else(|error| panic!("{key}: {error}"));
        verify(&schedule).unwrap_or_else(|error| panic!("{key} {shape:?}: {error}"));
        let read = parse(&print(&schedule)).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(read, schedule, "{key}");
        verify(&repeat(&schedule, 2).unwrap()).unwrap_or_else(|error| panic!("{key}: {error}"));
        (key, schedule)
    });
    made.collect()
}

/// The experts of every token of every rank, by the same draws.
fn tokens(ranks: u32, count: u64, routing: &Routing) -> Vec<Vec<Vec<u32>>> {
    let mut draw = Draw::new(routing);
    let of = |source| {
        draw.begin(source);
        (0..count).map(|_| draw.token().to_vec()).collect()
    };
    (0..ranks).map(of).collect()
}

/// Units of (source, targets), token by token.
fn plain(
    tokens: &[Vec<Vec<u32>>],
    per_rank: u32,
    copies: Copies,
) -> BTreeMap<(u32, Vec<u32>), u64> {
    let mut found = BTreeMap::new();
    for (source, tokens) in (0u32..).zip(tokens) {
        for experts in tokens {
            let ranks = experts.iter().map(|expert| expert / per_rank);
            let mut copied: Vec<Vec<u32>> = match copies {
                Copies::Expert => ranks.map(|rank| vec![rank]).collect(),
                Copies::Rank => BTreeSet::from_iter(ranks)
                    .into_iter()
                    .map(|rank| vec![rank])
                    .collect(),
                Copies::Node(node) => {
                    let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
                    ranks.for_each(|rank| {
                        nodes.entry(rank / node).or_default().insert(rank);
                    });
                    nodes
                        .into_values()
                        .map(|set| set.into_iter().collect())
                        .collect()
                }
            };
            for targets in copied.drain(..) {
                *found.entry((source, targets)).or_insert(0) += 1;
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_counts_are_exchanged(
        (columns, rows) in (1u32..5, 1u32..4),
        drawn in prop::collection::vec(prop_oneof![Just(0u64), 0u64..7, 0u64..1000], 144),
    ) {
        let ranks = columns * rows;
        let counts = drawn[..(ranks * ranks) as usize].to_vec();
        let fullest = counts.chunks(ranks as usize).map(|row| row.iter().sum::<u64>()).max().unwrap();
        prop_assume!(fullest > 0);
        let shape = Shape::new(ranks, fullest * 3).with_grid(columns, rows).with_exchange(UnevenExchange::Counts(counts.clone()));
        for (key, schedule) in proved(&shape) {
            if key.starts_with("alltoallv") && !key.contains("rails") {
                let moved: u64 = schedule.ops().iter().map(|op| schedule.op_elements(op)).sum();
                prop_assert_eq!(moved, 3 * counts.iter().sum::<u64>());
            }
        }
    }

    #[test]
    fn every_token_reaches_each_of_its_experts(
        (columns, rows) in (1u32..5, 1u32..4), per_rank in 1u32..4, count in 1u64..20, skew in 0u32..1500,
        seed: u64, wanted in 1u32..9,
    ) {
        let ranks = columns * rows;
        let routing = routing(per_rank * ranks, wanted.min(per_rank * ranks), skew, seed);
        let tokens = tokens(ranks, count, &routing);
        let shape = Shape::new(ranks, 4 * count).with_grid(columns, rows).with_exchange(UnevenExchange::Routed(routing));
        for copies in [Copies::Expert, Copies::Rank, Copies::Node(columns)] {
            let classes = Classes::of(&shape, copies).unwrap().all;
            let found = classes.into_iter().map(|c| ((c.source, c.targets), c.units)).collect::<BTreeMap<_, _>>();
            prop_assert_eq!(found, plain(&tokens, per_rank, copies));
        }
        proved(&shape);
    }
}

/// Two nodes of two; both tokens of rank 0 go to both ranks of the other node: one copy crosses, then one more inside.
#[test]
fn rails_cross_once_for_a_node() {
    let routing = routing(4, 4, 0, 7);
    let shape = Shape::new(4, 8)
        .with_grid(2, 2)
        .with_exchange(UnevenExchange::Routed(routing));
    let crossing = |key: &str| {
        let schedule = build(key, &shape).unwrap();
        let between = schedule
            .ops()
            .iter()
            .filter(|op| op.kind == OpKind::Put && op.from / 2 != op.to / 2);
        between.map(|op| schedule.op_elements(op)).sum::<u64>()
    };
    // Each of 4 ranks has 2 tokens of 4 elements for all ranks.
    for (key, copies) in [
        ("dispatch/rails", 1),
        ("dispatch/direct", 2),
        ("combine/rails", 1),
        ("combine/low_latency", 2),
    ] {
        assert_eq!(crossing(key), 4 * 2 * 4 * copies, "{key}");
    }
}

#[test]
fn slices_of_blocks_pair_where_lengths_divide() {
    let shape = Shape::new(4, 8 * 3)
        .with_grid(2, 2)
        .with_exchange(UnevenExchange::Routed(routing(8, 3, 1000, 1)));
    for key in ["dispatch/rails", "combine/rails", "alltoallv/pairwise"] {
        verify(&pipeline(&build(key, &shape).unwrap(), 4).unwrap()).unwrap();
    }
}

#[test]
fn impossible_exchanges_say_what_would_do() {
    let error = |shape: Shape| build("dispatch/direct", &shape).unwrap_err().to_string();
    let routed = |experts, topk| {
        Shape::new(4, 40).with_exchange(UnevenExchange::Routed(routing(experts, topk, 0, 0)))
    };
    let counts =
        |counts: &[u64]| Shape::new(2, 4).with_exchange(UnevenExchange::Counts(counts.to_vec()));
    for (shape, words) in [
        (
            routed(6, 2),
            "6 experts are not divisible by 4 ranks; each rank owns as many, use 4 or 8",
        ),
        (routed(8, 9), "top-k 9 of 8 experts; use 1 to 8"),
        (
            Shape {
                elements: 42,
                ..routed(8, 2)
            },
            "not whole tokens of 4",
        ),
        (
            Shape {
                elements: 0,
                ..routed(8, 2)
            },
            "use a multiple, at least one",
        ),
        (
            Shape {
                elements: 1 << 40,
                ..routed(8, 2)
            },
            "use fewer tokens",
        ),
        (
            counts(&[1, 2, 3]),
            "3 counts for 2 ranks; give one for each pair, 4 in all",
        ),
        (counts(&[0; 4]), "all counts are 0"),
        (counts(&[u64::MAX, 1, 0, 0]), "ask for fewer"),
    ] {
        assert!(
            error(shape.clone()).contains(words),
            "{words}: {}",
            error(shape)
        );
    }
    let even = build("alltoall/linear", &counts(&[1; 4]))
        .unwrap_err()
        .to_string();
    assert!(even.contains("use alltoallv"), "{even}");
}

/// A message to a place that is another rank's is found before anything is proved.
#[test]
fn blocks_are_at_their_ranks() {
    let shape = Shape::new(2, 4).with_exchange(UnevenExchange::Counts(vec![1, 3, 2, 0]));
    let text = print(&build("alltoallv/linear", &shape).unwrap());
    let wrong = text.replacen("local 0:input[0]", "local 0:input[2]", 1);
    assert_ne!(text, wrong);
    let error = match parse(&wrong) {
        Err(error) => error.to_string(),
        Ok(read) => verify(&read).unwrap_err().to_string(),
    };
    assert!(error.contains("send what a rank has"), "{error}");
}
