//! A net under Parquet's reader, which panics on some pages that contradict their headers.

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

use crate::Error;

thread_local! {
    static UNDER: Cell<bool> = const { Cell::new(false) };
}

/// What `read` gives; a panic in it becomes an error, and nothing is printed.
pub(crate) fn under<T>(read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !UNDER.get() {
                others(panic);
            }
        }));
    });
    let before = UNDER.replace(true);
    let found = catch_unwind(AssertUnwindSafe(read)); // what it leaves half done is dropped
    UNDER.set(before);
    found.unwrap_or_else(|panic| Err(Error::Contradiction(said(panic.as_ref()))))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given")
        .to_owned()
}
