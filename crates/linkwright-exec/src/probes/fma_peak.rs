//! Peak floating-point rate of one core or of many; [`crate::compute::fma`] does the operations.

use super::probe::{team, waived, Answer, Probe, Setting};
use super::workers::Workers;
use crate::compute::fma::{widest, Precision};
use crate::error::Result;
use linkwright_core::probes::{Assignment, FMA_PEAK};
use std::hint::black_box;

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &FMA_PEAK,
    measure,
};

/// Steps of one operation: some microseconds.
const STEPS: u64 = 1000;

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let Some(precision) = Precision::of(axes.word("dtype")) else {
        let reason = "there is no kernel for 16-bit elements; ask for f32 or f64";
        return Err(waived(&FMA_PEAK, reason));
    };
    let threads = team(axes, setting, &FMA_PEAK)?;
    let kernel = widest(precision);
    let work = |n: u32| {
        (0..n).for_each(|_| {
            black_box(kernel.run(STEPS));
        })
    };
    let follow = |_: usize, workers: &Workers| {
        workers.follow(work);
        Ok(())
    };
    let lead = |workers: &Workers| {
        Ok(Answer {
            samples: workers.sample(setting, |n| workers.round(n, work)),
            work: (threads as u64 * STEPS * kernel.flops()) as f64,
            notes: vec![format!("{} kernel", kernel.name)],
            ..Answer::default()
        })
    };
    Workers::launch(setting, threads - 1, follow, lead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampling;
    use crate::topology::allowed_cpus;
    use std::time::Duration;

    fn peak(pairs: &[(&str, &str)]) -> Result<Answer> {
        let setting = Setting {
            sampling: Sampling::of(10, 3, Duration::from_secs(5)),
            ..Setting::of(allowed_cpus())
        };
        measure(&Assignment::parse(&FMA_PEAK, pairs).unwrap(), &setting)
    }

    #[test]
    fn single_precision_does_twice_the_work_of_double() {
        let (single, double) = (peak(&[]).unwrap(), peak(&[("dtype", "f64")]).unwrap());
        assert_eq!(single.work, 2.0 * double.work);
        for answer in [single, double] {
            let best = answer
                .samples
                .values_ns
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min);
            // No core does less than one operation, or more than 1024, in a nanosecond.
            assert!(
                (1.0..1024.0).contains(&(answer.work / best)),
                "{} in {best}",
                answer.work
            );
        }
    }

    #[test]
    fn what_cannot_be_done_is_waived_with_the_reason() {
        let reason = |pairs| peak(pairs).unwrap_err().to_string();
        assert!(reason(&[("dtype", "f16")]).contains("ask for f32"));
        assert!(reason(&[("threads", "100000")]).contains("100000"));
    }
}
