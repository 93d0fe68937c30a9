//! Machines composed of parts, nodes and networks: small ones by hand, shipped ones by what must always hold.

use std::fs;
use std::path::PathBuf;

use linkwright_core::machine::{Draft, File, Files, Machine, Variant};
use linkwright_core::MachineError;
use proptest::prelude::*;

/// The shipped files.
struct Shipped;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/linkwright/machines")
}

fn read(folder: PathBuf, name: &str) -> File {
    let name = format!("{name}.toml");
    let text = fs::read_to_string(folder.join(&name)).unwrap();
    File { name, text }
}

impl Files for Shipped {
    fn part(&self, name: &str) -> Result<File, MachineError> {
        Ok(read(folder().join("parts"), name))
    }

    fn network(&self, name: &str) -> Result<File, MachineError> {
        if name == "wires" {
            let (name, text) = ("wires.toml".to_string(), WIRES.to_string());
            return Ok(File { name, text });
        }
        Ok(read(folder().join("networks"), name))
    }

    fn nodes(&self) -> Vec<String> {
        vec!["pair".to_string()]
    }
}

/// Two GPUs on a hub, each with a NIC.
const PAIR: &str = r#"
[machine]
name = "pair"
summary = "two GPUs"
description = "For tests."
format = 1
sources = ["by hand"]

[[level]]
name = "GPU"
count = 2
source = "by hand"

[endpoints]
count = 2
name = "GPU {i}"
source = "by hand"

[cluster]
ports = "NIC 0..1"
network = "wires"
direct = ["nic"]

[fabric]
kind = "flow"
switches = ["hub", "NIC 0..1"]

[fabric.links.nvlink]
edges = ["* - hub"]
source = "by hand"
bandwidth = { value = 100, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.links.nic]
edges = ["GPU 0..1 = NIC 0..1"]
source = "by hand"
bandwidth = { value = 50, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.transport.nvlink_simple]
links = ["nvlink"]
start = { value = 1, unit = "us", status = "assumed", source = "by hand" }

[fabric.network.simple]
transports = ["nvlink_simple"]

[hints]
networks = ["simple"]

[path.put]
summary = "a write"
network = "simple"
"#;

/// Two nodes on a leaf, leaves on a spine of half their width.
const WIRES: &str = r#"
[network]
name = "wires"
summary = "wires of 80 Gb/s"
sources = ["of the network"]
topology = "fat_tree"

[network.parameters]
rate = { value = 80, unit = "Gb/s", status = "assumed", source = "by hand" }
taper = { value = 2, unit = "ratio", status = "assumed", source = "by hand" }
nodes_per_leaf = { value = 1, unit = "count", status = "assumed", source = "by hand" }

[network.links.port]
share = { value = 0.5, unit = "ratio", status = "assumed", source = "by hand" }

[network.transport.simple]
start = { value = 3, unit = "us", status = "assumed", source = "by hand" }
"#;

/// What is added to the text of two nodes of the pair, or what they have instead.
const TWO: [&str; 8] = [
    "name = \"pair-x2\"\nsummary = \"2 x two GPUs; wires of 80 Gb/s\"",
    "sources = [\"by hand\", \"of the network\"]",
    "[[level]]\nname = \"node\"\ncount = 2\nsource = \"nodes of the cluster\"\n\n[[level]]\nname = \"GPU\"\ncount = 2",
    "names = [\"node 0 GPU 0\", \"node 0 GPU 1\", \"node 1 GPU 0\", \"node 1 GPU 1\"]",
    "switches = [\"node 0 hub\", \"node 0 NIC 0..1\", \"node 1 hub\", \"node 1 NIC 0..1\", \"leaf 0\", \"leaf 1\", \"spine\"]",
    "[fabric.links.nic]\n\
     edges = [\"node 0 GPU 0..1 = node 0 NIC 0..1\", \"node 1 GPU 0..1 = node 1 NIC 0..1\"]",
    // A leaf has two ports of 80 Gb/s, and half of that goes up.
    "[fabric.links.trunk]\nedges = [\"leaf 0..1 - spine\"]\nsource = \"wires: between switches of a tree, or of a group\"\n\
     bandwidth = { value = 80, unit",
    "[fabric.transport.net_simple]\nlinks = [\"nic\", \"port\", \"trunk\"]\nacross = true\nstart = { value = 3,",
];

fn node(name: &str) -> Machine {
    let file = match name {
        "pair" => File {
            name: "pair.toml".to_string(),
            text: PAIR.to_string(),
        },
        name => read(folder(), name),
    };
    Draft::read(file, &Shipped, None)
        .unwrap()
        .machine()
        .unwrap()
}

fn variant(nodes: usize) -> Variant {
    Variant {
        name: format!("pair-x{nodes}"),
        nodes: Some(nodes),
        ..Variant::default()
    }
}

fn error(variant: Variant) -> String {
    let drawn = node("pair").composed(&variant, &Shipped);
    drawn
        .and_then(|draft| draft.machine())
        .unwrap_err()
        .to_string()
}

#[test]
fn two_nodes_of_two_ranks_are_as_by_hand() {
    let draft = node("pair").composed(&variant(2), &Shipped).unwrap();
    for part in TWO {
        assert!(draft.text().contains(part), "{part}\n---\n{}", draft.text());
    }
    let ports =
        ["node 0 NIC 0..1 - leaf 0", "node 1 NIC 0..1 - leaf 1"].map(|edge| format!("\"{edge}\""));
    assert!(draft
        .text()
        .contains(&format!("edges = [{}]", ports.join(", "))));
    let machine = draft.machine().unwrap();
    assert_eq!(
        (machine.name(), machine.ranks(), machine.file()),
        ("pair-x2", 4, "composed pair.toml")
    );
    assert!(machine.cluster().is_none());
}

#[test]
fn what_is_gone_takes_along_what_used_nothing_else() {
    let gone = |names: &[&str], nodes| Variant {
        name: "gone".to_string(),
        nodes,
        without: names.iter().map(|name| (*name).to_string()).collect(),
        ..Variant::default()
    };
    let text = node("pair")
        .composed(&gone(&["NIC 1"], Some(2)), &Shipped)
        .unwrap();
    assert!(text
        .text()
        .contains("edges = [\"node 0 GPU 0 - node 0 NIC 0\", \"node 1 GPU 0 - node 1 NIC 0\"]"));
    assert!(!text.text().contains("GPU 1 - node"));
    let text = node("pair")
        .composed(&gone(&["nic"], None), &Shipped)
        .unwrap();
    assert!(text.text().contains("nvlink_simple") && !text.text().contains("links.nic"));
    assert_eq!(
        error(gone(&["nvlink"], None)),
        "--without nvlink: GPU 1 cannot be reached from GPU 0 any more; leave a way between them"
    );
    assert_eq!(
        error(gone(&["GPU 1"], None)),
        "--without GPU 1: is a rank; take fewer ranks with --ranks, or name one of its links"
    );
    assert!(error(gone(&["NIC 7"], None)).contains("did you mean `NIC 0`?"));
}

#[test]
fn slower_links_stand_next_to_the_others() {
    let slower = Variant {
        name: "slow".to_string(),
        degrade: vec![("GPU 1 - hub".to_string(), 0.25)],
        ..Variant::default()
    };
    let draft = node("pair").composed(&slower, &Shipped).unwrap();
    let text = "[fabric.links.nvlink_slower_1]\nedges = [\"GPU 1 - hub\"]\nsource = \"by hand\"\nbandwidth = { value = \
                25.0, unit = \"GB/s\", status = \"assumed\", source = \"--degrade GPU 1 - hub=0.25: of 100\" }\n\n\
                [fabric.links.nic]";
    assert!(draft.text().contains(text), "{}", draft.text());
    assert!(draft
        .text()
        .contains("links = [\"nvlink\", \"nvlink_slower_1\"]"));
}

#[test]
fn what_cannot_be_is_refused() {
    assert_eq!(
        error(variant(600_000)),
        "--nodes 600000: 1,200,000 ranks; at most 1,048,576 are described"
    );
    let on = |fabric: &str| {
        error(Variant {
            fabric: Some(fabric.to_string()),
            ..variant(2)
        })
    };
    assert!(
        on("wires,tapper=2").contains("unknown parameter of wires `tapper`; did you mean `taper`?")
    );
    assert!(on("wires,taper=0").contains("taper is `0`; write a number above 0, such as `taper=2`"));
    assert!(on("wires,taper=1,taper=2").contains("taper is given twice"));
}

/// Shipped nodes that differ: parts, memories, pairs, several links between GPU and port.
const NODES: [&str; 4] = ["hgx-h100", "mi300x", "lumi-mpi", "gh200-alps"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// The text of a composed machine reads back to the same tree, with the same lines.
    #[test]
    fn text_reads_back(name in prop::sample::select(NODES.to_vec()), nodes in 1usize..5, taper in 1u32..5) {
        let variant = Variant { fabric: Some(format!("ndr-fat-tree,nodes_per_leaf=2,taper={taper}")), ..variant(nodes) };
        let composed = node(name).composed(&variant, &Shipped).unwrap().machine().unwrap();
        let again = Machine::parse(&composed.text(), composed.file()).unwrap();
        prop_assert_eq!(composed.numbers(), again.numbers());
        let (one, other) = (format!("{composed:#?}"), format!("{again:#?}"));
        let apart = one.lines().zip(other.lines()).enumerate().find(|(_, (a, b))| a != b);
        prop_assert!(apart.is_none(), "{:?}", apart);
        // Printed from the tree, it is the same text.
        let number = again.numbers().swap_remove(0);
        let literal = if number.unit == "word" { format!("\"{}\"", number.value) } else { number.value.clone() };
        let changed = again.with_value(&number.key, &literal).unwrap();
        let lines = |text: &str| text.lines().filter(|line| !line.contains("set for this run")).count();
        prop_assert_eq!(lines(&changed.text()), lines(&composed.text()) - 1);
    }
}
