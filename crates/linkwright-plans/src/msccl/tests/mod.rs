//! Plans written by hand, one line for each step:
//!
//! ```text
//!   tb 1 1 0               thread block: sends to 1, receives from 1, channel 0
//!   rrc i0 i0 1 @2.3 !     rrc from chunk 0 of `i` to chunk 0 of `i`, 1 chunk, after step 3 of tb 2, announced
//! ```

mod deadlocks;
mod fuzz;
mod messages;
mod orders;
mod refused;
mod round_trip;

use std::fmt::Write as _;

/// The XML of a plan: the attributes of `<algo>`, chunks of `i`, `o` and `s`, and the steps of each GPU.
fn xml(head: &str, chunks: [u32; 3], gpus: &[&str]) -> String {
    let mut text = format!(
        "<algo name=\"test\" nchannels=\"4\" ngpus=\"{}\" {head}>\n",
        gpus.len()
    );
    for (id, gpu) in gpus.iter().enumerate() {
        let [input, output, scratch] = chunks;
        let _ = writeln!(
            text,
            "<gpu id=\"{id}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{scratch}\">"
        );
        let (mut tb, mut s) = (0, 0);
        for line in gpu.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "tb" {
                text.push_str(if tb == 0 { "" } else { "</tb>\n" });
                let _ = writeln!(
                    text,
                    "<tb id=\"{tb}\" send=\"{}\" recv=\"{}\" chan=\"{}\">",
                    words[1], words[2], words[3]
                );
                (tb, s) = (tb + 1, 0);
                continue;
            }
            step(&mut text, s, &words);
            s += 1;
        }
        text.push_str("</tb>\n</gpu>\n");
    }
    text + "</algo>\n"
}

fn step(text: &mut String, s: u32, words: &[&str]) {
    let after = words.iter().find_map(|word| word.strip_prefix('@'));
    let (tb, after) = after
        .and_then(|after| after.split_once('.'))
        .unwrap_or(("-1", "-1"));
    let announced = u8::from(words.contains(&"!"));
    let ((src, srcoff), (dst, dstoff)) = (words[1].split_at(1), words[2].split_at(1));
    let _ = writeln!(
        text,
        "<step s=\"{s}\" type=\"{}\" srcbuf=\"{src}\" srcoff=\"{srcoff}\" dstbuf=\"{dst}\" dstoff=\"{dstoff}\" \
         cnt=\"{}\" depid=\"{tb}\" deps=\"{after}\" hasdep=\"{announced}\"/>",
        words[0], words[3]
    );
}

/// An allreduce in place, cut into `chunks`.
fn allreduce(chunks: u32, scratch: u32, gpus: &[&str]) -> String {
    let head =
        format!("proto=\"Simple\" coll=\"allreduce\" nchunksperloop=\"{chunks}\" inplace=\"1\"");
    xml(&head, [chunks, chunks, scratch], gpus)
}

/// Two GPUs: each adds its half of the other's vector to its own, and sends the sums back.
fn halves() -> String {
    allreduce(
        2,
        0,
        &[
            "tb 1 1 0
             s i1 i1 1
             rrcs i0 i0 1
             r i1 i1 1",
            "tb 0 0 0
             s i0 i0 1
             rrcs i1 i1 1
             r i0 i0 1",
        ],
    )
}
