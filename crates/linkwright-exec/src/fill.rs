//! Data whose reduction is exactly predictable in any order, and the check against it.
//!
//! A float sum depends on its order, so a wrong algorithm can hide behind a tolerance. Here no
//! tolerance is needed: the data are chosen such that every partial result is exactly representable.
//!
//! | type | sum | prod | max, min |
//! |---|---|---|---|
//! | integers | any value, arithmetic wraps | any odd value, wraps, never 0 | any value |
//! | floats | integers up to M / p, M = 2^8 (bf16), 2^24 (f32), 2^53 (f64) | +-2^k, k in -1, 0, 1 | integers up to M |
//!
//! With M the largest magnitude up to which every integer is representable, any partial sum of p
//! values is exact. Where p > M (bf16 beyond 256 ranks) only every ceil(p / M)-th rank contributes
//! a one, in a pattern that shifts with the element, so that each rank still matters somewhere. A
//! collective that repeats itself in place counts each contribution `times` over; then M / times takes
//! the place of M.
//! Exponents of products are drawn for the first 100 ranks only, and not if contributions count more
//! than once; the others contribute signs.
//!
//! A value is a hash of (seed, rank, element): a missing, doubled or misplaced contribution shows.
//! The idea is that of nccl-tests' `verifiable.h`.

use crate::aligned::AlignedBytes;
use crate::dtype::{combine, DType, Element, ReduceOp, PROD};
use half::bf16;

/// Ranks whose factors may have an exponent: far below the range of every float type.
const EXPONENT_RANKS: u32 = 100;

/// A rule that gives every element of every rank its value.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Element type.
    pub dtype: DType,
    /// The reduction that must stay exact.
    pub op: ReduceOp,
    /// How many contributions one result may have.
    pub ranks: u32,
    /// How often a result counts each of them.
    pub times: u64,
    /// Another seed, other data.
    pub seed: u64,
}

impl Fill {
    /// Whether values exist whose reduction is exact.
    pub fn is_exact(&self) -> bool {
        let exact = match self.dtype {
            DType::F32 => f32::EXACT,
            DType::F64 => f64::EXACT,
            DType::I32 => i32::EXACT,
            DType::I64 => i64::EXACT,
            DType::U8 => u8::EXACT,
            DType::Bf16 => bf16::EXACT,
        };
        self.op != ReduceOp::Sum || exact.is_none_or(|exact| self.times <= exact)
    }

    /// Writes elements `first..` of `rank` over `out`, which is aligned and holds whole elements.
    pub fn write(&self, rank: u32, first: usize, out: &mut [u8]) {
        match self.dtype {
            DType::F32 => self.write_as::<f32>(rank, first, out),
            DType::F64 => self.write_as::<f64>(rank, first, out),
            DType::I32 => self.write_as::<i32>(rank, first, out),
            DType::I64 => self.write_as::<i64>(rank, first, out),
            DType::U8 => self.write_as::<u8>(rank, first, out),
            DType::Bf16 => self.write_as::<bf16>(rank, first, out),
        }
    }

    fn write_as<T: Filled>(&self, rank: u32, first: usize, out: &mut [u8]) {
        // SAFETY: any bytes are valid numbers of these types, and the middle part is aligned.
        let (head, values, tail) = unsafe { out.align_to_mut::<T>() };
        assert!(
            head.is_empty() && tail.is_empty(),
            "buffers are aligned and hold whole elements"
        );
        let rule = Rule::<T>::new(self, rank);
        for (i, value) in values.iter_mut().enumerate() {
            *value = rule.value((first + i) as u64);
        }
    }

    /// What elements must be after combining `contributions`, each a rank and its first element.
    pub fn expect(&self, contributions: &[(u32, usize)], out: &mut [u8], scratch: &mut [u8]) {
        let Some((&(rank, first), others)) = contributions.split_first() else {
            return;
        };
        self.write(rank, first, out);
        for &(rank, first) in others {
            let scratch = &mut scratch[..out.len()];
            self.write(rank, first, scratch);
            combine(self.dtype, self.op, out, scratch);
        }
    }

    /// Combine `out` with itself until it counts `times` over: the square and multiply of powers.
    pub fn multiply(&self, out: &mut [u8]) {
        if self.times < 2 {
            return;
        }
        let copy = |from: &[u8]| {
            let mut bytes = AlignedBytes::new(from.len());
            bytes.get_mut().copy_from_slice(from);
            bytes
        };
        let once = copy(out);
        for bit in (0..self.times.ilog2()).rev() {
            let half = copy(out);
            combine(self.dtype, self.op, out, half.get());
            if self.times >> bit & 1 == 1 {
                combine(self.dtype, self.op, out, once.get());
            }
        }
    }
}

/// How many elements differ in any bit.
pub fn wrong_elements(dtype: DType, got: &[u8], want: &[u8]) -> usize {
    assert_eq!(got.len(), want.len(), "compare what has the same length");
    if got == want {
        return 0;
    }
    let size = dtype.size();
    let pairs = got.chunks(size).zip(want.chunks(size));
    pairs.filter(|(got, want)| got != want).count()
}

/// A type that can hold a filled value.
trait Filled: Element {
    /// Largest magnitude up to which all integers are exact; `None`: arithmetic wraps.
    const EXACT: Option<u64>;
    fn from_integer(value: i64) -> Self;
    /// `2^exponent`; used for floats only.
    fn power_of_two(exponent: i32) -> Self;
}

macro_rules! filled {
    ($($type:ty: $exact:expr, $from:expr, $power:expr;)*) => {$(
        impl Filled for $type {
            const EXACT: Option<u64> = $exact;
            #[inline(always)]
            fn from_integer(value: i64) -> Self { $from(value) }
            #[inline(always)]
            fn power_of_two(exponent: i32) -> Self { $power(exponent) }
        }
    )*};
}

filled! {
    f32: Some(1 << 24), |v| v as f32, |e| (e as f32).exp2();
    f64: Some(1 << 53), |v| v as f64, |e| f64::from(e).exp2();
    bf16: Some(1 << 8), |v| bf16::from_f32(v as f32), |e| bf16::from_f32((e as f32).exp2());
    i32: None, |v| v as i32, |_| 1;
    i64: None, |v| v, |_| 1;
    u8: None, |v| v as u8, |_| 1;
}

/// The values of one rank.
struct Rule<T> {
    key: u64,
    op: ReduceOp,
    /// Magnitudes are drawn from `-limit..=limit`.
    limit: u64,
    /// Above one: only one in `sparse` ranks contributes to an element.
    sparse: u64,
    rank: u64,
    powers: [T; 3],
}

impl<T: Filled> Rule<T> {
    fn new(fill: &Fill, rank: u32) -> Rule<T> {
        let ranks = u64::from(fill.ranks.max(1));
        let (limit, sparse) = match (T::EXACT, fill.op) {
            (None, _) => (u64::MAX, 1),
            (Some(exact), ReduceOp::Sum) => {
                let exact = (exact / fill.times).max(1);
                ((exact / ranks).max(1), ranks.div_ceil(exact))
            }
            (Some(exact), _) => (exact, 1),
        };
        let has_exponent = rank < EXPONENT_RANKS && fill.times == 1;
        let exponent = if has_exponent { 1 } else { 0 };
        Rule {
            key: mix(fill.seed ^ mix(u64::from(rank) + 1)),
            op: fill.op,
            // Values beyond a thousand tell no more and make failures harder to read.
            limit: if T::EXACT.is_some() {
                limit.min(1_000)
            } else {
                limit
            },
            sparse,
            rank: u64::from(rank),
            powers: [-exponent, 0, exponent].map(T::power_of_two),
        }
    }

    #[inline(always)]
    fn value(&self, element: u64) -> T {
        let hash = mix(self.key ^ element.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        match (T::EXACT.is_some(), self.op) {
            (false, ReduceOp::Prod) => T::from_integer((hash | 1) as i64),
            (false, _) => T::from_integer(hash as i64),
            (true, ReduceOp::Prod) => {
                let power = self.powers[((hash >> 32) % 3) as usize];
                let sign = 1 - 2 * (hash & 1) as i64;
                power.combined::<PROD>(T::from_integer(sign))
            }
            (true, _) if self.sparse > 1 => {
                T::from_integer(i64::from((self.rank + element) % self.sparse == 0))
            }
            (true, _) => {
                // The upper half of the hash times the span: an unbiased enough draw, no division.
                let span = 2 * self.limit + 1;
                let drawn = ((hash >> 32) * span) >> 32;
                T::from_integer(drawn as i64 - self.limit as i64)
            }
        }
    }
}

/// The finaliser of splitmix64: every bit of the input moves every bit of the output.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{AlignedBytes, Data};

    /// Reduces 0..ranks in the order given, without `expect`.
    fn reduce(fill: &Fill, order: impl Iterator<Item = u32>, n: usize) -> Vec<u8> {
        let bytes = n * fill.dtype.size();
        let (mut sum, mut next) = (AlignedBytes::new(bytes), AlignedBytes::new(bytes));
        for (i, rank) in order.enumerate() {
            if i == 0 {
                fill.write(rank, 5, sum.get_mut());
            } else {
                fill.write(rank, 5, next.get_mut());
                combine(fill.dtype, fill.op, sum.get_mut(), next.get());
            }
        }
        sum.get().to_vec()
    }

    #[test]
    fn reductions_do_not_depend_on_the_order() {
        for dtype in DType::ALL {
            for op in ReduceOp::ALL {
                for ranks in [1, 2, 7, 128, 300] {
                    let fill = Data { dtype, op, seed: 3 }.fill(ranks);
                    let forward = reduce(&fill, 0..ranks, 40);
                    let backward = reduce(&fill, (0..ranks).rev(), 40);
                    let shuffled = reduce(&fill, (0..ranks).map(|r| r * 101 % ranks), 40);
                    assert_eq!(forward, backward, "{dtype} {op} {ranks}");
                    assert_eq!(forward, shuffled, "{dtype} {op} {ranks}");
                }
            }
        }
    }

    #[test]
    fn a_missing_rank_is_noticed() {
        for dtype in DType::ALL {
            for op in [ReduceOp::Sum, ReduceOp::Prod] {
                for ranks in [2, 9, 300] {
                    let fill = Data { dtype, op, seed: 3 }.fill(ranks);
                    let n = 64;
                    let whole = reduce(&fill, 0..ranks, n);
                    let partial = reduce(&fill, 0..ranks - 1, n);
                    assert!(
                        wrong_elements(dtype, &partial, &whole) > 0,
                        "{dtype} {op} {ranks}"
                    );
                }
            }
        }
    }

    #[test]
    fn expectation_is_the_reduction_of_shifted_pieces() {
        let fill = Data::sums(DType::I32, 9).fill(3);
        let [mut want, mut scratch, mut piece] = [40; 3].map(AlignedBytes::new);
        let contributions = [(0, 5), (1, 5), (2, 5)];
        fill.expect(&contributions, want.get_mut(), scratch.get_mut());
        assert_eq!(want.get(), reduce(&fill, 0..3, 10));
        fill.write(0, 7, piece.get_mut());
        let mut whole = AlignedBytes::new(80);
        fill.write(0, 0, whole.get_mut());
        assert_eq!(whole.get()[28..68], *piece.get());
    }

    #[test]
    fn wrong_elements_are_counted_once_each() {
        let want = [1u8, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(wrong_elements(DType::I32, &want, &want), 0);
        let got = [9u8, 9, 9, 9, 2, 0, 0, 0];
        assert_eq!(wrong_elements(DType::I32, &got, &want), 1);
    }
}
