//! The machine of a request: its file, the variant, and a size where the file leaves that open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use linkwright_core::machine::{Draft, File, Machine, NumberRow, OpenSize, Status, Variant};
use linkwright_sim::{fabrics, probes};
use serde_json::{json, Value};

use crate::question::{count, said, texts, word, Asked};
use crate::shelf::Shelf;

/// Ranks of a machine that leaves their number open, and its sides, unless they are asked for; as on the command line.
const OPEN_RANKS: usize = 16;
const OPEN_GRID: [u32; 2] = [8, 8];
const OPEN_GRID_RANKS: u64 = OPEN_GRID[0] as u64 * OPEN_GRID[1] as u64;
/// The most nodes of a cluster, and ranks of a schedule: many algorithms need the square of this many operations.
const MOST: u64 = 1 << 12;

thread_local! {
    /// The latest machine and what described it: a page asks for one after the other's algorithms.
    static KEPT: RefCell<Option<(Value, Rc<Machine>)>> = const { RefCell::new(None) };
}

/// The machine that `request` describes: `file` and `text`, `nodes`, `fabric`, `without`, `degrade` (`NAME=0.25`), and
/// `ranks` for one of open size.
pub fn machine(request: &Value) -> Asked<Rc<Machine>> {
    let fields = [
        "file", "text", "nodes", "fabric", "without", "degrade", "ranks",
    ];
    let key: Value = fields.map(|field| request[field].clone()).to_vec().into();
    if let Some((_, kept)) = KEPT.take().filter(|(known, _)| *known == key) {
        KEPT.set(Some((key, kept.clone())));
        return Ok(kept);
    }
    let made = Rc::new(composed(request)?);
    KEPT.set(Some((key, made.clone())));
    Ok(made)
}

fn composed(request: &Value) -> Asked<Machine> {
    let shelf = Shelf::kept();
    let file = File {
        name: word(request, "file").unwrap_or("machine").to_string(),
        text: word(request, "text").unwrap_or_default().to_string(),
    };
    let described = Draft::read(file, &shelf, None).and_then(|draft| draft.machine());
    let mut described = described.map_err(said)?;
    if let Some(variant) = variant(request, described.name())? {
        let changed = described.composed(&variant, &shelf);
        described = changed.and_then(|draft| draft.machine()).map_err(said)?;
    }
    let ranks = count(request, "ranks")?;
    few(ranks.unwrap_or(1))?;
    let sized = match (described.open_size(), ranks) {
        (None, _) => Ok(described),
        // A schedule that was built on that grid states the number of its ranks alone.
        (Some(OpenSize::Grid), None | Some(OPEN_GRID_RANKS)) => described.with_sides(&OPEN_GRID),
        (Some(_), ranks) => {
            described.with_endpoints(ranks.map_or(OPEN_RANKS, |ranks| ranks as usize))
        }
    };
    let sized = sized.map_err(said)?;
    fabrics::build(&sized).map_err(said)?;
    probes::check(&sized).map_err(said)?;
    Ok(sized)
}

/// Reject more ranks than a page has room for.
pub fn few(ranks: u64) -> Asked<()> {
    match ranks > MOST {
        true => Err(format!(
            "ranks {ranks}: a page simulates at most {MOST}; ask for fewer, or use `linkwright simulate`"
        )),
        false => Ok(()),
    }
}

/// The variant of the machine `name`, if the request asks for one.
fn variant(request: &Value, name: &str) -> Asked<Option<Variant>> {
    let nodes = count(request, "nodes")?;
    if let Some(nodes) = nodes.filter(|nodes| !(1..=MOST).contains(nodes)) {
        return Err(format!(
            "nodes {nodes}: here a cluster has 1 to {MOST} nodes"
        ));
    }
    let fabric = word(request, "fabric").map(str::to_string);
    if fabric.is_some() && nodes.is_none() {
        return Err("a network connects nodes; give their number".into());
    }
    let factor = |text: &String| {
        let (name, factor) = text.rsplit_once('=').unwrap_or((text, ""));
        match factor.trim().parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor <= 1e6 => Ok((name.trim().to_string(), factor)),
            _ => Err(format!(
                "degrade {text}: write a name and the factor of its rate, such as `nvlink=0.25`"
            )),
        }
    };
    let degrade: Vec<_> = (texts(request, "degrade").iter())
        .map(factor)
        .collect::<Asked<_>>()?;
    let without = texts(request, "without");
    let changed = nodes.is_some() || !(without.is_empty() && degrade.is_empty());
    Ok(changed.then(|| Variant {
        name: nodes.map_or(name.to_string(), |nodes| format!("{name}-x{nodes}")),
        nodes: nodes.map(|nodes| nodes as usize),
        fabric,
        without,
        degrade,
    }))
}

/// What a reader should know of a machine before its times: size, paths, and how its numbers came to be known.
pub fn about(machine: &Machine) -> Value {
    let numbers = machine.numbers();
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    for number in &numbers {
        *statuses.entry(number.status.name()).or_default() += 1;
    }
    let rates: Vec<&NumberRow> = (numbers.iter())
        .filter(|n| n.key.starts_with("fabric.links.") && n.key.ends_with(".bandwidth"))
        .collect();
    json!({
        "name": machine.name(),
        "summary": machine.summary(),
        "fabric": machine.fabric_kind(),
        "ranks": machine.ranks(),
        "paths": machine.paths().iter().map(|path| path.name.as_str()).collect::<Vec<_>>(),
        "path": machine.default_path().name,
        "statuses": statuses,
        "assumed": !rates.is_empty() && rates.iter().all(|n| n.status == Status::Assumed),
    })
}
