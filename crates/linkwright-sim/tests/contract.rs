//! The contract between engine and fabric, for every fabric with random messages.

mod files;

use linkwright_core::{EndpointId, TimePs};
use linkwright_sim::fabric::{Conditions, Done, Event, Msg, MsgKind, Watch};
use linkwright_sim::fabrics::{build, AnyFabric, FABRICS};
use linkwright_sim::run::sized;
use linkwright_sim::SimulatedFabric;
use proptest::prelude::*;

/// Gap since the previous offer, from, to, bytes, kind.
type Plan = Vec<(u64, u32, u32, u64, u8)>;

/// The fabric of a machine, and how many endpoints this has.
fn fabric(file: &str, changes: &[(&str, &str)]) -> (AnyFabric, u32) {
    let machine = sized(&files::machine(file, changes), 12, &[4, 3]).unwrap();
    (build(&machine).unwrap(), machine.endpoints().len() as u32)
}

fn message(op: usize, plan: &(u64, u32, u32, u64, u8)) -> Msg {
    let &(_, from, to, bytes, kind) = plan;
    let kind = [MsgKind::Put, MsgKind::Get, MsgKind::Notice][kind as usize];
    let bytes = if kind == MsgKind::Notice { 0 } else { bytes };
    Msg::new(op as u32, kind, EndpointId(from), EndpointId(to), bytes)
}

/// Offer each message at its time and collect all completions, keeping the engine's side of the contract.
fn drive(fabric: &mut dyn SimulatedFabric, plan: &Plan, watch: Watch) -> Vec<Done> {
    fabric.reset(&Conditions {
        watch,
        ..Conditions::default()
    });
    let (mut now, mut all) = (TimePs::ZERO, Vec::new());
    let mut offered = 0;
    while offered < plan.len() {
        let at = now + TimePs(plan[offered].0);
        while now < at {
            let mut done = Vec::new();
            let next = fabric.next();
            let reached = fabric.advance(at, &mut done);
            assert!(
                now <= reached && reached <= at,
                "{now} to {reached} of {at}"
            );
            assert!(
                done.iter().all(|d| d.at == reached),
                "completions of one instant"
            );
            // `next` is a lower bound.
            assert!(done.is_empty() || next.is_some_and(|next| next <= reached));
            now = if done.is_empty() { at } else { reached };
            all.append(&mut done);
        }
        // Everything with no gap is offered together.
        let end = (offered + 1..plan.len())
            .find(|&i| plan[i].0 > 0)
            .unwrap_or(plan.len());
        let released: Vec<Msg> = (offered..end).map(|i| message(i, &plan[i])).collect();
        fabric.offer(now, &released);
        offered = end;
    }
    loop {
        let mut done = Vec::new();
        let next = fabric.next();
        let reached = fabric.advance(TimePs::MAX, &mut done);
        if done.is_empty() {
            return all;
        }
        assert!(next.is_some_and(|next| next <= reached));
        assert!(done.iter().all(|d| d.at == reached));
        all.append(&mut done);
    }
}

fn keeps_the_contract(file: &str, changes: &[(&str, &str)], plan: &Plan) {
    let (mut fabric, endpoints) = fabric(file, changes);
    let fabric = &mut *fabric;
    let plan = &possible(fabric, endpoints, plan);
    let all = drive(fabric, plan, Watch::default());
    assert_eq!(fabric.in_flight(), 0, "{file}: {:?}", fabric.stuck());
    assert!(all.is_sorted_by_key(|done| done.at), "{file}");
    let (mut at, mut sent) = (TimePs::ZERO, 0);
    for (op, entry) in plan.iter().enumerate() {
        at += TimePs(entry.0);
        let message = message(op, entry);
        sent += message.bytes;
        let own: Vec<&Done> = all.iter().filter(|done| done.op == op as u32).collect();
        let events: Vec<Event> = own.iter().map(|done| done.event).collect();
        let expected = [Event::SourceFree, Event::Delivered, Event::Acknowledged];
        assert_eq!(
            events, expected,
            "{file}: completions of message {op}, in order, each once"
        );
        assert!(
            own[1].at >= at + fabric.quiet(&message),
            "{file}: faster than an idle fabric"
        );
    }
    assert!(
        fabric.links().bytes.iter().sum::<u64>() >= sent,
        "{file}: bytes on links"
    );
    // A reset forgets everything.
    let links = fabric.links().clone();
    assert_eq!(drive(fabric, plan, Watch::default()), all, "{file}");
    assert_eq!(*fabric.links(), links, "{file}");
    tells_busy_time_by_bins(file, fabric, (plan, &all));
}

/// Who watches changes nothing, and bins add up to the busy time of their link, to the picosecond.
fn tells_busy_time_by_bins(
    file: &str,
    fabric: &mut dyn SimulatedFabric,
    (plan, all): (&Plan, &[Done]),
) {
    let busy = fabric.links().busy_ps.clone();
    let watch = Watch {
        bins: 16,
        ahead: TimePs(777),
    };
    assert_eq!(drive(fabric, plan, watch), all, "{file}");
    let table = fabric.links().bins.clone().unwrap().table(0);
    for (link, bins) in table.busy_ps.chunks(16).enumerate() {
        let name = &fabric.links().names[link];
        assert_eq!(bins.iter().sum::<u64>(), busy[link], "{file}: {name}");
        let most = bins.iter().max().unwrap();
        assert!(
            *most <= table.width_ps,
            "{file}: {name} is never busier than always"
        );
    }
    assert_eq!(drive(fabric, plan, Watch::default()), all, "{file}");
    assert!(fabric.links().bins.is_none(), "{file}");
}

fn plans(endpoints: u32) -> impl Strategy<Value = Plan> {
    let gap = prop_oneof![Just(0), 0..500_000u64];
    let bytes = prop_oneof![Just(0), 1..100u64, 0..40_000u64];
    let one = (gap, 0..endpoints, 0..endpoints, bytes, 0..3u8);
    proptest::collection::vec(one, 1..40)
}

/// The machines of cases by hand, and two of fabrics that have none.
fn machines() -> Vec<String> {
    let folder = "tests/cases/machines";
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let files = std::fs::read_dir(format!("{root}{folder}")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut all: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
    all.extend(
        ["torus-2d", "cell-be"].map(|name| format!("python/linkwright/machines/{name}.toml")),
    );
    all.sort();
    all
}

/// The messages of `plan` between endpoints that `fabric` has, where it has a route.
fn possible(fabric: &dyn SimulatedFabric, endpoints: u32, plan: &Plan) -> Plan {
    let there = plan
        .iter()
        .map(|&(gap, from, to, bytes, kind)| (gap, from % endpoints, to % endpoints, bytes, kind));
    let network = fabric.network();
    let leads = |from, to| {
        network
            .no_route(EndpointId(from), EndpointId(to), 0)
            .is_none()
    };
    there.filter(|&(_, from, to, ..)| leads(from, to)).collect()
}

#[test]
fn every_fabric_has_a_machine() {
    let parse = |file: String| files::machine(&file, &[]).fabric_kind().to_string();
    let kinds: Vec<String> = machines().into_iter().map(parse).collect();
    for entry in FABRICS {
        let key = entry.kind.key;
        assert!(
            kinds.iter().any(|kind| kind == key),
            "write tests/cases/machines/{key}.toml"
        );
    }
}

/// Twelve ranks: pairs of neighbours, relays that store, and the rest staged at a switch.
const FLOW: &str = "crates/linkwright-sim/tests/flow/relays.toml";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_fabric_keeps_the_contract(plan in plans(60)) {
        for file in machines() {
            keeps_the_contract(&file, &[], &plan);
        }
    }

    #[test]
    fn flow(plan in plans(12), fifo in any::<bool>(), each in any::<bool>()) {
        let changes = [("\"fair\"", "\"fifo\""), ("\"coalesced\"", "\"each\"")];
        let chosen = changes.iter().zip([fifo, each]).filter(|(_, chosen)| *chosen);
        let changes: Vec<_> = chosen.map(|(change, _)| *change).collect();
        keeps_the_contract(FLOW, &changes, &plan);
    }
}
