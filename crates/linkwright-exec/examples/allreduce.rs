//! One launch of every allreduce at the sizes given, as lines `size_bytes,algorithm,median_ns,min_ns`.
//!
//! `cargo run --release -p linkwright-exec --example allreduce -- RANKS SIZE...`

use linkwright_exec::buffers::Data;
use linkwright_exec::dtype::DType;
use linkwright_exec::executor::RunOptions;
use linkwright_exec::sampling::{median, Sampling};
use linkwright_exec::threads::Threads;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives;
use linkwright_schedule::spec::Collective;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .map(|argument| argument.parse())
        .collect::<Result<_, _>>()?;
    let [ranks, sizes @ ..] = &arguments[..] else {
        return Err("usage: allreduce RANKS SIZE...".into());
    };
    let threads = Threads::new();
    let options = RunOptions {
        sampling: Sampling {
            samples: 101,
            time_budget: Duration::from_millis(500),
            ..Sampling::default()
        },
        ..RunOptions::default()
    };
    let data = Data::sums(DType::F32, 1);
    for &size in sizes {
        for algorithm in collectives::of(Collective::Allreduce) {
            let Ok(schedule) = (algorithm.build)(&Shape::new(*ranks as u32, size / 4)) else {
                continue;
            };
            let launch = threads.prepare(&schedule, data)?.run(&options)?;
            // As MPI's: no sample is dropped.
            let mut times = [launch.slowest_ns, launch.disturbed_ns].concat();
            let middle = median(&mut times).expect("at least one sample");
            println!("{size},{},{middle:.1},{:.1}", algorithm.name, times[0]);
        }
    }
    Ok(())
}
