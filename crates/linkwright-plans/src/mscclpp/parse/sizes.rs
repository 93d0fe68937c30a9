//! How many chunks each buffer has, and into how many parts groups of thread blocks cut them.

use crate::divisor::gcd;
use crate::error::{PlanError, Result};
use crate::mscclpp::json::File;

use crate::mscclpp::plan::{place, Goal};
use linkwright_schedule::ir::MAX_RANKS;
use linkwright_schedule::{Collective, Spec};

/// Most units of one buffer.
pub(in crate::mscclpp) const MAX_UNITS: u64 = 1 << 20;
/// Most parts into which groups of thread blocks cut a chunk.
const MAX_FINE: u64 = 1 << 10;
/// Most units of all buffers of all GPUs.
const MAX_CELLS: u64 = 1 << 23;

fn spec(file: &File) -> Result<Spec> {
    let (root, own) = file
        .linkwright
        .as_ref()
        .map_or((0, false), |own| (own.root, true));
    let collective = match file.collective.as_str() {
        "allreduce" => Collective::Allreduce,
        "allgather" => Collective::Allgather,
        "reducescatter" | "reduce_scatter" => Collective::ReduceScatter,
        "alltoall" => Collective::Alltoall,
        "broadcast" => Collective::Broadcast,
        "reduce" => Collective::Reduce,
        "gather" if own => Collective::Gather,
        "scatter" if own => Collective::Scatter,
        other => {
            return Err(PlanError::at(
                "collective",
                format!(
                    "`{}` has no result that can be proved; allreduce, allgather, reducescatter, alltoall, broadcast \
                     and reduce have",
                    other.escape_debug()
                ),
            ))
        }
    };
    if file.inplace && !collective.is_in_place() {
        let problem = format!(
            "{} in place would lose its input; set it to false",
            collective.name()
        );
        return Err(PlanError::at("inplace", problem));
    }
    let mut spec = Spec::new(collective, root);
    spec.out_of_place = !file.inplace && collective.is_in_place();
    Ok(spec)
}

/// What the plan is to achieve, and the units of scratch of the GPU with most.
pub(super) fn sizes(file: &File) -> Result<(Goal, u32)> {
    let spec = spec(file)?;
    let ranks = file.gpus.len() as u32;
    if file.gpus.is_empty() || file.gpus.len() > MAX_RANKS as usize {
        return Err(PlanError::at(
            "gpus",
            format!("{} GPUs; at least 1 is needed", file.gpus.len()),
        ));
    }
    if spec.root >= ranks {
        let problem = format!("root {} does not exist; there are {ranks} GPUs", spec.root);
        return Err(PlanError::at("linkwright", problem));
    }
    if !matches!(file.protocol.as_str(), "Simple" | "LL") {
        let problem = format!(
            "`{}` is not known; Simple and LL are",
            file.protocol.escape_debug()
        );
        return Err(PlanError::at("protocol", problem));
    }
    let (input, output) = chunks(file, &spec, ranks)?;
    let fine = fine(file)?;
    let vector = u64::from(input.max(output)) * u64::from(fine);
    let scratch = file
        .gpus
        .iter()
        .map(|gpu| u64::from(gpu.scratch_chunks))
        .max();
    let scratch = scratch.unwrap_or(0) * u64::from(fine);
    let cells = u64::from(ranks) * (2 * vector + scratch);
    if vector > MAX_UNITS || scratch > MAX_UNITS || cells > MAX_CELLS {
        let problem = format!(
            "{ranks} GPUs with {vector} parts of the data and {scratch} of scratch; use fewer chunks, at most {MAX_UNITS} \
             of a buffer and {MAX_CELLS} of all together"
        );
        return Err(PlanError::at("gpus", problem));
    }
    let goal = Goal {
        spec,
        ranks,
        vector: vector as u32,
        fine,
    };
    Ok((goal, scratch as u32))
}

/// Chunks of input and output, which are the same for all GPUs and fit the collective.
fn chunks(file: &File, spec: &Spec, ranks: u32) -> Result<(u32, u32)> {
    let (input, output) = (file.gpus[0].input_chunks, file.gpus[0].output_chunks);
    for (rank, gpu) in file.gpus.iter().enumerate() {
        let at = |problem: String| Err(PlanError::at(format!("gpu {rank}"), problem));
        if gpu.id as usize != rank {
            return at(format!(
                "id {} stands in place {rank}; list the GPUs in order from 0",
                gpu.id
            ));
        }
        if (gpu.input_chunks, gpu.output_chunks) != (input, output) {
            return at(format!(
                "{} input and {} output chunks, but {input} and {output} at gpu 0; make them equal",
                gpu.input_chunks, gpu.output_chunks
            ));
        }
    }
    let (wide_in, wide_out) = (u64::from(input), u64::from(output));
    let times = |chunks: u64| chunks * u64::from(ranks);
    let (fits, rule) = match spec.collective {
        Collective::Allgather | Collective::Gather => (
            times(wide_in) == wide_out,
            "output_chunks must be input_chunks times the GPUs",
        ),
        Collective::ReduceScatter | Collective::Scatter => (
            times(wide_out) == wide_in,
            "input_chunks must be output_chunks times the GPUs",
        ),
        Collective::Alltoall => (
            input == output && input % ranks == 0,
            "input_chunks and output_chunks must be equal, and a multiple of the GPUs",
        ),
        _ => (
            input == output,
            "input_chunks and output_chunks must be equal",
        ),
    };
    match fits && input > 0 && output > 0 {
        true => Ok((input, output)),
        false => {
            let name = spec.collective.name();
            let problem =
                format!("{input} input and {output} output chunks of {name}; {rule}, at least 1");
            Err(PlanError::at("gpu 0", problem))
        }
    }
}

/// Parts into which groups of thread blocks cut every chunk: the least number that all groups divide.
fn fine(file: &File) -> Result<u32> {
    let mut fine: u64 = 1;
    for gpu in &file.gpus {
        for block in &gpu.threadblocks {
            for (index, op) in (0..).zip(&block.ops) {
                let Some(group) = op.tbg_info else { continue };
                let size = u64::from(group.tbg_size);
                let at =
                    |problem: String| Err(PlanError::at(place(gpu.id, block.id, index), problem));
                if group.tb_id >= group.tbg_size {
                    return at(format!(
                        "part {} of a group of {size} does not exist",
                        group.tb_id
                    ));
                }
                if size > MAX_FINE || fine / gcd(fine, size) * size > MAX_FINE {
                    return at(format!(
                        "groups cut a chunk into more than {MAX_FINE} parts; use smaller groups"
                    ));
                }
                fine = fine / gcd(fine, size) * size;
            }
        }
    }
    Ok(fine as u32)
}
