//! Search on links: small graphs with the best rate derived by hand, and random ones.

use linkwright_schedule::{verify, Collective, Shape};
use linkwright_synthesis::links::order::{arrange, Style, Urgency};
use linkwright_synthesis::links::packing::{pack, Growth};
use linkwright_synthesis::links::plan::{Plan, Task};
use linkwright_synthesis::links::search::{Found, Kind, Search};
use linkwright_synthesis::links::wires::{Pair, Wires};
use linkwright_synthesis::links::{flows, matching};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;

/// A lane for each receiver.
const BY_AGE: Style = Style {
    urgency: Urgency::Age,
    lanes: 254,
    window: 1,
    serial: false,
};

/// Links of 1 GB/s in both directions, without start-ups.
fn undirected(endpoints: u32, edges: &[(u32, u32)]) -> Wires {
    let both = edges.iter().flat_map(|&(a, b)| [(a, b, GB), (b, a, GB)]);
    Wires::direct(endpoints, &both.collect::<Vec<_>>(), 0).unwrap()
}

fn ring(endpoints: u32) -> Wires {
    let edges: Vec<_> = (0..endpoints).map(|r| (r, (r + 1) % endpoints)).collect();
    undirected(endpoints, &edges)
}

/// Endpoints with a link of 1 GB/s each way to one switch, which cannot store.
fn star(endpoints: u32) -> Wires {
    let all = (0..endpoints).flat_map(|a| (0..endpoints).map(move |b| (a, b)));
    let pair = |(from, to): (u32, u32)| Pair {
        from,
        to,
        start_ps: 0,
        latency_ps: 0,
        rate: GB,
        uses: vec![(2 * from, 1), (2 * to + 1, 1)],
    };
    let pairs = all.filter(|(a, b)| a != b).map(pair).collect();
    Wires::new(endpoints, vec![GB; 2 * endpoints as usize], pairs).unwrap()
}

/// Two cliques of four, and a link between the last of one and the first of the other.
fn bridge() -> Wires {
    let clique = |first: u32| {
        let pairs = (0..4).flat_map(move |a| (a + 1..4).map(move |b| (first + a, first + b)));
        pairs.collect::<Vec<_>>()
    };
    undirected(8, &[clique(0), clique(4), vec![(3, 4)]].concat())
}

fn growth(trees: u32) -> Growth {
    Growth {
        trees,
        depth: 0.0,
        rounds: 12,
    }
}

/// Bytes per second of every root together, if its data are cut among its trees.
fn rate(wires: &Wires, roots: &[u32], trees: u32) -> f64 {
    let (_, busiest) = pack(wires, roots, growth(trees));
    f64::from(trees) / busiest
}

#[test]
fn packed_trees_reach_the_best_rate_of_a_broadcast() {
    // What the root sends divides between both ways round, each of which passes every rank but the last: 2 links.
    assert_eq!(rate(&ring(6), &[0], 2), 2.0);
    // The root's only link.
    assert_eq!(rate(&star(5), &[2], 2), 1.0);
    // The bridge, over which everything passes.
    assert_eq!(rate(&bridge(), &[0], 2), 1.0);
    // Three links out of the root of a clique of four, and three trees without a common link: Edmonds.
    let edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    assert_eq!(rate(&undirected(4, &edges), &[0], 3), 3.0);
}

#[test]
fn packed_trees_reach_the_best_rate_of_an_allgather() {
    // Each rank of a ring receives p - 1 blocks over two links: 2 / 5 of a link's rate for each root of six.
    let all: Vec<u32> = (0..6).collect();
    assert_eq!(rate(&ring(6), &all, 2), 0.4);
    // p - 1 blocks into the only link of each rank.
    assert_eq!(rate(&star(5), &all[..5], 1), 0.25);
    // Four blocks cross the bridge each way; nothing else is as narrow (7 blocks over 3 or more links into a rank).
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(rate(&bridge(), &all, 1), 0.25);
}

#[test]
fn a_matching_spreads_blocks_in_the_fewest_rounds() {
    // Six ranks of a ring lack five blocks, of which two arrive in a round: 2.5, so halves take five rounds of 0.5 s.
    let wires = ring(6);
    let wish = |seed| matching::Wish {
        slices: 2,
        bytes: GB / 2,
        patience: 1.0,
        window: 1,
        seed,
    };
    let roots: Vec<u32> = (0..6).collect();
    let end = |seed: u64| {
        let plan = matching::spread(&wires, &roots, wish(seed));
        arrange(&wires, &plan, GB / 2, BY_AGE).end_ps()
    };
    let best = (1..20).map(end).min().unwrap();
    assert_eq!(best, 2_500_000_000_000);
}

#[test]
fn a_matching_leaves_a_slow_pair_idle_unless_patience_allows_it() {
    // 0 -> 1 at 1 GB/s directly; 0 -> 2 at 0.1 GB/s, or over 1 in two seconds.
    let links = [
        (0, 1, GB),
        (1, 2, GB),
        (0, 2, GB / 10),
        (1, 0, GB),
        (2, 0, GB),
    ];
    let wires = Wires::direct(3, &links, 0).unwrap();
    let took_slow = |patience| {
        let wish = matching::Wish {
            slices: 1,
            bytes: GB,
            patience,
            window: 1,
            seed: 1,
        };
        let plan = matching::spread(&wires, &[0], wish);
        plan.tasks.iter().any(|task| task.pair == 2)
    };
    assert!(!took_slow(2.0));
    assert!(took_slow(10.0));
}

#[test]
fn messages_without_a_link_divide_between_their_ways() {
    // 0 -> 3 of a ring of four: half over 1 and half over 2 of a square 0-1-3-2.
    let wires = undirected(4, &[(0, 1), (1, 3), (3, 2), (2, 0)]);
    let relays: Vec<Vec<u32>> = (0..4).map(|from| wires.out(from).to_vec()).collect();
    let wish = flows::Wish {
        slices: 2,
        detour: 0.0,
        rounds: 4,
    };
    let (plan, busiest) = flows::route(&wires, &relays, &[(0, 3)], wish);
    assert_eq!(plan.tasks.len(), 4);
    assert_eq!(busiest, 1.0); // one of the two slices on each of the four links
}

#[test]
fn transfers_wait_for_their_data_their_pair_and_their_links() {
    // Two pairs over one link of 1 GB/s, 3 s apart from the first byte of the one to that of the other.
    let pair = |from, to| Pair {
        from,
        to,
        start_ps: 5,
        latency_ps: 7,
        rate: 2 * GB,
        uses: vec![(0, 1)],
    };
    let wires = Wires::new(3, vec![GB], vec![pair(0, 1), pair(1, 2), pair(2, 0)]).unwrap();
    let task = |pair, chunk| Task {
        pair,
        chunk,
        reduce: false,
    };
    let plan = Plan {
        tasks: vec![task(0, 0), task(1, 1), task(1, 0)],
        blocks: 2,
        slices: 1,
    };
    let timed = arrange(&wires, &plan, 2000, BY_AGE);
    // 2,000 bytes: 1 us on a pair, 2 us on the link. The second starts when the link is free for its first byte, and
    // the third, which has its data at 1 us + 12 ps, when its pair has none on its way.
    let us = 1_000_000;
    assert_eq!(timed.start_ps, [0, 2 * us, 4 * us]);
    assert_eq!(timed.arrival_ps, [us + 12, 3 * us + 12, 5 * us + 12]);
}

/// Endpoint 0 has 2,000 bytes for 1 and for 2, over links of their own of 1 GB/s: 5 ps to start, 2 us, 7 ps of latency.
/// With two lanes both begin at once. In one lane the second begins when the first has arrived. Serial starts let it
/// begin once the first has started.
#[test]
fn transfers_of_a_lane_and_serial_starts_follow_each_other() {
    let pair = |from, to, link| Pair {
        from,
        to,
        start_ps: 5,
        latency_ps: 7,
        rate: GB,
        uses: vec![(link, 1)],
    };
    let pairs = vec![pair(0, 1, 0), pair(0, 2, 1), pair(1, 0, 2), pair(2, 0, 3)];
    let wires = Wires::new(3, vec![GB; 4], pairs).unwrap();
    let task = |pair, chunk| Task {
        pair,
        chunk,
        reduce: false,
    };
    let plan = Plan {
        tasks: vec![task(0, 0), task(1, 1)],
        blocks: 2,
        slices: 1,
    };
    let starts = |lanes, serial| {
        let style = Style {
            lanes,
            serial,
            ..BY_AGE
        };
        arrange(&wires, &plan, 2000, style).start_ps
    };
    assert_eq!(starts(2, false), [0, 0]);
    assert_eq!(starts(1, false), [0, 2_000_012]);
    assert_eq!(starts(2, true), [0, 5]);
}

/// Endpoints 0 and 1 each have 2,000 bytes for 2 and for 3, whose ports in take 2 us for one of them. 0 goes to 2
/// first; 1, which would as well, goes to 3 meanwhile, so two rounds suffice.
#[test]
fn a_lane_takes_what_its_links_let_go() {
    let pair = |from: u32, to: u32| Pair {
        from,
        to,
        start_ps: 0,
        latency_ps: 0,
        rate: GB,
        uses: vec![(to, 1)],
    };
    let all = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
    let pairs: Vec<Pair> = all
        .filter(|(a, b)| a != b)
        .map(|(a, b)| pair(a, b))
        .collect();
    let wires = Wires::new(4, vec![GB; 4], pairs).unwrap();
    let task = |from, to, chunk| Task {
        pair: wires.between(from, to).unwrap(),
        chunk,
        reduce: false,
    };
    let plan = Plan {
        tasks: vec![task(0, 2, 0), task(1, 2, 1), task(0, 3, 0), task(1, 3, 1)],
        blocks: 2,
        slices: 1,
    };
    let style = Style { lanes: 1, ..BY_AGE };
    let us = 1_000_000;
    let timed = arrange(&wires, &plan, 2000, style);
    assert_eq!(timed.start_ps, [0, 2 * us, 2 * us, 0]);
    assert_eq!(timed.end_ps(), 4 * us);
}

/// Everything that the first batches of a search find.
fn found(collective: Collective, shape: &Shape, wires: &Wires, lanes: u32) -> Vec<Found> {
    let mut all = Vec::new();
    for kind in [Kind::Matching, Kind::Packing, Kind::Paths] {
        let mut search = Search::new(kind, (collective, shape), (wires, lanes), (0, false));
        let batches = std::iter::from_fn(|| search.next_batch(&|| true)).take(1);
        all.extend(batches.flat_map(|batch| batch.unwrap()));
    }
    all
}

const SERVED: [Collective; 8] = [
    Collective::Allreduce,
    Collective::ReduceScatter,
    Collective::Allgather,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::Alltoall,
];

/// A connected graph: a random tree in both directions, more links, and rates of 1 to 4 GB/s, some over a common link.
fn connected() -> impl Strategy<Value = Wires> {
    let ranks = 2u32..8;
    let sized = ranks.prop_flat_map(|p| {
        let parents = proptest::collection::vec(any::<u32>(), p as usize - 1);
        let more = proptest::collection::vec((0..p, 0..p, 1u64..5), 0..12);
        (Just(p), parents, more)
    });
    sized.prop_map(|(p, parents, more)| {
        let tree = (1..p)
            .zip(parents)
            .map(|(child, draw)| (child, draw % child, 1));
        let mut pairs: Vec<Pair> = Vec::new();
        for (from, to, rate) in tree
            .flat_map(|(a, b, rate)| [(a, b, rate), (b, a, rate)])
            .chain(more)
        {
            if from == to || pairs.iter().any(|pair| (pair.from, pair.to) == (from, to)) {
                continue;
            }
            let own = pairs.len() as u32 + 1;
            let shared = if rate == 3 {
                vec![(0, 1), (own, 1)]
            } else {
                vec![(own, 1)]
            };
            pairs.push(Pair {
                from,
                to,
                start_ps: 1_000_000 * rate,
                latency_ps: 1000,
                rate: rate * GB,
                uses: shared,
            });
        }
        Wires::new(p, vec![2 * GB; pairs.len() + 1], pairs).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn every_schedule_of_a_connected_graph_is_right(
        wires in connected(),
        elements in 1u64..3000,
        root in any::<u32>(),
        lanes in 1u32..5,
    ) {
        let p = wires.endpoints();
        let shape = Shape::new(p, elements).with_root(root % p);
        for collective in SERVED {
            let all = found(collective, &shape, &wires, lanes);
            prop_assert!(!all.is_empty(), "nothing found for {}", collective.name());
            for one in &all {
                let proof = verify(&one.schedule);
                prop_assert!(proof.is_ok(), "{}, {}: {:?}", collective.name(), one.recipe, proof.err());
                let most = one.schedule.ops().iter().filter(|op| op.is_message()).map(|op| op.lane).max();
                prop_assert!(most.is_none_or(|lane| u32::from(lane) < lanes));
            }
        }
    }
}

#[test]
fn the_same_search_finds_the_same_schedules() {
    let shape = Shape::new(8, 4096);
    let texts = || {
        let all = found(Collective::Allreduce, &shape, &bridge(), 254);
        let text = |one: &Found| (one.recipe.to_string(), format!("{:?}", one.schedule.ops()));
        all.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(), texts());
}

#[test]
fn one_rank_and_an_empty_budget_need_no_search() {
    let alone = Wires::new(1, Vec::new(), Vec::new()).unwrap();
    let (one, six) = (Shape::new(1, 64), Shape::new(6, 64));
    assert!(found(Collective::Allreduce, &one, &alone, 1).is_empty());
    let wires = ring(6);
    let what = (Collective::Allgather, &six);
    let mut search = Search::new(Kind::Matching, what, (&wires, 1), (0, false));
    assert!(search.next_batch(&|| false).is_none());
}

#[test]
fn vectors_shorter_than_the_ranks_are_served() {
    // Three elements for six ranks: some blocks are empty.
    let shape = Shape::new(6, 3);
    for one in found(Collective::Allreduce, &shape, &ring(6), 8) {
        verify(&one.schedule).unwrap();
    }
}

#[test]
fn networks_that_carry_nothing_are_refused() {
    let problem = |wires: linkwright_synthesis::Result<Wires>| wires.unwrap_err().to_string();
    let parts = Wires::direct(4, &[(0, 1, GB), (1, 0, GB), (2, 3, GB), (3, 2, GB)], 0);
    assert_eq!(
        problem(parts),
        "shape: the network is not connected: no route, however relayed, leads from endpoint 0 to endpoint 2; choose another \
         path, or fewer ranks"
    );
    let one_way = Wires::direct(2, &[(0, 1, GB)], 0);
    assert!(problem(one_way).contains("leads from endpoint 1 to endpoint 0"));
    let zero = Wires::direct(2, &[(0, 1, 0), (1, 0, GB)], 0);
    assert_eq!(
        problem(zero),
        "shape: endpoint 0 to 1: 0 bytes per second; give the route a rate, or leave it out"
    );
    assert!(problem(Wires::direct(0, &[], 0)).contains("no endpoints"));
    assert!(problem(Wires::direct(2, &[(0, 2, GB)], 0)).contains("not two of the 2 endpoints"));
    assert!(problem(Wires::direct(2, &[(0, 1, GB), (0, 1, GB)], 0)).contains("have two routes"));
    let dead = Pair {
        from: 0,
        to: 1,
        start_ps: 0,
        latency_ps: 0,
        rate: GB,
        uses: vec![(0, 1)],
    };
    assert!(
        problem(Wires::new(2, vec![0], vec![dead])).contains("link 0 carries 0 bytes per second")
    );
}

/// Two ranks with a link each way, and a memory that both reach over links of their own.
fn two_and_a_memory() -> Wires {
    let links = [(0, 1), (1, 0), (0, 2), (1, 2), (2, 0), (2, 1)].map(|(a, b)| (a, b, GB));
    Wires::direct(3, &links, 0).unwrap().with_ranks(2)
}

#[test]
fn a_memory_is_on_a_tree_where_a_way_leads_over_it() {
    let wires = two_and_a_memory();
    let (trees, busiest) = pack(&wires, &[0], growth(2));
    // One over the link, one over the memory; each link carries one. The memory alone is no place to go to.
    assert!((busiest - 1.0).abs() < 1e-9, "{busiest}");
    let mut lengths: Vec<usize> = trees.iter().map(|tree| tree.pairs.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 2]);
    let (trees, _) = pack(&wires, &[0], growth(1));
    assert_eq!(trees[0].pairs.len(), 1);
}

#[test]
fn what_a_memory_relays_is_written_by_one_rank_and_read_by_another() {
    let wires = two_and_a_memory();
    for (kind, collective) in [
        (Kind::Packing, Collective::Broadcast),
        (Kind::Packing, Collective::Allgather),
        (Kind::Paths, Collective::Alltoall),
        (Kind::Paths, Collective::Scatter),
    ] {
        let shape = Shape::new(2, 1 << 21);
        let ranks = undirected(2, &[(0, 1)]);
        let mut search = Search::new(kind, (collective, &shape), (&ranks, 254), (1, false));
        search.relay(wires.clone());
        let mut relayed = 0;
        for _ in 0..4 {
            for found in search.next_batch(&|| true).unwrap().unwrap() {
                verify(&found.schedule).unwrap();
                relayed += u32::from(found.schedule.memories == 1);
            }
        }
        assert!(relayed > 0, "{}", collective.name());
    }
}
