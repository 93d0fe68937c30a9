//! The executor without time: operations one after the other, by id, on real buffers.
//!
//! Ids are a topological order, so this is a correct execution by definition, and what any other
//! executor leaves in memory must equal what this one leaves, bit for bit where arithmetic is
//! exact. It is written to be read, not to be fast.

use crate::buffers::{AlignedBytes, Buffers, Contents};
use crate::dtype::combine;
use crate::error::Result;
use linkwright_schedule::ir::Combine;

/// Runs the whole schedule from its initial state.
pub fn execute(contents: &Contents) -> Result<Buffers> {
    contents.check_memory(1)?;
    let schedule = contents.schedule;
    let mut state = Buffers::initial(contents);
    for (id, op) in schedule.ops().iter().enumerate() {
        if !op.moves_data() {
            continue;
        }
        for extent in contents.extents(id as u32, op)? {
            let mut moving = AlignedBytes::new(extent.bytes);
            for (nth, &source) in schedule.sources(op).iter().enumerate() {
                let from = state.buffer(source, op.src_buffer.0.into());
                let from = &from[extent.src..extent.src + extent.bytes];
                match nth {
                    0 => moving.get_mut().copy_from_slice(from),
                    _ => combine(
                        contents.data.dtype,
                        contents.data.op,
                        moving.get_mut(),
                        from,
                    ),
                }
            }
            for &target in schedule.targets(op) {
                let to = state.buffer_mut(target, op.dst_buffer.0.into());
                let to = &mut to[extent.dst..extent.dst + extent.bytes];
                match op.combine {
                    Combine::Replace => to.copy_from_slice(moving.get()),
                    Combine::Reduce => {
                        combine(contents.data.dtype, contents.data.op, to, moving.get());
                    }
                }
            }
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Data;
    use crate::dtype::{DType, ReduceOp};
    use crate::error::ExecError;
    use linkwright_schedule::builder::{Builder, Shape};
    use linkwright_schedule::collectives::REGISTRY;
    use linkwright_schedule::ir::Buffer;
    use linkwright_schedule::spec::Collective;
    use linkwright_schedule::transforms;

    fn shape(ranks: u32, elements: u64, dtype: DType) -> Shape {
        let mut shape = Shape::new(ranks, elements);
        shape.element_bytes = dtype.size() as u32;
        shape
    }

    #[test]
    fn every_algorithm_meets_its_postcondition_in_every_type() {
        for algorithm in REGISTRY {
            for (ranks, dtype) in [2, 3, 5, 8].into_iter().zip(DType::ALL.into_iter().cycle()) {
                for op in ReduceOp::ALL {
                    let Ok(schedule) = (algorithm.build)(&shape(ranks, 40, dtype)) else {
                        continue;
                    };
                    let data = Data { dtype, op, seed: 1 };
                    let contents = Contents::new(&schedule, data).unwrap();
                    let state = execute(&contents).unwrap();
                    let checked = state.check(&contents, "reference").unwrap();
                    // A barrier moves tokens, which are chunks without elements.
                    let tokens = algorithm.collective == Collective::Barrier;
                    assert!(checked > 0 || tokens, "{}", algorithm.key());
                }
            }
        }
    }

    /// Three runs over p ranks count each contribution p * p times, one run too few p times.
    #[test]
    fn a_repeated_allreduce_is_checked_as_often_as_it_counts() {
        let ring = REGISTRY.iter().find(|a| a.key() == "allreduce/ring");
        let build = ring.unwrap().build;
        for (ranks, dtype) in (2..=6).zip(DType::ALL.into_iter().cycle()) {
            for op in ReduceOp::ALL {
                let once = build(&shape(ranks, 40, dtype)).unwrap();
                let data = Data { dtype, op, seed: 1 };
                for times in [2, 3] {
                    let repeated = transforms::repeat(&once, times).unwrap();
                    let contents = Contents::new(&repeated, data).unwrap();
                    let state = execute(&contents).unwrap();
                    assert!(state.check(&contents, "reference").unwrap() > 0);
                    if matches!(op, ReduceOp::Sum) {
                        let mut fewer = repeated.clone();
                        fewer.spec.repeats += 1;
                        let contents = Contents::new(&fewer, data).unwrap();
                        let state = execute(&contents).unwrap();
                        state.check(&contents, "reference").unwrap_err();
                    }
                }
            }
        }
        // 7^3 = 343 is beyond the 256 up to which bf16 has all integers; 7^2 = 49 is not.
        let once = build(&shape(7, 40, DType::Bf16)).unwrap();
        for (times, fits) in [(3, true), (4, false)] {
            let repeated = transforms::repeat(&once, times).unwrap();
            let contents = Contents::new(&repeated, Data::sums(DType::Bf16, 1));
            assert_eq!(contents.is_ok(), fits, "{times}");
        }
    }

    #[test]
    fn a_lost_contribution_is_an_error_that_names_the_place() {
        let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 6));
        let data = b.buffer(Buffer::vector("output", 2));
        b.step();
        b.put(0, data.at(0), 1, data.at(0)).reduce();
        let schedule = b.finish().unwrap();
        let data = Data::sums(DType::I32, 1);
        let contents = Contents::new(&schedule, data).unwrap();
        let state = execute(&contents).unwrap();
        let error = state.check(&contents, "reference").unwrap_err().to_string();
        let start = "rank 0: output[0] is wrong in 3 of 3 elements after reference ran";
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn elements_of_another_size_are_refused() {
        let schedule = (REGISTRY[0].build)(&Shape::new(2, 6)).unwrap();
        let data = Data::sums(DType::F64, 1);
        assert!(matches!(
            Contents::new(&schedule, data).err(),
            Some(ExecError::ElementSize { .. })
        ));
    }

    #[test]
    fn absurd_sizes_are_refused_before_memory_is_touched() {
        let schedule = (REGISTRY[0].build)(&Shape::new(2, 1 << 47)).unwrap();
        let data = Data::sums(DType::F32, 1);
        let contents = Contents::new(&schedule, data).unwrap();
        assert!(matches!(
            execute(&contents).err(),
            Some(ExecError::TooLarge { .. })
        ));
    }
}
