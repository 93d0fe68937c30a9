//! Switches that copy and combine: laws that hold on any tree of them, and limits that stay true.

use linkwright_core::Machine;
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::{verify, Buffer, Collective, Schedule};
use linkwright_sim::placement::Placement;
use linkwright_sim::run::{limits_of, lowered};
use linkwright_sim::{ask, Answer, How};
use proptest::prelude::*;
use std::fmt::Write as _;

/// A fat tree of `leaves` switches with `each` ranks, and one or two switches above them.
#[derive(Clone, Debug)]
struct Fabric {
    leaves: u32,
    each: u32,
    spines: u32,
    /// What a leaf can do: 1 copies, 2 combines; and a spine.
    leaf: u8,
    spine: u8,
    /// Bytes per ns of a link up, of links between switches, of what a spine combines, and of all that a leaf passes;
    /// 0 for no limit.
    rates: (u64, u64, u64, u64),
    fifo: bool,
}

fn number(value: u64, unit: &str) -> String {
    format!("{{ value = {value}, unit = \"{unit}\", status = \"assumed\", source = \"by definition\" }}")
}

impl Fabric {
    fn ranks(&self) -> u32 {
        self.leaves * self.each
    }

    fn machine(&self) -> Machine {
        let (ranks, source) = (self.ranks(), "source = \"by definition\"");
        let (port, trunk, combined, passed) = self.rates;
        let mut text = format!(
            "[machine]\nname = \"tree\"\nsummary = \"a tree\"\ndescription = \"For laws.\"\nformat = 1\n\
             sources = [\"by definition\"]\n[[level]]\nname = \"node\"\ncount = {ranks}\n{source}\n\
             [endpoints]\ncount = {ranks}\nname = \"rank {{i}}\"\n{source}\n\
             [fabric]\nkind = \"flow\"\nsharing = \"{}\"\nswitches = [\"leaf 0..{}\", \"spine 0..{}\"]\n\
             packet = {}\n",
            if self.fifo { "fifo" } else { "fair" },
            self.leaves - 1,
            self.spines - 1,
            number(100, "B"),
        );
        let class = |name: &str, edges: &str, rate: u64| {
            format!(
                "[fabric.links.{name}]\nedges = [{edges}]\n{source}\nbandwidth = {}\nlatency = {}\n",
                number(rate, "GB/s"),
                number(50, "ns")
            )
        };
        let ports = format!("\"* / {} - leaf 0..{}\"", self.each, self.leaves - 1);
        let trunks = format!(
            "\"leaf 0..{} x spine 0..{}\"",
            self.leaves - 1,
            self.spines - 1
        );
        text += &class("port", &ports, port);
        text += &class("trunk", &trunks, trunk);
        let mut switch = |name: String, can: u8, limits: &[(&str, u64)]| {
            let (copies, combines) = (can & 1 > 0, can & 2 > 0);
            let _ = writeln!(
                text,
                "[fabric.switch.\"{name}\"]\nmulticast = {copies}\naggregate = {combines}"
            );
            for (key, rate) in limits.iter().filter(|limit| limit.1 > 0) {
                let _ = writeln!(text, "{key} = {}", number(*rate, "GB/s"));
            }
        };
        for leaf in 0..self.leaves {
            switch(format!("leaf {leaf}"), self.leaf, &[("throughput", passed)]);
        }
        let rate = if self.spine & 2 > 0 { combined } else { 0 };
        for spine in 0..self.spines {
            switch(
                format!("spine {spine}"),
                self.spine,
                &[("aggregate_rate", rate)],
            );
        }
        text += &format!(
            "[fabric.transport.direct]\nlinks = [\"port\", \"trunk\"]\nstart = {}\n\
             [path.put]\nsummary = \"complete when delivered\"\nfused_combine = true\n",
            number(100, "ns")
        );
        Machine::parse(&text, "tree.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// Schedules that do their work in the network, `elements` elements per rank.
const SCHEDULES: [(&str, Collective); 6] = [
    ("one aggregation to all", Collective::Allreduce),
    ("parts, then aggregations of one", Collective::Allreduce),
    ("parts, then multicasts", Collective::Allreduce),
    ("parts", Collective::ReduceScatter),
    ("multicasts", Collective::Allgather),
    ("a multicast", Collective::Broadcast),
];

fn schedule(which: usize, ranks: u32, elements: u64) -> Schedule {
    let collective = SCHEDULES[which].1;
    let mut b = Builder::new(collective, &Shape::new(ranks, elements));
    let everyone: Vec<u32> = (0..ranks).collect();
    let output = b.buffer(Buffer::vector("output", ranks));
    let others = |rank: u32| -> Vec<u32> { (rank + 1..ranks).chain(0..rank).collect() };
    b.step();
    match which {
        0 => drop(b.aggregate(
            &everyone,
            output.range(0..ranks),
            &everyone,
            output.range(0..ranks),
        )),
        1..=3 => everyone.iter().for_each(|&rank| {
            b.aggregate(&everyone, output.at(rank), &[rank], output.at(rank));
        }),
        5 => drop(b.multicast(
            0,
            output.range(0..ranks),
            &others(0),
            output.range(0..ranks),
        )),
        _ => {}
    }
    b.step();
    match which {
        1 => everyone.iter().for_each(|&rank| {
            let all = [&[rank], &others(rank)[..]].concat();
            b.aggregate(&[rank], output.at(rank), &all, output.at(rank));
        }),
        2 | 4 => everyone.iter().for_each(|&rank| {
            b.multicast(rank, output.at(rank), &others(rank), output.at(rank));
        }),
        _ => {}
    }
    let schedule = b.finish().unwrap();
    verify(&schedule).unwrap();
    schedule
}

fn simulate(schedule: &Schedule, machine: &Machine) -> Answer {
    let options = How {
        issue: "unlimited".parse().unwrap(),
        ..How::default()
    };
    let lower = lowered(schedule, machine, None, &Placement::Identity).unwrap();
    let schedule = lower.as_ref().unwrap_or(schedule);
    verify(schedule).unwrap();
    // Refuses times below the limits of the problem and of the schedule.
    ask(machine, schedule, &options).unwrap()
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let rates = (1u64..8, 1u64..8, 0u64..6, 0u64..30);
    let shape = (1u32..5, 1u32..5, 1u32..3);
    (shape, 0u8..4, 0u8..4, rates, any::<bool>())
        .prop_filter("two ranks at least", |fabric| fabric.0 .0 * fabric.0 .1 > 1)
        .prop_map(
            |((leaves, each, spines), leaf, spine, rates, fifo)| Fabric {
                leaves,
                each,
                spines,
                leaf,
                spine,
                rates,
                fifo,
            },
        )
}

/// Bytes that all links carry.
fn carried(modelled: &Answer) -> u64 {
    let links = &modelled.simulation.links;
    let wires = links.names.iter().zip(&links.bytes);
    wires
        .filter(|(name, _)| name.contains(" -> "))
        .map(|(_, bytes)| bytes)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn limits_stay_true_and_switches_never_make_more_traffic(
        fabric in fabrics(), which in 0usize..6, elements in 1u64..2000,
    ) {
        let schedule = schedule(which, fabric.ranks(), elements);
        let able = simulate(&schedule, &fabric.machine());
        let plain = simulate(&schedule, &Fabric { leaf: 0, spine: 0, ..fabric.clone() }.machine());
        // A source's own part goes to the switch and back, which no get does.
        let own = if which == 4 || which == 5 { 0 } else { 4 * u64::from(fabric.ranks()) * schedule.size_bytes() };
        prop_assert!(carried(&able) <= carried(&plain) + own, "{fabric:?}");
    }
}

/// Eight ranks on one switch that does both, at 1 B/ns and 50 ns per link.
fn node() -> Fabric {
    Fabric {
        leaves: 1,
        each: 8,
        spines: 1,
        leaf: 3,
        spine: 0,
        rates: (1, 1, 0, 0),
        fifo: false,
    }
}

/// Limits in ns of a collective of 8,000 bytes.
fn limits(collective: Collective, fabric: &Fabric) -> Vec<(&'static str, f64)> {
    let shape = Shape::new(fabric.ranks(), 2000);
    let found = limits_of(collective, &shape, &fabric.machine(), &How::default()).unwrap();
    found
        .0
        .iter()
        .map(|limit| (limit.name, limit.time.0 as f64 / 1e3))
        .collect()
}

#[test]
fn an_allreduce_in_the_network_is_limited_by_one_vector_per_port() {
    let of = |fabric: &Fabric| {
        let found = limits(Collective::Allreduce, fabric);
        found.into_iter().find(|limit| limit.0 == "port").unwrap().1
    };
    // S = 8,000 B in and out of each rank; without help 2 * 7 / 8 * S.
    assert_eq!(of(&node()), 8000.0);
    assert_eq!(of(&Fabric { leaf: 1, ..node() }), 14_000.0);
    assert_eq!(of(&Fabric { leaf: 0, ..node() }), 14_000.0);
}

#[test]
fn one_aggregation_reaches_the_limit() {
    // start + S + two links + a packet at the switch
    let all = simulate(&schedule(0, 8, 2000), &node().machine());
    assert_eq!(
        all.simulation.makespan.0,
        (100 + 8000 + 2 * 50 + 100) * 1000
    );
    // (n + 1) / n * S in each direction: 100 + 100 + 100 and S up, then 100 + 100 + 100 and S down; the parts that go
    // the other way meanwhile take no time.
    let nvls = simulate(&schedule(1, 8, 2000), &node().machine());
    let links = &nvls.simulation.links;
    assert!(
        links.bytes[..16].iter().all(|&bytes| bytes == 9000),
        "{:?}",
        links.bytes
    );
    assert_eq!(
        nvls.simulation.makespan.0,
        (100 + 300 + 8000 + 300 + 8000) * 1000
    );
}

#[test]
fn bad_switches_are_refused() {
    let refusal = |from: &str, to: &str| {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/cases/machines/flow-tree.toml"
        );
        let text = std::fs::read_to_string(file).unwrap().replacen(from, to, 1);
        let machine = Machine::parse(&text, "tree.toml").unwrap();
        linkwright_sim::fabrics::build(&machine)
            .err()
            .unwrap()
            .to_string()
    };
    let rate = refusal(
        "[fabric.switch.S]\nmulticast = true\naggregate = true",
        "[fabric.switch.S]\nmulticast = true",
    );
    assert!(
        rate.contains("limits aggregations, which this switch does not do; add `aggregate = true`"),
        "{rate}"
    );
    let flag = refusal("aggregate = true", "aggregate = 1");
    assert!(flag.contains("aggregate"), "{flag}");
    let endpoint = refusal("[fabric.switch.A]", "[fabric.switch.\"rank 0\"]");
    assert!(
        endpoint.contains("is an endpoint; only switches"),
        "{endpoint}"
    );
}
