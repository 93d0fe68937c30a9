//! Verify of one rank and verify of all ranks agree: on every algorithm that folds, and on its mutants.

use super::Folded;
use crate::builder::Shape;
use crate::collectives::REGISTRY;
use crate::ir::{Combine, Op};
use crate::symmetric::Wait;
use crate::text::print;
use crate::verify::verify;

fn folds(p: u32) -> Vec<(String, Folded)> {
    let shape = Shape::new(p, 4 * u64::from(p));
    let programs = (REGISTRY.iter()).filter_map(|a| Some((a.key(), (a.program?)(&shape).ok()?)));
    programs
        .flat_map(|(key, program)| {
            let fold = |fused| (key.clone(), program.clone().fold(fused).unwrap());
            [fold(true), fold(false)]
        })
        .collect()
}

/// Whether both accept it.
fn agree(key: &str, folded: &Folded, what: &str) -> bool {
    let all = folded.unfold();
    let (found, due) = (folded.verify(), verify(&all));
    assert_eq!(
        found.is_ok(),
        due.is_ok(),
        "{key}: {what}: one rank says {found:?}, all ranks {due:?}\n{}",
        print(&all)
    );
    found.is_ok()
}

/// Copies of `folded` with one mistake.
fn mutants(folded: &Folded) -> Vec<(String, Folded)> {
    let mut all = Vec::new();
    let p = folded.ranks();
    let mut change = |k: usize, what: &str, op: Op| {
        if folded.ops()[k] != op {
            let mut mutant = folded.clone();
            mutant.program.ops[k] = op;
            all.push((format!("k{k} {what}"), mutant));
        }
    };
    for (k, op) in folded.ops().iter().enumerate() {
        for x in 0..p {
            if op.is_message() {
                change(k, "to another rank", Op { to: x, ..*op });
            }
            if op.moves_data() && !op.scattered {
                let chunks =
                    |id: crate::ir::BufferId| folded.program.buffers[id.0 as usize].chunks();
                let (src, dst) = (x % chunks(op.src_buffer), x % chunks(op.dst_buffer));
                change(k, "from another chunk", Op { src, ..*op });
                change(k, "into another chunk", Op { dst, ..*op });
            }
        }
        if op.moves_data() {
            let other = |combine| Op { combine, ..*op };
            change(k, "replacing", other(Combine::Replace));
            change(k, "combining", other(Combine::Reduce));
        }
        change(
            k,
            "in another lane",
            Op {
                lane: op.lane ^ 1,
                ..*op
            },
        );
    }
    for index in 0..folded.waits.len() {
        let wait = folded.waits[index];
        let k = folded
            .wait_start
            .partition_point(|&start| start as usize <= index)
            - 1;
        let mut lost = folded.clone();
        lost.waits.remove(index);
        lost.wait_start[k + 1..]
            .iter_mut()
            .for_each(|start| *start -= 1);
        all.push((format!("k{k} without a wait"), lost));
        let mut other = |what: &str, wait: Wait| {
            let mut mutant = folded.clone();
            mutant.waits[index] = wait;
            all.push((format!("k{k} {what}"), mutant));
        };
        other("waiting for a source", Wait::on(wait.op(), wait.rank()));
        other(
            "waiting for another rank",
            Wait::on(wait.op(), (wait.rank() + 1) % p),
        );
        other("waiting for itself", wait.with_op(k as u32));
    }
    // An operation deleted: it does nothing any more, but may still be waited for.
    for k in 0..folded.ops().len() {
        let mut mutant = folded.clone();
        let op = &mut mutant.program.ops[k];
        if op.moves_data() && !op.scattered {
            op.count = 0;
            all.push((format!("k{k} deleted"), mutant));
        }
    }
    all
}

#[test]
fn agrees_on_every_algorithm() {
    for p in (1..=33).chain([64]) {
        for (key, folded) in folds(p) {
            assert!(agree(&format!("{key} p={p}"), &folded, "unchanged"));
            let (found, due) = (folded.verify().unwrap(), verify(&folded.unfold()).unwrap());
            assert_eq!(found.operations, due.operations, "{key} p={p}");
            assert_eq!(found.edges, due.edges, "{key} p={p}");
            assert_eq!(found.messages, due.messages, "{key} p={p}");
            assert_eq!(found.notices, due.notices, "{key} p={p}");
            assert_eq!(found.chunk_moves, due.chunk_moves, "{key} p={p}");
        }
    }
}

#[test]
fn agrees_on_mutants() {
    for p in 2..=5 {
        let (mut right, mut wrong) = (0, 0);
        for (key, folded) in folds(p) {
            for (what, mutant) in mutants(&folded) {
                match agree(&format!("{key} p={p}"), &mutant, &what) {
                    true => right += 1,
                    false => wrong += 1,
                }
            }
        }
        assert!(wrong > right, "{p} ranks: {right} right, {wrong} wrong");
    }
}

#[test]
fn errors_say_what_lacks_and_where() {
    let shape = Shape::new(8, 32);
    let program = crate::collectives::program("allreduce/ring", &shape).unwrap();
    let good = program.fold(true).unwrap();
    let error = |change: &dyn Fn(&mut Folded)| {
        let mut folded = good.clone();
        change(&mut folded);
        folded.verify().unwrap_err().to_string()
    };
    // The last step of the allgather lost: one block keeps the sum that passed through here.
    let lost = error(&|f| f.program.ops[13].count = 0);
    assert_eq!(lost, "step 6: rank 0: output[1] ends without rank 1's contribution; send it there before the last step, or reduce instead of replace");
    let far = error(&|f| f.program.ops[3].to = 8);
    assert!(far.contains("rank 8 does not exist; there are 8"), "{far}");
    let twice = error(&|f| f.program.ops[13].combine = Combine::Reduce);
    assert!(twice.contains("twice instead of once"), "{twice}");
}
