//! How the times of a machine differ from one launch to the next: `[noise]`.
//!
//! ```text
//! [noise]                                      # each key is optional, and may have a unit, a status and a source
//! start_up = { value = 200, unit = "ns", ... }       a software start-up ends up to this much later
//! poll = { value = 8, unit = "cycle", ... }          software looks for a completion or an arrival this often
//! rate = { value = 0.02, unit = "ratio", ... }       data of a message take up to this share longer
//! interrupt_every = { value = 4, unit = "ms", ... }  once in each such interval, at a random moment of it,
//! interrupt = { value = 5, unit = "us", ... }        a rank does nothing of its own for this long
//! arbitration = { value = "random", ... }            who goes first of messages that leave at one instant
//! ```
//!
//! All of it makes a machine slower, never faster: a number elsewhere in the file is that of an undisturbed one. Without
//! the table every launch takes the same time. `linkwright-sim/src/noise.rs` has the equations.

use super::section::Section;
use crate::error::MachineError;
use crate::units::TimePs;

/// Most by which data may take longer, as a share: beyond it a rate is a different rate, not a noisy one.
const MOST_RATE: f64 = 10.0;

/// What delays a machine at random.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Most by which a software start-up of a message is late.
    pub start_up: TimePs,
    /// Time between two looks for a completion or an arrival.
    pub poll: TimePs,
    /// Most by which the data of a message take longer, as a share of their time on an idle fabric.
    pub rate: f64,
    /// Interval that has one interrupt at each rank; zero: there are none.
    pub interrupt_every: TimePs,
    /// How long one keeps a rank.
    pub interrupt: TimePs,
    /// Whether messages that leave at one instant go in random order.
    pub shuffled: bool,
}

impl Noise {
    pub(super) fn read(mut s: Section<'_>) -> Result<Self, MachineError> {
        let time = |s: &mut Section<'_>, key| Ok(s.optional_time(key)?.unwrap_or_default());
        let noise = Noise {
            start_up: time(&mut s, "start_up")?,
            poll: time(&mut s, "poll")?,
            rate: s.optional_ratio("rate")?.unwrap_or_default(),
            interrupt_every: time(&mut s, "interrupt_every")?,
            interrupt: time(&mut s, "interrupt")?,
            shuffled: s.optional_choice("arbitration", &["order", "random"])? == Some(1),
        };
        if noise.rate > MOST_RATE {
            let problem = format!("{} is too noisy; write at most {MOST_RATE}", noise.rate);
            return Err(s.inconsistent("rate", problem));
        }
        if (noise.interrupt_every > TimePs::ZERO) != (noise.interrupt > TimePs::ZERO) {
            let problem = "needs both its length and `interrupt_every`, above 0; add the other";
            return Err(s.inconsistent("interrupt", problem));
        }
        if 2 * noise.interrupt.0 > noise.interrupt_every.0 {
            let problem = "takes more than half of `interrupt_every`; write a shorter one";
            return Err(s.inconsistent("interrupt", problem));
        }
        s.finish()?;
        Ok(noise)
    }
}
