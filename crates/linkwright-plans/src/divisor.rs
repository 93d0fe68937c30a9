//! Common divisors, by which buffers are cut.

/// The greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}
