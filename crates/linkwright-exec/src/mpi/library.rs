//! An MPI library as function addresses and handles, found at run time.
//!
//! This crate is built without MPI: no header, no compiler wrapper, no link. The program that starts
//! the library (through `mpi4py`) supplies the addresses of its functions and the values of its handles:
//!
//! ```text
//!                 handle of a communicator, type, operator      request
//!   Open MPI      address                                       8 bytes
//!   MPICH         32-bit integer                                4 bytes
//! ```
//!
//! Both travel in one machine word of a register, and a request fits into a cell of eight bytes that
//! only the library reads; so one walker serves both. Statuses are given real memory, because the
//! value of `MPI_STATUS_IGNORE` differs too.

use crate::error::{ExecError, Result};
use std::collections::BTreeMap;
use std::ffi::c_int;

/// Room for one status of any library.
pub const STATUS_BYTES: usize = 256;

/// A handle as it travels in a register.
pub type Handle = usize;

type Send = unsafe extern "C" fn(*const u8, c_int, Handle, c_int, c_int, Handle) -> c_int;
type Recv = unsafe extern "C" fn(*mut u8, c_int, Handle, c_int, c_int, Handle, *mut u64) -> c_int;
type Isend =
    unsafe extern "C" fn(*const u8, c_int, Handle, c_int, c_int, Handle, *mut u64) -> c_int;
type Irecv = unsafe extern "C" fn(*mut u8, c_int, Handle, c_int, c_int, Handle, *mut u64) -> c_int;
type Wait = unsafe extern "C" fn(*mut u64, *mut u64) -> c_int;
type Test = unsafe extern "C" fn(*mut u64, *mut c_int, *mut u64) -> c_int;
type Barrier = unsafe extern "C" fn(Handle) -> c_int;
type Bcast = unsafe extern "C" fn(*mut u8, c_int, Handle, c_int, Handle) -> c_int;
type Combine = unsafe extern "C" fn(*const u8, *mut u8, c_int, Handle, Handle, Handle) -> c_int;
type Reduce =
    unsafe extern "C" fn(*const u8, *mut u8, c_int, Handle, Handle, c_int, Handle) -> c_int;
type Exchange =
    unsafe extern "C" fn(*const u8, c_int, Handle, *mut u8, c_int, Handle, Handle) -> c_int;
type ExchangeV = unsafe extern "C" fn(
    *const u8,
    *const c_int,
    *const c_int,
    Handle,
    *mut u8,
    *const c_int,
    *const c_int,
    Handle,
    Handle,
) -> c_int;
type Rooted =
    unsafe extern "C" fn(*const u8, c_int, Handle, *mut u8, c_int, Handle, c_int, Handle) -> c_int;

macro_rules! functions {
    ($($field:ident: $type:ty = $name:literal;)*) => {
        /// The functions of an MPI library.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)] // named as in the standard
        pub struct Functions { $(pub $field: $type,)* }

        impl Functions {
            /// Names as in the standard, without `MPI_`.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// From addresses by name.
            ///
            /// # Safety
            /// Each address is that of the function of this name, of one MPI library.
            pub unsafe fn from_addresses(found: &BTreeMap<String, usize>) -> Result<Self> {
                let address = |name: &str| match found.get(name).copied() {
                    Some(address) if address != 0 => Ok(address),
                    _ => Err(ExecError::NoMpiFunction { name: name.to_owned() }),
                };
                Ok(Functions {
                    // SAFETY: as promised by the caller.
                    $($field: unsafe { std::mem::transmute::<usize, $type>(address($name)?) },)*
                })
            }
        }
    };
}

functions! {
    send: Send = "Send";
    recv: Recv = "Recv";
    isend: Isend = "Isend";
    irecv: Irecv = "Irecv";
    wait: Wait = "Wait";
    test: Test = "Test";
    barrier: Barrier = "Barrier";
    bcast: Bcast = "Bcast";
    allreduce: Combine = "Allreduce";
    reduce_scatter: Combine = "Reduce_scatter_block";
    reduce: Reduce = "Reduce";
    allgather: Exchange = "Allgather";
    alltoall: Exchange = "Alltoall";
    alltoallv: ExchangeV = "Alltoallv";
    gather: Rooted = "Gather";
    scatter: Rooted = "Scatter";
}

/// A communicator and this process in it.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Handle for the messages that are timed.
    pub data: Handle,
    /// Handle for those that organise the measurement, so that the two never meet.
    pub control: Handle,
    /// This process.
    pub rank: u32,
    /// All of them.
    pub size: u32,
}

/// Handles and values that a library defines.
#[derive(Clone, Copy, Debug)]
pub struct Handles {
    /// `MPI_BYTE`.
    pub byte: Handle,
    /// `MPI_DOUBLE`.
    pub double: Handle,
    /// `MPI_MAX`.
    pub max: Handle,
    /// `MPI_IN_PLACE`.
    pub in_place: usize,
    /// Largest tag.
    pub tag_limit: i32,
    /// Types in the order of [`crate::dtype::DType::ALL`]; `None` where MPI has none.
    pub dtypes: [Option<Handle>; 6],
    /// Operators in the order of [`crate::dtype::ReduceOp::ALL`].
    pub ops: [Handle; 4],
}

/// A started MPI library.
#[derive(Clone, Copy)]
pub struct Library {
    /// What can be called.
    pub functions: Functions,
    /// What calls are given.
    pub handles: Handles,
}

/// Turns a return code into an error.
#[inline(always)]
pub(super) fn done(function: &'static str, code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(ExecError::Mpi { function, code }),
    }
}

impl Library {
    /// All ranks wait for each other.
    pub(super) fn barrier(&self, group: &Group) -> Result<()> {
        // SAFETY: a valid communicator.
        done("Barrier", unsafe {
            (self.functions.barrier)(group.control)
        })
    }

    /// The largest of each number over all ranks.
    pub(super) fn max(&self, group: &Group, own: &[f64], all: &mut [f64]) -> Result<()> {
        assert_eq!(own.len(), all.len(), "one result for each number");
        let (f, h) = (&self.functions, &self.handles);
        // SAFETY: both hold as many doubles as are named.
        let code = unsafe {
            let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
            (f.allreduce)(from, to, own.len() as c_int, h.double, h.max, group.control)
        };
        done("Allreduce", code)
    }

    /// Sends a few numbers to `peer`.
    pub(super) fn send(&self, group: &Group, peer: u32, values: &[i64]) -> Result<()> {
        let bytes = std::mem::size_of_val(values) as c_int;
        let (from, byte) = (values.as_ptr().cast(), self.handles.byte);
        // SAFETY: the slice holds these bytes.
        done("Send", unsafe {
            (self.functions.send)(from, bytes, byte, peer as c_int, 0, group.control)
        })
    }

    /// Receives as many numbers from `peer`.
    pub(super) fn recv(&self, group: &Group, peer: u32, values: &mut [i64]) -> Result<()> {
        let bytes = std::mem::size_of_val(values) as c_int;
        let (to, byte) = (values.as_mut_ptr().cast(), self.handles.byte);
        let mut status = [0u64; STATUS_BYTES / 8];
        // SAFETY: the slice holds these bytes, the status is large enough.
        done("Recv", unsafe {
            let status = status.as_mut_ptr();
            (self.functions.recv)(to, bytes, byte, peer as c_int, 0, group.control, status)
        })
    }
}
