//! `[fabric]` of a machine whose kind is `flow`.
//!
//! Nodes are called by their names; [`super::edges`] has the spellings of edges.

use super::edges::{sides, some};
use super::route::{Ends, Network, Override, Relays, Routing, Transport};
use super::rule::{Rule, Stated};
use super::shared::Sharing;
use super::topology::whole;
use super::topology::{SwitchLimits, Topology};
use super::torus::{self, Torus};
use super::trees::cut_off;
use super::uses::Use;
use super::ChunkMode;
use linkwright_core::machine::edges::run_of_names;
use linkwright_core::machine::{EndpointKind, Section, ROUTINGS};
use linkwright_core::{Bytes, Machine, MachineError, TimePs};
use std::collections::{HashMap, HashSet};

type Read<T> = Result<T, MachineError>;

/// Most intermediate nodes of an explicit route: a route in circles uses a resource at most twice per node.
const LONGEST_WAY: usize = 100;

/// The contents of a file.
pub(super) struct Described {
    pub routing: Routing,
    pub sharing: Sharing,
    pub chunks: ChunkMode,
}

pub(super) fn read(machine: &Machine) -> Read<Described> {
    let mut s = machine.fabric_section();
    let sharing = s.optional_choice("sharing", &["fair", "fifo"])?;
    let chunks = s.optional_choice("chunks", &["coalesced", "each"])?;
    let packet = s.optional_bytes("packet")?.unwrap_or(Bytes(0)).0;
    let mut topology = nodes(machine, &mut s)?;
    let torus = Torus::read(machine, &mut topology, &mut s)?;
    let sharing = [Sharing::Fair, Sharing::Fifo][sharing.unwrap_or(0)];
    let classes = links(&mut topology, &mut s, torus.is_some(), sharing)?;
    switch_limits(&mut topology, &mut s)?;
    let local_start = local(&mut topology, &mut s)?;
    let (resources, most) = (topology.capacity.len(), Use::RESOURCES);
    if resources > most {
        let problem = format!("{resources} links and limits of switches; at most {most} fit");
        return Err(s.inconsistent("links", problem));
    }
    if let Some(rank) = cut_off(&topology) {
        let (there, here) = (topology.name(rank), topology.name(0));
        let problem = format!("{there} is cut off: no links lead from it to {here}; add an edge");
        return Err(s.inconsistent("links", problem));
    }
    let transports = transports(&topology, &classes, &mut s)?;
    let networks = networks(machine, &transports, &mut s)?;
    let mut routing = Routing {
        topology,
        torus,
        transports,
        networks,
        overrides: HashMap::new(),
        packet,
        local_start,
        channels: None,
        sends: None,
        across: None,
    };
    channels_count(machine, &routing.transports, &s)?;
    overrides(&mut routing, &mut s)?;
    s.finish()?;
    Ok(Described {
        routing,
        sharing,
        chunks: [ChunkMode::Coalesced, ChunkMode::Each][chunks.unwrap_or(0)],
    })
}

fn nodes(machine: &Machine, s: &mut Section<'_>) -> Read<Topology> {
    let endpoints = machine.endpoints();
    let mut names: Vec<String> = endpoints.iter().map(|e| e.name.clone()).collect();
    if let Some(switches) = s.optional_texts("switches")? {
        let mut known: HashSet<String> = names.iter().cloned().collect();
        for text in switches {
            for name in run_of_names(&text).unwrap_or(vec![text]) {
                if !known.insert(name.clone()) {
                    let problem = format!("two nodes are named \"{name}\"; rename one");
                    return Err(s.inconsistent("switches", problem));
                }
                names.push(name);
            }
        }
    }
    let ranks = endpoints
        .iter()
        .filter(|e| e.kind == EndpointKind::Rank)
        .count();
    Ok(Topology::new(names, ranks as u32, endpoints.len() as u32))
}

/// Read all classes of links into `topology`; their names, after that of a torus.
fn links(
    topology: &mut Topology,
    s: &mut Section<'_>,
    has_torus: bool,
    sharing: Sharing,
) -> Read<Vec<String>> {
    let mut classes = Vec::new();
    if has_torus {
        classes.push(torus::CLASS.to_string());
        topology.classes.push((torus::CLASS.to_string(), None));
        topology.rules.push(Stated {
            rule: Rule::Single,
            stated: true,
        });
        if !s.has("links") {
            return Ok(classes);
        }
    }
    let mut all = s.section("links")?;
    for name in all.names() {
        let mut class = all.section(name)?;
        if classes.iter().any(|known| known == name) {
            return Err(all.inconsistent(
                name,
                "is the class of the links of [fabric.torus]; rename it",
            ));
        }
        class.text("source")?;
        let stated = class.rate("bandwidth")?;
        topology
            .classes
            .push((name.to_string(), Some(whole(stated))));
        topology.rules.push(rule(&mut class, sharing)?);
        let rate = stated.0 * class.optional_ratio("share")?.unwrap_or(1.0);
        if rate < 1.0 {
            return Err(class.inconsistent("share", "leaves no bandwidth; give a share above zero"));
        }
        let latency = class.optional_time("latency")?.unwrap_or(TimePs::ZERO);
        let index = classes.len() as u32;
        for edge in class.texts("edges")? {
            let problem = |text: String| class.inconsistent("edges", format!("`{edge}`: {text}"));
            for (left, right) in sides(topology, &edge).map_err(problem)? {
                for (&from, &to) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
                    let both = left.contains(&to) && right.contains(&from);
                    if from == to || both && topology.is_connected(from, to, index) {
                        continue;
                    }
                    if topology.is_connected(from, to, index) {
                        return Err(problem("is listed twice; raise `bandwidth` instead".into()));
                    }
                    topology.connect(from, to, index, rate as u64, latency);
                }
            }
        }
        class.finish()?;
        classes.push(name.to_string());
    }
    all.finish()?;
    Ok(classes)
}

/// How messages use equal ways over links of a class.
fn rule(class: &mut Section<'_>, sharing: Sharing) -> Read<Stated> {
    let stated = class.optional_choice("routing", &ROUTINGS)?;
    let usual = match sharing {
        Sharing::Fair => Rule::Spray,
        Sharing::Fifo => Rule::Hash, // a flow that holds its links alone cannot be sprayed
    };
    let rule = stated.map_or(usual, |place| Rule::ALL[place]);
    if (rule, sharing) == (Rule::Spray, Sharing::Fifo) {
        let problem =
            "spreads a message over links that `sharing = \"fifo\"` would hold one by one; \
                       write hash, adaptive or single, or let flows share";
        return Err(class.inconsistent("routing", problem));
    }
    Ok(Stated {
        rule,
        stated: stated.is_some(),
    })
}

fn node(topology: &Topology, s: &Section<'_>, key: &str, name: &str) -> Read<u32> {
    topology.find(name).ok_or_else(|| {
        s.inconsistent(
            key,
            format!("no node `{name}`; name one such as {}", some(topology)),
        )
    })
}

fn switch_limits(topology: &mut Topology, s: &mut Section<'_>) -> Read<()> {
    let Some(mut all) = s.optional_section("switch")? else {
        return Ok(());
    };
    for name in all.names() {
        let switch = node(topology, &all, name, name)?;
        if switch < topology.endpoints {
            return Err(all.inconsistent(name, "is an endpoint; only switches have limits"));
        }
        let mut one = all.section(name)?;
        let limits = SwitchLimits {
            turnaround: one.optional_rate("turnaround")?.map(whole),
            throughput: one.optional_rate("throughput")?.map(whole),
            multicast: one.optional_flag("multicast")?.unwrap_or(false),
            aggregate: one.optional_flag("aggregate")?.unwrap_or(false),
            aggregate_rate: one.optional_rate("aggregate_rate")?.map(whole),
        };
        if limits.aggregate_rate.is_some() && !limits.aggregate {
            let problem =
                "limits aggregations, which this switch does not do; add `aggregate = true`";
            return Err(one.inconsistent("aggregate_rate", problem));
        }
        one.finish()?;
        topology.limit(switch, limits);
    }
    all.finish()
}

fn local(topology: &mut Topology, s: &mut Section<'_>) -> Read<TimePs> {
    let Some(mut local) = s.optional_section("local")? else {
        return Ok(TimePs::ZERO);
    };
    let start = local.time("start")?;
    topology.local(whole(local.rate("bandwidth")?));
    local.finish()?;
    Ok(start)
}

fn transports(
    topology: &Topology,
    classes: &[String],
    s: &mut Section<'_>,
) -> Read<Vec<Transport>> {
    let mut transports = Vec::new();
    let mut all = s.section("transport")?;
    for name in all.names() {
        let mut one = all.section(name)?;
        let transport = transport(topology, classes, name, &mut one)?;
        check(&transport, &one)?;
        one.finish()?;
        transports.push(transport);
    }
    all.finish()?;
    Ok(transports)
}

fn transport(
    topology: &Topology,
    classes: &[String],
    name: &str,
    s: &mut Section<'_>,
) -> Read<Transport> {
    let used = s.texts("links")?;
    for class in &used {
        among(s, "links", "class of links", class, classes.iter())?;
    }
    let ends = s.optional_choice("ends", &["any", "ranks", "memory"])?;
    let relays = s.optional_choice("relays", &["none", "forward", "store"])?;
    let stages = s.optional_texts("stage_at")?.unwrap_or_default();
    let stages: Read<Vec<u32>> = (stages.iter())
        .map(|stage| node(topology, s, "stage_at", stage))
        .collect();
    let start = s.time("start")?;
    Ok(Transport {
        name: name.to_string(),
        classes: classes.iter().map(|class| used.contains(class)).collect(),
        ends: [Ends::Any, Ends::Ranks, Ends::Memory][ends.unwrap_or(0)],
        relays: [Relays::None, Relays::Forward, Relays::Store][relays.unwrap_or(0)],
        stages: stages?,
        start,
        notice: s.optional_time("notice")?.unwrap_or(start),
        rate: s.optional_rate("rate")?.map(whole),
        channel: s.optional_rate("channel")?.map(whole),
        across: s.optional_flag("across")?.unwrap_or(false),
        chunk: s.optional_bytes("chunk")?.map_or(u64::MAX, |c| c.0),
        inline: s.optional_bytes("inline")?.map_or(0, |size| size.0),
        long: s.optional_bytes("long")?.map_or(u64::MAX, |size| size.0),
        long_start: s.optional_time("long_start")?.unwrap_or(start),
        turns: s.optional_bytes("turns")?.map_or(u64::MAX, |size| size.0),
        handling: s.optional_time("handling")?.unwrap_or_default(),
        handling_from: s.optional_bytes("handling_from")?.map_or(0, |size| size.0),
    })
}

/// The place of `name`, given at `key`, among the known names.
fn among<'n>(
    s: &Section<'_>,
    key: &str,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n String> + Clone,
) -> Read<usize> {
    let place = known.clone().position(|one| one == name);
    place.ok_or_else(|| {
        let known: Vec<&str> = known.map(String::as_str).collect();
        let problem = format!("no {what} `{name}`; known: {}", known.join(", "));
        s.inconsistent(key, problem)
    })
}

/// Without a transport that limits a channel, their number would change nothing.
fn channels_count(machine: &Machine, transports: &[Transport], s: &Section<'_>) -> Read<()> {
    let counted = machine.paths().iter().find(|path| path.channels.is_some());
    match counted {
        Some(path) if transports.iter().all(|t| t.channel.is_none()) => {
            let name = &path.name;
            let problem =
                format!("path {name} counts channels, but no transport says what one carries; add `channel` to one");
            Err(s.inconsistent("transport", problem))
        }
        _ => Ok(()),
    }
}

fn check(t: &Transport, s: &Section<'_>) -> Read<()> {
    let stores = !t.stages.is_empty() || t.relays == Relays::Store;
    if stores && t.chunk == u64::MAX {
        return Err(s.inconsistent("chunk", "data are stored on the way; give the chunk size"));
    }
    if t.chunk == 0 {
        return Err(s.inconsistent("chunk", "a chunk has at least one byte; write its size"));
    }
    Ok(())
}

fn networks(
    machine: &Machine,
    transports: &[Transport],
    s: &mut Section<'_>,
) -> Read<Vec<Network>> {
    let all_transports = (0..transports.len()).collect();
    let Some(mut all) = s.optional_section("network")? else {
        return Ok((machine.hints().networks().iter())
            .map(|name| Network {
                name: name.clone(),
                transports: Vec::clone(&all_transports),
                start: None,
                efficiency: 1.0,
            })
            .collect());
    };
    all.keys_are_names();
    let mut networks = Vec::new();
    for name in machine.hints().networks() {
        let mut one = all.section(name)?;
        let known = transports.iter().map(|transport| &transport.name);
        let used = (one.texts("transports")?.iter())
            .map(|name| among(&one, "transports", "transport", name, known.clone()))
            .collect::<Read<_>>()?;
        let efficiency = one.optional_share("efficiency")?.unwrap_or(1.0);
        networks.push(Network {
            name: name.clone(),
            transports: used,
            start: one.optional_time("start")?,
            efficiency,
        });
        one.finish()?;
    }
    all.finish()?;
    Ok(networks)
}

fn overrides(routing: &mut Routing, s: &mut Section<'_>) -> Read<()> {
    let Some(mut all) = s.optional_section("pair")? else {
        return Ok(());
    };
    for pair in all.names() {
        let Some((from, to)) = pair.split_once("->") else {
            return Err(all.inconsistent(pair, "a pair is `A -> B`"));
        };
        let topology = &routing.topology;
        let from = node(topology, &all, pair, from.trim())?;
        let to = node(topology, &all, pair, to.trim())?;
        let mut one = all.section(pair)?;
        let named = one.optional_text("transport")?;
        let transport = named.map(|name| {
            let known = routing.transports.iter().map(|transport| &transport.name);
            among(&one, "transport", "transport", &name, known)
        });
        let mut networks = Vec::new();
        for name in one.optional_texts("networks")?.unwrap_or_default() {
            let known = routing.networks.iter().map(|network| &network.name);
            networks.push(among(&one, "networks", "network", &name, known)? as u8);
        }
        let own = Override {
            networks,
            transport: transport.transpose()?,
            way: way(topology, &mut one, from, to)?,
            start: one.optional_time("start")?,
            rate: one.optional_rate("rate")?.map(whole),
        };
        one.finish()?;
        routing.overrides.insert((from, to), own);
    }
    all.finish()
}

/// An explicit route: the nodes in between.
fn way(topology: &Topology, s: &mut Section<'_>, from: u32, to: u32) -> Read<Option<Vec<u32>>> {
    let Some(names) = s.optional_texts("route")? else {
        return Ok(None);
    };
    if names.len() > LONGEST_WAY {
        let problem = format!(
            "{} nodes in between; at most {LONGEST_WAY} fit",
            names.len()
        );
        return Err(s.inconsistent("route", problem));
    }
    let mut nodes = vec![from];
    for name in names {
        nodes.push(node(topology, s, "route", &name)?);
    }
    nodes.push(to);
    match topology.along(&nodes, &topology.every_class()) {
        Ok(_) => Ok(Some(nodes)),
        Err((a, b)) => {
            let problem = format!(
                "no link leads from {} to {}",
                topology.name(a),
                topology.name(b)
            );
            Err(s.inconsistent("route", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of the shipped DGX-1, written one by one.
    #[test]
    fn runs_of_names_stand_for_the_links_that_they_replace() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/linkwright/machines/dgx1-p100.toml"
        );
        let text = std::fs::read_to_string(file).unwrap();
        let machine = Machine::parse(&text, "dgx1-p100.toml").unwrap();
        let topology = read(&machine).unwrap().routing.topology;
        let joined: Vec<(u32, u32)> = (0..8)
            .flat_map(|a| (a + 1..8).map(move |b| (a, b)))
            .filter(|&(a, b)| topology.is_connected(a, b, 0))
            .collect();
        let (left, right) = ([(0, 1), (0, 2), (0, 3), (0, 4)], [(1, 2), (1, 3), (1, 5)]);
        let (back, mesh) = (
            [(2, 3), (2, 6), (3, 7)],
            [(4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7)],
        );
        assert_eq!(joined, [&left[..], &right, &back, &mesh].concat());
        assert!(joined.iter().all(|&(a, b)| topology.is_connected(b, a, 0)));
    }

    #[test]
    fn a_route_in_circles_has_an_end() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../examples/eight_gpus.toml"
        );
        let text = std::fs::read_to_string(file).unwrap();
        let there_and_back = |times: usize| {
            let nodes = ["\"left\", \"right\""].repeat(times).join(", ");
            let pair = format!("[fabric.pair.\"GPU 0 -> GPU 4\"]\nroute = [{nodes}]\n");
            Machine::parse(&format!("{text}\n{pair}"), "own.toml").and_then(|m| read(&m))
        };
        assert!(there_and_back(50).is_ok());
        let error = there_and_back(51).err().unwrap().to_string();
        assert!(
            error.contains("102 nodes in between; at most 100 fit"),
            "{error}"
        );
    }
}
