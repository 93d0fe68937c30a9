//! From a workload to its figures.
//!
//! Every stage is a function that is never inlined, so that an instruction counter can count it alone. Stages repeat
//! until [`LEAST`] seconds are spent, and the median counts; memory is read after the first round, before the allocator
//! holds anything from earlier rounds.

use crate::catalogue::{Case, Kind, Way, Workload};
use crate::noc;
use crate::process::{cpu_seconds, memory};
use crate::report::{median, Figures};
use linkwright_core::Machine;
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::verify::verify;
use linkwright_schedule::{collectives, Schedule, Verified};
use linkwright_sim::fabrics::torus_noc::TorusNoc;
use linkwright_sim::fabrics::{self, AnyFabric};
use linkwright_sim::{
    limits, lowered, run, simulate, Limits, Networks, Placement, Setup, Simulation,
};

/// Least processor time that a launch spends on its workload, unless it runs once.
const LEAST: f64 = 0.5;
/// Most rounds.
const MOST: usize = 200;

/// What a simulation keeps besides its result.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    /// Times of every operation.
    pub records: bool,
    /// Bins of the busy time of each link; 0: none.
    pub bins: u32,
}

type Result<T> = std::result::Result<T, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Run `workload` and measure it.
pub fn measure(workload: &Workload, kept: Kept, once: bool) -> Result<Figures> {
    let base = memory().0;
    let mut first: Option<Figures> = None;
    let mut seconds: [Vec<f64>; 6] = Default::default();
    let mut whole = Vec::new();
    let begin = cpu_seconds();
    loop {
        let (round, whole_s) = timed(|| match &workload.kind {
            Kind::Schedule(case) => scheduled(case, kept),
            Kind::Traffic(load) => Ok(traffic(load)),
        });
        let round = round?;
        let first = first.get_or_insert_with(|| Figures {
            base_bytes: base,
            peak_bytes: memory().1,
            ..round.clone()
        });
        if (first.messages(), first.simulated_ps) != (round.messages(), round.simulated_ps) {
            return Err(format!("{}: two rounds differ", workload.name));
        }
        for (all, one) in seconds.iter_mut().zip(round.seconds) {
            all.push(one);
        }
        whole.push(whole_s);
        let enough = cpu_seconds() - begin > LEAST || seconds[0].len() >= MOST;
        if once || enough {
            break;
        }
    }
    Ok(Figures {
        seconds: seconds.map(median),
        whole: median(whole),
        ..first.expect("at least one round")
    })
}

/// `work`, and the processor time that it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = cpu_seconds();
    let result = work();
    (result, cpu_seconds() - begin)
}

fn scheduled(case: &Case, kept: Kept) -> Result<Figures> {
    let (made, machine_s) = timed(|| machine(case));
    let (machine, mut fabric) = made?;
    let (schedule, build_s) = timed(|| build(case));
    let (schedule, lower_s) = timed(|| schedule.and_then(|s| lower(case, &machine, s)));
    let schedule = schedule?;
    let (verified, verify_s) = timed(|| prove(&schedule));
    verified?;
    let mut run = options(case, &machine, &schedule, kept.records)?;
    run.watch.bins = kept.bins;
    let (simulation, engine_s) = timed(|| engine(&schedule, &mut fabric, &run));
    let simulation = simulation?;
    let (bounded, limits_s) = timed(|| limits(&schedule, &machine, &mut fabric, &run, &simulation));
    bounded?;
    Ok(Figures {
        transfers: simulation.totals.transfers,
        notices: simulation.totals.notices,
        operations: schedule.ops().len() as u64,
        seconds: [machine_s, build_s, lower_s, verify_s, engine_s, limits_s],
        simulated_ps: simulation.makespan.0,
        ..Figures::default()
    })
}

#[inline(never)]
fn machine(case: &Case) -> Result<(Machine, AnyFabric)> {
    let machine = Machine::parse(&case.machine.text(), case.machine.name()).map_err(text)?;
    let machine = run::sized(&machine, case.shape.ranks, &case.shape.shape().grid).map_err(text)?;
    let fabric = fabrics::build(&machine).map_err(text)?;
    Ok((machine, fabric))
}

#[inline(never)]
fn build(case: &Case) -> Result<Schedule> {
    let shape = case.shape.shape();
    match case.key.starts_with("pattern/") {
        true => {
            let traffic = Traffic {
                count: case.shape.count,
                ..Traffic::new(shape)
            };
            (patterns::find(case.key).map_err(text)?.build)(&traffic).map_err(text)
        }
        false => collectives::build(case.key, &shape).map_err(text),
    }
}

#[inline(never)]
fn lower(case: &Case, machine: &Machine, schedule: Schedule) -> Result<Schedule> {
    if case.way == Way::Plain {
        return Ok(schedule);
    }
    let lowered = lowered(&schedule, machine, None, &Placement::Identity).map_err(text)?;
    Ok(lowered.unwrap_or(schedule))
}

#[inline(never)]
fn prove(schedule: &Schedule) -> Result<Verified> {
    verify(schedule).map_err(text)
}

#[inline(never)]
fn engine(schedule: &Schedule, fabric: &mut AnyFabric, run: &Setup) -> Result<Simulation> {
    simulate(schedule, &mut **fabric, run).map_err(text)
}

#[inline(never)]
fn limits(
    schedule: &Schedule,
    machine: &Machine,
    fabric: &mut AnyFabric,
    setup: &Setup,
    simulation: &Simulation,
) -> Result<Limits> {
    let (limits, bounds) =
        limits::of(schedule, &mut **fabric, (setup, 1), machine).map_err(text)?;
    for each in [&limits, &bounds] {
        (each.check(simulation, machine.fabric_kind())).map_err(text)?;
    }
    Ok(limits)
}

/// The setup of a workload; on a plain way messages cause no copies, signals or waits.
fn options(case: &Case, machine: &Machine, schedule: &Schedule, records: bool) -> Result<Setup> {
    let mut path = machine.default_path().clone();
    if case.way == Way::Plain {
        path.fused_combine = true;
        path.signal = false;
    }
    let placement = Placement::default().place(machine, schedule.ranks, schedule.memories);
    Ok(Setup {
        placement: placement.map_err(text)?,
        networks: match path.network {
            Some(network) => Networks::only(network),
            None => Networks::new(machine.hints()),
        },
        issue: case.issue,
        record_operations: records,
        ..Setup::new(schedule.ranks, path)
    })
}

fn traffic(load: &noc::Load) -> Figures {
    let (mut network, machine_s) = timed(|| load.network());
    let (packets, build_s) = timed(|| load.packets());
    let (latency_ps, engine_s) = timed(|| inject(&mut network, &packets));
    Figures {
        transfers: noc::flit_hops(&network, &packets),
        operations: packets.len() as u64,
        seconds: [machine_s, build_s, 0.0, 0.0, engine_s, 0.0],
        simulated_ps: latency_ps,
        ..Figures::default()
    }
}

#[inline(never)]
fn inject(network: &mut TorusNoc, packets: &[noc::Packet]) -> u64 {
    noc::inject(network, packets)
}
