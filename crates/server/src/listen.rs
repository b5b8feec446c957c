//! Accepting, limiting, serving and closing connections.
//!
//! Invariants:
//! - A connection that sends nothing, or too slowly, or reads nothing, is closed after a named time.
//! - There are at most [`MAX_CONNECTIONS`]; one more gets an answer that says so, and is closed.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::guard::Peer;

/// Connections at once, where as many files may be open.
pub const MAX_CONNECTIONS: usize = 2048;

/// How long the head of a request, and the pause before it, may take.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// How long encryption may take to be agreed on.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long a client may take to read what was sent before it is dropped. It can come back and resume.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// How long requests may take to end when the server stops.
const DRAIN_TIME: Duration = Duration::from_secs(3);

/// The largest head of a request. A connection reads a little more before it gives up; the guard measures.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// Requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;

/// How often an HTTP/2 client must prove that it is there.
const PING_TIME: Duration = Duration::from_secs(30);

/// The pause after a connection could not be taken, which happens where too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The answer to a connection above the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 141\r\n\r\n\
    {\"type\":\"urn:windlass:problem:too-many-connections\",\"title\":\"Too many connections\",\
    \"status\":503,\"detail\":\"no more are taken\",\"retry_after\":1}";

/// Serves until `stop`, and then until the requests under way have ended or had their time.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    most: usize,
    stop: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                        refuse(&stream, tls.is_some());
                        continue;
                    };
                    let (tls, router, stop) = (tls.clone(), router.clone(), stop.clone());
                    connections.spawn(async move {
                        let _slot = slot;
                        connection(stream, from, tls, router, stop).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
    connections.shutdown().await;
}

/// What fits into the socket's own buffer is sent; nobody waits for it.
fn refuse(stream: &TcpStream, is_tls: bool) {
    if !is_tls {
        let _ = stream.try_write(FULL);
    }
}

async fn connection(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: CancellationToken,
) {
    // Small answers should not wait for more.
    let _ = stream.set_nodelay(true);
    let served = match tls {
        None => http_1(TimedIo::new(stream), from, router, &stop).await,
        Some(tls) => {
            let handshake = tokio::time::timeout(HANDSHAKE_TIME, tls.accept(TimedIo::new(stream)));
            match handshake.await {
                Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                    http_2(stream, from, router, &stop).await
                }
                Ok(Ok(stream)) => http_1(stream, from, router, &stop).await,
                Ok(Err(_)) | Err(_) => return,
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%from, %error, "a connection broke");
    }
}

async fn http_1(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    from: SocketAddr,
    router: Router,
    stop: &CancellationToken,
) -> hyper::Result<()> {
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |request| call(service.clone(), request, from));
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(io), service)
    );
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

async fn http_2(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    from: SocketAddr,
    router: Router,
    stop: &CancellationToken,
) -> hyper::Result<()> {
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |request| call(service.clone(), request, from));
    let mut connection = std::pin::pin!(
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_TIME)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES as u32)
            .serve_connection(TokioIo::new(io), service)
    );
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Hands a request to the routes, with where it comes from.
async fn call(
    service: TowerToHyperService<Router>,
    mut request: Request<Incoming>,
    from: SocketAddr,
) -> Result<axum::response::Response, std::convert::Infallible> {
    request.extensions_mut().insert(Peer(from));
    hyper::service::Service::call(&service, request).await
}

/// A connection that is given up when its client reads nothing for too long.
struct TimedIo {
    stream: TcpStream,
    /// Set while something waits to be written.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl TimedIo {
    fn new(stream: TcpStream) -> Self {
        Self { stream, deadline: None }
    }

    /// Passes on what a write came to, unless it waits for too long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + WRITE_TIME)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for TimedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_full_server_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
