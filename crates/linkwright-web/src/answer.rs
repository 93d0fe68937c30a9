//! Requests and their answers.
//!
//! | `ask` | with | gives |
//! |---|---|---|
//! | `shelf` | `parts`, `networks`, `nodes` | nothing: they are kept |
//! | `names` | | collectives, and algorithms with their summaries |
//! | `machine` | the fields of [`machine`] | what it is |
//! | `time` | those, `path`, `issue`, and `schedule` (a text) or `collective`, `algorithm`, `size` | proof, time, limits, links |
//! | `search` | those, `path`, `collective`, `size`, `seconds` | a schedule, and before it each improvement ([`crate::search`]) |

use std::cmp::Reverse;

use linkwright_core::{Issue, Machine};
use linkwright_schedule::{collectives, text, verify, Collective, Schedule, Verified};
use linkwright_sim::{run, How, Limit, Spent};
use serde_json::{json, Value};

use crate::machine::{about, machine};
use crate::posed::{placed, ranks, shape};
use crate::question::{said, word, Asked};
use crate::search::search;
use crate::shelf::Shelf;

/// The busiest links that an answer names.
const BUSIEST: usize = 12;
/// What computes in a schedule of mere traffic take, as everywhere: a nanosecond for each operation.
const OPERATIONS_PER_S: f64 = 1e9;

/// The answer to a request.
pub fn answer(request: &Value) -> Asked<Value> {
    match word(request, "ask") {
        Some("shelf") => {
            Shelf::keep(request);
            Ok(Value::Null)
        }
        Some("names") => Ok(names()),
        Some("machine") => machine(request).map(|machine| about(&machine)),
        Some("time") => time(request),
        Some("search") => search(request),
        other => Err(format!("unknown request {other:?}")),
    }
}

fn names() -> Value {
    let known = Collective::ALL
        .into_iter()
        .filter(|&c| c != Collective::Pattern && !c.is_uneven()); // nothing here states tokens or counts
    let algorithm = |a: &&collectives::Algorithm| json!({ "collective": a.collective.name(), "name": a.name, "summary": a.summary });
    json!({
        "collectives": known.map(Collective::name).collect::<Vec<_>>(),
        "algorithms": collectives::REGISTRY.iter().map(algorithm).collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn time(request: &Value) -> Asked<Value> {
    let written = word(request, "schedule").map(text::parse).transpose();
    let written = written.map_err(|e| format!("schedule: {e}"))?;
    let mut request = request.clone();
    if let Some(schedule) = &written {
        request["ranks"] = schedule.ranks.into();
    }
    let machine = machine(&request)?;
    let ranks = ranks(&request, &machine)?;
    let placement = placed(&request, &machine, ranks)?;
    let schedule = match written {
        Some(schedule) => schedule,
        None => built(&request, &machine, ranks)?,
    };
    // What its author wrote is proved before what the machine makes of it, so that errors name their operations.
    let proof = verify(&schedule).map_err(said)?;
    let issue = word(&request, "issue").map(str::parse::<Issue>).transpose();
    let how = How {
        path: word(&request, "path").map(str::to_string),
        issue: (issue.map_err(said)?)
            .or_else(|| machine.issue())
            .unwrap_or_default(),
        operations_per_s: (schedule.spec.collective == Collective::Pattern)
            .then_some(OPERATIONS_PER_S),
        placement,
        ..How::default()
    };
    let path = how.path.as_deref();
    let remark = run::remark(&schedule, &machine, path, &how.placement).map_err(said)?;
    let lowered = run::lowered(&schedule, &machine, path, &how.placement).map_err(said)?;
    if let Some(lowered) = &lowered {
        verify(lowered).map_err(said)?;
    }
    let ready = lowered.as_ref().unwrap_or(&schedule);
    let found = run::ask(&machine, ready, &how).map_err(said)?;
    Ok(shown(&schedule, &proof, &run::Answer { remark, ..found }))
}

fn built(request: &Value, machine: &Machine, ranks: usize) -> Asked<Schedule> {
    let collective = word(request, "collective").unwrap_or("allreduce");
    let algorithm = word(request, "algorithm").unwrap_or_default();
    let shape = shape(request, machine, ranks, collective)?;
    collectives::build(&format!("{collective}/{algorithm}"), &shape).map_err(said)
}

fn shown(schedule: &Schedule, proof: &Verified, found: &run::Answer) -> Value {
    let simulation = &found.simulation;
    let (time, links) = (simulation.makespan, &simulation.links);
    let share = |ps: u64| ps as f64 / time.0.max(1) as f64;
    let limit =
        |limit: &Limit| json!({ "name": limit.name, "what": limit.what, "time_ps": limit.time.0 });
    let mut busiest: Vec<usize> = (0..links.names.len())
        .filter(|&l| links.busy_ps[l] > 0)
        .collect();
    busiest.sort_by_key(|&link| Reverse(links.busy_ps[link]));
    let row = |&l: &usize| {
        json!([
            links.names[l],
            links.bytes[l],
            share(links.busy_ps[l]),
            links.peak[l]
        ])
    };
    let collective = schedule.spec.collective;
    let (size, factor) = (schedule.size_bytes(), collective.bus_factor(schedule.ranks));
    let spent = Spent::ALL.iter().map(|spent| spent.name());
    json!({
        "collective": collective.name(),
        "ranks": schedule.ranks,
        "size_bytes": size,
        "time_ps": time.0,
        "bus_bytes_per_s": (!matches!(collective, Collective::Pattern | Collective::Barrier) && time.0 > 0)
            .then(|| size as f64 * factor * 1e12 / time.0 as f64),
        "limits": found.limits.0.iter().map(limit).collect::<Vec<_>>(),
        "limit": found.limits.largest().map(limit),
        "bound": found.bounds.largest().map(limit),
        "share": found.limits.largest().map(|limit| share(limit.time.0)),
        "proof": {
            "operations": proof.operations, "messages": proof.messages, "notices": proof.notices,
            "edges": proof.edges, "hazards": proof.hazards, "exact": proof.exact,
        },
        "critical": spent.zip(simulation.critical.shares()).collect::<Vec<_>>(),
        "links": busiest.iter().take(BUSIEST).map(row).collect::<Vec<_>>(),
        "idle_links": links.names.len() - busiest.len(),
        "remark": found.remark,
    })
}
