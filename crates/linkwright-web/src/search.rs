//! Searches for schedules, whose improvements reach the page while they go on.

use std::time::Duration;

use linkwright_schedule::{text, Collective};
use linkwright_sim::Placement;
use linkwright_synthesis::candidate::KNOWN;
use linkwright_synthesis::{synthesize, Answer, Choices, Control, Problem, Winner};
use serde_json::{json, Value};

use crate::machine::machine;
use crate::posed::{placed, ranks, shape};
use crate::question::{count, said, word, Asked};

/// Seconds of a search, and the most.
const SECONDS: u64 = 10;
const MOST_SECONDS: u64 = 60;

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "page")]
extern "C" {
    /// Takes the improvement, JSON text of `bytes` bytes at `text`, before it returns.
    fn improved(text: *const u8, bytes: usize);
}

/// Native builds have no page to tell.
#[cfg(not(target_family = "wasm"))]
unsafe extern "C" fn improved(_: *const u8, _: usize) {}

/// Search for a schedule that is fast on the machine of the request.
pub fn search(request: &Value) -> Asked<Value> {
    for field in ["schedule", "issue"] {
        if word(request, field).is_some() {
            return Err(format!(
                "{field}: a search makes schedules and chooses their issue policy; clear that field"
            ));
        }
    }
    let seconds = count(request, "seconds")?.unwrap_or(SECONDS);
    if !(1..=MOST_SECONDS).contains(&seconds) {
        return Err(format!(
            "seconds {seconds}: a page searches 1 to {MOST_SECONDS} s; `linkwright synthesize` searches longer"
        ));
    }
    let name = word(request, "collective").unwrap_or("allreduce");
    let collective = Collective::from_name(name)
        .filter(|&c| c != Collective::Pattern && !c.is_uneven())
        .ok_or_else(|| format!("collective {name}: a page searches for none of that name"))?;
    let machine = machine(request)?;
    let ranks = ranks(request, &machine)?;
    if placed(request, &machine, ranks)? != Placement::Identity {
        return Err(format!(
            "ranks {ranks}: a search takes the first endpoints of a machine, which are not spread over its nodes; \
             search for all {} ranks, or on fewer nodes",
            machine.ranks()
        ));
    }
    let shape = shape(request, &machine, ranks, name)?;
    let path = word(request, "path").map(str::to_string);
    let problem = Problem::new(&machine, collective, shape, path, 0).map_err(said)?;
    let control = Control {
        budget: Duration::from_secs(seconds),
        threads: 1, // a page has no others
        ..Control::default()
    };
    let choices = Choices {
        control,
        ..Choices::default()
    };
    let report = |winner: &Winner| {
        let text = shown(winner).to_string();
        // SAFETY: the page reads these bytes and keeps no pointer to them.
        unsafe { improved(text.as_ptr(), text.len()) }
    };
    let found = synthesize(problem, choices, Box::new(report)).map_err(said)?;
    Ok(json!({
        "answer": answered(&found.answer),
        "fastest": found.fastest.as_ref().map(answered),
        "tried": found.tried,
        "unseen": found.unseen,
    }))
}

fn shown(winner: &Winner) -> Value {
    let candidate = &winner.candidate;
    json!({
        "method": candidate.method,
        "known": candidate.method == KNOWN,
        "recipe": candidate.recipe.to_string(),
        "time_ps": winner.time.0,
        "issue": candidate.issue.to_string(),
        "path": candidate.path,
        "tried": winner.tried,
        "elapsed_s": winner.elapsed.as_secs_f64(),
        "schedule": text::print(&candidate.schedule),
    })
}

fn answered(answer: &Answer) -> Value {
    let mut all = shown(&answer.winner);
    all["lasting"] = answer.lasting.as_ref().map_or(Value::Null, |lasting| {
        json!({
            "draws": lasting.draws, "wins": lasting.wins, "least": lasting.least, "serial": lasting.serial,
            "lasts": lasting.lasts(),
        })
    });
    all
}
