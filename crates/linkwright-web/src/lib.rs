//! The engine in a browser: JSON text in, JSON text out.
//!
//! ```text
//!   page --message--> worker --room, ask, text--> this module --> core, schedule, sim, synthesis
//! ```
//!
//! A WebAssembly module shares its memory with the script that loaded it, so three functions are enough: `lw_room`
//! gives the place for a request, `lw_ask` answers it, and `lw_text` is where the answer stands. Requests are objects
//! with an `ask`, see [`answer`]; an answer is `{"ok": ...}` or `{"error": "..."}`, with the message that native code
//! gives. A panic ends the module: its message then stands where the answer would, and the worker starts another one.
//! What the browser cannot do (threads, files, random numbers) nothing here asks for; the key of fingerprints is
//! therefore the same each time (`linkwright_schedule::verify::proof_key`). The script gives two functions, in a module
//! `page`: `now_ms`, the clock of a search (`linkwright_core::clock`), and `improved`, which hears what it finds.

mod answer;
mod machine;
mod posed;
mod question;
mod search;
mod shelf;

use std::cell::RefCell;

use serde_json::json;

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Room for a request of `bytes` bytes.
#[no_mangle]
pub extern "C" fn lw_room(bytes: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        *text = vec![0; bytes];
        text.as_mut_ptr()
    })
}

/// Answer the request that stands in the room; the length of the answer.
#[no_mangle]
pub extern "C" fn lw_ask() -> usize {
    std::panic::set_hook(Box::new(|panic| {
        keep(json!({ "error": format!("internal error: {panic}") }).to_string());
    }));
    let request = TEXT.take();
    let found = serde_json::from_slice(&request)
        .map_err(|error| format!("the request is not JSON: {error}"))
        .and_then(|request| answer::answer(&request));
    let text = match found {
        Ok(found) => json!({ "ok": found }),
        Err(error) => json!({ "error": error }),
    };
    keep(text.to_string())
}

/// Where the answer, or the message of a panic, stands.
#[no_mangle]
pub extern "C" fn lw_text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// How long it is.
#[no_mangle]
pub extern "C" fn lw_length() -> usize {
    TEXT.with_borrow(Vec::len)
}

fn keep(answer: String) -> usize {
    TEXT.set(answer.into_bytes());
    lw_length()
}
