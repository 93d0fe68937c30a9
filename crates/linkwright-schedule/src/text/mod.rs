//! Schedules as text: what is printed is read back exactly.
//!
//! ```text
//! linkwright-schedule 1
//! ranks 2
//! memories 0
//! elements 1024
//! element_bytes 4
//! spec allreduce
//! root 0
//! buffer output 1 slices=1 size=1/1 at=ranks
//! buffer scratch 1 slices=1 size=1/1 at=ranks
//! edges given
//! step 1
//! t0 put 0:output[0] -> 1:scratch[0] replace lane=0 src_after=- dst_after=-
//! t1 put 1:output[0] -> 0:scratch[0] replace lane=0 src_after=- dst_after=-
//! t2 local 1:scratch[0] -> 1:output[0] reduce lane=255 after=t0,t1
//! t3 local 0:scratch[0] -> 0:output[0] reduce lane=255 after=t1,t0
//! end
//! ```
//!
//! One operation per line, ids counting up from 0. `after=t3!` waits for the acknowledgement of
//! t3. Waits of a transfer stand at the side that does the waiting; those at the side that does
//! not initiate it become notices when they are read. With `edges infer` a file has no edges, ids
//! are optional, steps are simultaneous, and the edges are found as for any algorithm.
//!
//! The last line is `end`, so that half a file is not taken for a whole one.

mod cursor;
mod parse;
mod print;
mod remote;

pub use parse::{parse, ParseError};
pub use print::{print, write, VERSION_LINE};

#[cfg(test)]
mod tests;
