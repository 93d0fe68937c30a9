//! Random numbers: a start per call, then samples at a rate, each endpoint its own block.
//!
//! ```text
//!   T = start + block / 8 B / rate          rate of all = threads x samples / T, saturates with the block
//! ```
//!
//! The generator is the machine's own, so only `machine` is answered.

use super::compute::Compute;
use super::{levels, waived, Answer, ModelProbe};
use crate::error::SimError;
use linkwright_core::probes::{Assignment, RANDOM};
use linkwright_core::{Machine, TimePs};

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &RANDOM,
    check: |machine| Compute::read(machine, &RANDOM).map(|_| ()),
    answer,
};

/// Bytes of one sample.
const SAMPLE: u64 = 8;
/// The word of the axis that stands for the generator of a described machine.
const OWN: &str = "machine";

fn answer(machine: &Machine, asked: &Assignment) -> Result<Answer, SimError> {
    let generator = Compute::read(machine, &RANDOM)?.random(&RANDOM)?;
    let word = asked.word("generator");
    if word != OWN {
        let reason = format!(
            "`{}` has a generator of its own, not {word}; ask for `{OWN}`",
            machine.name()
        );
        return Err(waived(&RANDOM, reason));
    }
    let (block, threads) = (asked.number("block"), asked.number("threads"));
    levels::enough_endpoints(machine, &RANDOM, threads)?;
    let samples = block / SAMPLE;
    let filling = TimePs::from_secs_f64(samples as f64 / generator.rate);
    Ok(Answer {
        time: generator.start + filling,
        counted_bytes: threads * block,
        moved_bytes: threads * block,
        work: threads * samples,
        columns: Vec::new(),
    })
}
