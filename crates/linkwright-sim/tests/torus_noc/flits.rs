//! Packets against single flits, everything offered at once: saturated links.

use super::common::*;
use super::oracle::{Net, Oracle};
use linkwright_sim::fabric::{Event, Msg};
use linkwright_sim::fabrics::torus_noc::*;

const NET: Net = Net {
    width: 10,
    height: 12,
    shortest: false,
    place: |rank| (COLUMNS[rank as usize % 8], ROWS[rank as usize / 8]),
};

fn traffic(seed: u64, each: u32, largest: u64) -> Vec<Msg> {
    let mut random = Random(seed);
    (0..64 * each)
        .map(|op| {
            put(
                op,
                op % 64,
                random.below(64) as u32,
                1 + random.below(largest),
            )
        })
        .collect()
}

/// Relative error of the mean and of the last delivery, packets against flits.
fn errors(messages: &[Msg], buffers: Option<Buffers>) -> (f64, f64) {
    let exact = Oracle::run(
        NET,
        messages,
        &vec![0; messages.len()],
        buffers.is_some(),
        false,
    );
    let config = TorusNocConfig { buffers, ..grid() };
    let done = run(&mut TorusNoc::new(config), messages);
    let model: Vec<f64> = messages
        .iter()
        .map(|m| at(&done, m.op, Event::Delivered))
        .collect();
    let mean = model.iter().sum::<f64>() / exact.iter().sum::<u64>() as f64 - 1.0;
    let last = model.iter().copied().fold(0.0, f64::max);
    (
        mean,
        last / exact.iter().copied().max().unwrap_or(1) as f64 - 1.0,
    )
}

#[test]
fn packets_agree_with_flits_on_saturated_links() {
    // Random targets, everything offered at once: links are shared and buffers full all the time.
    // Who comes first at a lane decides much here and differs by single cycles, so compare means.
    let mut sums = [(0.0, 0.0); 2];
    let cases = [(4, 8192), (4, 2048), (8, 512), (8, 256), (8, 32)];
    for (each, largest) in cases {
        for seed in [1, 2] {
            let messages = traffic(seed, each, largest);
            for (buffers, sum) in [Some(FINITE), None].into_iter().zip(&mut sums) {
                let (mean, last) = errors(&messages, buffers);
                println!("{each} x {largest} B, {buffers:?}: mean {mean:.4}, last {last:.4}");
                let most = if buffers.is_some() { 0.12 } else { 0.04 };
                assert!(mean.abs() < most && last.abs() < most);
                *sum = (sum.0 + mean, sum.1 + last);
            }
        }
    }
    let average = sums.map(|(mean, last)| (mean / 10.0, last / 10.0));
    println!("on average {average:?}");
    assert!(
        average[0].0.abs() < 0.03 && average[0].1.abs() < 0.05,
        "finite {average:?}"
    );
    assert!(
        average[1].0.abs() < 0.01 && average[1].1.abs() < 0.01,
        "unlimited {average:?}"
    );
}
