//! Random numbers by generator and block size, of the `rand` crates; those of NumPy are measured in Python.

use super::memory::check_room;
use super::probe::{team, waived, Answer, Probe, Setting};
use super::workers::Workers;
use crate::compute::generators;
use crate::error::Result;
use linkwright_core::probes::{Assignment, RANDOM};

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &RANDOM,
    measure,
};

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let key = axes.word("generator");
    let Some(seeded) = generators::find(key) else {
        return Err(waived(&RANDOM, format!("{key} is measured in Python")));
    };
    let threads = team(axes, setting, &RANDOM)?;
    let samples = axes.number("block") as usize / size_of::<f64>();
    if samples == 0 {
        return Err(waived(
            &RANDOM,
            "a block holds at least one sample of 8 bytes",
        ));
    }
    let bytes = (threads * samples * size_of::<f64>()) as u64;
    check_room(&RANDOM, setting, bytes)?;
    // Each thread makes and touches its own block.
    let worker = |number: usize| {
        let mut fill = seeded(setting.seed.wrapping_add(number as u64));
        let mut block = vec![0.0; samples];
        move |n: u32| (0..n).for_each(|_| fill(&mut block))
    };
    let follow = |number: usize, workers: &Workers| {
        workers.follow(worker(number + 1));
        Ok(())
    };
    let lead = |workers: &Workers| {
        let mut own = worker(0);
        Ok(Answer {
            samples: workers.sample(setting, |n| workers.round(n, &mut own)),
            counted_bytes: bytes as f64,
            moved_bytes: bytes as f64,
            work: (threads * samples) as f64,
            ..Answer::default()
        })
    };
    Workers::launch(setting, threads - 1, follow, lead)
}
