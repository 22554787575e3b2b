//! The two listeners of a command with [`Network::Proxied`](crate::Network::Proxied).
//!
//! The guard binds them inside the command's network namespace before the command starts, and passes them to lango over
//! a socket pair. So there is no port on the host, and only the command can connect.

use std::net::TcpListener;

/// The port of [`Listeners::proxy`] on 127.0.0.1 of the command's network namespace.
pub const PROXY_PORT: u16 = 3128;
/// The port of [`Listeners::files`] on 127.0.0.1 of the command's network namespace.
pub const FILES_PORT: u16 = 3129;

/// Non-blocking listeners inside a command's network namespace.
#[derive(Debug)]
pub struct Listeners {
    /// For a proxy to the network, on [`PROXY_PORT`].
    pub proxy: TcpListener,
    /// For serving files to the command, on [`FILES_PORT`].
    pub files: TcpListener,
}

#[cfg(target_os = "linux")]
pub(crate) use handover::{receive, send};

#[cfg(target_os = "linux")]
mod handover {
    use super::{FILES_PORT, Listeners, PROXY_PORT};
    use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    };
    use std::io::{self, IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::net::{Ipv4Addr, TcpListener};
    use tokio::io::Interest;
    use tokio::net::UnixStream;

    const COUNT: usize = 2;
    /// SCM_RIGHTS needs at least one byte of data.
    const DATA: &[u8] = b"2";

    /// Binds both listeners in this process's network namespace and sends them.
    pub(crate) fn send(socket: BorrowedFd<'_>) -> io::Result<()> {
        let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
        let files = TcpListener::bind((Ipv4Addr::LOCALHOST, FILES_PORT))?;
        let descriptors = [proxy.as_fd(), files.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(
            socket,
            &[IoSlice::new(DATA)],
            &mut rights,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// Receives both listeners; `None` if the sender ended without sending them.
    pub(crate) async fn receive(socket: &UnixStream) -> io::Result<Option<Listeners>> {
        let descriptors = socket
            .async_io(Interest::READABLE, || receive_descriptors(socket.as_fd()))
            .await?;
        let Ok([proxy, files]) = <[OwnedFd; COUNT]>::try_from(descriptors) else {
            return Ok(None);
        };
        let listeners = Listeners {
            proxy: proxy.into(),
            files: files.into(),
        };
        listeners.proxy.set_nonblocking(true)?;
        listeners.files.set_nonblocking(true)?;
        Ok(Some(listeners))
    }

    fn receive_descriptors(socket: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
        let mut data = [0; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut data)],
            &mut rights,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        )?;
        let descriptors = rights.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        Ok(descriptors.flatten().collect())
    }
}
