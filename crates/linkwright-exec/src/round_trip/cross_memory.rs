//! Each side reads the other's memory with `process_vm_readv`: one copy, made by the kernel, per direction.
//!
//! A fork has its parent's addresses, so each side knows where the other's buffers lie. The counters of
//! [`Control`] say when data are ready. The kernel asks whether the reader might trace the other process:
//! a parent may trace its child; the child may trace its parent where the Yama module is absent, lets
//! everybody (`ptrace_scope` 0), or is told so by the parent (1). With 2 or 3, or where a container
//! forbids the call, the transport is waived.

use super::control::Control;
use super::error::{Result, RoundTripError};
use super::mapping::Words;
use super::transport::{Places, Sizes, Transport};
use std::io;

/// Four buffers, apart.
pub(super) struct CrossMemory(Places);

impl Transport for CrossMemory {
    const IN_PLACE: bool = false;

    fn open(sizes: Sizes) -> Result<Self> {
        Places::apart(sizes).map(CrossMemory)
    }

    fn places(&self) -> &Places {
        &self.0
    }

    fn become_client(&mut self, control: &Control) {
        // SAFETY: only gives a permission. Without Yama the call is refused, and not needed.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, control.peer as libc::c_ulong) };
    }

    fn send_request(&mut self, control: &mut Control) -> Result<()> {
        control.announce_request();
        Ok(())
    }

    fn receive_reply(&mut self, control: &mut Control) -> Result<()> {
        control.await_reply()?;
        read(control.peer, self.0.server_reply, self.0.client_reply).map_err(explain)
    }

    fn receive_request(&mut self, control: &mut Control) -> Result<bool> {
        if !control.await_request() {
            return Ok(false);
        }
        let what = "reading the client's memory";
        read(control.peer, self.0.client_request, self.0.server_request)
            .map(|()| true)
            .map_err(|error| RoundTripError::System { what, error })
    }

    fn send_reply(&mut self, control: &mut Control) -> Result<()> {
        control.announce_reply();
        Ok(())
    }
}

/// Copies `there`, in the memory of another process, to `here`.
fn read(process: libc::pid_t, there: Words, here: Words) -> io::Result<()> {
    let of = |words: Words| libc::iovec {
        iov_base: words.start.cast(),
        iov_len: words.bytes(),
    };
    let (here, there) = (of(here), of(there));
    // SAFETY: `here` is memory of ours that nobody else uses now; the kernel checks `there`.
    let read = unsafe { libc::process_vm_readv(process, &here, 1, &there, 1, 0) };
    match read {
        -1 => Err(io::Error::last_os_error()),
        read if read as usize == here.iov_len => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A refusal with what would help against it.
pub(super) fn explain(error: io::Error) -> RoundTripError {
    let forbidden = matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS)
    );
    if !forbidden {
        let what = "process_vm_readv";
        return RoundTripError::System { what, error };
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let hint = match scope.ok().and_then(|scope| scope.trim().parse().ok()) {
        Some(scope @ 1u32..) => {
            format!("; kernel.yama.ptrace_scope is {scope}, `sysctl kernel.yama.ptrace_scope=0` would allow it")
        }
        _ => "; in a container, allow process_vm_readv or add the capability SYS_PTRACE".to_owned(),
    };
    RoundTripError::Forbidden { error, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_would_help_and_a_failure_stays_one() {
        let refused = explain(io::Error::from_raw_os_error(libc::EPERM)).to_string();
        assert!(
            refused.contains("ptrace_scope") || refused.contains("SYS_PTRACE"),
            "{refused}"
        );
        let failed = explain(io::Error::from_raw_os_error(libc::ESRCH));
        assert!(matches!(failed, RoundTripError::System { .. }), "{failed}");
    }
}
