//! Search on links of described machines: what the judge makes of it.

use linkwright_core::Machine;
use linkwright_schedule::{Collective, Shape};
use linkwright_synthesis::{synthesize, Choices, Control, Problem, Winner};
use std::time::Duration;

/// Two pairs of endpoints, each on a switch of its own, and one link between the switches.
const TWO_SWITCHES: &str = r#"
[machine]
name = "two-switches"
summary = "four endpoints on two switches"
description = "a test"
format = 1
sources = ["a test"]

[[level]]
name = "node"
count = 4
source = "a test"

[endpoints]
count = 4
name = "node {i}"
source = "a test"

[fabric]
kind = "flow"
switches = ["left", "right"]

[fabric.links.wire]
edges = ["left - node 0..1", "right - node 2..3", "left - right"]
source = "a test"
bandwidth = { value = 1, unit = "GB/s", status = "assumed", source = "a test" }

[fabric.transport.wire]
links = ["wire"]
start = { value = 1, unit = "us", status = "assumed", source = "a test" }

[path.put]
summary = "a put that adds"
fused_combine = true
"#;

fn found(collective: Collective, elements: u64, methods: &[&str]) -> Winner {
    let machine = Machine::parse(TWO_SWITCHES, "two-switches.toml").unwrap();
    let problem = Problem::new(&machine, collective, Shape::new(4, elements), None, 0).unwrap();
    let choices = Choices {
        control: Control {
            budget: Duration::from_secs(4),
            threads: 1,
            ..Control::default()
        },
        methods: methods.iter().map(|method| method.to_string()).collect(),
        fastest: true,
    };
    synthesize(problem, choices, Box::new(|_| ()))
        .unwrap()
        .answer
        .winner
}

#[test]
fn a_broadcast_crosses_a_narrow_link_once() {
    // 10 MB leave the root once: 10 ms, and a few starts and pieces for the pipeline. A tree that crosses the link between
    // the switches twice, or leaves the root twice, takes 20 ms.
    for method in ["packing", "matching"] {
        let winner = found(Collective::Broadcast, 2_500_000, &[method]);
        let ms = winner.time.as_us() / 1000.0;
        assert!((10.0..11.5).contains(&ms), "{method}: {ms} ms");
        assert_eq!(winner.candidate.method, method);
    }
}

#[test]
fn an_alltoall_keeps_the_narrow_link_busy() {
    // 16 MB in blocks of 4 MB: two ranks of each side have 4 blocks for the other side, over 1 GB/s: 16 ms. Blocks inside
    // a side go beside them: 3 blocks into each rank, 12 ms.
    let ms = found(Collective::Alltoall, 4_000_000, &["flows"])
        .time
        .as_us()
        / 1000.0;
    assert!((16.0..17.6).contains(&ms), "{ms} ms");
}

#[test]
fn reductions_are_as_fast_as_what_they_mirror() {
    let time = |collective| found(collective, 1_000_000, &["matching"]).time.as_us();
    let (up, down) = (time(Collective::ReduceScatter), time(Collective::Allgather));
    assert!((up / down - 1.0).abs() < 0.1, "{up} and {down} us");
}
