//! Round trips of a host and a device behind a PCIe link: request there, answer back.
//!
//! Each transport is a small schedule of operations on endpoints, simulated with the machine's fabric; no
//! formula stands next to it. Steps, with the participants that take them:
//!
//! | step | core | DMA engine | accelerator | user_buffers | in_place | word_store |
//! |---|---|---|---|---|---|---|
//! | the caller's input is copied to a DMA buffer | get from memory | | | x | | |
//! | doorbell | notice to the DMA engine | | | x | x | x |
//! | the input is fetched | | get from the core's buffer | | x | x | |
//! | the input is stored into the window | put to the accelerator | | | | | x |
//! | pipeline, from the last byte in to the first byte out | | | compute | x | x | x |
//! | the output is written | | put to the core's buffer | | x | x | x |
//! | completion mark, behind the output | | put to the core | | x | x | x |
//! | the output is copied to the caller's buffer | put to memory | | | x | | |
//!
//! The pipeline begins when the last byte has arrived, so input and output never overlap. The last copy
//! takes only the bytes of the output beyond those of the input: with `copy_out = "beyond_input"` the file
//! declares that form (measured round trips are sub-additive, for reasons that are not published); `"all"` copies all.
//!
//! The model gives the mean. The metric `round_trip_p99` is a rule on the result, `p99_offset + p99_factor x time`, and no mechanism: a model
//! without noise has no distribution.

use super::{section, waived, Answer, ModelProbe};
use crate::error::SimError;
use crate::fabrics;
use crate::setup::Setup;
use linkwright_core::machine::Section;
use linkwright_core::probes::{Assignment, ROUND_TRIP};
use linkwright_core::{EndpointId, Machine, MachineError, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::ir::{Buffer, Schedule};
use linkwright_schedule::Collective;

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &ROUND_TRIP,
    check: |machine| Parameters::read(machine).map(|_| ()),
    answer,
};

/// Computes count picoseconds.
const OPERATIONS_PER_S: f64 = 1e12;
const CORE: u32 = 0;
const DMA: u32 = 1;
const ACCELERATOR: u32 = 2;
const COPY_FORMS: [&str; 2] = ["all", "beyond_input"];
/// Ways of the input and the output: words of the axis `transport`.
const TRANSPORTS: [&str; 3] = ["user_buffers", "in_place", "word_store"];

/// `[probe.round_trip]`.
struct Parameters {
    /// Core, DMA engine, accelerator, memory.
    placement: [EndpointId; 4],
    transports: Vec<String>,
    smallest: u64,
    largest: u64,
    pipeline: TimePs,
    completion_mark: u64,
    copies_beyond_input: bool,
    p99_offset: TimePs,
    p99_factor: f64,
}

impl Parameters {
    fn read(machine: &Machine) -> Result<Parameters, SimError> {
        let mut s = section(machine, &ROUND_TRIP)?;
        let parts =
            ["core", "dma", "accelerator", "memory"].map(|key| endpoint(machine, &mut s, key));
        let [core, dma, accelerator, memory] = parts;
        let parameters = Parameters {
            placement: [core?, dma?, accelerator?, memory?],
            transports: s.texts("transports")?,
            smallest: s.bytes("smallest")?.0,
            largest: s.bytes("largest")?.0,
            pipeline: s.time("pipeline")?,
            completion_mark: s.bytes("completion_mark")?.0,
            copies_beyond_input: s.choice("copy_out", &COPY_FORMS)? == 1,
            p99_offset: s.time("p99_offset")?,
            p99_factor: s.ratio("p99_factor")?,
        };
        let unknown = (parameters.transports.iter()).find(|t| !TRANSPORTS.contains(&&***t));
        if let Some(unknown) = unknown {
            let problem = format!(
                "no transport \"{unknown}\" has a model; there are {}",
                TRANSPORTS.join(", ")
            );
            return Err(s.inconsistent("transports", problem).into());
        }
        s.finish()?;
        Ok(parameters)
    }

    /// The size as the machine moves it, or why it moves none such.
    fn size(&self, machine: &Machine, axis: &str, bytes: u64) -> Result<u64, SimError> {
        if (1..=self.largest).contains(&bytes) {
            return Ok(bytes.max(self.smallest));
        }
        let problem = match bytes {
            0 => "a round trip has at least one byte each way".to_string(),
            _ => format!(
                "machine `{}` is described up to {} B; beyond it the model would only guess",
                machine.name(),
                self.largest
            ),
        };
        Err(waived(&ROUND_TRIP, format!("{axis} = {bytes}: {problem}")))
    }
}

/// The endpoint that `key` names.
fn endpoint(machine: &Machine, s: &mut Section<'_>, key: &str) -> Result<EndpointId, MachineError> {
    let name = s.text(key)?;
    let index = machine.endpoints().iter().position(|e| e.name == name);
    let problem = || format!("no endpoint is named \"{name}\"; name one of [endpoints]");
    let index = index.ok_or_else(|| s.inconsistent(key, problem()))?;
    Ok(EndpointId(index as u32))
}

fn answer(machine: &Machine, asked: &Assignment) -> Result<Answer, SimError> {
    let parameters = Parameters::read(machine)?;
    let transport = asked.word("transport");
    if !parameters.transports.iter().any(|t| t == transport) {
        let reason = format!(
            "machine `{}` has no transport `{transport}`; it has {}",
            machine.name(),
            parameters.transports.join(", ")
        );
        return Err(waived(&ROUND_TRIP, reason));
    }
    let [input, output] =
        ["in_bytes", "out_bytes"].map(|axis| parameters.size(machine, axis, asked.number(axis)));
    let (input, output) = (input?, output?);
    let schedule = schedule(transport, input, output, &parameters)?;
    let setup = Setup {
        placement: parameters.placement.to_vec(),
        operations_per_s: Some(OPERATIONS_PER_S),
        ..Setup::new(4, machine.default_path().clone())
    };
    let mut fabric = fabrics::build(machine)?;
    let time = crate::simulate(&schedule, &mut *fabric, &setup)?.makespan;
    let p99_ps = parameters.p99_offset.0 as f64 + parameters.p99_factor * time.0 as f64;
    Ok(Answer {
        time,
        counted_bytes: input + output,
        moved_bytes: fabric.links().bytes.iter().sum(),
        work: 0,
        columns: vec![
            ("round_trip_mean", time.as_ns()),
            ("round_trip_p99", p99_ps / 1e3),
        ],
    })
}

/// The operations of one round trip.
fn schedule(
    transport: &str,
    input: u64,
    output: u64,
    parameters: &Parameters,
) -> Result<Schedule, SimError> {
    let mut shape = Shape::new(3, 1);
    shape.element_bytes = 1;
    let mut b = Builder::new(Collective::Pattern, &shape);
    let memory = b.memory();
    let request = b.buffer(sized("input", input));
    let reply = b.buffer(sized("output", output));
    let mark = b.buffer(sized("mark", parameters.completion_mark));
    let copied = match parameters.copies_beyond_input {
        true => output - output.min(input),
        false => output,
    };
    let copied = sized("copied", copied);
    let beyond = b.buffer(copied.clone());
    let callers_input = b.buffer(sized("caller's input", input).only_at(memory));
    let callers_output = b.buffer(copied.only_at(memory));

    b.step();
    let start = match transport {
        "user_buffers" => b
            .get(memory, callers_input.at(0), CORE, request.at(0))
            .position(),
        _ => b.compute(CORE, 0).position(),
    };
    b.step();
    let arrived = match transport {
        "word_store" => b.put(CORE, request.at(0), ACCELERATOR, request.at(0)),
        _ => b.get(CORE, request.at(0), DMA, request.at(0)),
    };
    let arrived = arrived.after(start).position();
    b.step();
    let pipeline = b.compute(ACCELERATOR, parameters.pipeline.0);
    let computed = pipeline.after(arrived).position();
    b.step();
    // The doorbell of the output buffer, which everything else outlasts.
    b.put(DMA, reply.at(0), CORE, reply.at(0))
        .after(computed)
        .after(start);
    b.step();
    let seen = b.put(DMA, mark.at(0), CORE, mark.at(0)).position();
    b.step();
    match transport {
        "user_buffers" => b
            .put(CORE, beyond.at(0), memory, callers_output.at(0))
            .after(seen),
        _ => b.compute(CORE, 0).after(seen),
    };
    Ok(b.finish()?)
}

/// A buffer of this many bytes in a schedule over vectors of one byte.
fn sized(name: &str, bytes: u64) -> Buffer {
    Buffer {
        mul: bytes as u32,
        ..Buffer::vector(name, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::probes::ROUND_TRIP;
    use proptest::prelude::*;

    fn machine() -> Machine {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/linkwright/machines/vollo-ia420f.toml"
        );
        Machine::parse(&std::fs::read_to_string(file).unwrap(), "vollo-ia420f.toml").unwrap()
    }

    fn asked(transport: &str, input: u64, output: u64) -> Result<Answer, SimError> {
        let (input, output) = (input.to_string(), output.to_string());
        let given = [
            ("transport", transport),
            ("in_bytes", &*input),
            ("out_bytes", &*output),
        ];
        answer(&machine(), &Assignment::parse(&ROUND_TRIP, &given).unwrap())
    }

    fn time(transport: &str, input: u64, output: u64) -> u64 {
        asked(transport, input, output).unwrap().time.0
    }

    #[test]
    fn a_raw_round_trip_is_the_sum_of_its_steps() {
        // Round numbers: the link and the engine carry 31.5 B/ns, so 4096 B each way are 16 chunks of MPS.
        let set = [
            ("fabric.dma_rate", "8"),
            ("fabric.link_efficiency", "1"),
            ("fabric.write_latency", "100"),
            ("fabric.read_latency", "300"),
            ("probe.round_trip.pipeline", "1000"),
        ];
        let machine = (set.iter()).fold(machine(), |m, (key, value)| {
            m.with_value(key, value).unwrap()
        });
        let given = [
            ("transport", "in_place"),
            ("in_bytes", "4096"),
            ("out_bytes", "4096"),
        ];
        let asked = Assignment::parse(&ROUND_TRIP, &given).unwrap();
        let found = answer(&machine, &asked).unwrap();
        // Doorbell of 88 B and 100; request of 24 B and 300; 4096 B at 8 B/ns; pipeline; 4096 B at 8 B/ns;
        // the mark of 8 B behind it in the engine, and 100.
        let wire = |bytes: f64| bytes / (16e9 * 16.0 * 128.0 / 130.0 / 8.0) * 1e12;
        let ps = wire(88.0) + 100e3 + wire(24.0) + 300e3 + 512e3 + 1000e3 + 512e3;
        // The mark's packet of 32 B outlasts its 1 ns in the engine.
        let ps = ps + wire(32.0).max(1e3) + 100e3;
        assert!(
            (found.time.0 as f64 - ps).abs() < 20.0,
            "{} and {ps}",
            found.time
        );
    }

    #[test]
    fn what_the_machine_does_not_do_is_waived_with_the_reason() {
        for (transport, input, expected) in [
            (
                "in_place",
                0,
                "in_bytes = 0: a round trip has at least one byte each way",
            ),
            ("in_place", 16_385, "described up to 16384 B"),
            (
                "pipe",
                64,
                "has no transport `pipe`; it has user_buffers, in_place, word_store",
            ),
        ] {
            let error = asked(transport, input, 64).unwrap_err();
            assert!(matches!(error, SimError::Waived { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        // Less than the smallest unit costs what that does.
        assert_eq!(time("word_store", 2, 8), time("word_store", 64, 64));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn time_grows_with_each_size(i in 1u64..16_000, o in 1u64..16_000, more in 1u64..384) {
            for transport in ["in_place", "word_store"] {
                let here = time(transport, i, o);
                prop_assert!(here <= time(transport, i + more, o));
                prop_assert!(here <= time(transport, i, o + more));
            }
            // A longer input spares copying as much of the output, so that one only by its own size.
            prop_assert!(time("user_buffers", i, o) <= time("user_buffers", i, o + more));
            prop_assert!(time("user_buffers", i, o) >= time("in_place", i, o));
        }

        #[test]
        fn no_round_trip_is_shorter_than_its_bytes_on_the_link(i in 1u64..16_000, o in 1u64..16_000) {
            let link = crate::fabrics::host_link::config::Config::from_machine(&machine()).unwrap().link;
            let least = link.read_time(i) + link.write_time(o);
            prop_assert!(time("in_place", i, o) >= least.0);
            prop_assert!(time("word_store", i, o) >= least.0);
        }
    }
}
