//! From a plan to XML.
//!
//! The runtime's reader knows no more than one space between attributes and at most 16 of them.

use super::limits::PROTOCOLS;
use super::plan::{Gpu, Head, Place, Plan, Step, COLLECTIVES};
use linkwright_schedule::ir::{Buffer, Hint, Owner};
use std::fmt::Write as _;

/// Largest size for which the runtime may choose the plan, in bytes; so large that a message may be one chunk.
const MAX_BYTES: u64 = 1 << 40;

/// The file of a plan.
pub(super) fn print(plan: &Plan) -> String {
    let mut text = String::with_capacity(plan.steps.len() * 160 + 1024);
    head(&mut text, &plan.head);
    if let Some(buffers) = &plan.buffers {
        text.push_str("  <linkwright>\n");
        buffers.iter().for_each(|one| buffer(&mut text, one));
        text.push_str("  </linkwright>\n");
    }
    for (id, one) in plan.gpus.iter().enumerate() {
        gpu(&mut text, plan, id, one);
    }
    text.push_str("</algo>\n");
    text
}

fn head(text: &mut String, head: &Head) {
    let spec = head.goal.spec;
    let word = COLLECTIVES.iter().find(|known| known.1 == spec.collective);
    let word = word.map_or("custom", |known| known.0);
    let in_place = u8::from(head.goal.in_place());
    let _ = write!(
        text,
        "<algo name=\"linkwright_{word}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" \
         coll=\"{word}\" inplace=\"{in_place}\" outofplace=\"{}\" minBytes=\"0\" maxBytes=\"{MAX_BYTES}\"",
        PROTOCOLS[0].name,
        head.channels,
        head.chunks,
        head.goal.ranks,
        1 - in_place
    );
    if spec.collective.is_rooted() {
        let _ = write!(text, " root=\"{}\"", spec.root);
    }
    text.push_str(">\n");
}

fn buffer(text: &mut String, buffer: &Buffer) {
    let at = match buffer.owner {
        Owner::Ranks => "ranks".to_string(),
        Owner::One(one) => one.0.to_string(),
    };
    let _ = writeln!(
        text,
        "    <buffer name=\"{}\" mul=\"{}\" div=\"{}\" blocks=\"{}\" slices=\"{}\" at=\"{at}\"/>",
        buffer.name, buffer.mul, buffer.div, buffer.blocks, buffer.slices
    );
}

fn gpu(text: &mut String, plan: &Plan, id: usize, gpu: &Gpu) {
    let [input, output, scratch] = gpu.chunks;
    let _ = writeln!(
        text,
        "  <gpu id=\"{id}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{scratch}\">"
    );
    for block in &plan.blocks[gpu.blocks.start as usize..gpu.blocks.end as usize] {
        let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
        let _ = writeln!(
            text,
            "    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">",
            block.tb,
            peer(block.send),
            peer(block.recv),
            block.channel
        );
        for (s, index) in block.steps.clone().enumerate() {
            step(text, s, &plan.steps[index as usize]);
        }
        text.push_str("    </tb>\n");
    }
    text.push_str("  </gpu>\n");
}

fn step(text: &mut String, s: usize, step: &Step) {
    let place = |used: bool, place: Place| match used {
        true => (place.space.word(), i64::from(place.at)),
        false => ("i", -1),
    };
    // A send names its target too, as other writers have it.
    let moves = step.count > 0;
    let ((src, srcoff), (dst, dstoff)) = (place(moves, step.src), place(moves, step.dst));
    let (tb, after) =
        (step.after).map_or((-1, -1), |(tb, after)| (i64::from(tb), i64::from(after)));
    let _ = write!(
        text,
        "      <step s=\"{s}\" type=\"{}\" srcbuf=\"{src}\" srcoff=\"{srcoff}\" dstbuf=\"{dst}\" \
         dstoff=\"{dstoff}\" cnt=\"{}\" depid=\"{tb}\" deps=\"{after}\" hasdep=\"{}\"",
        step.kind.word(),
        step.count,
        u8::from(step.announced)
    );
    if let Some(own) = step.own {
        let _ = write!(
            text,
            " op=\"{}\" step=\"{}\" lane=\"{}\"",
            own.op, own.step, own.lane
        );
        if own.hint != Hint::None {
            let _ = write!(text, " hint=\"{}\"", own.hint.name());
        }
        if own.get {
            text.push_str(" get=\"1\"");
        }
        if own.fenced {
            text.push_str(" fenced=\"1\"");
        }
    }
    text.push_str("/>\n");
}
