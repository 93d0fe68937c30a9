//! Pairwise alltoall: one partner after the other.
//!
//! ```text
//!   p a power of two    step s = 1 .. p-1:   r and r XOR s exchange
//!   else                                     r sends to r+s and receives from r-s
//! ```
//!
//! In every step each rank sends one message and receives one, so no port is fought for. A rank
//! begins a step when its message of the step before has arrived (a fence before each but the first);
//! that is all that tells it from the linear one.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::Shape;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::{Group, Program};

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "pairwise",
    summary: "everyone exchanges with one rank after the other",
    description: "One message per rank at a time, so ports are not fought for; the choice for \
                  large blocks.",
    cost: "p-1 rounds, S (p-1)/p bytes per rank",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let group = match p.is_power_of_two() {
        true => Group::xor(p),
        false => Group::cyclic(p),
    };
    let mut b = Program::new(Collective::Alltoall, shape, group)?;
    let (input, output) = (b.relative("input"), b.relative("output"));
    b.step();
    b.local(input.at(0), output.at(0));
    for ahead in 1..p {
        let written = b.put(input.at(ahead), ahead, output.at(0));
        if ahead > 1 {
            written.fenced();
        }
        b.step();
    }
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    program(shape)?.expand()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};

    #[test]
    fn one_message_at_a_time() {
        for p in [32, 33] {
            let schedule = build(&Shape::new(p, 10 * p as u64)).unwrap();
            let bytes = 40 * (p as u64 - 1);
            assert_eq!(rounds(&schedule), p as usize - 1);
            assert_eq!(bytes_sent(&schedule), (bytes, bytes));
            assert_eq!(notices(&schedule), 0);
        }
    }
}
