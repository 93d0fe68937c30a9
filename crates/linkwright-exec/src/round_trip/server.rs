//! The server's process: a fork that answers until it is told to stop, and never outlives the client.

use super::control::{Control, Mode};
use super::error::{Result, RoundTripError};
use super::transport::Transport;
use super::words;
use crate::topology::pin_to;
use std::hint::black_box;
use std::sync::atomic::Ordering;

/// A running server; stopped and reaped when dropped.
pub(super) struct Server {
    process: libc::pid_t,
}

impl Server {
    /// Forks; the child serves `transport` on processor `cpu` and does not return.
    pub fn start<T: Transport>(
        transport: &mut T,
        control: &mut Control,
        cpu: Option<u32>,
    ) -> Result<Server> {
        // SAFETY: takes nothing, returns a number.
        let client = unsafe { libc::getpid() };
        // SAFETY: the child only makes system calls and uses memory that exists.
        match unsafe { libc::fork() } {
            -1 => Err(RoundTripError::last("forking the server process")),
            0 => {
                control.peer = client;
                serve(transport, control, cpu)
            }
            process => {
                control.peer = process;
                transport.become_client(control);
                Ok(Server { process })
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: the process is ours and was not reaped, so its number is still its own.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

/// The whole life of the server.
fn serve<T: Transport>(transport: &mut T, control: &mut Control, cpu: Option<u32>) -> ! {
    // SAFETY: asks for a signal at the client's end; a client that ended before is seen while waiting.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if let Some(cpu) = cpu {
        // The client has pinned itself to a processor of the same list, so this can be done as well.
        let _ = pin_to(cpu);
    }
    transport.become_server();
    if let Err(RoundTripError::System { error, .. }) = answer_all(transport, control) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        control.errno().store(errno, Ordering::Release);
    }
    // SAFETY: ends this process without running what its parent registered for its own end.
    unsafe { libc::_exit(0) }
}

fn answer_all<T: Transport>(transport: &mut T, control: &mut Control) -> Result<()> {
    while transport.receive_request(control)? {
        let (request, reply) = (
            transport.places().server_request,
            transport.places().server_reply,
        );
        match control.mode() {
            Mode::Timed if T::IN_PLACE => words::compose(reply, black_box(words::sum(request))),
            Mode::Timed => {}
            Mode::Checked => words::compose(reply, words::digest(request)),
            Mode::Report => {
                let switches = crate::guard::involuntary_switches();
                control.switches().store(switches, Ordering::Release);
            }
        }
        transport.send_reply(control)?;
    }
    Ok(())
}
