//! The recipes for a grid: digits, their order, parts, and the exchange of each stage.
//!
//! ```text
//!   digits     8 x 8     8@1 8@8     or with a side in two factors     2@1 4@2 8@8
//!                        or with a factor of one side and the whole other     8@1x2@8 4@16
//!   parts      1         x y                                           both ways
//!              2         x y ahead,  x y back
//!              2         x y, y x                                      both ways
//!              4         x y, y x ahead,  x y, y x back
//!   exchanges  of each stage, for sums and for copies
//! ```

use super::recipe::{Composition, Digit, Part, Primitive, Stage, Way};
use linkwright_schedule::Collective;

/// Every exchange.
pub(super) const COPIES: [Primitive; 5] = [
    Primitive::Direct,
    Primitive::Ring,
    Primitive::Doubling,
    Primitive::Swing,
    Primitive::Multicast,
];

/// Most stages of a part whose exchanges differ; of more, all are of one kind.
const MOST_MIXED: usize = 2;

/// All recipes for ranks in a grid of `sides`, in one piece each.
pub fn recipes(collective: Collective, sides: &[u32]) -> Vec<Composition> {
    let mut all = Vec::new();
    for digits in digit_sets(sides) {
        for frame in frames(&digits) {
            for exchanges in exchanges(collective, &frame[0]) {
                for whole in wholes(collective, frame[0].len()) {
                    all.push(compose(collective, &frame, &exchanges, whole));
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

type Skeleton = Vec<(Vec<Digit>, Way)>;

/// Digits by axis: each side whole, or all of them in two or three factors.
fn digit_sets(sides: &[u32]) -> Vec<Vec<Vec<Vec<Digit>>>> {
    let mut stride = 1;
    let mut axes = Vec::new();
    for (axis, &side) in sides.iter().enumerate().filter(|(_, &side)| side > 1) {
        let options: Vec<Vec<Digit>> = factors(side)
            .into_iter()
            .map(|factors| {
                let mut stride = stride;
                let digit = |radix: u32| {
                    let digit = Digit {
                        stride,
                        radix,
                        axis: axis as u8,
                    };
                    stride *= radix;
                    digit
                };
                factors.into_iter().map(digit).collect()
            })
            .collect();
        axes.push(options);
        stride *= side;
    }
    // The sides in the same way each, as far as they can.
    let most = axes.iter().map(Vec::len).max().unwrap_or(0);
    let set = |k: usize| {
        let pick = |options: &Vec<Vec<Digit>>| options[k.min(options.len() - 1)].clone();
        let picked: Vec<Vec<Digit>> = axes.iter().map(pick).collect();
        picked
            .into_iter()
            .map(|axis| axis.into_iter().map(|d| vec![d]).collect())
            .collect()
    };
    let mut sets: Vec<Vec<Vec<Vec<Digit>>>> = (0..most).map(set).collect();
    let all: Vec<Digit> = axes.iter().flat_map(|options| options[0].clone()).collect();
    if let [near, far] = all[..] {
        sets.extend(uneven(near, far));
    }
    if all.len() > 1 {
        sets.push(vec![vec![all]]);
    }
    sets
}

/// A plane in two stages of which one takes a factor of the other's side besides its own.
fn uneven(near: Digit, far: Digit) -> Vec<Vec<Vec<Vec<Digit>>>> {
    let cut = |digit: Digit, radix: u32| {
        let low = Digit { radix, ..digit };
        let high = Digit {
            stride: digit.stride * radix,
            radix: digit.radix / radix,
            ..digit
        };
        (low, high)
    };
    let factors = |side: u32| (2..side).filter(move |f| side % f == 0);
    let mut sets = Vec::new();
    for factor in factors(far.radix) {
        let (low, high) = cut(far, factor);
        sets.push(vec![vec![vec![near, low], vec![high]]]);
    }
    for factor in factors(near.radix) {
        let (low, high) = cut(near, factor);
        sets.push(vec![vec![vec![low], vec![high, far]]]);
    }
    sets
}

/// A side whole, as products of two, and of three where it is a cube.
fn factors(side: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![side]];
    let pairs = (2..side)
        .filter(|f| side % f == 0)
        .map(|f| vec![f, side / f]);
    all.extend(pairs);
    let root = (1..=side).find(|c| c * c * c >= side).unwrap_or(1);
    if root > 1 && root * root * root == side {
        all.push(vec![root; 3]);
    }
    all
}

/// The parts without their exchanges.
fn frames(axes: &[Vec<Vec<Digit>>]) -> Vec<Vec<Skeleton>> {
    let stages = |order: &[usize], far_first: bool, way: Way| -> Skeleton {
        let mut stages = Vec::new();
        for &axis in order {
            let digits = axes[axis].iter().cloned().map(|digits| (digits, way));
            match far_first {
                true => stages.extend(digits.rev()),
                false => stages.extend(digits),
            }
        }
        stages
    };
    let n = axes.len();
    let orders: Vec<Vec<usize>> = (0..n)
        .map(|first| (0..n).map(|k| (first + k) % n).collect())
        .collect();
    let mut frames = Vec::new();
    let far: &[bool] = if axes.iter().any(|axis| axis.len() > 1) {
        &[false, true]
    } else {
        &[false]
    };
    for &far_first in far {
        let of = |order: &Vec<usize>, way| stages(order, far_first, way);
        frames.extend(orders.iter().map(|order| vec![of(order, Way::Both)]));
        frames.extend(
            orders
                .iter()
                .map(|order| vec![of(order, Way::Ahead), of(order, Way::Back)]),
        );
        if n > 1 {
            frames.push(orders.iter().map(|order| of(order, Way::Both)).collect());
            let ways = [Way::Ahead, Way::Back];
            frames.push(
                ways.iter()
                    .flat_map(|&way| orders.iter().map(move |order| of(order, way)))
                    .collect(),
            );
            let turned = [(0, Way::Ahead), (n - 1, Way::Back)];
            frames.push(turned.map(|(order, way)| of(&orders[order], way)).to_vec());
        }
    }
    frames
}

/// The exchanges (sums, copies) of each stage.
fn exchanges(collective: Collective, frame: &Skeleton) -> Vec<Vec<(Primitive, Primitive)>> {
    let mut options: Vec<(Primitive, Primitive)> = Vec::new();
    for &gather in &COPIES {
        match collective {
            Collective::Alltoall => options.push((Primitive::Direct, Primitive::Direct)),
            Collective::Allgather => options.push((gather, gather)),
            Collective::ReduceScatter => options.push((gather, gather)),
            _ => options.extend(COPIES[..4].iter().map(|&scatter| (scatter, gather))),
        }
    }
    options.retain(|&(scatter, _)| {
        scatter != Primitive::Multicast || collective == Collective::Allgather
    });
    options.sort();
    options.dedup();
    let serves =
        |options: &[(Primitive, Primitive)], digits: &[Digit]| -> Vec<(Primitive, Primitive)> {
            let n: u32 = digits.iter().map(|digit| digit.radix).product();
            options
                .iter()
                .copied()
                .filter(|&(scatter, gather)| {
                    serves(scatter, n, digits.len()) && serves(gather, n, digits.len())
                })
                .collect()
        };
    let by_stage: Vec<_> = frame
        .iter()
        .map(|(digits, _)| serves(&options, digits))
        .collect();
    if frame.len() > MOST_MIXED {
        let everywhere =
            |o: &&(Primitive, Primitive)| by_stage.iter().all(|options| options.contains(o));
        return options
            .iter()
            .filter(everywhere)
            .map(|&o| vec![o; frame.len()])
            .collect();
    }
    let mut all = vec![Vec::new()];
    for options in by_stage {
        let with = |before: &Vec<(Primitive, Primitive)>| {
            let before = before.clone();
            options
                .iter()
                .map(move |&o| [&before[..], &[o]].concat())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// Whether `primitive` is one of its own among `n` members.
pub(super) fn serves(primitive: Primitive, n: u32, digits: usize) -> bool {
    match primitive {
        Primitive::Direct => true,
        Primitive::Multicast => n > 2,
        Primitive::Ring => digits == 1 && n > 2,
        Primitive::Doubling => digits == 1 && n.is_power_of_two() && n > 2,
        Primitive::Swing => digits == 1 && n % 2 == 0 && n > 4,
    }
}

fn wholes(collective: Collective, stages: usize) -> std::ops::RangeInclusive<usize> {
    match collective {
        Collective::Allreduce | Collective::Broadcast => 0..=stages,
        _ => 0..=0,
    }
}

fn compose(
    collective: Collective,
    frame: &[Skeleton],
    exchanges: &[(Primitive, Primitive)],
    whole: usize,
) -> Composition {
    let part = |skeleton: &Skeleton| Part {
        stages: (skeleton.iter().zip(exchanges).enumerate())
            .map(|(k, ((digits, way), &(scatter, gather)))| Stage {
                digits: digits.clone(),
                // Nothing is scattered along the first ones.
                scatter: if k < whole { gather } else { scatter },
                gather,
                way: *way,
            })
            .collect(),
        whole,
    };
    Composition {
        collective,
        parts: frame.iter().map(part).collect(),
        slices: 1,
        slots: None,
        reads: None,
    }
}
