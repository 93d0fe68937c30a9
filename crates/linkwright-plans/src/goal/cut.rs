//! Buffers in which every message has a place of its own, of exactly its size.
//!
//! ```text
//!   messages of 8 B      input8: one chunk       output8: one chunk for each message to the busiest rank
//!   messages of 4096 B   input4096               output4096
//!   all other sizes      input, output: chunks of their common divisor, several for each message
//! ```

use crate::divisor::gcd;
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::MAX_CHUNKS;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most sizes with buffers of their own; a schedule has at most 256 buffers.
const MOST_SIZES: usize = 120;

/// Most counters of arrivals, by size and rank.
const MOST_COUNTERS: usize = 1 << 22;

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// Messages that share a pair of buffers.
#[derive(Clone, Debug)]
struct Class {
    /// `8` of `input8`; empty where several sizes share the buffers.
    name: String,
    /// Bytes of one chunk.
    chunk: u64,
    /// Chunks of the largest message.
    largest: u64,
    /// Chunks that have arrived at each rank so far.
    arrived: Vec<u64>,
}

/// The buffers of a list of messages.
pub(super) struct Cut {
    /// Greatest common divisor of all sizes, in bytes.
    unit: u64,
    classes: Vec<Class>,
    of_size: BTreeMap<u64, usize>,
}

impl Cut {
    /// Buffers for `messages` between `ranks` ranks.
    pub fn new(messages: impl Iterator<Item = Message>, ranks: u32) -> Self {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        messages.for_each(|message| *counts.entry(message.bytes).or_default() += 1);
        let unit = counts.keys().copied().fold(0, gcd).max(1);
        let most = (MOST_COUNTERS / ranks as usize).clamp(1, MOST_SIZES);
        let mut sizes: Vec<u64> = counts.keys().copied().collect();
        // Those that would take most chunks of the common divisor get buffers of their own.
        sizes.sort_by_key(|size| std::cmp::Reverse((size / unit).saturating_mul(counts[size])));
        let shared = match sizes.len() > most {
            true => sizes.split_off(most - 1),
            false => Vec::new(),
        };
        let arrived = vec![0; ranks as usize];
        let mut classes: Vec<Class> = (sizes.iter())
            .map(|&size| Class {
                name: size.to_string(),
                chunk: size,
                largest: 1,
                arrived: arrived.clone(),
            })
            .collect();
        let mut of_size: BTreeMap<u64, usize> = sizes.into_iter().zip(0..).collect();
        of_size.extend(shared.iter().map(|&size| (size, classes.len())));
        let chunk = shared.iter().copied().fold(0, gcd);
        if let Some(&largest) = shared.iter().max() {
            classes.push(Class {
                name: String::new(),
                chunk,
                largest: largest / chunk,
                arrived,
            });
        }
        Cut {
            unit,
            classes,
            of_size,
        }
    }

    /// Write the chunks that a message is read from and written to: ` 0:input8[0] -> 1:output8[3]`.
    pub fn place(&mut self, text: &mut String, message: Message) {
        let class = &mut self.classes[self.of_size[&message.bytes]];
        let first = class.arrived[message.to as usize];
        let end = first + message.bytes / class.chunk;
        class.arrived[message.to as usize] = end;
        let (name, length) = (&class.name, end - first);
        let Message { from, to, .. } = message;
        let _ = write!(
            text,
            " {from}:input{name}[0..{length}] -> {to}:output{name}[{first}..{end}]"
        );
    }

    /// The vector and the buffers as a schedule declares them, once all messages have their places.
    pub fn declarations(&self) -> Result<String> {
        // A buffer is a fraction of two numbers of 32 bits times the vector; where the unit is too small for
        // that, the vector has as many times the unit as it needs.
        let vectors = (0..32).filter_map(|doublings| self.unit.checked_mul(1 << doublings));
        let mut problem = None;
        for vector in vectors {
            match self.declared(vector) {
                Ok(text) => return Ok(text),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        Err(problem.expect("one vector is the unit"))
    }

    fn declared(&self, vector: u64) -> Result<String> {
        let mut text = format!("elements {vector}\nelement_bytes 1\nspec pattern\n");
        for class in &self.classes {
            let name = &class.name;
            let arrived = class.arrived.iter().copied().max().unwrap_or(0);
            for (side, chunks) in [("input", class.largest), ("output", arrived)] {
                let bytes = chunks.checked_mul(class.chunk);
                let size = bytes.and_then(|bytes| fraction(bytes, vector));
                let Some((mul, div)) = size.filter(|_| chunks <= u64::from(MAX_CHUNKS)) else {
                    return Err(self.too_large(class, chunks));
                };
                let _ = writeln!(
                    text,
                    "buffer {side}{name} {chunks} slices=1 size={mul}/{div} at=ranks"
                );
            }
        }
        Ok(text)
    }

    fn too_large(&self, class: &Class, chunks: u64) -> PlanError {
        let bytes = u128::from(chunks) * u128::from(class.chunk);
        PlanError::whole(format!(
            "{bytes} B arrive at one rank in messages whose sizes have no larger common divisor than {} B; round the \
             sizes to whole KiB, or cut the trace into shorter ones",
            if class.name.is_empty() { class.chunk } else { self.unit }
        ))
    }
}

/// `bytes` as a fraction of `vector`, where a schedule can hold it.
fn fraction(bytes: u64, vector: u64) -> Option<(u32, u32)> {
    let common = gcd(bytes, vector);
    let (mul, div) = (
        u32::try_from(bytes / common).ok()?,
        u32::try_from(vector / common).ok()?,
    );
    vector.checked_mul(u64::from(mul)).map(|_| (mul, div))
}
