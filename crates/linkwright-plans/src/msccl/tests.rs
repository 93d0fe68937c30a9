use super::*;
use linkwright_schedule::collectives::{self, REGISTRY};
use linkwright_schedule::ir::{Op, OpKind};
use linkwright_schedule::{verify, Collective, Shape};

/// What moves, in any order: from, to, buffers, chunk ranges, and whether it combines.
fn transfers(schedule: &Schedule) -> Vec<String> {
    let moves = schedule.ops().iter().filter(|op| op.moves_data());
    let line = |op: &Op| {
        let ranges: Vec<_> = schedule.chunk_ranges(op).collect();
        let name = |id| &schedule.buffer(id).name;
        format!(
            "{} {}.{} {}.{} {ranges:?} {:?}",
            op.kind as u8,
            op.from,
            name(op.src_buffer),
            op.to,
            name(op.dst_buffer),
            op.combine
        )
    };
    let mut lines: Vec<String> = moves.map(line).collect();
    lines.sort();
    lines
}

/// Every algorithm over `ranks` ranks that has a schedule there.
fn built(ranks: u32) -> impl Iterator<Item = (String, Schedule)> {
    REGISTRY.iter().filter_map(move |algorithm| {
        let mut shape = Shape::new(ranks, 840 * u64::from(ranks));
        if ranks % 2 == 0 && ranks > 2 {
            shape = shape.with_grid(ranks / 2, 2);
        }
        let built = collectives::build(&algorithm.key(), &shape).ok()?;
        Some((algorithm.key(), built))
    })
}

#[test]
fn every_algorithm_that_the_format_can_express_comes_back() {
    let mut written = 0;
    for ranks in 2..=8 {
        for (key, schedule) in built(ranks) {
            let text = match write(&schedule) {
                Ok(text) => text,
                Err(error) => {
                    let problem = error.to_string();
                    let expected = schedule.has(OpKind::Multicast)
                        || schedule.has(OpKind::Barrier)
                        || schedule.spec.collective == Collective::Barrier
                        || schedule.memories > 0;
                    assert!(expected, "{key} over {ranks}: {problem}");
                    continue;
                }
            };
            written += 1;
            let again = read(&text).unwrap_or_else(|error| panic!("{key} over {ranks}: {error}"));
            let again = linkwright_schedule::transforms::resized(
                &again,
                schedule.elements,
                schedule.element_bytes,
            )
            .unwrap();
            verify(&again).unwrap();
            assert_eq!(again.spec, schedule.spec, "{key} over {ranks}");
            assert_eq!(
                transfers(&again),
                transfers(&schedule),
                "{key} over {ranks}"
            );
            if again != schedule {
                eprintln!(
                    "{key} over {ranks}: not the same {} {}",
                    again.ops().len(),
                    schedule.ops().len()
                );
            }
        }
    }
    eprintln!("written {written}");
}
