//! One call from a schedule and a machine to times and limits.
//!
//! [`ask`] builds the fabric that the machine file names, looks up the path, places participants, draws
//! arrivals, simulates, and checks the result against the limits. It does not lower the schedule, so the
//! verified schedule is the one that runs; call [`lowered`] first where lowering is needed.

use crate::error::SimError;
use crate::fabric::{Conditions, Watch};
use crate::fabrics;
use crate::limits::{self, Demand, Limits};
use crate::memory;
use crate::messages::Networks;
use crate::outcome::{OperationTimes, Simulation};
use crate::placement::Placement;
use crate::protocol::{self, Timed};
use crate::setup::{Issue, Setup};
use linkwright_core::machine::{Engine, OpenSize, Path, Scratch};
use linkwright_core::{EndpointId, Machine, Skew, TimePs};
use linkwright_schedule::ir::{Combine, Op, OpKind, Schedule, COMPUTE_LANE};
use linkwright_schedule::own_scratch::own_scratch;
use linkwright_schedule::{aggregations, barriers, transforms, Collective, Shape};
use std::borrow::Cow;

/// Maximum number of bins for each link; a thousand links with this many take half a gigabyte.
pub const MOST_BINS: u32 = 1 << 16;

/// Longest start of a library, a day: what is added to it stays far below the largest time.
pub const MOST_LAUNCH: TimePs = TimePs(86_400 * 1_000_000_000_000);

/// How a schedule runs, and what the run records. The default is the machine's default path and blocking issue, with
/// rank i on endpoint i and all ranks arriving together.
#[derive(Clone, Debug)]
pub struct How {
    /// Name of the path; the machine's default where absent.
    pub path: Option<String>,
    /// Issue policy of every lane.
    pub issue: Issue,
    /// Endpoint of each rank.
    pub placement: Placement,
    /// When ranks arrive.
    pub skew: Skew,
    /// Time that a library needs to start the collective on a rank that has arrived.
    pub launch: TimePs,
    /// Equal channels that every message stands for; the path's where absent.
    pub channels: Option<u32>,
    /// The most that one message carries from node to node, bytes of data per second; links alone where absent.
    pub across: Option<u64>,
    /// Messages of a library that every message from node to node stands for; one for each of `channels` where absent.
    pub sends: Option<f64>,
    /// Columns and rows, for a machine whose grid is open.
    pub grid: Vec<u32>,
    /// Whether combinations pay for their arithmetic.
    pub arithmetic: bool,
    /// Rate of compute operations, which a schedule with computes needs unless the path's protocol states one.
    pub operations_per_s: Option<f64>,
    /// Seed of random arrivals, of noise, and of the ways that a network draws for pairs of endpoints.
    pub seed: u64,
    /// Whether the machine's noise acts, if its file has any.
    pub noise: bool,
    /// Whether to keep the times of every operation, for a trace.
    pub operations: bool,
    /// Bins of time for the busy time of each link; 0: none.
    pub bins: u32,
    /// Whether to record individual messages, see [`Messages`].
    pub messages: bool,
    /// Sets of buffers between which repetitions alternate, see [`crate::setup::Setup`].
    pub buffer_sets: u32,
    /// Whether the start-ups of a rank's transfers wait for each other, whatever their lanes.
    pub serial_starts: bool,
    /// Makespan beyond which the simulation stops, see [`crate::setup::Setup`]; of no effect on an allreduce on a path
    /// with a protocol, of which one run among several is timed.
    pub stop_at: TimePs,
}

impl Default for How {
    fn default() -> Self {
        How {
            path: None,
            issue: Issue::default(),
            placement: Placement::default(),
            skew: Skew::default(),
            launch: TimePs::ZERO,
            channels: None,
            across: None,
            sends: None,
            grid: Vec::new(),
            arithmetic: true,
            operations_per_s: None,
            seed: 0,
            noise: false,
            operations: false,
            bins: 0,
            messages: false,
            buffer_sets: 1,
            serial_starts: false,
            stop_at: TimePs::MAX,
        }
    }
}

/// The answer to a schedule on a machine: a simulation with its limits and its setup.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Times, links, critical path.
    pub simulation: Simulation,
    /// What no schedule of this problem could beat.
    pub limits: Limits,
    /// What this schedule could not beat.
    pub bounds: Limits,
    /// The run that was simulated, for a trace.
    pub setup: Setup,
    /// Individual messages, if the run asked for them.
    pub messages: Option<Messages>,
    /// A caveat for the reader, see [`remark`].
    pub remark: Option<String>,
}

/// Figures for individual messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Picoseconds of each message, by id: from issue on its lane to delivery at the last target.
    pub latency_ps: Vec<u64>,
    /// Bytes that each participant sends to others.
    pub sent_bytes: Vec<u64>,
}

impl Messages {
    fn of(schedule: &Schedule, times: &OperationTimes) -> Self {
        let ids = (0..).zip(schedule.ops());
        let carrying = ids.filter(|(_, op)| op.is_message() && op.moves_data());
        let latency = |(id, _): (usize, &Op)| times.delivered[id].saturating_sub(times.issued[id]);
        Messages {
            latency_ps: carrying.map(latency).collect(),
            sent_bytes: schedule.sent_bytes(),
        }
    }
}

/// Simulate `schedule` on `machine`.
pub fn ask(machine: &Machine, schedule: &Schedule, how: &How) -> Result<Answer, SimError> {
    answer(machine, schedule, how, None)
}

/// The same; the ranks of the schedule may stand for as many as are `alike`.
pub(crate) fn answer(
    machine: &Machine,
    schedule: &Schedule,
    how: &How,
    alike: Option<u32>,
) -> Result<Answer, SimError> {
    check(machine, schedule.ranks, how)?;
    let machine = match machine.ranks() {
        0 => Cow::Owned(sized(machine, schedule.ranks, &how.grid)?),
        // Its size is fixed, and a copy of a large machine costs more than a small simulation.
        _ => Cow::Borrowed(machine),
    };
    let placement = (how.placement).place(&machine, schedule.ranks, schedule.memories)?;
    let mut setup = setup(&machine, schedule.ranks, placement, how)?;
    setup.alike = alike;
    check_room(schedule, &machine, &setup)?;
    let timed = Timed::of(schedule, &setup.path);
    if let Some(timed) = &timed {
        setup.stop_at = TimePs::MAX;
        setup.record_operations = true;
        let skipped = timed.skipped_per_s(schedule, &setup.path);
        setup.operations_per_s = setup.operations_per_s.or(skipped);
    }
    let mut fabric = fabrics::lend(&machine)?;
    let mut simulation = crate::simulate(schedule, &mut **fabric, &setup)?;
    let times = simulation.operations.as_ref().filter(|_| how.messages);
    let messages = times.map(|times| Messages::of(schedule, times));
    let repeats = Timed::repeats(timed);
    let (limits, bounds) = limits::of(schedule, &mut **fabric, (&setup, repeats), &machine)?;
    bounds.check(&simulation, machine.fabric_kind())?;
    if let Some(timed) = &timed {
        simulation = timed.read(schedule, (&setup, &**fabric), simulation);
        simulation.operations.take_if(|_| !how.operations);
    }
    limits.check(&simulation, machine.fabric_kind())?;
    Ok(Answer {
        messages,
        simulation: simulation.launched(how.launch),
        limits,
        bounds,
        setup,
        remark: None,
    })
}

/// The limits of a collective on `machine`, whatever the schedule.
pub fn limits_of(
    collective: Collective,
    shape: &Shape,
    machine: &Machine,
    how: &How,
) -> Result<Limits, SimError> {
    let machine = sized(machine, shape.ranks, &how.grid)?;
    let placement = (how.placement).place(&machine, shape.ranks, 0)?;
    let mut setup = setup(&machine, shape.ranks, placement, how)?;
    (setup.channels, setup.across) = (None, None); // a schedule may use as many as it likes
    let mut fabric = fabrics::lend(&machine)?;
    fabric.reset(&setup.conditions(&[]));
    let demand = Demand::new(collective, shape);
    Ok(limits::problem::find(&demand, &mut **fabric, &setup, &machine).limits)
}

/// Set up a run of `ranks` ranks at these endpoints, as `how` asks.
pub(crate) fn setup(
    machine: &Machine,
    ranks: u32,
    placement: Vec<EndpointId>,
    how: &How,
) -> Result<Setup, SimError> {
    let path = path(machine, how.path.as_deref())?.clone();
    Ok(Setup {
        placement,
        networks: networks(machine, &path),
        issue: how.issue,
        arrivals: how.skew.arrivals(ranks, how.seed)?,
        arithmetic: how.arithmetic,
        operations_per_s: how.operations_per_s,
        channels: how.channels.or(path.channels),
        across: how.across,
        sends: how.sends.or(how.channels.map(f64::from)),
        seed: how.seed,
        noise: machine.noise().filter(|_| how.noise),
        watch: Watch {
            bins: how.bins,
            ahead: how.launch,
        },
        record_operations: how.operations || how.messages,
        nearness: machine.nearness(),
        buffer_sets: how.buffer_sets,
        serial_starts: how.serial_starts,
        alike: None,
        stop_at: how.stop_at,
        until: None,
        path,
    })
}

/// Reject a path that the machine lacks, and options that do not fit this many ranks.
pub fn check(machine: &Machine, ranks: u32, how: &How) -> Result<(), SimError> {
    path(machine, how.path.as_deref())?;
    if how.channels == Some(0) {
        return Err(SimError::Option {
            option: "channels",
            problem: "0 channels carry nothing; at least 1 is needed".into(),
        });
    }
    if how.bins > MOST_BINS {
        return Err(SimError::Option {
            option: "bins",
            problem: format!(
                "{} bins for each link; at most {MOST_BINS} are possible",
                how.bins
            ),
        });
    }
    if how.launch > MOST_LAUNCH {
        return Err(SimError::Option {
            option: "launch_ps",
            problem: format!(
                "{} ps; a library starts within {} ps",
                how.launch.0, MOST_LAUNCH.0
            ),
        });
    }
    if how.buffer_sets == 0 {
        return Err(SimError::Option {
            option: "buffer_sets",
            problem: "0 sets hold nothing; at least 1 is needed".into(),
        });
    }
    if let Some(rate) = how
        .operations_per_s
        .filter(|rate| !(rate.is_finite() && *rate > 0.0))
    {
        return Err(SimError::Option {
            option: "operations_per_s",
            problem: format!("{rate} is not a rate; it is above 0"),
        });
    }
    Ok(how.skew.check(ranks)?)
}

/// The schedule as a machine and one of its paths need it, with ranks where `placement` has them; `None` where it can run unchanged.
///
/// | if | then |
/// | --- | --- |
/// | the network cannot combine in flight | aggregations become gets and puts |
/// | the path gives incoming data scratch of its own | transfers write into that scratch |
/// | the path cannot combine while writing | a combining transfer becomes a copy into scratch and a local combination |
/// | the path has a protocol | an allreduce runs as [`crate::protocol`] describes |
/// | the fabric has no barrier | barriers become notices |
/// | a rank does one thing at a time | its lanes become one |
/// | the path has fewer lanes than the schedule | lanes are shared |
pub fn lowered(
    schedule: &Schedule,
    machine: &Machine,
    path_name: Option<&str>,
    placement: &Placement,
) -> Result<Option<Schedule>, SimError> {
    let path = path(machine, path_name)?;
    let mut lowered = without_aggregations(schedule, machine, (path, placement))?;
    if path.scratch == Scratch::Own {
        lowered = Some(own_scratch(lowered.as_ref().unwrap_or(schedule))?);
    }
    let fused = |op: &Op| op.combine == Combine::Reduce && op.is_message();
    let plain = lowered.as_ref().unwrap_or(schedule);
    if !path.fused_combine && plain.ops().iter().any(fused) {
        lowered = Some(transforms::unfuse(plain)?);
    }
    if path.protocol.is_some() {
        let plain = lowered.as_ref().unwrap_or(schedule);
        lowered = protocol::applied(plain, path, machine)?.or(lowered);
    }
    if schedule.has(OpKind::Barrier) {
        let mut fabric = fabrics::lend(machine)?;
        fabric.reset(&Conditions {
            sets: &[Vec::new()],
            channels: path.channels,
            ..Conditions::default()
        });
        if fabric.barrier(TimePs::ZERO, 0).is_none() {
            lowered = Some(barriers::disseminate(lowered.as_ref().unwrap_or(schedule))?);
        }
    }
    let ready = lowered.as_ref().unwrap_or(schedule);
    let has_more = |lanes: &u32| {
        let mut all = ready.ops().iter().map(|op| op.lane);
        all.any(|lane| lane != COMPUTE_LANE && u32::from(lane) >= *lanes)
    };
    match (path.engine, path.lanes.filter(has_more)) {
        (Engine::Rank, _) => Ok(Some(transforms::one_lane(ready))),
        (_, Some(lanes)) => Ok(Some(transforms::shared_lanes(ready, lanes))),
        _ => Ok(lowered),
    }
}

/// The schedule without aggregations, if it has any that `machine` cannot perform with ranks where they are.
fn without_aggregations(
    schedule: &Schedule,
    machine: &Machine,
    (path, placement): (&Path, &Placement),
) -> Result<Option<Schedule>, SimError> {
    if !schedule.has(OpKind::Aggregate) {
        return Ok(None);
    }
    let lowered = || Ok(Some(aggregations::gather_and_put(schedule)?));
    // Ranks that move data themselves have no switch to combine it; the network of an open machine is not yet known.
    if path.memory.is_some() || machine.ranks() == 0 {
        return lowered();
    }
    let fabric = fabrics::lend(machine)?;
    let places = placement.place(machine, schedule.ranks, schedule.memories)?;
    let networks = networks(machine, path);
    let at = |all: &[u32]| -> Vec<EndpointId> { all.iter().map(|&p| places[p as usize]).collect() };
    let carried = |op: &Op| {
        let (sources, targets) = (at(schedule.sources(op)), at(schedule.targets(op)));
        fabric
            .network()
            .aggregates(&sources, &targets, networks.of(op))
    };
    let mut all = (schedule.ops().iter()).filter(|op| op.kind == OpKind::Aggregate);
    match all.all(carried) {
        true => Ok(None),
        false => lowered(),
    }
}

/// The networks that operations on `path` take.
fn networks(machine: &Machine, path: &Path) -> Networks {
    match path.network {
        Some(network) => Networks::only(network),
        None => Networks::new(machine.hints()),
    }
}

/// A caveat about `schedule`, to be asked for before it is lowered: it cannot use the path's protocol in full, or the
/// network cannot do what it asks for.
pub fn remark(
    schedule: &Schedule,
    machine: &Machine,
    path_name: Option<&str>,
    placement: &Placement,
) -> Result<Option<String>, SimError> {
    let path = path(machine, path_name)?;
    let lowered = without_aggregations(schedule, machine, (path, placement))?;
    let lowered =
        lowered.map(|_| "no switch on the way combines, so gets and puts aggregate".into());
    let all: Vec<String> = [protocol::remark(schedule, path)?, lowered]
        .into_iter()
        .flatten()
        .collect();
    Ok((!all.is_empty()).then(|| all.join("; ")))
}

/// The machine; if its size is open, with the size that `ranks` and `grid` give.
pub fn sized(machine: &Machine, ranks: u32, grid: &[u32]) -> Result<Machine, SimError> {
    Ok(match (machine.open_size(), grid) {
        _ if machine.ranks() > 0 => machine.clone(),
        (None, _) => machine.clone(),
        (Some(OpenSize::Grid), [_, ..]) => machine.with_sides(grid)?,
        (Some(_), _) => machine.with_endpoints(ranks as usize)?,
    })
}

/// Reject a message that does not fit into the memories at its ends, if the machine file states their capacity.
///
/// Each run of a scattered transfer counts separately, because studies write many transactions to one place as runs of
/// one transfer.
pub(crate) fn check_room(
    schedule: &Schedule,
    machine: &Machine,
    setup: &Setup,
) -> Result<(), SimError> {
    let endpoints = machine.endpoints();
    let Some(least) = endpoints.iter().filter_map(|e| e.capacity).min() else {
        return Ok(());
    };
    memory::check(schedule, machine, setup)?;
    let elements = schedule
        .buffers
        .iter()
        .map(|b| b.elements(schedule.elements));
    if elements.max().unwrap_or(0) * u64::from(schedule.element_bytes) <= least.0 {
        return Ok(()); // no message is larger than its buffer
    }
    for op in schedule.ops().iter().filter(|op| op.is_message()) {
        let buffer = schedule.buffer(op.src_buffer);
        let run_bytes = |(src, _, count): (u32, u32, u32)| {
            let span = buffer.span(schedule.elements, src..src + count);
            (span.end - span.start) * u64::from(schedule.element_bytes)
        };
        let bytes = schedule.chunk_ranges(op).map(run_bytes).max().unwrap_or(0);
        for &participant in schedule.sources(op).iter().chain(schedule.targets(op)) {
            let endpoint = &endpoints[setup.placement[participant as usize].index()];
            if let Some(room) = endpoint.capacity.filter(|room| room.0 < bytes) {
                return Err(SimError::NoRoom {
                    bytes,
                    endpoint: endpoint.name.clone(),
                    room: room.0,
                });
            }
        }
    }
    Ok(())
}

/// The path called `name`, or the default one.
pub(crate) fn path<'a>(machine: &'a Machine, name: Option<&str>) -> Result<&'a Path, SimError> {
    let Some(name) = name else {
        return Ok(machine.default_path());
    };
    let known = machine.paths().iter().map(|p| p.name.as_str());
    (machine.path(name)).ok_or_else(|| SimError::unknown(name, known))
}
