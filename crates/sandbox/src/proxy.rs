//! Windlass's end of the sandbox's proxy: HTTP `CONNECT`, plain HTTP and SOCKS 5, judged and carried.
//!
//! Invariants:
//! - Names are resolved here, and only an address the rules allow is connected to.
//! - One plain HTTP request per connection, with the host it was judged by, so none rides on another's.
//! - The observer is called once for every connection that was asked for.

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
use crate::network::{Connection, Egress, Verdict};
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
        let _ = converse(far, &egress).await;
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

async fn converse(mut client: DuplexStream, egress: &Egress) -> io::Result<()> {
    let first = timeout(REQUEST_TIMEOUT, client.read_u8()).await??;
    match first {
        5 => socks(client, egress).await,
        first => http(client, first, egress).await,
    }
}

/// Why there is no connection, as both protocols distinguish it.
enum ConnectError {
    Refused(String),
    Unreachable(String),
}

async fn connect(host: &str, port: u16, egress: &Egress) -> Result<TcpStream, ConnectError> {
    let (verdict, outcome) = judge_and_connect(host, port, egress).await;
    (egress.observer)(&Connection { host: host.to_owned(), port, verdict });
    outcome
}

async fn judge_and_connect(
    host: &str,
    port: u16,
    egress: &Egress,
) -> (Verdict, Result<TcpStream, ConnectError>) {
    if !egress.hosts.allow(host, port) {
        let why = format!("`{host}:{port}` is not on the list of allowed hosts");
        return (Verdict::HostRefused, Err(ConnectError::Refused(why)));
    }
    let failed = |why: String| (Verdict::Failed(why.clone()), Err(ConnectError::Unreachable(why)));
    let addresses = match timeout(CONNECT_TIMEOUT, resolve(host, port)).await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return failed(format!("cannot resolve `{host}`: {error}")),
        Err(_) => return failed(format!("resolving `{host}` took too long")),
    };
    let mut refused: Option<(IpAddr, crate::network::Refusal)> = None;
    let mut last = format!("`{host}` has no address");
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        if let Err(refusal) = egress.addresses.check(address.ip()) {
            refused.get_or_insert((address.ip(), refusal));
            continue;
        }
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return (Verdict::Connected(address), Ok(stream)),
            Ok(Err(error)) => last = format!("cannot reach `{host}:{port}`: {error}"),
            Err(_) => last = format!("reaching `{host}:{port}` took too long"),
        }
        refused = None;
    }
    match refused {
        Some((address, refusal)) => {
            let why = format!("`{host}` is {address}, which is {refusal}");
            (Verdict::AddressRefused(address, refusal), Err(ConnectError::Refused(why)))
        }
        None => failed(last),
    }
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    match plain.parse::<IpAddr>() {
        Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
        Err(_) => Ok(lookup_host((plain, port)).await?.collect()),
    }
}

async fn http(mut client: DuplexStream, first: u8, egress: &Egress) -> io::Result<()> {
    let Some((head, rest)) = timeout(REQUEST_TIMEOUT, read_head(&mut client, first)).await?? else {
        return say(&mut client, "431 Request Header Fields Too Large", "the head is too long")
            .await;
    };
    let Some(request) = HttpRequest::parse(&head) else {
        return say(&mut client, "400 Bad Request", "this is a proxy; ask it for a whole URL")
            .await;
    };
    let mut server = match connect(&request.host, request.port, egress).await {
        Ok(server) => server,
        Err(ConnectError::Refused(why)) => return say(&mut client, "403 Forbidden", &why).await,
        Err(ConnectError::Unreachable(why)) => {
            return say(&mut client, "502 Bad Gateway", &why).await;
        }
    };
    match &request.forward {
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        Some(head) => server.write_all(head.as_bytes()).await?,
    }
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
    let body = format!("windlass: {why}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\
         \r\n{body}",
        body.len()
    );
    client.write_all(answer.as_bytes()).await
}

/// What a client asked of the proxy.
#[derive(Debug, PartialEq, Eq)]
struct HttpRequest {
    host: String,
    port: u16,
    /// The head to send on; `None` for a tunnel.
    forward: Option<String>,
}

impl HttpRequest {
    fn parse(head: &str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = host_and_port(target, None)?;
            return Some(Self { host, port, forward: None });
        }
        let scheme_end = "http://".len();
        if !target.get(..scheme_end)?.eq_ignore_ascii_case("http://") {
            return None;
        }
        let target = &target[scheme_end..];
        let path = target.find(['/', '?']).unwrap_or(target.len());
        let (authority, path) = target.split_at(path);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = host_and_port(authority, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut forward = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let name = header.split(':').next().unwrap_or_default().to_ascii_lowercase();
            let ours = ["host", "connection", "keep-alive"].contains(&name.as_str());
            if !ours && !name.starts_with("proxy-") {
                forward.push_str(header);
                forward.push_str("\r\n");
            }
        }
        forward.push_str("Connection: close\r\n\r\n");
        Some(Self { host, port, forward: Some(forward) })
    }
}

fn host_and_port(authority: &str, default: Option<u16>) -> Option<(String, u16)> {
    let colon = authority.rfind(':').filter(|&colon| !authority[colon..].contains(']'));
    let (host, port) = match colon {
        Some(colon) => (&authority[..colon], authority[colon + 1..].parse().ok()?),
        None => (authority, default?),
    };
    let plain = !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && c != '/');
    plain.then(|| (host.to_owned(), port))
}

async fn socks(mut client: DuplexStream, egress: &Egress) -> io::Result<()> {
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
    match connect(&host, port, egress).await {
        Ok(mut server) => {
            client.write_all(&reply(0)).await?;
            copy_bidirectional(&mut client, &mut server).await.map(drop)
        }
        Err(ConnectError::Refused(_)) => client.write_all(&reply(2)).await,
        Err(ConnectError::Unreachable(_)) => client.write_all(&reply(4)).await,
    }
}

async fn read_array<const N: usize>(client: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    client.read_exact(&mut array).await?;
    Ok(array)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_whole_url_becomes_a_request_without_headers_for_the_proxy() {
        let head = "GET http://user@Example.org:8080/a?b HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n\
                    Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\n\r\n";
        let forward = "GET /a?b HTTP/1.1\r\nHost: Example.org:8080\r\nAccept: */*\r\n\
                       Connection: close\r\n\r\n";
        let expected = HttpRequest {
            host: "Example.org".to_owned(),
            port: 8080,
            forward: Some(forward.to_owned()),
        };
        assert_eq!(HttpRequest::parse(head), Some(expected));
    }

    #[test]
    fn a_tunnel_names_its_port_and_addresses_keep_their_brackets() {
        let parse = |line: &str| HttpRequest::parse(&format!("{line} HTTP/1.1\r\n\r\n"));
        let asked = parse("CONNECT [2606:4700::1]:443").unwrap();
        assert_eq!((asked.host.as_str(), asked.port, asked.forward), ("[2606:4700::1]", 443, None));
        for line in ["CONNECT example.org", "GET /path", "GET https://a/", "CONNECT :80", "GET"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn reading_a_head_never_panics(head in ".{0,200}") {
            let _ = HttpRequest::parse(&head);
            let _ = HttpRequest::parse(&format!("{head}\r\n\r\n"));
            let _ = HttpRequest::parse(&format!("GET http://{head} HTTP/1.1\r\n\r\n"));
        }
    }
}
