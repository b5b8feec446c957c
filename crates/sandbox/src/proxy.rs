//! Windlass's end of the sandbox's proxy: HTTP `CONNECT`, plain HTTP and SOCKS 5, judged and carried.
//!
//! Invariants:
//! - Names are resolved here, and only an address the rules allow is connected to.
//! - A tunnel is for the host that it was asked for: a TLS hello that names another ends it. Where hosts are listed, a
//!   tunnel without such a name ends too, because nothing says which host is meant by its bytes.
//! - One plain HTTP request per connection, with the host it was judged by, so none rides on another's.
//! - The observer is called for every connection that was asked for, and again for a tunnel that is ended.

mod http_request;
mod loopback;
mod tls_hello;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, copy_bidirectional, duplex,
};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::channel::Request;
use crate::network::{ConnectionAttempt, Egress, HostRules, Verdict, is_same_host};
use http_request::HttpRequest;
pub use loopback::LoopbackProxy;
use tls_hello::Hello;
use windlass_helper::protocol::{MAX_CHUNK_BYTES, cost};

/// The longest request head taken; servers commonly take half of it.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How long a client may take to say what it wants.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long resolving and reaching one host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a server may take over the last bytes of a client that is gone.
const LAST_BYTES_TIMEOUT: Duration = Duration::from_secs(10);

/// Addresses of one host that are tried.
const MAX_ADDRESSES: usize = 4;

/// One connection's end of the channel.
pub(crate) struct End {
    pub connection: u32,
    pub inbox: mpsc::UnboundedReceiver<Vec<u8>>,
    pub credit: Arc<Semaphore>,
    pub requests: mpsc::UnboundedSender<Request>,
}

/// Serves one connection from the channel until both sides are done.
pub(crate) async fn serve(end: End, egress: Arc<Egress>) {
    let (near, far) = duplex(MAX_CHUNK_BYTES);
    let (mut from, mut to) = tokio::io::split(near);
    let End { connection, mut inbox, credit, requests } = end;
    let _hangup = HangupOnDrop { connection, requests: requests.clone() };
    let notes = requests.clone();
    let inward = async {
        while let Some(bytes) = inbox.recv().await {
            // Empty bytes: nothing more will come.
            if bytes.is_empty() || to.write_all(&bytes).await.is_err() {
                break;
            }
            let _ =
                requests.send(Request::ConnectionCredit { connection, credit: cost(bytes.len()) });
        }
        let _ = to.shutdown().await;
        while inbox.recv().await.is_some() {}
        // The client is gone; the server has this long to take what the client had sent.
        sleep(LAST_BYTES_TIMEOUT).await;
    };
    let outward = async {
        let mut buffer = vec![0; MAX_CHUNK_BYTES];
        while let Ok(count) = from.read(&mut buffer).await {
            if count == 0 {
                break;
            }
            // A client that is gone gets nothing more, and delays no one.
            let Ok(permit) = credit.acquire_many(cost(count) as u32).await else { continue };
            permit.forget();
            let _ = requests.send(Request::Reply { connection, bytes: buffer[..count].to_vec() });
        }
        // The other direction may stay open.
        let _ = requests.send(Request::Reply { connection, bytes: Vec::new() });
    };
    let speak = async move {
        // The client got an answer about what went wrong, or is gone.
        let _ = converse(far, &Gate { egress: &egress, requests: &notes }).await;
    };
    // The conversation ends the connection; what the client still sends is dropped.
    tokio::select! {
        ((), ()) = async { tokio::join!(outward, speak) } => {}
        () = inward => {}
    }
}

/// Ends the connection inside once everything sent is written, however the conversation ended.
struct HangupOnDrop {
    connection: u32,
    requests: mpsc::UnboundedSender<Request>,
}

impl Drop for HangupOnDrop {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::Hangup { connection: self.connection });
    }
}

async fn converse(mut client: DuplexStream, gate: &Gate<'_>) -> io::Result<()> {
    let first = timeout(REQUEST_TIMEOUT, client.read_u8()).await??;
    match first {
        5 => socks(client, gate).await,
        first => http(client, first, gate).await,
    }
}

/// What commands may reach, and where a refusal is noted beside the observer.
struct Gate<'a> {
    egress: &'a Egress,
    requests: &'a mpsc::UnboundedSender<Request>,
}

impl Gate<'_> {
    /// Connects, or says what became of it.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ConnectionAttempt> {
        let (verdict, stream) = judge_and_connect(host, port, self.egress).await;
        let connection = ConnectionAttempt { host: host.to_owned(), port, verdict };
        self.observe(&connection);
        stream.ok_or(connection)
    }

    fn observe(&self, connection: &ConnectionAttempt) {
        (self.egress.observer)(connection);
        if let Some(text) = connection.refusal() {
            let _ = self.requests.send(Request::NoteRefusal { text });
        }
    }

    /// Carries a tunnel's bytes both ways, once its first ones are for the host that was asked for.
    async fn tunnel(
        &self,
        mut client: DuplexStream,
        mut server: TcpStream,
        (host, port): (&str, u16),
        mut sent: Vec<u8>,
    ) -> io::Result<()> {
        // An address names no host, so nothing can be another's. It was judged as it is.
        let by_name = address(host).is_none();
        let needs_name = by_name && matches!(self.egress.hosts, HostRules::Only(_));
        let first = first_bytes(&mut client, &mut server, &mut sent, !needs_name);
        let hello = match needs_name {
            true => timeout(REQUEST_TIMEOUT, first).await.unwrap_or(Ok(Hello::Other))?,
            false => first.await?,
        };
        let verdict = match hello {
            Hello::Tls(Some(name)) if by_name && !is_same_host(&name, host) => {
                Verdict::OtherName(name)
            }
            Hello::TooLong if by_name => Verdict::NoName,
            Hello::Tls(None) | Hello::Other | Hello::Incomplete if needs_name => Verdict::NoName,
            Hello::Tls(_) | Hello::Other | Hello::Incomplete | Hello::TooLong => {
                server.write_all(&sent).await?;
                return copy_bidirectional(&mut client, &mut server).await.map(drop);
            }
        };
        if sent.is_empty() {
            return Ok(());
        }
        self.observe(&ConnectionAttempt { host: host.to_owned(), port, verdict });
        client.write_all(&UNRECOGNIZED_NAME).await
    }
}

/// The TLS alert for a name that is not served.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Reads what a client sends first, up to the end of a TLS hello if it is one. Meanwhile the server may speak, where
/// that is no matter of names.
async fn first_bytes(
    client: &mut DuplexStream,
    server: &mut TcpStream,
    sent: &mut Vec<u8>,
    server_may_speak: bool,
) -> io::Result<Hello> {
    let mut answer = vec![0; MAX_CHUNK_BYTES];
    loop {
        match tls_hello::read(sent) {
            Hello::Incomplete => {}
            hello => return Ok(hello),
        }
        tokio::select! {
            count = client.read_buf(sent) => if count? == 0 {
                return Ok(Hello::Incomplete);
            },
            count = server.read(&mut answer), if server_may_speak => match count? {
                0 => return Ok(Hello::Incomplete),
                count => client.write_all(&answer[..count]).await?,
            },
        }
    }
}

async fn judge_and_connect(host: &str, port: u16, egress: &Egress) -> (Verdict, Option<TcpStream>) {
    let is_named = egress.names(host, port);
    if !is_named && !egress.hosts.allow(host, port) {
        return (Verdict::HostRefused, None);
    }
    let failed = |why: String| (Verdict::Failed(why), None);
    let addresses = match timeout(CONNECT_TIMEOUT, resolve(host, port)).await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return failed(format!("cannot resolve `{host}`: {error}")),
        Err(_) => return failed(format!("resolving `{host}` took too long")),
    };
    let mut refused: Option<(IpAddr, crate::network::Refusal)> = None;
    let mut last = format!("`{host}` has no address");
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        if let Err(refusal) = egress.addresses.check(address.ip())
            && !is_named
        {
            refused.get_or_insert((address.ip(), refusal));
            continue;
        }
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return (Verdict::Connected(address), Some(stream)),
            Ok(Err(error)) => last = format!("cannot reach `{host}:{port}`: {error}"),
            Err(_) => last = format!("reaching `{host}:{port}` took too long"),
        }
        refused = None;
    }
    match refused {
        Some((address, refusal)) => (Verdict::AddressRefused(address, refusal), None),
        None => failed(last),
    }
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match address(host) {
        Some(address) => Ok(vec![SocketAddr::new(address, port)]),
        None => Ok(lookup_host((host, port)).await?.collect()),
    }
}

/// The address that a host is given by, if it is not a name.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

async fn http(mut client: DuplexStream, first: u8, gate: &Gate<'_>) -> io::Result<()> {
    let Some((head, rest)) = timeout(REQUEST_TIMEOUT, read_head(&mut client, first)).await?? else {
        return say(
            &mut client,
            "431 Request Header Fields Too Large",
            "windlass: the head is too long",
        )
        .await;
    };
    let Some(request) = HttpRequest::parse(&head) else {
        return say(
            &mut client,
            "400 Bad Request",
            "windlass: this is a proxy; ask it for a whole URL",
        )
        .await;
    };
    let mut server = match gate.connect(&request.host, request.port).await {
        Ok(server) => server,
        Err(connection) => {
            let status = match connection.verdict {
                Verdict::Failed(_) => "502 Bad Gateway",
                Verdict::Connected(_)
                | Verdict::HostRefused
                | Verdict::AddressRefused(..)
                | Verdict::OtherName(_)
                | Verdict::NoName => "403 Forbidden",
            };
            return say(&mut client, status, &connection.problem()).await;
        }
    };
    let Some(head) = &request.forward else {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        return gate.tunnel(client, server, (&request.host, request.port), rest).await;
    };
    server.write_all(head.as_bytes()).await?;
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Reads up to the empty line; returns the head and what came after it, or `None` when it is too long.
async fn read_head(
    client: &mut (impl AsyncRead + Unpin),
    first: u8,
) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut read = vec![first];
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok(Some((String::from_utf8_lossy(&read).into_owned(), rest)));
        }
        if read.len() >= MAX_HEAD_BYTES {
            return Ok(None);
        }
        if client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn say(client: &mut (impl AsyncWrite + Unpin), status: &str, why: &str) -> io::Result<()> {
    let body = format!("{why}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\
         \r\n{body}",
        body.len()
    );
    client.write_all(answer.as_bytes()).await
}

async fn socks(mut client: DuplexStream, gate: &Gate<'_>) -> io::Result<()> {
    const NO_AUTHENTICATION: u8 = 0;
    const CONNECT: u8 = 1;
    let (host, port, command) = timeout(REQUEST_TIMEOUT, async {
        let count = client.read_u8().await?;
        let mut methods = vec![0; count.into()];
        client.read_exact(&mut methods).await?;
        if !methods.contains(&NO_AUTHENTICATION) {
            client.write_all(&[5, 0xff]).await?;
            return Err(io::ErrorKind::Unsupported.into());
        }
        client.write_all(&[5, NO_AUTHENTICATION]).await?;
        let mut head = [0; 4];
        client.read_exact(&mut head).await?;
        let host = match head[3] {
            1 => IpAddr::from(read_array::<4>(&mut client).await?).to_string(),
            4 => IpAddr::from(read_array::<16>(&mut client).await?).to_string(),
            3 => {
                let mut name = vec![0; client.read_u8().await?.into()];
                client.read_exact(&mut name).await?;
                String::from_utf8_lossy(&name).into_owned()
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok::<_, io::Error>((host, client.read_u16().await?, head[1]))
    })
    .await??;
    let reply = |code: u8| [5, code, 0, 1, 0, 0, 0, 0, 0, 0];
    if command != CONNECT {
        return client.write_all(&reply(7)).await;
    }
    match gate.connect(&host, port).await {
        Ok(server) => {
            client.write_all(&reply(0)).await?;
            gate.tunnel(client, server, (&host, port), Vec::new()).await
        }
        Err(ConnectionAttempt { verdict: Verdict::Failed(_), .. }) => {
            client.write_all(&reply(4)).await
        }
        Err(_) => client.write_all(&reply(2)).await,
    }
}

async fn read_array<const N: usize>(client: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    client.read_exact(&mut array).await?;
    Ok(array)
}
