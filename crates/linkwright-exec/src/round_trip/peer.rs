//! Whether the other process still runs, and how it ended.

use super::error::{Result, RoundTripError};

/// An error if the process has ended.
pub(super) fn still_runs(process: libc::pid_t) -> Result<()> {
    match peek(process) {
        Some(info) if info.si_signo != 0 => Err(how_it_ended(process)),
        _ => Ok(()),
    }
}

/// The error that says how a process ended that has closed its end of a stream.
pub(super) fn how_it_ended(process: libc::pid_t) -> RoundTripError {
    let how = match peek(process) {
        // SAFETY: the structure tells of a child's end.
        Some(info) if info.si_signo != 0 => match (info.si_code, unsafe { info.si_status() }) {
            (libc::CLD_EXITED, status) => format!("status {status}"),
            (_, signal) => format!("signal {signal}"),
        },
        _ => "it closed its end".to_owned(),
    };
    RoundTripError::ServerEnded { how }
}

/// The state of a child, which stays unreaped.
fn peek(process: libc::pid_t) -> Option<libc::siginfo_t> {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the call fills the structure it is given; all-zero is a valid value of it.
    unsafe {
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let found = libc::waitid(libc::P_PID, process as u32, info.as_mut_ptr(), how);
        (found == 0).then(|| info.assume_init())
    }
}
