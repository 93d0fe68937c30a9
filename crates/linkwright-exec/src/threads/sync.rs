//! The synchronisation primitives of the flag protocol: the real ones, or loom's when the
//! protocol is model-checked (`--cfg loom`).

#[cfg(loom)]
pub(crate) use modelled::*;

#[cfg(not(loom))]
pub(crate) use real::*;

#[cfg(not(loom))]
mod real {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
    use std::sync::Mutex;
    pub(crate) use std::thread::yield_now;
    use std::thread::{current, park, Thread};

    /// A place where one thread sleeps until another wakes it; a wake-up is kept for the next sleep.
    #[derive(Debug, Default)]
    pub(crate) struct Sleeper(Mutex<Option<Thread>>);

    impl Sleeper {
        pub(crate) fn enter(&self) {
            *self.0.lock().expect("no panic while held") = Some(current());
        }

        pub(crate) fn sleep(&self) {
            park();
        }

        pub(crate) fn wake(&self) {
            if let Some(thread) = &*self.0.lock().expect("no panic while held") {
                thread.unpark();
            }
        }
    }

    /// The cell with loom's interface.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

#[cfg(loom)]
mod modelled {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
    use loom::sync::{Condvar, Mutex};
    pub(crate) use loom::thread::yield_now;

    /// Park and unpark spelled out: loom's own take a wake-up that comes late for that of a join.
    #[derive(Debug)]
    pub(crate) struct Sleeper {
        woken: Mutex<bool>,
        changed: Condvar,
    }

    impl Default for Sleeper {
        fn default() -> Self {
            Sleeper {
                woken: Mutex::new(false),
                changed: Condvar::new(),
            }
        }
    }

    impl Sleeper {
        pub(crate) fn enter(&self) {}

        pub(crate) fn sleep(&self) {
            let mut woken = self.woken.lock().unwrap();
            while !*woken {
                woken = self.changed.wait(woken).unwrap();
            }
            *woken = false;
        }

        pub(crate) fn wake(&self) {
            *self.woken.lock().unwrap() = true;
            self.changed.notify_one();
        }
    }
}
