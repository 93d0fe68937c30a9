//! Through the kernel, as a stream of bytes: write all of it, read until all of it is there.
//!
//! Both sides block; what a blocked process costs (the kernel puts it to sleep and wakes it) is part of
//! these transports. Request and reply fit into the kernel's buffers or are read while they are written,
//! so the two sides never wait for each other in a circle.

use super::control::Control;
use super::error::{Result, RoundTripError};
use super::mapping::Words;
use super::transport::{Places, Sizes, Transport};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// What one side reads from and writes to.
pub(super) struct End {
    read: File,
    write: File,
}

impl End {
    fn of_socket(socket: OwnedFd) -> io::Result<End> {
        Ok(End {
            read: socket.try_clone()?.into(),
            write: socket.into(),
        })
    }

    fn write_all(&mut self, message: Words) -> Result<()> {
        // SAFETY: the words exist and nobody writes them now.
        let bytes =
            unsafe { std::slice::from_raw_parts(message.start.cast::<u8>(), message.bytes()) };
        let what = "writing to the other process";
        let system = |error| RoundTripError::System { what, error };
        self.write.write_all(bytes).map_err(system)
    }

    /// False when the other side has closed its end.
    fn read_all(&mut self, message: Words) -> Result<bool> {
        // SAFETY: the words exist and nobody else touches them now.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(message.start.cast::<u8>(), message.bytes()) };
        let what = "reading from the other process";
        match self.read.read_exact(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(RoundTripError::System { what, error }),
        }
    }
}

/// How the two ends of a stream are made.
pub(super) trait Connect {
    /// (client's end, server's end), as (read, write) each.
    fn pair() -> io::Result<(End, End)>;
}

/// A stream between the processes; each keeps its own end and closes the other's, so that the end of
/// one process is the end of the other's stream.
pub(super) struct Stream<C> {
    places: Places,
    client: Option<End>,
    server: Option<End>,
    kind: std::marker::PhantomData<C>,
}

/// Two pipes.
pub(super) type Pipe = Stream<Pipes>;
/// A pair of Unix sockets.
pub(super) type UnixSocket = Stream<UnixSockets>;
/// Loopback TCP.
pub(super) type Tcp = Stream<TcpSockets>;

impl<C: Connect> Transport for Stream<C> {
    const IN_PLACE: bool = false;

    fn open(sizes: Sizes) -> Result<Self> {
        let what = "connecting the two processes";
        let system = |error| RoundTripError::System { what, error };
        let (client, server) = C::pair().map_err(system)?;
        Ok(Stream {
            places: Places::apart(sizes)?,
            client: Some(client),
            server: Some(server),
            kind: std::marker::PhantomData,
        })
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn become_client(&mut self, _control: &Control) {
        self.server = None;
    }

    fn send_request(&mut self, _control: &mut Control) -> Result<()> {
        let end = self.client.as_mut().expect("open until the end");
        end.write_all(self.places.client_request)
    }

    fn receive_reply(&mut self, control: &mut Control) -> Result<()> {
        let end = self.client.as_mut().expect("open until the end");
        match end.read_all(self.places.client_reply)? {
            true => Ok(()),
            false => Err(super::peer::how_it_ended(control.peer)),
        }
    }

    fn become_server(&mut self) {
        self.client = None;
    }

    fn receive_request(&mut self, _control: &mut Control) -> Result<bool> {
        let end = self.server.as_mut().expect("open until the end");
        end.read_all(self.places.server_request)
    }

    fn send_reply(&mut self, _control: &mut Control) -> Result<()> {
        let end = self.server.as_mut().expect("open until the end");
        end.write_all(self.places.server_reply)
    }
}

/// Makes two pipes.
pub(super) struct Pipes;

impl Connect for Pipes {
    fn pair() -> io::Result<(End, End)> {
        let (there, back) = (pipe()?, pipe()?);
        let end = |read, write| End { read, write };
        Ok((end(back.0, there.1), end(there.0, back.1)))
    }
}

/// (end to read, end to write) of a new pipe.
fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both are open and nobody else owns them.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

/// Makes a pair of Unix sockets.
pub(super) struct UnixSockets;

impl Connect for UnixSockets {
    fn pair() -> io::Result<(End, End)> {
        let (client, server) = UnixStream::pair()?;
        Ok((
            End::of_socket(client.into())?,
            End::of_socket(server.into())?,
        ))
    }
}

/// Connects two TCP sockets over the loopback interface.
pub(super) struct TcpSockets;

impl Connect for TcpSockets {
    fn pair() -> io::Result<(End, End)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let server = loop {
            // Whoever else found the port in this moment is not our client.
            let (stream, address) = listener.accept()?;
            if address == client.local_addr()? {
                break stream;
            }
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        Ok((
            End::of_socket(client.into())?,
            End::of_socket(server.into())?,
        ))
    }
}
