//! Topologies of networks between nodes: the switches, and the links that join them.
//!
//! ```text
//!   switch           all ports on one
//!   fat_tree         ports of a node on one leaf, leaves on a spine
//!   rail_fat_tree    port i of the nodes of a unit on leaf i of the unit, leaves on a spine
//!   dragonfly        ports of a node on one leaf, leaves of a group on the group, every pair of groups joined
//! ```
//!
//! A spine or group is a single node of the graph that represents all switches above the leaves, or all cables among
//! them; the link to it represents all cables that lead there. Congestion therefore occurs at ports and where the
//! network tapers, never because two messages hash to the same cable, which approximates adaptive routing. With the
//! parameter `spines` a tree has that many of them, and `routing` decides how messages use them. Dragonfly and
//! Dragonfly+ are the same in this model.

use crate::machine::edges::runs;

/// The network ports of all nodes, node by node in the order of rails.
pub(super) struct Ports {
    pub of: Vec<Vec<String>>,
    pub rails: usize,
}

impl Ports {
    /// Number of ports of a node.
    fn count(&self) -> f64 {
        self.of[0].len() as f64
    }
}

/// Links of one class, each as wide as `width` ports.
pub(super) struct Class {
    pub name: String,
    pub width: f64,
    pub edges: Vec<String>,
}

/// The switches and links that a network adds to the graph.
#[derive(Default)]
pub(super) struct Wires {
    pub switches: Vec<String>,
    pub classes: Vec<Class>,
}

impl Wires {
    /// The edges of a class, which is added if it does not exist.
    fn class(&mut self, name: &str, width: f64) -> &mut Vec<String> {
        let place = self.classes.iter().position(|class| class.name == name);
        let place = place.unwrap_or_else(|| {
            self.classes.push(Class {
                name: name.to_string(),
                width,
                edges: Vec::new(),
            });
            self.classes.len() - 1
        });
        &mut self.classes[place].edges
    }

    /// Add a link from each of `names` to `other`.
    pub fn join(&mut self, class: &str, width: f64, names: &[String], other: &str) {
        let edges = runs(names)
            .into_iter()
            .map(|run| format!("{run} - {other}"));
        self.class(class, width).extend(edges);
    }

    /// Add a link between every two of `names`, which must be numbered consecutively.
    fn mesh(&mut self, class: &str, width: f64, names: &[String]) {
        if let [_, _, ..] = names {
            let run = runs(names).concat();
            self.class(class, width).push(format!("{run} x {run}"));
        }
    }

    /// Put spines above the leaves, if there are several; each leaf's links to them are together as wide as `width`.
    fn with_spines(mut self, width: f64, asked: &Asked<'_>) -> Wires {
        if self.switches.len() > 1 {
            let leaves = self.switches.clone();
            let spines = match (asked.0)("spines").unwrap_or(0.0) as usize {
                0 => vec!["spine".to_string()],
                count => (0..count).map(|i| format!("spine {i}")).collect(),
            };
            for spine in &spines {
                self.join("trunk", width / spines.len() as f64, &leaves, spine);
            }
            self.switches.extend(spines);
        }
        self
    }
}

/// Classes of links of a network, and their meanings.
pub(super) const LINKS: [(&str, &str); 3] = [
    ("port", "from a port of a node to its switch"),
    ("trunk", "between switches of a tree, or of a group"),
    ("global", "between groups"),
];

/// Looks up the value of a network's parameter.
pub(super) type Numbers<'n> = &'n dyn Fn(&str) -> Option<f64>;

/// A topology, and the parameters that it reads from the network's file.
pub(super) struct NetworkTopology {
    pub name: &'static str,
    pub parameters: &'static [&'static str],
    build: fn(&Ports, &Asked<'_>) -> Wires,
}

pub(super) const TOPOLOGIES: [NetworkTopology; 4] = [
    NetworkTopology {
        name: "switch",
        parameters: &[],
        build: switch,
    },
    NetworkTopology {
        name: "fat_tree",
        parameters: &["taper", "nodes_per_leaf"],
        build: fat_tree,
    },
    NetworkTopology {
        name: "rail_fat_tree",
        parameters: &["taper", "nodes_per_leaf"],
        build: rail_fat_tree,
    },
    NetworkTopology {
        name: "dragonfly",
        parameters: &["taper", "nodes_per_leaf", "group_leaves", "group_links"],
        build: dragonfly,
    },
];

impl NetworkTopology {
    /// The wires between these ports.
    pub fn wires(&self, ports: &Ports, numbers: Numbers<'_>) -> Wires {
        (self.build)(ports, &Asked(numbers))
    }
}

/// The parameters of a network, which has all that its topology needs.
struct Asked<'n>(Numbers<'n>);

impl Asked<'_> {
    fn get(&self, key: &str) -> f64 {
        (self.0)(key).expect("a network has the parameters of its topology")
    }

    /// A parameter that counts things, such as nodes of a leaf: rounded down, at least 1.
    fn count(&self, key: &str) -> usize {
        (self.get(key) as usize).max(1)
    }
}

fn leaf(index: usize) -> String {
    format!("leaf {index}")
}

fn switch(ports: &Ports, _: &Asked<'_>) -> Wires {
    let mut wires = Wires::default();
    wires.switches.push("switch".to_string());
    for names in &ports.of {
        wires.join("port", 1.0, names, "switch");
    }
    wires
}

fn fat_tree(ports: &Ports, asked: &Asked<'_>) -> Wires {
    let mut wires = Wires::default();
    for (index, nodes) in ports.of.chunks(asked.count("nodes_per_leaf")).enumerate() {
        wires.switches.push(leaf(index));
        for names in nodes {
            wires.join("port", 1.0, names, &leaf(index));
        }
    }
    let width = asked.get("nodes_per_leaf") * ports.count() / asked.get("taper");
    wires.with_spines(width, asked)
}

fn rail_fat_tree(ports: &Ports, asked: &Asked<'_>) -> Wires {
    let mut wires = Wires::default();
    for (unit, nodes) in ports.of.chunks(asked.count("nodes_per_leaf")).enumerate() {
        let leaves: Vec<String> = (0..ports.rails)
            .map(|rail| leaf(unit * ports.rails + rail))
            .collect();
        for names in nodes {
            for (rail, leaf) in leaves.iter().enumerate() {
                let of_rail: Vec<String> = names
                    .iter()
                    .skip(rail)
                    .step_by(ports.rails)
                    .cloned()
                    .collect();
                wires.join("port", 1.0, &of_rail, leaf);
            }
        }
        wires.switches.extend(leaves);
    }
    let of_rail = ports.count() / ports.rails as f64;
    wires.with_spines(
        asked.get("nodes_per_leaf") * of_rail / asked.get("taper"),
        asked,
    )
}

/// Nodes in the order in which they fill groups; with `spread`, runs of that many nodes are dealt out to all groups.
fn order(count: usize, asked: &Asked<'_>) -> Vec<usize> {
    let of_group = asked.get("nodes_per_leaf") * asked.get("group_leaves");
    let groups = (count as f64 / of_group).ceil().max(1.0) as usize;
    let run = match (asked.0)("spread").unwrap_or(0.0) as usize {
        0 => count,
        run => run,
    };
    let mut nodes: Vec<usize> = (0..count).collect();
    nodes.sort_by_key(|node| (node / run % groups, *node));
    nodes
}

fn dragonfly(ports: &Ports, asked: &Asked<'_>) -> Wires {
    let mut wires = Wires::default();
    let mut leaves = Vec::new();
    for (index, nodes) in order(ports.of.len(), asked)
        .chunks(asked.count("nodes_per_leaf"))
        .enumerate()
    {
        leaves.push(leaf(index));
        for &node in nodes {
            wires.join("port", 1.0, &ports.of[node], &leaves[index]);
        }
    }
    let width = asked.get("nodes_per_leaf") * ports.count() / asked.get("taper");
    let mut groups = Vec::new();
    for (index, under) in leaves.chunks(asked.count("group_leaves")).enumerate() {
        groups.push(format!("group {index}"));
        wires.join("trunk", width, under, &groups[index]);
    }
    wires.mesh("global", asked.get("group_links"), &groups);
    wires.switches = [leaves, groups].concat();
    wires
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::edges::pairs;
    use proptest::prelude::*;

    fn ports(nodes: usize, count: usize, rails: usize) -> Ports {
        let of_node = |k| (0..count).map(|i| format!("node {k} NIC {i}")).collect();
        Ports {
            of: (0..nodes).map(of_node).collect(),
            rails,
        }
    }

    fn built(name: &str, ports: &Ports, numbers: &[(&str, f64)]) -> Wires {
        let topology = TOPOLOGIES.iter().find(|t| t.name == name).unwrap();
        let number = |key: &str| numbers.iter().find(|(k, _)| *k == key).map(|(_, n)| *n);
        topology.wires(ports, &number)
    }

    fn links(wires: &Wires, class: &str) -> Vec<(String, String)> {
        let class = wires.classes.iter().filter(|c| c.name == class);
        class
            .flat_map(|c| &c.edges)
            .flat_map(|edge| pairs(edge, &[]).unwrap())
            .collect()
    }

    #[test]
    fn two_nodes_of_two_ports_hang_on_leaves_by_rail() {
        let numbers = [("taper", 2.0), ("nodes_per_leaf", 1.0)];
        let wires = built("rail_fat_tree", &ports(2, 2, 2), &numbers);
        // A unit of one node: leaves 0 and 1 of node 0, 2 and 3 of node 1; one port below each, half of it above.
        assert_eq!(
            wires.switches,
            ["leaf 0", "leaf 1", "leaf 2", "leaf 3", "spine"]
        );
        let port = &wires.classes[0];
        assert_eq!(
            port.edges,
            [
                "node 0 NIC 0 - leaf 0",
                "node 0 NIC 1 - leaf 1",
                "node 1 NIC 0 - leaf 2",
                "node 1 NIC 1 - leaf 3",
            ]
        );
        let trunk = &wires.classes[1];
        assert_eq!(
            (trunk.edges.join(" "), trunk.width),
            ("leaf 0..3 - spine".to_string(), 0.5)
        );
        // On one leaf nothing leads up.
        let one = built(
            "fat_tree",
            &ports(2, 2, 2),
            &[("taper", 1.0), ("nodes_per_leaf", 2.0)],
        );
        assert_eq!(one.switches, ["leaf 0"]);
        assert_eq!(
            one.classes[0].edges,
            ["node 0 NIC 0..1 - leaf 0", "node 1 NIC 0..1 - leaf 0"]
        );
    }

    #[test]
    fn spread_deals_runs_of_nodes_out_to_groups() {
        // Eight nodes in two groups of four: runs of two lie in groups 0, 1, 0, 1; without `spread` a group fills first.
        for (spread, first) in [
            (2.0, [0, 1, 4, 5]),
            (1.0, [0, 2, 4, 6]),
            (0.0, [0, 1, 2, 3]),
        ] {
            let numbers = [
                ("nodes_per_leaf", 4.0),
                ("group_leaves", 1.0),
                ("group_links", 4.0),
                ("taper", 1.0),
                ("spread", spread),
            ];
            let wires = built("dragonfly", &ports(8, 1, 1), &numbers);
            let group: Vec<String> = links(&wires, "port")
                .into_iter()
                .filter(|(_, b)| b == "leaf 0")
                .map(|(a, _)| a)
                .collect();
            assert_eq!(group, first.map(|k| format!("node {k} NIC 0")));
        }
    }

    proptest! {
        /// Every port has one link; every leaf of several has one to the spine; every two groups have one.
        #[test]
        fn links_count_up(nodes in 1usize..40, count in 1usize..5, per_leaf in 1usize..9, leaves in 1usize..4) {
            let numbers = [
                ("taper", 1.0),
                ("nodes_per_leaf", per_leaf as f64),
                ("group_leaves", leaves as f64),
                ("group_links", 1.0),
            ];
            for name in ["switch", "fat_tree", "rail_fat_tree", "dragonfly"] {
                let wires = built(name, &ports(nodes, count, count), &numbers);
                prop_assert_eq!(links(&wires, "port").len(), nodes * count);
                let units = nodes.div_ceil(per_leaf);
                let under = match name {
                    "switch" => 1,
                    "rail_fat_tree" => units * count,
                    _ => units,
                };
                let trunks = match name {
                    "dragonfly" => under,
                    _ if under > 1 => under,
                    _ => 0,
                };
                prop_assert_eq!(links(&wires, "trunk").len(), trunks);
                let groups = if name == "dragonfly" { units.div_ceil(leaves) } else { 1 };
                prop_assert_eq!(links(&wires, "global").len(), groups * (groups - 1) / 2);
            }
        }
    }
}
