//! Tracks the bytes that are read from and written to a connection.

use super::connection::Connection;
use super::raw;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that reports its activity to its [`Connection`].
#[derive(Debug)]
pub(super) struct Stream<S> {
    inner: S,
    line: Arc<Connection>,
    /// Our own response, sent instead of hyper's.
    instead: Vec<u8>,
    is_at_end: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    pub(super) fn new(inner: S, line: Arc<Connection>) -> Stream<S> {
        Stream { inner, line, instead: Vec::new(), is_at_end: false }
    }

    /// Returns whether the client has closed its side.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Checks whether a write is a response to replace, and prepares the replacement.
    fn replaces(&mut self, written: &[u8]) -> bool {
        // Only the start of a write can be such a response, and few writes start like one.
        if !written.starts_with(b"HTTP/1.1 4") || !self.instead.is_empty() {
            return false;
        }
        let Some(answer) = raw::instead_of(written) else { return false };
        self.line.owes(None);
        self.instead = answer;
        true
    }

    /// Sends the replacement.
    fn poll_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let sent = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.instead))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.instead.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        if into.filled().len() > before {
            self.line.received();
        } else if into.remaining() > 0 {
            self.is_at_end = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.line.writes(written.is_pending());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices
            && self.replaces(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.line.writes(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.line.writes(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
